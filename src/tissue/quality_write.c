/* quality_write.c: a quality mask -> GeoJSON for QuPath and an image for viewing. */
#include "tissue/quality.h"

#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/geojson.h"
#include "base/outline.h"
#include "base/rng.h"

/* Far from the stains and from each other. */
static const struct {
    const char *name; /* of the class in QuPath */
    uint8_t colour[3];
} shown[QUALITY_KINDS] = {
    [QUALITY_BLUR] = { "Blur", { 255, 200, 0 } },
    [QUALITY_FOLD] = { "Fold", { 0, 160, 255 } },
    [QUALITY_PEN] = { "Pen", { 60, 60, 60 } },
    [QUALITY_BUBBLE] = { "Bubble", { 0, 190, 60 } },
};

static void write_kind(struct json_out *json, const struct tissue_mask *tissue,
                       const struct outline *outline, enum quality_kind kind, uint64_t name)
{
    for (int64_t ring = 0; ring < outline->n_rings;) {
        int32_t piece = outline->rings[ring].piece;
        geojson_feature(json, name, (uint64_t)kind << 32 | (uint64_t)piece);
        for (; ring < outline->n_rings && outline->rings[ring].piece == piece; ring++) {
            const struct outline_point *points = outline->points + outline->rings[ring].first;
            int64_t n = outline->rings[ring].n;
            geojson_ring(json);
            for (int64_t i = 0; i <= n; i++) /* closed: the first point again */
                geojson_point(json, points[i % n].x * tissue->l0_per_px_x,
                              points[i % n].y * tissue->l0_per_px_y);
            geojson_close_ring(json);
        }
        geojson_properties(json, "annotation");
        geojson_classification(json, shown[kind].name, shown[kind].colour);
        geojson_close_feature(json);
    }
}

static bool write_kinds(const struct quality_map *quality, const struct tissue_mask *tissue,
                        const char *stem, FILE *stream, struct err *err)
{
    struct image one = { 0 };
    struct json_out json;
    bool ok = image_new(&one, quality->kinds.width, quality->kinds.height, 1, err);
    geojson_begin(&json, stream);
    for (int kind = 1; ok && kind < QUALITY_KINDS; kind++) {
        struct outline outline = { 0 };
        for (int64_t i = 0; i < one.width * one.height; i++)
            one.px[i] = quality->kinds.px[i] == kind ? 255 : 0;
        ok = outline_trace(&one, &outline, err);
        if (ok)
            write_kind(&json, tissue, &outline, (enum quality_kind)kind, rng_hash(stem));
        outline_free(&outline);
    }
    geojson_end(&json);
    image_free(&one);
    return ok;
}

bool quality_write_geojson(const struct quality_map *quality, const struct tissue_mask *tissue,
                           const char *path, struct err *err)
{
    struct file_out file = { 0 };
    char *stem = file_stem(path);
    bool ok = (stem || err_memory(err, "a file name")) && file_out_open(&file, path, err) &&
              write_kinds(quality, tissue, stem, file.stream, err) && file_out_commit(&file, err);
    file_out_discard(&file);
    free(stem);
    return ok;
}

bool quality_write_overlay(const struct quality_map *quality, const struct tissue_mask *tissue,
                           const char *path, struct err *err)
{
    const struct image *from = &tissue->overview;
    int64_t zoom = tissue_overlay_zoom(tissue);
    struct image picture = { 0 };
    if (!image_new(&picture, from->width * zoom, from->height * zoom, 3, err))
        return false;
    for (int64_t y = 0; y < picture.height; y++)
        for (int64_t x = 0; x < picture.width; x++) {
            const uint8_t *px = image_at(from, x / zoom, y / zoom);
            int kind = *image_at(&quality->kinds, x / zoom, y / zoom);
            uint8_t *to = image_at(&picture, x, y);
            for (int c = 0; c < 3; c++)
                to[c] = kind ? (uint8_t)((px[c] + shown[kind].colour[c]) / 2) : px[c];
        }
    bool ok = image_write_png(path, &picture, err);
    image_free(&picture);
    return ok;
}
