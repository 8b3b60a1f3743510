/* annotations.c: see annotations.h. */
#include "patch/annotations.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/file.h"
#include "base/text.h"

/* A slide that is a PNG is not its own label image. */
static bool same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* Takes over the path. */
static bool take_if_exists(const struct slide_entry *entry, char *path, char **found,
                           struct err *err)
{
    if (!path)
        return err_memory(err, entry->name);
    if (!file_exists(path) || file_is_folder(path) || same_file(path, entry->path)) {
        free(path);
        return true;
    }
    if (*found && !same_file(path, *found)) {
        err_set(err, ERR_FORMAT, "slide '%s' has two annotation files (%s and %s); keep one",
                entry->name, *found, path);
        free(path);
        return false;
    }
    free(*found);
    *found = path;
    return true;
}

bool annotations_check_source(const char *source, size_t n_slides, struct err *err)
{
    if (!source || file_is_folder(source))
        return true;
    if (!file_exists(source))
        return err_set(err, ERR_USAGE, "--annotations: %s is not a folder", source);
    return n_slides == 1 || annotation_names_slides(source) ||
           err_set(err, ERR_USAGE,
                   "--annotations: %s is a file, and there are %zu slides; only a COCO file covers "
                   "several; pass a folder",
                   source, n_slides);
}

bool annotations_path(const struct slide_entry *entry, const char *folder, char **out,
                      struct err *err)
{
    static const char *const extensions[] = { "xml", "json", "geojson", "annotations", "png" };
    char *found = NULL;
    *out = NULL;
    if (entry->annotation[0]) {
        *out = strdup(entry->annotation);
        return *out ? true : err_memory(err, entry->name);
    }
    if (!folder)
        return true;
    if (!file_is_folder(folder)) {
        *out = strdup(folder);
        return *out ? true : err_memory(err, entry->name);
    }
    const char *slash = strrchr(entry->path, '/'), *file = slash ? slash + 1 : entry->path;
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof extensions / sizeof *extensions; i++)
        ok = take_if_exists(entry, text_format("%s/%s.%s", folder, entry->name, extensions[i]),
                            &found, err) &&
             take_if_exists(entry, text_format("%s/%s.%s", folder, file, extensions[i]), &found,
                            err);
    ok = ok && take_if_exists(entry, text_format("%s/%s/regions.geojson", folder, entry->name),
                              &found, err);
    if (ok)
        *out = found;
    else
        free(found);
    return ok;
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
