/* specimen.c: see specimen.h. */
#include "heatmap/specimen.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/file.h"
#include "patch/grid.h"
#include "patch/store.h"
#include "prepare/stain_need.h"
#include "tissue/quality.h"

#define MAX_GRID_TILES (INT64_C(1) << 28)
#define MAX_SIDE_L0 (INT64_C(1) << 40)

/* Tiles are on a grid; `at` is the patch that contains a tile, or -1. */
struct specimen_store {
    struct store *store;
    pthread_mutex_t mutex; /* HDF5 is read by one thread at a time */
    int64_t tile, margin, stride, patch;
    int64_t columns, rows;
    int32_t *at; /* [rows, columns] */
};

bool specimen_is_store(const char *path)
{
    const char *extension = file_extension(path);
    return strcmp(extension, ".h5") == 0 || strcmp(extension, ".hdf5") == 0;
}

static bool index_patches(struct specimen *specimen, const char *path, struct err *err)
{
    struct specimen_store *s = specimen->store;
    const struct patch_list *patches = store_patches(s->store);
    s->columns = ceil_div(specimen->raster.width, s->stride);
    s->rows = ceil_div(specimen->raster.height, s->stride);
    if (s->columns < 1 || s->rows < 1 || s->columns > MAX_GRID_TILES / s->rows ||
        patches->n > INT32_MAX)
        return err_set(err, ERR_FORMAT, "%s: its grid is empty or too large; make the store again",
                       path);
    s->at = malloc((size_t)(s->columns * s->rows) * sizeof *s->at);
    if (!s->at)
        return err_memory(err, path);
    for (int64_t i = 0; i < s->columns * s->rows; i++)
        s->at[i] = -1;
    for (int64_t i = 0; i < patches->n; i++) {
        double scale = specimen->raster.downsample;
        int64_t x = llround((double)patches->items[i].x_l0 / scale) + s->margin;
        int64_t y = llround((double)patches->items[i].y_l0 / scale) + s->margin;
        int64_t column = (x + s->stride / 2) / s->stride, row = (y + s->stride / 2) / s->stride;
        if (x < -1 || y < -1 || column < 0 || row < 0 || column >= s->columns || row >= s->rows ||
            llabs(column * s->stride - x) > 1 || llabs(row * s->stride - y) > 1)
            return err_set(err, ERR_FORMAT, "%s: patch %lld is not on the store's grid", path,
                           (long long)i);
        s->at[row * s->columns + column] = (int32_t)i;
    }
    return true;
}

static bool open_store(const char *path, struct specimen *out, struct err *err)
{
    struct specimen_store *s = calloc(1, sizeof *s);
    if (!s)
        return err_memory(err, path);
    pthread_mutex_init(&s->mutex, NULL);
    out->store = s;
    if (!store_open(path, &s->store, err))
        return false;
    const struct store_facts *facts = store_facts(s->store);
    s->patch = store_patch_px(s->store);
    s->tile = facts->tile, s->margin = facts->margin, s->stride = facts->stride;
    if (strcmp(facts->mode, "dense") != 0 || s->stride < 1 || s->tile < 1 || s->margin < 0 ||
        (specimen_has_tissue(out) && s->tile + 2 * s->margin != s->patch) ||
        !(facts->downsample >= 1e-6 && facts->downsample <= 1e6) || facts->width_l0 < 1 ||
        facts->height_l0 < 1 || facts->width_l0 > MAX_SIDE_L0 || facts->height_l0 > MAX_SIDE_L0)
        return err_set(err, ERR_FORMAT,
                       "%s: is not a dense grid, which a heatmap needs; make one with 'microtome "
                       "extract --dense'",
                       path);
    out->width_l0 = facts->width_l0;
    out->height_l0 = facts->height_l0;
    out->mpp_l0 = facts->mpp_l0;
    out->stored = stain_of_store(facts);
    out->raster = (struct raster){
        .level = (int)facts->level,
        .ratio = facts->ratio,
        .downsample = facts->downsample,
        .mpp = facts->mpp,
        .width = (int64_t)floor((double)facts->width_l0 / facts->downsample + 1e-6),
        .height = (int64_t)floor((double)facts->height_l0 / facts->downsample + 1e-6),
    };
    return index_patches(out, path, err);
}

static bool open_slide(const struct slide_entry *entry, const struct slide_access *access,
                       const struct raster_request *request, struct specimen *out, struct err *err)
{
    if (!slide_open_entry(entry, access, &out->slide, err) ||
        !raster_open(out->slide, request, &out->raster, err))
        return false;
    const struct slide_info *info = slide_info(out->slide);
    out->mpp_l0 = info->mpp;
    out->width_l0 = info->levels[0].width;
    out->height_l0 = info->levels[0].height;
    return true;
}

bool specimen_open(const struct slide_entry *entry, const struct slide_access *access,
                   const struct raster_request *request, struct specimen *out, struct err *err)
{
    *out = (struct specimen){ 0 };
    bool ok = specimen_is_store(entry->path) ? open_store(entry->path, out, err)
                                             : open_slide(entry, access, request, out, err);
    if (!ok)
        specimen_close(out);
    return ok;
}

void specimen_close(struct specimen *specimen)
{
    if (specimen->store) {
        store_close(specimen->store->store);
        pthread_mutex_destroy(&specimen->store->mutex);
        free(specimen->store->at);
        free(specimen->store);
    }
    stain_transform_free(specimen->transform);
    specimen_drop_tissue(specimen);
    slide_close(specimen->slide);
    *specimen = (struct specimen){ 0 };
}

