/* focus.h: a slide and its tissue -> the variance of the Laplacian of its cells at 0.5 um/px, and
 * which cells are out of focus. Private to this folder. */
#ifndef TISSUE_FOCUS_H
#define TISSUE_FOCUS_H
#include "base/ctx.h"
#include "tissue/tissue.h"

enum { FOCUS_CELL_PX = 64 }; /* 32 um */

/* Tissue whose variance is lower is out of focus; chosen with bench/quality.py. */
#define FOCUS_LEAST_VARIANCE 110

struct focus_map {
    float *variance; /* [rows, columns]; -1: too little tissue to tell */
    int64_t columns, rows;
    double cell_l0; /* side of a cell in level-0 pixels */
};

/* Variance of the 5-point Laplacian of a grey image over its pixels with keep not 0, as
 * scipy.ndimage.laplace and OpenCV's Laplacian give it. grey [height + 2, width + 2] has a border
 * of one pixel; keep [height, width]. *n: pixels kept; 0 if none. */
double focus_variance(const uint8_t *grey, const uint8_t *keep, int64_t width, int64_t height,
                      int64_t *n);

/* The caller owns *out; free with focus_free. */
bool focus_measure(struct slide *slide, const struct tissue_mask *tissue, const struct ctx *ctx,
                   struct focus_map *out, struct err *err);
void focus_free(struct focus_map *map); /* also safe on a zeroed struct */

/* Are most of the measured cells among this one and its eight neighbours out of focus? */
bool focus_is_blurred(const struct focus_map *map, int64_t column, int64_t row);
#endif
