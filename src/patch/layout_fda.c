/* layout_fda.c: the layout of DIDSR/dldp (paper 004): groups /t1 ... /tN, each with img [n, p, p,
 * 3] and coord [n, 5] = { column, row, x, y, p }: the tile's place in the grid and the level-0
 * corner of what is stored. We add label [n]. */
#include <stdlib.h>
#include "patch/layout.h"

#define COORD_COLUMNS 5

static bool put_coord(hid_t group, const struct patch *patches, int64_t n, int64_t patch_px)
{
    int64_t *rows = malloc((size_t)n * COORD_COLUMNS * sizeof *rows);
    if (!rows)
        return false;
    for (int64_t i = 0; i < n; i++) {
        int64_t *row = rows + i * COORD_COLUMNS;
        row[0] = patches[i].column, row[1] = patches[i].row;
        row[2] = patches[i].x_l0, row[3] = patches[i].y_l0;
        row[4] = patch_px;
    }
    hsize_t dims[2] = { (hsize_t)n, COORD_COLUMNS };
    bool ok = h5_put_data(group, "coord", H5T_STD_I64LE, H5T_NATIVE_INT64, 2, dims, rows);
    free(rows);
    return ok;
}

static bool put_label(hid_t group, const struct patch *patches, int64_t n)
{
    int8_t *labels = malloc((size_t)n);
    if (!labels)
        return false;
    for (int64_t i = 0; i < n; i++)
        labels[i] = patches[i].label;
    hsize_t dims[1] = { (hsize_t)n };
    bool ok = h5_put_data(group, "label", H5T_STD_I8LE, H5T_NATIVE_INT8, 1, dims, labels);
    free(labels);
    return ok;
}

static bool create_group(struct layout_writer *writer, int64_t index)
{
    const struct store_request *request = writer->request;
    int64_t first = index * request->group, rest = request->patches->n - first, offset;
    int64_t n = rest < request->group ? rest : request->group;
    const struct patch *patches = request->patches->items + first;
    char name[32];
    snprintf(name, sizeof name, "t%lld", (long long)index + 1);
    hid_t group = h5_group(writer->file, name), img = H5I_INVALID_HID;
    bool ok = group >= 0 && put_coord(group, patches, n, request->facts->patch) &&
              put_label(group, patches, n) &&
              layout_reserve(group, "img", n, request->facts->patch, &img, &offset);
    for (int64_t i = 0; ok && i < n; i++)
        writer->offsets[first + i] = offset + i * layout_unit_bytes(request->facts->patch);
    if (img >= 0 && H5Dclose(img) < 0)
        ok = false;
    if (group >= 0 && H5Gclose(group) < 0)
        ok = false;
    return ok;
}

static bool create(struct layout_writer *writer)
{
    int64_t groups = layout_groups(writer);
    for (int64_t i = 0; i < groups; i++)
        if (!create_group(writer, i))
            return false;
    return true;
}

static bool recognise(hid_t file)
{
    return h5_has(file, "t1") && H5Lexists(file, "t1/img", H5P_DEFAULT) > 0;
}

static bool get_label(struct layout_reader *reader, const char *name, int64_t first, int64_t n,
                      struct err *err)
{
    hsize_t wanted[1] = { (hsize_t)n }, dims[1];
    if (n == 0 || H5Lexists(reader->file, name, H5P_DEFAULT) <= 0)
        return true; /* dldp's own files have none */
    if (!h5_check(reader->file, reader->path, name, 1, wanted, dims, err))
        return false;
    int8_t *labels = malloc((size_t)n);
    if (!labels)
        return err_memory(err, reader->path);
    bool ok = h5_read(reader->file, reader->path, name, H5T_NATIVE_INT8, labels, err);
    for (int64_t i = 0; ok && i < n; i++)
        reader->patches.items[first + i].label = labels[i];
    free(labels);
    return ok;
}

static bool open_group(struct layout_reader *reader, int64_t index, struct err *err)
{
    char img[48], coord[48], label[48];
    snprintf(img, sizeof img, "t%lld/img", (long long)index + 1);
    snprintf(coord, sizeof coord, "t%lld/coord", (long long)index + 1);
    snprintf(label, sizeof label, "t%lld/label", (long long)index + 1);
    int64_t first = reader->patches.n;
    if (!layout_add_set(reader, img, coord, COORD_COLUMNS, 2, PATCH_UNLABELED, err))
        return false;
    int64_t n = reader->patches.n - first;
    reader->groups[index] = (struct store_group){ .first = first, .n = n };
    return get_label(reader, label, first, n, err);
}

static bool open_fda(struct layout_reader *reader, struct err *err)
{
    H5G_info_t info;
    if (H5Gget_info(reader->file, &info) < 0)
        return h5_fail(err, reader->path, "read");
    reader->groups = calloc(info.nlinks + 1, sizeof *reader->groups);
    if (!reader->groups)
        return err_memory(err, reader->path);
    char name[32];
    for (int64_t i = 0; i < (int64_t)info.nlinks; i++) {
        snprintf(name, sizeof name, "t%lld", (long long)i + 1);
        if (!h5_has(reader->file, name))
            break;
        if (!open_group(reader, i, err))
            return false;
        reader->n_groups = i + 1;
    }
    return true;
}

const struct layout_ops layout_fda = { "fda",    layout_list_patches, create, recognise,
                                       open_fda, layout_read_sets };
