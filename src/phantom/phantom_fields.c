/* phantom_fields.c: see phantom_fields.h. */
#include "phantom/phantom_fields.h"

#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/image.h"
#include "base/label_image.h"
#include "base/rng.h"
#include "base/text.h"
#include "phantom/phantom_nuclei.h"

enum { SIDE_L0 = 2 * PHANTOM_FIELD_PX, TRIES = 2000 }; /* 0.5 um/px from 0.25 */

static bool in_lesion(const struct phantom_scene *scene, float x, float y)
{
    for (int i = 0; i < scene->n_lesions; i++)
        if (phantom_curve_depth(&scene->lesions[i].outline, x, y) > 0)
            return true;
    return false;
}

/* The corner of field k. False: none is found. */
static bool place_field(const struct phantom_scene *scene, int64_t k, int64_t *x, int64_t *y)
{
    bool wanted = scene->n_lesions > 0 && k % 2 == 0;
    struct rng rng = rng_new(scene->seed, rng_hash("field") ^ (uint64_t)scene->index, (uint64_t)k);
    for (int try = 0; try < TRIES; try++) {
        uint64_t room = (uint64_t)(scene->size_px - SIDE_L0 + 1);
        *x = (int64_t)rng_below(&rng, room);
        *y = (int64_t)rng_below(&rng, room);
        float cx = (float)(*x + SIDE_L0 / 2), cy = (float)(*y + SIDE_L0 / 2);
        bool tissue = phantom_scene_tissue(scene, cx, cy) > SIDE_L0 / 4.0f;
        if (wanted ? in_lesion(scene, cx, cy) : tissue && !in_lesion(scene, cx, cy))
            return true;
    }
    return false;
}

static bool draw_field(struct phantom_painter *painter, int64_t x, int64_t y, struct image *out,
                       struct err *err)
{
    struct image whole = { 0 };
    if (!image_new(&whole, SIDE_L0, SIDE_L0, 3, err))
        return false;
    for (int64_t top = 0; top < SIDE_L0; top += PHANTOM_TILE_PX)
        for (int64_t left = 0; left < SIDE_L0; left += PHANTOM_TILE_PX)
            phantom_paint(painter, x + left, y + top, PHANTOM_TILE_PX, PHANTOM_TILE_PX,
                          image_at(&whole, left, top), 3 * SIDE_L0, 0);
    bool ok = image_shrink(&whole, PHANTOM_FIELD_PX, PHANTOM_FIELD_PX, out, err);
    image_free(&whole);
    return ok;
}

/* The nucleus that most of four pixels belong to, the first of equals. */
static int32_t most_of(const int32_t *top, const int32_t *bottom)
{
    const int32_t four[4] = { top[0], top[1], bottom[0], bottom[1] };
    int best = 0, most = 0;
    for (int i = 0; i < 4; i++) {
        int n = 0;
        for (int j = 0; j < 4; j++)
            n += four[j] == four[i];
        if (n > most)
            most = n, best = i;
    }
    return four[best];
}

/* Counted from 1 in the order of the first pixel: ids of a slide do not fit into a PNG. ids: room
 * for all pixels. */
static void renumber(struct label_image *labels, int32_t *ids)
{
    int32_t n = 0;
    for (int64_t i = 0; i < labels->width * labels->height; i++) {
        int32_t k = 0;
        if (labels->px[i] == 0)
            continue;
        while (k < n && ids[n - 1 - k] != labels->px[i]) /* the last ones are the nearest */
            k++;
        if (k == n)
            ids[n++] = labels->px[i], k = 0;
        labels->px[i] = n - k;
    }
}

static bool find_labels(const struct phantom_scene *scene, int64_t x, int64_t y,
                        struct label_image *out, struct err *err)
{
    int32_t *fine = malloc((size_t)SIDE_L0 * SIDE_L0 * sizeof *fine);
    *out = (struct label_image){ .width = PHANTOM_FIELD_PX, .height = PHANTOM_FIELD_PX };
    out->px = malloc((size_t)PHANTOM_FIELD_PX * PHANTOM_FIELD_PX * sizeof *out->px);
    bool ok = (fine && out->px) || err_memory(err, "a field");
    ok = ok && phantom_nuclei_labels(scene, x, y, SIDE_L0, SIDE_L0, fine, err);
    for (int64_t i = 0; ok && i < PHANTOM_FIELD_PX * PHANTOM_FIELD_PX; i++) {
        const int32_t *at =
            fine + 2 * (i / PHANTOM_FIELD_PX) * SIDE_L0 + 2 * (i % PHANTOM_FIELD_PX);
        out->px[i] = most_of(at, at + SIDE_L0);
    }
    if (ok)
        renumber(out, fine);
    free(fine);
    return ok;
}

/* The labels are written first: if a field exists, its labels do too. */
static bool write_field(const char *folder, struct phantom_painter *painter,
                        const struct phantom_scene *scene, int64_t x, int64_t y, struct err *err)
{
    struct image image = { 0 };
    struct label_image labels = { 0 };
    char *png = text_format("%s/%s_%lld_%lld.png", folder, scene->name, (long long)x, (long long)y);
    char *truth =
        text_format("%s/%s_%lld_%lld_labels.png", folder, scene->name, (long long)x, (long long)y);
    bool ok = (png && truth) || err_memory(err, folder);
    if (ok && !file_exists(png))
        ok = find_labels(scene, x, y, &labels, err) && draw_field(painter, x, y, &image, err) &&
             label_image_write_png(truth, &labels, err) && image_write_png(png, &image, err);
    label_image_free(&labels);
    image_free(&image);
    free(png);
    free(truth);
    return ok;
}

bool phantom_fields_write(const char *folder, struct phantom_painter *painter,
                          const struct phantom_scene *scene, int64_t n, struct err *err)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t x, y;
        if (place_field(scene, k, &x, &y) && !write_field(folder, painter, scene, x, y, err))
            return false;
    }
    return true;
}
