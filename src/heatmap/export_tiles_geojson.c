/* export_tiles_geojson.c: a heatmap -> tiles.geojson: every tile with a score as a tile object of
 * QuPath, with the scores as measurements and the likeliest class. */
#include "base/file.h"
#include "base/geojson.h"
#include "base/rng.h"
#include "heatmap/export_common.h"
#include "base/text.h"

#include <stdlib.h>

struct layer {
    struct json_out json;
    const struct heatmap_info *info;
    char **names;          /* [classes]: "prob_<class>" */
    uint8_t (*colours)[3]; /* [classes] */
    uint64_t name;
    double threshold;
};

/* The class with the highest score; none of a number; of a single class: whether it reaches the
 * threshold; else -1.
 */
static int64_t class_of(const struct layer *layer, const float *scores)
{
    if (heatmap_is_number(layer->info))
        return -1;
    if (layer->info->n_classes == 1)
        return (double)scores[0] >= layer->threshold ? 0 : -1;
    return heatmap_winner(scores, layer->info->n_classes);
}

static void write_tile(void *arg, const struct export_tile *tile)
{
    struct layer *layer = arg;
    struct json_out *json = &layer->json;
    double x0 = (double)tile->place.x_l0, x1 = x0 + (double)tile->place.width_l0;
    double y0 = (double)tile->place.y_l0, y1 = y0 + (double)tile->place.height_l0;
    geojson_feature(json, layer->name, (uint64_t)tile->number);
    geojson_ring(json);
    geojson_point(json, x0, y0);
    geojson_point(json, x1, y0);
    geojson_point(json, x1, y1);
    geojson_point(json, x0, y1);
    geojson_point(json, x0, y0);
    geojson_close_ring(json);
    geojson_properties(json, "tile");
    int64_t class = class_of(layer, tile->scores);
    if (class >= 0)
        geojson_classification(json, layer->info->class_names[class], layer->colours[class]);
    json_out_object_line(json, "measurements");
    for (int64_t c = 0; c < layer->info->n_classes; c++)
        json_out_real(json, layer->names[c], export_short(tile->scores[c]));
    json_out_close_object(json);
    geojson_close_feature(json);
}

static bool write_geojson(const struct export_request *request, const char *path,
                          const struct ctx *ctx, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(request->heatmap);
    struct layer layer = { .info = info,
                           .name = rng_hash(info->slide),
                           .threshold = request->options->threshold };
    struct file_out out = { 0 };
    layer.names = calloc((size_t)info->n_classes, sizeof *layer.names);
    layer.colours = export_colours(info);
    bool ok = (layer.names && layer.colours) || err_memory(err, path);
    for (int64_t c = 0; ok && c < info->n_classes; c++)
        ok = (layer.names[c] = heatmap_column(info, c)) || err_memory(err, path);
    if (ok && file_out_open(&out, path, err)) {
        geojson_begin(&layer.json, out.stream);
        ok = export_tiles(request, ctx, write_tile, &layer, err);
        geojson_end(&layer.json);
        ok = ok && file_out_commit(&out, err);
    } else {
        ok = false;
    }
    file_out_discard(&out);
    for (int64_t c = 0; layer.names && c < info->n_classes; c++)
        free(layer.names[c]);
    free(layer.names);
    free(layer.colours);
    return ok;
}

const struct exporter exporter_tiles_geojson = {
    .name = "tiles-geojson",
    .file = "tiles.geojson",
    .help = "scores of tiles as objects for QuPath",
    .write = write_geojson,
};
