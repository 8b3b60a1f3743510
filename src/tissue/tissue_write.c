/* tissue_write.c: a tissue mask -> GeoJSON for QuPath and a picture for people. */
#include "tissue/tissue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "tissue/outline.h"

/* Green is far from every colour of haematoxylin and eosin. */
static const uint8_t outline_colour[3] = { 0, 190, 60 };

/* An identifier that depends on the file's name and the piece's number, so that the same mask
 * gives the same file. */
static void write_id(struct json_out *json, uint64_t name, int32_t piece)
{
    struct rng rng = rng_new(name, 0, (uint64_t)piece);
    uint32_t a = rng_u32(&rng), b = rng_u32(&rng), c = rng_u32(&rng), d = rng_u32(&rng);
    char text[37];
    snprintf(text, sizeof text, "%08x-%04x-4%03x-%04x-%04x%08x", a, b >> 16, b & 0xfff,
             0x8000 | (c >> 18), c & 0xffff, d);
    json_out_text(json, "id", text);
}

/* To a hundredth of a pixel. */
static double level0(int32_t corner, double l0_per_px)
{
    return round(corner * l0_per_px * 100) / 100;
}

static void write_ring(struct json_out *json, const struct tissue_mask *mask,
                       const struct outline_point *points, int64_t n)
{
    json_out_array_line(json, NULL);
    for (int64_t i = 0; i <= n; i++) { /* closed: the first point again */
        struct outline_point point = points[i % n];
        json_out_array_line(json, NULL);
        json_out_real(json, NULL, level0(point.x, mask->l0_per_px_x));
        json_out_real(json, NULL, level0(point.y, mask->l0_per_px_y));
        json_out_close_array(json);
    }
    json_out_close_array(json);
}

static void write_properties(struct json_out *json)
{
    json_out_object(json, "properties");
    json_out_text(json, "objectType", "annotation");
    json_out_bool(json, "isLocked", false);
    json_out_object_line(json, "classification");
    json_out_text(json, "name", "Tissue");
    json_out_array_line(json, "color");
    for (int c = 0; c < 3; c++)
        json_out_int(json, NULL, outline_colour[c]);
    json_out_close_array(json);
    json_out_close_object(json);
    json_out_close_object(json);
}

/* One piece; returns the ring after its last. */
static int64_t write_piece(struct json_out *json, const struct tissue_mask *mask,
                           const struct outline *outline, int64_t ring, uint64_t name)
{
    int32_t piece = outline->rings[ring].piece;
    json_out_object(json, NULL);
    json_out_text(json, "type", "Feature");
    write_id(json, name, piece);
    json_out_object(json, "geometry");
    json_out_text(json, "type", "Polygon");
    json_out_array_line(json, "coordinates");
    for (; ring < outline->n_rings && outline->rings[ring].piece == piece; ring++)
        write_ring(json, mask, outline->points + outline->rings[ring].first,
                   outline->rings[ring].n);
    json_out_close_array(json);
    json_out_close_object(json);
    write_properties(json);
    json_out_close_object(json);
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
        json_out_begin(&json, file.stream);
        json_out_object(&json, NULL);
        json_out_text(&json, "type", "FeatureCollection");
        json_out_array(&json, "features");
        for (int64_t ring = 0; ring < outline.n_rings;)
            ring = write_piece(&json, mask, &outline, ring, rng_hash(stem));
        json_out_close_array(&json);
        json_out_close_object(&json);
        json_out_end(&json);
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

bool tissue_write_overlay(const struct tissue_mask *mask, const char *path, struct err *err)
{
    const struct image *from = &mask->overview;
    int64_t longest = from->width > from->height ? from->width : from->height;
    /* A small overview is enlarged: a line of two pixels would hide it. */
    int64_t zoom = longest >= 512 ? 1 : (1023 + longest) / longest;
    zoom = zoom > 16 ? 16 : zoom;
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
