/* picture.h: a heatmap -> what the page shows of it: a picture of the highest scores, the
 * highest-scoring windows, outlines and marks. Rows are streamed; memory grows with the picture,
 * not with the heatmap. */
#ifndef REPORT_PICTURE_H
#define REPORT_PICTURE_H
#include "base/ctx.h"
#include "base/image.h"
#include "heatmap/heatmap.h"

#define PICTURE_PEAKS 6

struct picture_peak {
    int64_t column, row; /* cell */
    double score;
};

struct picture {
    struct image heat; /* [height, width, 1]: 0 where nothing was scored, else 1 + 254 * the highest
                        * score under the pixel (a number: its place in the range) */
    struct picture_peak peaks[PICTURE_PEAKS]; /* highest score first, no two windows overlap much */
    int n_peaks;
    double mean, max; /* NAN if nothing was scored */
};

/* One class of a heatmap, at width x height px for the whole slide: one pass over the scores, 25 ms
 * for 2048 x 2048. *out is the caller's; free with picture_free. */
bool picture_scan(const struct heatmap *heatmap, int64_t class_index, int64_t width, int64_t height,
                  const struct ctx *ctx, struct picture *out, struct err *err);
void picture_free(struct picture *picture);

/* The colours of heatmap/colour_map.h for scores 0 to 1, as PNG with a palette. Transparent where
 * nothing was scored; with `sheer`, low scores nearly so, for laying over a slide. */
bool picture_write_heat(const char *path, const struct image *heat, bool sheer, struct err *err);

/* The class with the highest score: out [height, width, 1]: 0 where nothing was scored, else 1 +
 * the class (255 for all further ones). *out is the caller's. */
bool picture_winners(const struct heatmap *heatmap, int64_t width, int64_t height,
                     const struct ctx *ctx, struct image *out, struct err *err);
/* The cells in which each class has the highest score, to won [classes]. */
bool picture_count_winners(const struct heatmap *heatmap, const struct ctx *ctx, int64_t *won,
                           struct err *err);
/* The colours of base/class_colour.h, as PNG with a palette; with `sheer`, to be laid over a slide.
 */
bool picture_write_winners(const char *path, const struct image *winners,
                           const struct heatmap_info *info, bool sheer, struct err *err);

/* The outline of the non-zero pixels, as SVG of the mask's size. colour is CSS. */
bool picture_write_outline(const char *path, const struct image *mask, const char *colour,
                           struct err *err);

/* The same for each of the values 0 to n - 1, in its colour. */
bool picture_write_class_outlines(const char *path, const struct image *classes,
                                  const uint8_t (*colours)[3], int n, struct err *err);

struct picture_mark {
    double x, y; /* px of the picture */
};
/* Numbered circles, as SVG. */
bool picture_write_marks(const char *path, int64_t width, int64_t height,
                         const struct picture_mark *marks, size_t n, struct err *err);
#endif
