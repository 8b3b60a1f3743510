/* export_regions.c: a heatmap -> regions.geojson: the areas where the score of a class reaches the
 * threshold or, of more than two classes, is the highest, as annotations for QuPath with their
 * area, mean and highest score. Outlines run along the edges of cells, so that a region is exactly
 * the cells that count; regions are connected by edges, and holes stay holes. Regions that are
 * complete are written while others are traced; classes one after the other. */
#include "base/file.h"
#include "base/geojson.h"
#include "base/console.h"
#include "base/rng.h"
#include "heatmap/export_common.h"
#include "base/outline.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>

#define CORNER_BYTES 48 /* of an outline in memory: kept, copied, with room to grow */
#define LARGEST_BLOCK 64

struct regions {
    struct json_out json;
    const struct heatmap_info *info;
    int64_t side; /* cells of a block */
    int64_t class_index;
    bool winner;                /* REGIONS_WINNER, else REGIONS_THRESHOLD */
    uint8_t (*colours)[3];      /* [classes] */
    char *mean_name, *max_name; /* of measurements */
    uint64_t name, n;
};

/* A corner of blocks in level-0 px: where the cells' corners are, and no further than the slide. */
static double level0(const struct regions *regions, int32_t corner, int64_t limit)
{
    double step = regions->info->downsample * (double)(regions->info->stride * regions->side);
    return fmin(corner * step, (double)limit);
}

/* Returns its area in level-0 px; that of a hole is negative. */
static double write_ring(struct regions *regions, const struct outline_point *points, int64_t n)
{
    const struct heatmap_info *info = regions->info;
    double twice = 0, x0 = 0, y0 = 0;
    geojson_ring(&regions->json);
    for (int64_t i = 0; i <= n; i++) {
        double x = level0(regions, points[i % n].x, info->width_l0);
        double y = level0(regions, points[i % n].y, info->height_l0);
        geojson_point(&regions->json, x, y);
        twice += i > 0 ? x0 * y - x * y0 : 0;
        x0 = x, y0 = y;
    }
    geojson_close_ring(&regions->json);
    return twice / 2;
}

static bool write_region(void *arg, const struct outline_piece *piece, struct err *err)
{
    (void)err;
    struct regions *regions = arg;
    const struct heatmap_info *info = regions->info;
    struct json_out *json = &regions->json;
    double area_px = 0;
    geojson_feature(json, regions->name, regions->n++);
    for (int64_t r = 0; r < piece->n_rings; r++)
        area_px += write_ring(regions, piece->points + piece->rings[r].first, piece->rings[r].n);
    geojson_properties(json, "annotation");
    geojson_classification(json, info->class_names[regions->class_index],
                           regions->colours[regions->class_index]);
    json_out_object_line(json, "measurements");
    json_out_real(json, regions->mean_name, piece->value_sum / (double)piece->n_px);
    json_out_real(json, regions->max_name, export_short(piece->value_max));
    if (info->mpp_l0 > 0)
        json_out_real(json, "area_um2", info->mpp_l0 * info->mpp_l0 * area_px);
    json_out_close_object(json);
    geojson_close_feature(json);
    return true;
}

/* Traces the heatmap in blocks of regions->side cells. *full: it has too many corners for that. */
static bool trace(const struct export_request *request, struct regions *regions,
                  const struct ctx *ctx, bool *full, struct err *err)
{
    const struct heatmap_info *info = regions->info;
    int64_t memory = request->options->memory_bytes, classes = info->n_classes;
    struct outline_tracer *tracer = NULL;
    struct blocks blocks = { 0 };
    float *row = NULL, *values = NULL;
    uint8_t *mask = NULL;
    bool ok = blocks_open(&blocks, request->heatmap, regions->side, memory / 4, err);
    if (ok && blocks.across >= INT32_MAX)
        ok = err_set(err, ERR_FORMAT,
                     "%s: %lld columns are too many for outlines; make the heatmap with a larger "
                     "--stride",
                     info->slide, (long long)blocks.across);
    if (ok) {
        row = malloc((size_t)(blocks.across * classes) * sizeof *row);
        values = malloc((size_t)blocks.across * sizeof *values);
        mask = malloc((size_t)blocks.across);
        ok = (row && values && mask) || err_memory(err, "a row of a heatmap");
    }
    ok = ok && outline_tracer_new((int32_t)blocks.across, memory / 2 / CORNER_BYTES, write_region,
                                  regions, &tracer, err);
    for (int64_t y = 0; ok && y < blocks.down; y++) {
        ok = !ctx_stopped(ctx) || err_stopped(err);
        ok = ok && blocks_read(&blocks, y, row, err);
        for (int64_t x = 0; ok && x < blocks.across; x++) {
            const float *scores = row + x * classes;
            values[x] = scores[regions->class_index];
            mask[x] = regions->winner ? !isnan(scores[0]) &&
                                            heatmap_winner(scores, classes) == regions->class_index
                                      : (double)values[x] >= request->options->threshold;
        }
        ok = ok && outline_tracer_row(tracer, mask, values, err);
    }
    ok = ok && outline_tracer_end(tracer, err);
    *full = tracer && outline_tracer_full(tracer);
    outline_tracer_free(tracer);
    blocks_close(&blocks);
    free(row), free(values), free(mask);
    return ok;
}

