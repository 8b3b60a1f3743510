/* resample.h: pixels of a level -> pixels of a raster of another resolution. Every raster pixel is
 * computed from the same level pixels, with the same weights, in the same order, however the work
 * is divided into cells, strips or threads. */
#ifndef SLIDE_RESAMPLE_H
#define SLIDE_RESAMPLE_H
#include <stdint.h>
#include "slide/ring.h"

/* Level pixels [*first, *end) from which raster pixels [begin, stop) are computed, in one
 * direction. level_n pixels in the level; ratio level pixels per raster pixel. */
void resample_span(int64_t begin, int64_t stop, double ratio, int64_t level_n, int64_t *first,
                   int64_t *end);

/* Scratch memory of one thread, for cells of at most this size. */
struct resampler;
struct resampler *resampler_new(int64_t cell_width, double ratio_x, double ratio_y);
void resampler_free(struct resampler *resampler);

/* Fills the raster's pixels [x, x + width) x [y, y + height) at dst from a ring that contains the
 * range given by resample_span. ratio > 1: the exact mean of the area under a raster pixel (of its
 * part inside the level at the right and bottom edge); ratio < 1: bilinear between pixel
 * centres. */
void resample_cell(struct resampler *resampler, const struct ring *level, int64_t x, int64_t y,
                   int64_t width, int64_t height, uint8_t *dst, int64_t stride_bytes);
#endif
