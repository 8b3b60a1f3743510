/* layouts.c: the table of layouts and the pieces that they share. */
#include "patch/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const struct layout_ops layout_blocks, layout_fda, layout_clam, layout_process;

const struct layout_ops *const layouts[N_LAYOUTS] = { &layout_blocks, &layout_fda, &layout_clam,
                                                      &layout_process };
const char *const store_layout_names[] = { "blocks", "fda", "clam", "process", NULL };

bool layout_list_patches(struct layout_writer *writer, struct err *err)
{
    return units_of_patches(writer->request->patches, writer->request->facts->patch, &writer->units,
                            err);
}

bool layout_reserve(hid_t parent, const char *name, int64_t n, int64_t size, hid_t *dataset,
                    int64_t *offset)
{
    hsize_t dims[4] = { (hsize_t)n, (hsize_t)size, (hsize_t)size, 3 };
    *dataset = h5_dataset(parent, name, H5T_STD_U8LE, 4, dims);
    if (*dataset < 0)
        return false;
    haddr_t address = n > 0 ? H5Dget_offset(*dataset) : 0;
    *offset = (int64_t)address;
    return address != HADDR_UNDEF;
}

int64_t layout_groups(const struct layout_writer *writer)
{
    int64_t group = writer->request->group;
    return (writer->request->patches->n + group - 1) / group;
}

/* Magnifications are whole numbers where they are within 1 % of one. */
static bool put_magnification(hid_t object, const char *name, double value)
{
    double whole = round(value);
    if (whole >= 1 && fabs(value - whole) <= 0.01 * whole)
        return h5_put_int(object, name, (int64_t)whole);
    return h5_put_real(object, name, value);
}

static bool put_coords_attributes(hid_t coords, const struct store_facts *facts)
{
    double downsample[2] = { facts->downsample, facts->downsample };
    int64_t level_dim[2] = { facts->level_width, facts->level_height };
    double level0 = facts->objective > 0 ? facts->objective
                    : facts->mpp_l0 > 0  ? round(10 / facts->mpp_l0)
                                         : 0;
    return h5_put_int(coords, "patch_size", facts->patch) &&
           h5_put_int(coords, "patch_level", facts->level) &&
           h5_put_reals(coords, "downsample", downsample, 2) &&
           h5_put_ints(coords, "level_dim", level_dim, 2) &&
           h5_put_text(coords, "name", facts->slide) &&
           h5_put_int(coords, "patch_size_level0",
                      (int64_t)llround((double)facts->patch * facts->downsample)) &&
           put_magnification(coords, "level0_magnification", level0) &&
           put_magnification(coords, "target_magnification", level0 / facts->downsample) &&
           h5_put_int(coords, "overlap",
                      facts->patch > facts->stride && facts->stride > 0
                          ? facts->patch - facts->stride
                          : 0) &&
           h5_put_int(coords, "level0_width", facts->width_l0) &&
           h5_put_int(coords, "level0_height", facts->height_l0) &&
           h5_put_real(coords, "patch_spacing_um_px", facts->mpp);
}

static bool put_coords(const struct layout_writer *writer)
{
    const struct patch_list *patches = writer->request->patches;
    int64_t *corners = malloc((size_t)(patches->n + 1) * 2 * sizeof *corners);
    if (!corners)
        return false;
    for (int64_t i = 0; i < patches->n; i++) {
        corners[2 * i] = patches->items[i].x_l0;
        corners[2 * i + 1] = patches->items[i].y_l0;
    }
    hsize_t dims[2] = { (hsize_t)patches->n, 2 };
    hid_t coords = h5_dataset(writer->file, "coords", H5T_STD_I64LE, 2, dims);
    bool ok = coords >= 0 &&
              H5Dwrite(coords, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, corners) >= 0 &&
              put_coords_attributes(coords, writer->request->facts);
    free(corners);
    if (coords >= 0 && H5Dclose(coords) < 0)
        ok = false;
    return ok;
}

static bool put_labels(const struct layout_writer *writer)
{
    const struct patch_list *patches = writer->request->patches;
    size_t n = (size_t)patches->n;
    int8_t *labels = malloc(n + 1);
    float *tissue = malloc((n + 1) * sizeof *tissue), *tumor = malloc((n + 1) * sizeof *tumor);
    bool ok = labels && tissue && tumor;
    for (size_t i = 0; ok && i < n; i++) {
        labels[i] = patches->items[i].label;
        tissue[i] = patches->items[i].tissue;
        tumor[i] = patches->items[i].tumor;
    }
    hsize_t dims[1] = { n };
    ok = ok &&
         h5_put_data(writer->file, "labels", H5T_STD_I8LE, H5T_NATIVE_INT8, 1, dims, labels) &&
         h5_put_data(writer->file, "tissue_fraction", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, dims,
                     tissue) &&
         h5_put_data(writer->file, "tumor_fraction", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, dims,
                     tumor);
    free(labels);
    free(tissue);
    free(tumor);
    return ok;
}

static bool put_class_fractions(const struct layout_writer *writer)
{
    const struct store_request *request = writer->request;
    hsize_t dims[2] = { (hsize_t)request->patches->n, (hsize_t)writer->classes.n };
    return h5_put_data(writer->file, "class_fractions", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, dims,
                       request->class_fractions);
}

/* The numbers to be learnt, and what they are. */
static bool put_targets(const struct layout_writer *writer)
{
    const struct store_request *request = writer->request;
    size_t n = (size_t)request->patches->n;
    float *targets = malloc((n + 1) * sizeof *targets);
    if (!targets)
        return false;
    for (size_t i = 0; i < n; i++)
        targets[i] = request->patches->items[i].target;
    hid_t dataset = h5_dataset(writer->file, "targets", H5T_IEEE_F32LE, 1, (hsize_t[]){ n });
    bool ok = dataset >= 0 &&
              H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, targets) >= 0 &&
              h5_put_text(dataset, "name", request->target.name) &&
              h5_put_text(dataset, "unit", request->target.unit);
    free(targets);
    if (dataset >= 0 && H5Dclose(dataset) < 0)
        ok = false;
    return ok;
}

static bool put_groups(const struct layout_writer *writer)
{
    int64_t n = layout_groups(writer), size = writer->request->group;
    int64_t *groups = malloc((size_t)(n + 1) * 2 * sizeof *groups);
    if (!groups)
        return false;
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = writer->request->patches->n - i * size;
        groups[2 * i] = i * size;
        groups[2 * i + 1] = rest < size ? rest : size;
    }
    hsize_t dims[2] = { (hsize_t)n, 2 };
    bool ok = h5_put_data(writer->file, "groups", H5T_STD_I64LE, H5T_NATIVE_INT64, 2, dims, groups);
    free(groups);
    return ok;
}

bool layout_put_lists(const struct layout_writer *writer)
{
    return put_coords(writer) && put_labels(writer) &&
           (!writer->request->class_fractions || put_class_fractions(writer)) &&
           (!writer->request->target.name || put_targets(writer)) && put_groups(writer);
}
