/* store_read.c: reading of a store (store.h). */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "patch/layout.h"
#include "patch/store_facts.h"

struct store {
    struct layout_reader reader;
    struct store_facts facts;
    enum store_layout layout;
    char *target_name, *target_unit; /* NULL: no targets */
};

static bool layout_by_name(const char *name, enum store_layout *out)
{
    for (int i = 0; store_layout_names[i]; i++)
        if (strcmp(store_layout_names[i], name) == 0) {
            *out = (enum store_layout)i;
            return true;
        }
    return false;
}

/* By our mark, or by what is in it. */
static bool find_layout(struct store *store, struct err *err)
{
    hid_t file = store->reader.file;
    const char *path = store->reader.path;
    char *format = NULL, *name = NULL;
    int64_t version = 0;
    bool ok = true;
    if (h5_get_text(file, "format", &format) && strcmp(format, STORE_FORMAT) == 0) {
        if (!h5_get_int(file, "version", &version) || version < 1 || version > STORE_VERSION)
            ok = err_set(err, ERR_FORMAT,
                         "%s: format version %lld; this program supports version %d", path,
                         (long long)version, STORE_VERSION);
        else if (!h5_get_text(file, "layout", &name) || !layout_by_name(name, &store->layout))
            ok = err_set(err, ERR_FORMAT, "%s: does not state its layout", path);
    } else {
        int i = 0;
        while (i < N_LAYOUTS && !layouts[i]->recognise(file))
            i++;
        store->layout = (enum store_layout)i;
        if (i == N_LAYOUTS)
            ok = err_set(err, ERR_FORMAT,
                         "%s: an HDF5 file%s, but not a patch store in a known layout", path,
                         h5_has(file, "features") ? " of features" : "");
    }
    free(format);
    free(name);
    return ok;
}

/* Of the dataset `targets`, which the layout has read. */
static bool get_target(struct store *store, struct err *err)
{
    hid_t file = store->reader.file;
    if (!h5_has(file, "targets"))
        return true;
    hid_t dataset = H5Dopen2(file, "targets", H5P_DEFAULT);
    if (dataset < 0 || !h5_get_text(dataset, "name", &store->target_name))
        store->target_name = strdup("target");
    if (dataset < 0 || !h5_get_text(dataset, "unit", &store->target_unit))
        store->target_unit = strdup("");
    if (dataset >= 0)
        H5Dclose(dataset);
    return (store->target_name && store->target_unit) || err_memory(err, store->reader.path);
}

static bool open_file(struct store *store, const char *path, struct err *err)
{
    store->reader.path = strdup(path);
    if (!store->reader.path)
        return err_memory(err, path);
    struct stat status;
    if (access(path, R_OK) != 0 || stat(path, &status) != 0)
        return err_errno(err, path, "open");
    store->reader.file_bytes = (int64_t)status.st_size;
    if (!h5_check_heaps(path, err))
        return false;
    H5Lunregister(H5L_TYPE_EXTERNAL); /* what is opened is this file and no other */
    hid_t how = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(how, H5F_CLOSE_STRONG);
    store->reader.file = H5Fopen(path, H5F_ACC_RDONLY, how);
    H5Pclose(how);
    if (store->reader.file < 0)
        return err_set(err, ERR_FORMAT, "%s: not an HDF5 file, or damaged", path);
    if (!facts_get(store->reader.file, &store->facts))
        return err_memory(err, path);
    return class_names_parse(store->facts.class_names, path, &store->reader.classes, err) &&
           find_layout(store, err) && layouts[store->layout]->open(&store->reader, err) &&
           layout_check_groups(&store->reader, err) && get_target(store, err);
}

bool store_open(const char *path, struct store **out, struct err *err)
{
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return err_memory(err, path);
    store->reader.file = store->reader.dataset = H5I_INVALID_HID;
    struct h5_voice voice;
    h5_quiet(&voice);
    bool ok = open_file(store, path, err);
    h5_loud(&voice);
    if (!ok) {
        store_close(store);
        return false;
    }
    *out = store;
    return true;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    struct h5_voice voice;
    h5_quiet(&voice);
    if (store->reader.file >= 0)
        H5Fclose(store->reader.file); /* and, being strong, all that is open in it */
    h5_loud(&voice);
    free(store->target_name);
    free(store->target_unit);
    for (int64_t i = 0; i < store->reader.n_sets; i++)
        free(store->reader.sets[i].name);
    free(store->reader.sets);
    free(store->reader.groups);
    free(store->reader.patch_blocks);
    patch_list_free(&store->reader.patches);
    class_names_free(&store->reader.classes);
    facts_free(&store->facts);
    free(store->reader.path);
    free(store);
}

struct store_target store_target(const struct store *store)
{
    return (struct store_target){ store->target_name, store->target_unit };
}

const struct store_facts *store_facts(const struct store *store)
{
    return &store->facts;
}

const struct class_names *store_classes(const struct store *store)
{
    return &store->reader.classes;
}

enum store_layout store_layout(const struct store *store)
{
    return store->layout;
}

int64_t store_patch_px(const struct store *store)
{
    return store->reader.patch_px;
}

const struct patch_list *store_patches(const struct store *store)
{
    return &store->reader.patches;
}

int64_t store_n_groups(const struct store *store)
{
    return store->reader.n_groups;
}

struct store_group store_group(const struct store *store, int64_t group)
{
    return store->reader.groups[group];
}

bool store_read(struct store *store, int64_t first, int64_t n, uint8_t *out, struct err *err)
{
    if (first < 0 || n < 0 || first > store->reader.patches.n ||
        n > store->reader.patches.n - first)
        return err_set(err, ERR_USAGE, "%s: patches %lld to %lld do not exist; it has %lld",
                       store->reader.path, (long long)first, (long long)(first + n - 1),
                       (long long)store->reader.patches.n);
    struct h5_voice voice;
    h5_quiet(&voice);
    bool ok = layouts[store->layout]->read(&store->reader, first, n, out, err);
    h5_loud(&voice);
    return ok;
}