static bool trace_class(const struct export_request *request, struct regions *regions, int64_t c,
                        const struct ctx *ctx, bool *full, struct err *err)
{
    regions->class_index = c;
    regions->mean_name = text_format("prob_%s", regions->info->class_names[c]);
    regions->max_name = text_format("prob_%s max", regions->info->class_names[c]);
    bool ok = (regions->mean_name && regions->max_name) || err_memory(err, "a region");
    ok = ok && trace(request, regions, ctx, full, err);
    free(regions->mean_name);
    free(regions->max_name);
    return ok;
}

/* All regions in blocks of regions->side cells. */
static bool write_file(const struct export_request *request, struct regions *regions,
                       const char *path, const struct ctx *ctx, bool *full, struct err *err)
{
    int64_t first, end;
    struct file_out out;
    if (!heatmap_find_class(regions->info, request->options->class_name, &first, err))
        return false;
    end = first + 1;
    if (!request->options->class_name && (heatmap_has_winners(regions->info) || regions->winner))
        first = 0;
    if (!file_out_open(&out, path, err))
        return false;
    bool ok = true;
    regions->n = 0;
    geojson_begin(&regions->json, out.stream);
    for (int64_t c = first; ok && c < end; c++)
        ok = trace_class(request, regions, c, ctx, full, err);
    geojson_end(&regions->json);
    if (ok)
        return file_out_commit(&out, err);
    file_out_discard(&out);
    return false;
}

/* A single class always wins: its regions are those of the threshold. */
static bool is_winner_rule(const struct export_options *options, const struct heatmap_info *info)
{
    if (options->regions == REGIONS_AUTO)
        return heatmap_has_winners(info) && !options->class_name;
    return options->regions == REGIONS_WINNER && info->n_classes > 1;
}

/* Regions that are too complex for the memory are traced again on coarser blocks. */
static bool write_coarser(const struct export_request *request, struct regions *regions,
                          const char *path, const struct ctx *ctx, struct err *err)
{
    for (regions->side = 1;; regions->side *= 2) {
        bool full = false;
        if (write_file(request, regions, path, ctx, &full, err))
            return true;
        if (!full)
            return false;
        if (regions->side == LARGEST_BLOCK)
            return err_prefix(err, path);
        console_warn(ctx->console,
                     "%s: region outlines are too complex for the available memory; they follow "
                     "blocks of %lld x %lld cells",
                     regions->info->slide, (long long)(2 * regions->side),
                     (long long)(2 * regions->side));
    }
}

static bool write_regions(const struct export_request *request, const char *path,
                          const struct ctx *ctx, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(request->heatmap);
    struct regions regions = { .info = info,
                               .name = rng_hash(info->slide),
                               .winner = is_winner_rule(request->options, info),
                               .colours = export_colours(info) };
    bool ok =
        regions.colours ? write_coarser(request, &regions, path, ctx, err) : err_memory(err, path);
    free(regions.colours);
    return ok;
}

const struct exporter exporter_regions = {
    .name = "regions",
    .file = "regions.geojson",
    .help = "outlines of the regions of a class, for QuPath",
    .needs_scores = true,
    .write = write_regions,
};
