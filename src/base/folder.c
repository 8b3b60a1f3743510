/* folder.c: see folder.h. */
#include "base/folder.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/array.h"
#include "base/file.h"
#include "base/names.h"

static bool ends_with(const char *name, const char *const *endings)
{
    for (; *endings; endings++)
        if (strcasecmp(file_extension(name), *endings) == 0)
            return true;
    return false;
}

bool folder_names(const char *folder, const char *const *endings, char ***names, size_t *n,
                  struct err *err)
{
    int64_t room = 0;
    bool ok = true;
    *names = NULL, *n = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return err_errno(err, folder, "open");
    for (const struct dirent *entry; ok && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || (endings && !ends_with(entry->d_name, endings)))
            continue;
        ok = array_grow(names, &room, (int64_t)*n + 1, sizeof **names, folder, err);
        if (ok)
            ok = ((*names)[*n] = strdup(entry->d_name)) || err_memory(err, folder);
        *n += ok;
    }
    closedir(dir);
    if (ok && *n > 1)
        qsort(*names, *n, sizeof **names, names_order);
    if (!ok) {
        folder_names_free(*names, *n);
        *names = NULL, *n = 0;
    }
    return ok;
}

void folder_names_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}
