/* layout_read.c: reading code that the layouts share. Sizes are checked against the file before
 * memory is allocated, and indices against the sizes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "patch/layout.h"

#define MAX_PATCH_PX (1 << 20)
#define GROUP_BYTES (INT64_C(64) << 20) /* of pixels, where the file says nothing of groups */

static bool more_patches(struct layout_reader *reader, int64_t n, int label, struct err *err)
{
    /* however well it is compressed, a patch takes a byte of the file */
    if (n > reader->file_bytes - reader->patches.n)
        return err_set(err, ERR_FORMAT,
                       "%s: claims %lld patches, more than its %lld bytes can hold; it is damaged",
                       reader->path, (long long)n, (long long)reader->file_bytes);
    struct patch empty = { .column = -1, .row = -1, .target = NAN, .label = (int8_t)label };
    for (int64_t i = 0; i < n; i++)
        if (!patch_list_add(&reader->patches, &empty, err))
            return false;
    return true;
}

/* Columns x_column and the next of an int64 dataset [n, columns]. */
static bool get_corners(struct layout_reader *reader, const char *name, hsize_t columns,
                        int x_column, int64_t first, int64_t n, struct err *err)
{
    hsize_t wanted[2] = { (hsize_t)n, columns }, dims[2];
    if (n == 0)
        return true;
    if (!h5_check(reader->file, reader->path, name, 2, wanted, dims, err))
        return false;
    int64_t *values = malloc((size_t)n * columns * sizeof *values);
    if (!values)
        return err_memory(err, reader->path);
    bool ok = h5_read(reader->file, reader->path, name, H5T_NATIVE_INT64, values, err);
    for (int64_t i = 0; ok && i < n; i++) {
        struct patch *patch = &reader->patches.items[first + i];
        const int64_t *row = values + i * (int64_t)columns;
        patch->x_l0 = row[x_column];
        patch->y_l0 = row[x_column + 1];
        if (x_column > 0) {
            patch->column = row[0];
            patch->row = row[1];
        }
    }
    free(values);
    return ok;
}

static bool add_set(struct layout_reader *reader, const char *name, int64_t n, struct err *err)
{
    if (reader->n_sets == reader->sets_room) {
        int64_t room = reader->sets_room ? 2 * reader->sets_room : 16;
        struct pixel_set *more = realloc(reader->sets, (size_t)room * sizeof *more);
        if (!more)
            return err_memory(err, reader->path);
        reader->sets = more;
        reader->sets_room = room;
    }
    char *copy = strdup(name);
    if (!copy)
        return err_memory(err, reader->path);
    reader->sets[reader->n_sets++] =
        (struct pixel_set){ .name = copy, .first = reader->patches.n, .n = n };
    return true;
}

bool layout_add_set(struct layout_reader *reader, const char *pixels, const char *corners,
                    hsize_t columns, int x_column, int label, struct err *err)
{
    hsize_t wanted[4] = { 0, (hsize_t)reader->patch_px, (hsize_t)reader->patch_px, 3 }, dims[4];
    if (!h5_check(reader->file, reader->path, pixels, 4, wanted, dims, err))
        return false;
    if (dims[1] != dims[2] || dims[1] == 0 || dims[1] > MAX_PATCH_PX)
        return err_set(err, ERR_FORMAT, "%s: '%s' does not contain square patches", reader->path,
                       pixels);
    reader->patch_px = (int64_t)dims[1];
    int64_t first = reader->patches.n, n = (int64_t)dims[0];
    /* the corners prove the number before a list of that length is made */
    hsize_t corner_dims[2], corner_wanted[2] = { dims[0], columns };
    if (n > 0 && !h5_check(reader->file, reader->path, corners, 2, corner_wanted, corner_dims, err))
        return false;
    return add_set(reader, pixels, n, err) && more_patches(reader, n, label, err) &&
           get_corners(reader, corners, columns, x_column, first, n, err);
}

