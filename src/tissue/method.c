/* method.c: see method.h. One function per method, and a table of them. */
#include "tissue/method.h"

#include <string.h>
#include "stain/colour.h"
#include "tissue/morphology.h"
#include "tissue/otsu.h"

/* Glass is never exactly grey. If there is no tissue, Otsu would split this noise; no stain is as
 * pale as this. On scales of 255 and of 1. */
#define MIN_SATURATION_BYTE 8
#define MIN_SATURATION (MIN_SATURATION_BYTE / 255.0)

/* Black in the grey image of `process`, and the least amount by which tissue is darker than glass:
 * on a slide without tissue Otsu would split the noise and the shading of the glass. */
#define BLACK_GREY 20
#define MIN_CONTRAST_GREY 12

/* Hue and saturation at or above Otsu's threshold. With use_value also value between 70 and its
 * threshold, which drops pale tissue and black. OpenCV's 8-bit HSV, as in the published pipeline:
 * its thresholds are whole numbers. */
static bool method_fda(const struct image *rgb, const uint8_t *skip,
                       const struct tissue_options *options, struct image *mask, struct err *err)
{
    (void)err;
    int64_t hues[256] = { 0 }, saturations[256] = { 0 }, values[256] = { 0 };
    int64_t n = rgb->width * rgb->height;
    for (int64_t i = 0; i < n; i++) {
        if (skip && skip[i])
            continue;
        struct colour_hsv px = colour_hsv(rgb->px + 3 * i);
        hues[px.hue]++, saturations[px.saturation]++, values[px.value]++;
    }
    int hue = otsu_of_counts(hues), saturation = otsu_of_counts(saturations);
    int value_from = options->use_value ? 70 : 0;
    int value_to = options->use_value ? otsu_of_counts(values) : 255;
    if (saturation < MIN_SATURATION_BYTE)
        saturation = MIN_SATURATION_BYTE;
    for (int64_t i = 0; i < n; i++) {
        struct colour_hsv px = colour_hsv(rgb->px + 3 * i);
        bool tissue = px.hue >= hue && px.saturation >= saturation && px.value >= value_from &&
                      px.value <= value_to;
        mask->px[i] = tissue ? 255 : 0;
    }
    return true;
}

/* Mean of the grey values above the threshold minus the mean of those up to it; 0 if either is
 * empty. */
static double contrast(const int64_t counts[256], int threshold)
{
    double n[2] = { 0 }, sum[2] = { 0 };
    for (int grey = 0; grey < 256; grey++) {
        n[grey > threshold] += (double)counts[grey];
        sum[grey > threshold] += (double)counts[grey] * grey;
    }
    return n[0] > 0 && n[1] > 0 ? sum[1] / n[1] - sum[0] / n[0] : 0;
}

/* Grey, Otsu without pure black and white; a threshold so high that it splits the glass is
 * replaced. Opening the glass (5 x 5) closes specks in the tissue. */
static bool method_process(const struct image *rgb, const uint8_t *skip,
                           const struct tissue_options *options, struct image *mask,
                           struct err *err)
{
    (void)options;
    int64_t counts[256] = { 0 }, n = rgb->width * rgb->height;
    for (int64_t i = 0; i < n; i++)
        if (!skip || !skip[i])
            counts[colour_grey(rgb->px + 3 * i)]++;
    counts[0] = counts[255] = 0;
    int threshold = otsu_of_counts(counts);
    if (threshold > 229)
        threshold = 196;
    else if (contrast(counts, threshold) < MIN_CONTRAST_GREY)
        threshold = BLACK_GREY; /* glass alone: nothing is tissue */
    for (int64_t i = 0; i < n; i++) {
        int grey = colour_grey(rgb->px + 3 * i);
        mask->px[i] = grey > threshold || grey <= BLACK_GREY ? 255 : 0;
    }
    if (!morphology_open_square(mask, 2, err))
        return false;
    morphology_invert(mask);
    return true;
}

/* Saturated, not white in all channels, not dark in any. */
static bool method_ncrf(const struct image *rgb, const uint8_t *skip,
                        const struct tissue_options *options, struct image *mask, struct err *err)
{
    (void)options, (void)err;
    const int dark = 50;
    int64_t counts[3][256] = { 0 }, n = rgb->width * rgb->height;
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            if (!skip || !skip[i])
                counts[c][rgb->px[3 * i + c]]++;
    int threshold[3];
    for (int c = 0; c < 3; c++)
        threshold[c] = otsu_of_counts(counts[c]);
    double saturation = otsu_of_image(rgb, colour_saturation, skip);
    if (saturation < MIN_SATURATION)
        saturation = MIN_SATURATION;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *px = rgb->px + 3 * i;
        bool white = px[0] > threshold[0] && px[1] > threshold[1] && px[2] > threshold[2];
        bool lit = px[0] > dark && px[1] > dark && px[2] > dark;
        mask->px[i] = colour_saturation(px) > saturation && !white && lit ? 255 : 0;
    }
    return true;
}

/* Everything. */
static bool method_none(const struct image *rgb, const uint8_t *skip,
                        const struct tissue_options *options, struct image *mask, struct err *err)
{
    (void)skip, (void)options, (void)err;
    memset(mask->px, 255, (size_t)(rgb->width * rgb->height));
    return true;
}

typedef bool (*method_fn)(const struct image *rgb, const uint8_t *skip,
                          const struct tissue_options *options, struct image *mask,
                          struct err *err);

static const method_fn methods[] = {
    [TISSUE_FDA] = method_fda,
    [TISSUE_PROCESS] = method_process,
    [TISSUE_NCRF] = method_ncrf,
    [TISSUE_NONE] = method_none,
};
const char *const tissue_method_names[] = {
    [TISSUE_FDA] = "fda",
    [TISSUE_PROCESS] = "process",
    [TISSUE_NCRF] = "ncrf",
    [TISSUE_NONE] = "none",
    NULL,
};

bool method_apply(const struct image *rgb, const uint8_t *skip,
                  const struct tissue_options *options, struct image *mask, struct err *err)
{
    return methods[options->method](rgb, skip, options, mask, err);
}
