/* config_classes.c: the classes of a training from its stores (config.h). */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/folder.h"
#include "base/text.h"
#include "patch/store.h"
#include "train/config.h"

bool config_default_classes(const struct train_config *config)
{
    return config->classes.n == 2 && strcmp(config->classes.items[0], "normal") == 0 &&
           strcmp(config->classes.items[1], "tumor") == 0;
}

/* The first store of a path: itself, or the first in the folder; the caller's. NULL: none. What is
 * wrong with a path is found when the data is listed. */
static char *store_at(const char *path)
{
    static const char *const endings[] = { ".h5", NULL };
    char **names = NULL, *store = NULL;
    size_t n = 0;
    if (!file_is_folder(path)) {
        const char *extension = file_extension(path);
        bool fits = strcmp(extension, ".h5") == 0 || strcmp(extension, ".hdf5") == 0;
        return fits && file_exists(path) ? strdup(path) : NULL;
    }
    if (folder_names(path, endings, &names, &n, NULL) && n > 0)
        store = text_format("%s/%s", path, names[0]);
    folder_names_free(names, n);
    return store;
}

static char *first_store(const struct train_config *config)
{
    const struct texts *const lists[] = { &config->data.train, &config->data.val,
                                          &config->data.test, &config->mine.stores };
    for (int k = 0; k < 4; k++)
        for (size_t i = 0; i < lists[k]->n; i++) {
            char *store = store_at(lists[k]->items[i]);
            if (store)
                return store;
        }
    return NULL;
}

static bool copy_names(const struct class_names *from, struct texts *to)
{
    struct texts copy = { calloc((size_t)from->n, sizeof *copy.items), 0 };
    bool ok = copy.items != NULL;
    for (int i = 0; ok && i < from->n; i++, copy.n += ok)
        ok = (copy.items[i] = strdup(from->items[i])) != NULL;
    struct texts drop = ok ? *to : copy;
    for (size_t i = 0; i < drop.n; i++)
        free(drop.items[i]);
    free(drop.items);
    if (ok)
        *to = copy;
    return ok;
}

bool config_adopt_classes(struct train_config *config, struct err *err)
{
    if (config_tables(config))
        return !config_default_classes(config) || config_adopt_text_labels(config, err);
    if (config_whole(config))
        return !config_default_classes(config) || config_adopt_labels(config, err);
    char *path = config_default_classes(config) ? first_store(config) : NULL;
    struct store *store = NULL;
    if (!path || !store_open(path, &store, NULL)) {
        free(path);
        return true;
    }
    const struct class_names *own = store_classes(store);
    bool ok = own->n == 0 || copy_names(own, &config->classes) || err_memory(err, path);
    if (ok && own->n == 1)
        ok = err_set(err, ERR_USAGE,
                     "%s: has one class, '%s', but training needs at least two; extract with a "
                     "--class-map that names others, or with a class for what is not drawn",
                     path, own->items[0]);
    store_close(store);
    free(config->classes_from);
    config->classes_from = path;
    return ok;
}