static int64_t set_of(const struct layout_reader *reader, int64_t patch)
{
    int64_t low = 0, high = reader->n_sets - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (reader->sets[middle].first <= patch)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static bool open_set(struct layout_reader *reader, int64_t set, struct err *err)
{
    if (reader->dataset >= 0 && reader->dataset_set == set)
        return true;
    if (reader->dataset >= 0)
        H5Dclose(reader->dataset);
    reader->dataset_set = set;
    reader->dataset = H5Dopen2(reader->file, reader->sets[set].name, H5P_DEFAULT);
    return reader->dataset >= 0 ? true : h5_fail(err, reader->path, "read");
}

bool layout_read_sets(struct layout_reader *reader, int64_t first, int64_t n, uint8_t *out,
                      struct err *err)
{
    while (n > 0) {
        int64_t index = set_of(reader, first);
        const struct pixel_set *set = &reader->sets[index];
        int64_t rest = set->first + set->n - first, count = n < rest ? n : rest;
        if (!open_set(reader, index, err) ||
            !h5_read_rows(reader->dataset, reader->path, H5T_NATIVE_UINT8, first - set->first,
                          count, out, err))
            return false;
        out += count * layout_unit_bytes(reader->patch_px);
        first += count;
        n -= count;
    }
    return true;
}

/* Another tool's file has no groups: as many patches as whoever reads a group at a time can hold.
 */
static bool make_groups(struct layout_reader *reader, struct err *err)
{
    int64_t n = reader->patches.n, most = GROUP_BYTES / layout_unit_bytes(reader->patch_px);
    most = most > 0 ? most : 1;
    reader->groups = calloc((size_t)(n / most) + 1, sizeof *reader->groups);
    if (!reader->groups)
        return err_memory(err, reader->path);
    for (int64_t first = 0; first < n; first += most)
        reader->groups[reader->n_groups++] =
            (struct store_group){ .first = first, .n = n - first < most ? n - first : most };
    return true;
}

static bool get_groups(struct layout_reader *reader, struct err *err)
{
    hsize_t wanted[2] = { 0, 2 }, dims[2] = { 0 };
    if (!h5_has(reader->file, "groups"))
        return make_groups(reader, err);
    if (!h5_check(reader->file, reader->path, "groups", 2, wanted, dims, err))
        return false;
    reader->groups = calloc(dims[0] + 1, sizeof *reader->groups);
    if (!reader->groups)
        return err_memory(err, reader->path);
    _Static_assert(sizeof(struct store_group) == 2 * sizeof(int64_t), "read as rows of two");
    reader->n_groups = (int64_t)dims[0];
    if (dims[0] > 0 &&
        !h5_read(reader->file, reader->path, "groups", H5T_NATIVE_INT64, reader->groups, err))
        return false;
    return true;
}

/* Are pixels of n patches, read in one go, more than the file can hold? */
static bool too_large(const struct layout_reader *reader, int64_t n)
{
    int64_t bytes, limit;
    if (__builtin_mul_overflow(reader->file_bytes, H5_MOST_GROWTH, &limit))
        limit = INT64_MAX;
    return reader->patch_px > MAX_PATCH_PX ||
           __builtin_mul_overflow(n, layout_unit_bytes(reader->patch_px), &bytes) || bytes > limit;
}

bool layout_check_groups(const struct layout_reader *reader, struct err *err)
{
    int64_t next = 0;
    const char *wrong = NULL;
    for (int64_t i = 0; !wrong && i < reader->n_groups; i++) {
        const struct store_group *group = &reader->groups[i];
        if (group->n < 0 || group->n > reader->patches.n - next)
            wrong = "extends past the last patch";
        else if (group->first != next)
            wrong = "does not follow the previous one";
        else if (too_large(reader, group->n > 0 ? group->n : 1))
            wrong = "claims more pixels than the file can hold";
        if (wrong)
            return err_set(err, ERR_FORMAT, "%s: group %lld %s; the file is damaged", reader->path,
                           (long long)i, wrong);
        next += group->n;
    }
    return true;
}

/* One number a patch; absent in other tools' files. */
static bool get_column(struct layout_reader *reader, const char *name, hid_t type, size_t size,
                       void **out, struct err *err)
{
    hsize_t wanted[1] = { (hsize_t)reader->patches.n }, dims[1];
    *out = NULL;
    if (!h5_has(reader->file, name) || reader->patches.n == 0)
        return true;
    if (!h5_check(reader->file, reader->path, name, 1, wanted, dims, err))
        return false;
    *out = malloc((size_t)reader->patches.n * size);
    if (!*out)
        return err_memory(err, reader->path);
    return h5_read(reader->file, reader->path, name, type, *out, err);
}

bool layout_get_lists(struct layout_reader *reader, struct err *err)
{
    int64_t n = reader->patches.n;
    void *labels = NULL, *tissue = NULL, *tumor = NULL, *targets = NULL;
    if (n == 0) { /* the blocks layout comes here first, the clam layout with its set */
        hsize_t wanted[2] = { 0, 2 }, dims[2];
        if (!h5_check(reader->file, reader->path, "coords", 2, wanted, dims, err))
            return false;
        n = (int64_t)dims[0];
        if (!more_patches(reader, n, PATCH_UNLABELED, err) ||
            !get_corners(reader, "coords", 2, 0, 0, n, err))
            return false;
    }
    bool ok = get_column(reader, "labels", H5T_NATIVE_INT8, 1, &labels, err) &&
              get_column(reader, "tissue_fraction", H5T_NATIVE_FLOAT, 4, &tissue, err) &&
              get_column(reader, "tumor_fraction", H5T_NATIVE_FLOAT, 4, &tumor, err) &&
              get_column(reader, "targets", H5T_NATIVE_FLOAT, 4, &targets, err) &&
              get_groups(reader, err);
    for (int64_t i = 0; ok && i < n; i++) {
        struct patch *patch = &reader->patches.items[i];
        if (labels)
            patch->label = ((int8_t *)labels)[i];
        if (tissue)
            patch->tissue = ((float *)tissue)[i];
        if (tumor)
            patch->tumor = ((float *)tumor)[i];
        if (targets)
            patch->target = ((float *)targets)[i];
    }
    free(labels);
    free(tissue);
    free(tumor);
    free(targets);
    return ok;
}