bool specimen_find_tissue(struct specimen *specimen, enum tissue_method method, const char *mask,
                          const struct ctx *ctx, struct err *err)
{
    if (specimen->store)
        return true;
    struct tissue_options options = tissue_defaults();
    options.method = method;
    bool ok = mask ? tissue_read(specimen->slide, mask, &specimen->mask, err)
                   : tissue_find(specimen->slide, &options, ctx, &specimen->mask, err);
    if (!ok)
        return false;
    image_free(&specimen->mask.overview);
    return tissue_sums_new(&specimen->mask, &specimen->sums, err);
}

bool specimen_omit(struct specimen *specimen, enum tissue_method method, unsigned kinds,
                   const struct ctx *ctx, struct err *err)
{
    if (specimen->store || kinds == 0)
        return true;
    if (!quality_omit_found(specimen->slide, method, kinds, ctx, &specimen->mask, err))
        return false;
    tissue_sums_free(specimen->sums);
    specimen->sums = NULL;
    return tissue_sums_new(&specimen->mask, &specimen->sums, err);
}

void specimen_drop_tissue(struct specimen *specimen)
{
    tissue_sums_free(specimen->sums);
    specimen->sums = NULL;
    tissue_mask_free(&specimen->mask);
    specimen->mask = (struct tissue_mask){ 0 };
}

bool specimen_has_tissue(const struct specimen *specimen)
{
    return specimen->store ? store_patches(specimen->store->store)->n > 0
                           : specimen->mask.tissue_px > 0;
}

/* Tiles [*first, *last] whose patch holds all of [begin, end) in one direction. */
static void holders(const struct specimen_store *s, int64_t begin, int64_t end, int64_t n,
                    int64_t *first, int64_t *last)
{
    *first = -floor_div(s->tile + s->margin - end, s->stride); /* rounded up */
    *last = floor_div(begin + s->margin, s->stride);
    *first = *first > 0 ? *first : 0;
    *last = *last < n - 1 ? *last : n - 1;
}

static bool store_holds(const struct specimen_store *s, int64_t x, int64_t y, int64_t window)
{
    int64_t column, last_column, row, last_row;
    holders(s, x, x + window, s->columns, &column, &last_column);
    holders(s, y, y + window, s->rows, &row, &last_row);
    for (; row <= last_row; row++)
        for (int64_t c = column; c <= last_column; c++)
            if (s->at[row * s->columns + c] >= 0)
                return true;
    return false;
}

bool specimen_wants(const struct specimen *specimen, int64_t x, int64_t y, int64_t side,
                    int64_t window)
{
    if (specimen->store) {
        int64_t shift = side / 2 - window / 2;
        return store_holds(specimen->store, x + shift, y + shift, window);
    }
    double tissue = grid_tissue(&specimen->raster, specimen->sums, x, y, side, side);
    return tissue > 0 && tissue >= specimen->min_tissue;
}

static void paste(const struct specimen_store *s, const uint8_t *patch, int64_t patch_x,
                  int64_t patch_y, int64_t x, int64_t y, struct image *out)
{
    int64_t x0 = patch_x > x ? patch_x : x, y0 = patch_y > y ? patch_y : y;
    int64_t x1 = patch_x + s->patch, y1 = patch_y + s->patch;
    x1 = x1 < x + out->width ? x1 : x + out->width;
    y1 = y1 < y + out->height ? y1 : y + out->height;
    for (int64_t line = y0; line < y1 && x0 < x1; line++)
        memcpy(image_at(out, x0 - x, line - y),
               patch + 3 * ((line - patch_y) * s->patch + x0 - patch_x), (size_t)(3 * (x1 - x0)));
}

static bool read_store(struct specimen_store *s, int64_t x, int64_t y, struct image *out,
                       struct err *err)
{
    uint8_t *patch = malloc((size_t)(s->patch * s->patch * 3));
    if (!patch)
        return err_memory(err, "a patch");
    memset(out->px, 255, image_bytes(out));
    bool ok = true;
    for (int64_t row = 0; ok && row < s->rows; row++) {
        int64_t patch_y = row * s->stride - s->margin;
        if (patch_y >= y + out->height || patch_y + s->patch <= y)
            continue;
        for (int64_t column = 0; ok && column < s->columns; column++) {
            int64_t patch_x = column * s->stride - s->margin;
            int32_t index = s->at[row * s->columns + column];
            if (index < 0 || patch_x >= x + out->width || patch_x + s->patch <= x)
                continue;
            pthread_mutex_lock(&s->mutex);
            ok = store_read(s->store, index, 1, patch, err);
            pthread_mutex_unlock(&s->mutex);
            if (ok)
                paste(s, patch, patch_x, patch_y, x, y, out);
        }
    }
    free(patch);
    return ok;
}

bool specimen_read(struct specimen *specimen, int64_t x, int64_t y, int64_t width, int64_t height,
                   struct image *out, struct err *err)
{
    if (!specimen->store)
        return raster_read(&specimen->raster, x, y, width, height, out, err);
    if (!image_new(out, width, height, 3, err))
        return false;
    if (read_store(specimen->store, x, y, out, err))
        return true;
    image_free(out);
    return false;
}

void specimen_normalise(const struct specimen *specimen, struct image *image)
{
    if (specimen->transform)
        stain_apply(specimen->transform, image->px, image->width * image->height);
}
