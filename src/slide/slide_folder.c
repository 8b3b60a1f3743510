/* slide_folder.c: see slide_folder.h. */
#include "slide/slide_folder.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/file.h"
#include "base/folder.h"
#include "base/text.h"

static const char *const slide_extensions[] = { ".svs",     ".tif", ".tiff", ".ndpi",
                                                ".vms",     ".vmu", ".scn",  ".mrxs",
                                                ".svslide", ".bif", NULL };
static const char *const image_extensions[] = { ".png", ".jpg", ".jpeg", NULL };

bool slide_has_extension(const char *path)
{
    const char *extension = file_extension(path);
    for (size_t i = 0; slide_extensions[i]; i++)
        if (strcasecmp(extension, slide_extensions[i]) == 0)
            return true;
    return false;
}
static const char *const companion_endings[] = { "_mask",    "_tissue", "_overlay", "_patches",
                                                 "_label",   "_labels", "_macro",   "_thumbnail",
                                                 "_quality", NULL };

/* By its name, something beside a slide. */
static bool is_companion(const char *name)
{
    size_t stem = (size_t)(file_extension(name) - name);
    for (int i = 0; companion_endings[i]; i++) {
        size_t length = strlen(companion_endings[i]);
        if (stem >= length && strncasecmp(name + stem - length, companion_endings[i], length) == 0)
            return true;
    }
    return false;
}

static bool is_results(const char *folder)
{
    char *record = text_format("%s/run.json", folder);
    bool found = record && file_exists(record);
    free(record);
    return found;
}

static void drop_companions(char **names, size_t *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        if (is_companion(names[i]))
            free(names[i]);
        else
            names[kept++] = names[i];
    }
    *n = kept;
}

bool slide_folder_names(const char *folder, char ***names, size_t *n, struct err *err)
{
    if (!folder_names(folder, slide_extensions, names, n, err))
        return false;
    if (*n > 0 || is_results(folder))
        return true;
    folder_names_free(*names, *n);
    if (!folder_names(folder, image_extensions, names, n, err))
        return false;
    drop_companions(*names, n);
    return true;
}

bool slide_folder_empty(const char *folder, struct err *err)
{
    static const char *const store_extensions[] = { ".h5", NULL };
    char **names = NULL;
    size_t n = 0;
    if (!folder_names(folder, store_extensions, &names, &n, err))
        return false;
    folder_names_free(names, n);
    if (n > 0)
        return err_set(err, ERR_MISSING,
                       "%s: this folder contains patch stores but no slides (.svs, .tif, .ndpi, "
                       "...); pass the stores to predict as %s/*.h5",
                       folder, folder);
    if (!folder_names(folder, image_extensions, &names, &n, err))
        return false;
    folder_names_free(names, n);
    if (n > 0)
        return err_set(err, ERR_MISSING,
                       "%s: no slides in this folder (.svs, .tif, .ndpi, ...), and its images are "
                       "masks, labels or results; name those that are slides",
                       folder);
    return err_set(err, ERR_MISSING, "%s: no slides in this folder (.svs, .tif, .ndpi, ...)",
                   folder);
}
