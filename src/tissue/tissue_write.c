/* tissue_write.c: a tissue mask -> GeoJSON for QuPath and an image for viewing. */
#include "tissue/tissue.h"

#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/geojson.h"
#include "base/rng.h"
#include "base/outline.h"

/* Green is far from every colour of haematoxylin and eosin. */
static const uint8_t outline_colour[3] = { 0, 190, 60 };

static void write_ring(struct json_out *json, const struct tissue_mask *mask,
                       const struct outline_point *points, int64_t n)
{
    geojson_ring(json);
    for (int64_t i = 0; i <= n; i++) /* closed: the first point again */
        geojson_point(json, points[i % n].x * mask->l0_per_px_x,
                      points[i % n].y * mask->l0_per_px_y);
    geojson_close_ring(json);
}

/* One piece; returns the ring after its last. */
static int64_t write_piece(struct json_out *json, const struct tissue_mask *mask,
                           const struct outline *outline, int64_t ring, uint64_t name)
{
    int32_t piece = outline->rings[ring].piece;
    geojson_feature(json, name, (uint64_t)piece);
    for (; ring < outline->n_rings && outline->rings[ring].piece == piece; ring++)
        write_ring(json, mask, outline->points + outline->rings[ring].first,
                   outline->rings[ring].n);
    geojson_properties(json, "annotation");
    geojson_classification(json, "Tissue", outline_colour);
    geojson_close_feature(json);
    return ring;
}

bool tissue_write_geojson(const struct tissue_mask *mask, const char *path, struct err *err)
{
    struct outline outline = { 0 };
    struct file_out file = { 0 };
    struct json_out json;
    char *stem = file_stem(path);
    bool ok = stem || err_memory(err, "a file name");
    ok = ok && outline_trace(&mask->mask, &outline, err) && file_out_open(&file, path, err);
    if (ok) {
        geojson_begin(&json, file.stream);
        for (int64_t ring = 0; ring < outline.n_rings;)
            ring = write_piece(&json, mask, &outline, ring, rng_hash(stem));
        geojson_end(&json);
        ok = file_out_commit(&file, err);
    }
    file_out_discard(&file);
    outline_free(&outline);
    free(stem);
    return ok;
}

static bool tissue_at(const struct image *mask, int64_t x, int64_t y, int64_t zoom)
{
    return x >= 0 && y >= 0 && x < mask->width * zoom && y < mask->height * zoom &&
           *image_at(mask, x / zoom, y / zoom);
}

/* Two pixels wide: those on both sides of the border. The edge of the slide is a border too. */
static bool on_outline(const struct image *mask, int64_t x, int64_t y, int64_t zoom)
{
    bool here = tissue_at(mask, x, y, zoom);
    return here != tissue_at(mask, x - 1, y, zoom) || here != tissue_at(mask, x + 1, y, zoom) ||
           here != tissue_at(mask, x, y - 1, zoom) || here != tissue_at(mask, x, y + 1, zoom);
}

/* A small overview is enlarged: a line of two pixels would hide it. */
int64_t tissue_overlay_zoom(const struct tissue_mask *mask)
{
    const struct image *from = &mask->overview;
    int64_t longest = from->width > from->height ? from->width : from->height;
    int64_t zoom = longest >= 512 ? 1 : (1023 + longest) / longest;
    return zoom > 16 ? 16 : zoom;
}

bool tissue_write_overlay(const struct tissue_mask *mask, const char *path, struct err *err)
{
    const struct image *from = &mask->overview;
    int64_t zoom = tissue_overlay_zoom(mask);
    struct image picture = { 0 };
    if (!image_new(&picture, from->width * zoom, from->height * zoom, 3, err))
        return false;
    for (int64_t y = 0; y < picture.height; y++)
        for (int64_t x = 0; x < picture.width; x++) {
            const uint8_t *px = on_outline(&mask->mask, x, y, zoom)
                                    ? outline_colour
                                    : image_at(from, x / zoom, y / zoom);
            memcpy(image_at(&picture, x, y), px, 3);
        }
    bool ok = image_write_png(path, &picture, err);
    image_free(&picture);
    return ok;
}
