/* scatter.h: points in a plane with both axes of one scale and the line on which both are equal, as
 * SVG and as PNG of the same content. Written beside and renamed; same data, same bytes. */
#ifndef PLOT_SCATTER_H
#define PLOT_SCATTER_H
#include <stdint.h>
#include "base/err.h"

/* Points (x[i], y[i]) that are finite; of very many, evenly chosen ones are drawn. Either path may
 * be NULL. */
bool scatter_write(const char *svg_path, const char *png_path, const char *title,
                   const char *x_label, const char *y_label, const float *x, const float *y,
                   int64_t n, struct err *err);
#endif
