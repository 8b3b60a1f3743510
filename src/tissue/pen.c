/* pen.c: marker strokes and black on an overview. Haematoxylin and eosin both absorb green most, so
 * in tissue green is the lowest channel (or nearly); ink breaks this, or is far more saturated than
 * any stain, or has no colour at all. A stroke is found by its core and followed to its pale rim.
 */
#include "tissue/method.h"

#include <stdlib.h>
#include "stain/colour.h"
#include "tissue/morphology.h"

/* The minimum number of certain pixels in a pen stroke; fewer are a fleck of pigment. */
#define MIN_CERTAIN_PX 6

/* Hue 0..179 (half degrees), the rest 0..255. */
struct ink_rule {
    int hue_from, hue_to; /* may wrap around */
    int certain, rim;     /* least saturation of the core and of the rim */
};

static const struct ink_rule inks[] = {
    { 30, 82, 46, 20 },     /* green */
    { 82, 118, 76, 30 },    /* blue and cyan: red is the lowest channel */
    { 118, 128, 166, 150 }, /* blue over tissue: bluer than haematoxylin is at this strength */
    { 175, 8, 168, 140 },   /* red, above the saturation of eosin and of blood */
};

enum ink { INK_NONE, INK_RIM, INK_CERTAIN };

static enum ink black_ink(struct colour_hsv px)
{
    if (px.value < 40 || (px.value < 76 && px.saturation < 76))
        return INK_CERTAIN;
    return px.value < 115 && px.saturation < 50 ? INK_RIM : INK_NONE;
}

static enum ink ink_of(const uint8_t rgb[3])
{
    struct colour_hsv px = colour_hsv(rgb);
    for (size_t i = 0; i < sizeof inks / sizeof *inks; i++) {
        const struct ink_rule *rule = &inks[i];
        bool in = rule->hue_from < rule->hue_to ? px.hue >= rule->hue_from && px.hue < rule->hue_to
                                                : px.hue >= rule->hue_from || px.hue < rule->hue_to;
        if (in && px.saturation >= rule->rim)
            return px.saturation >= rule->certain ? INK_CERTAIN : INK_RIM;
    }
    return black_ink(px);
}

bool method_find_pen(const struct image *rgb, struct image *mask, struct err *err)
{
    int64_t n = rgb->width * rgb->height;
    for (int64_t i = 0; i < n; i++)
        mask->px[i] = ink_of(rgb->px + 3 * i) != INK_NONE ? 255 : 0;
    int32_t *labels, n_labels;
    if (!morphology_label(mask, true, &labels, &n_labels, err))
        return false;
    int32_t *certain = calloc((size_t)n_labels + 1, sizeof *certain);
    bool ok = certain || err_memory(err, "a tissue mask");
    for (int64_t i = 0; ok && i < n; i++)
        if (labels[i] && certain[labels[i]] < MIN_CERTAIN_PX)
            certain[labels[i]] += ink_of(rgb->px + 3 * i) == INK_CERTAIN;
    for (int64_t i = 0; ok && i < n; i++)
        mask->px[i] = certain[labels[i]] >= MIN_CERTAIN_PX ? 255 : 0;
    free(certain);
    free(labels);
    /* One more pixel: the seam where ink and glass mix looks like pale stain. */
    return ok && morphology_dilate(mask, 1, err);
}
