/* annotations.c: see annotations.h. */
#include "patch/annotations.h"

#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"

bool annotations_path(const struct slide_entry *entry, const char *folder, char **out,
                      struct err *err)
{
    static const char *const extensions[] = { "xml", "json", "geojson" };
    *out = NULL;
    if (entry->annotation[0]) {
        *out = strdup(entry->annotation);
        return *out ? true : err_memory(err, entry->name);
    }
    for (size_t i = 0; folder && i < sizeof extensions / sizeof *extensions; i++) {
        char *path = text_format("%s/%s.%s", folder, entry->name, extensions[i]);
        if (!path)
            return err_memory(err, entry->name);
        if (file_exists(path)) {
            *out = path;
            return true;
        }
        free(path);
    }
    return true;
}

bool annotations_check(const struct slide_list *slides, const char *folder, const bool *done,
                       const struct class_map *map, struct err *err)
{
    struct annotation_file *files = calloc(slides->n + 1, sizeof *files);
    size_t n = 0;
    bool ok = files || err_memory(err, "the annotations");
    for (size_t i = 0; ok && i < slides->n; i++) {
        char *path = NULL;
        ok = done[i] || annotations_path(&slides->entries[i], folder, &path, err);
        if (path)
            files[n++] = (struct annotation_file){ path, slides->entries[i].name };
    }
    ok = ok && annotation_check_classes(files, n, map, err);
    for (size_t i = 0; i < n; i++)
        free((char *)files[i].path);
    free(files);
    return ok;
}
