/* curves.h: curves over a shared x, e.g. training epochs; curves that each have their own x, e.g.
 * ROC curves; and a confusion matrix; each as SVG and as PNG of the same content. Written beside
 * and renamed. Deterministic: same data, same bytes. Both together take 60 ms. */
#ifndef PLOT_CURVES_H
#define PLOT_CURVES_H
#include <stdint.h>
#include "base/err.h"

/* y [n] over x [n] (of the panel). A value that is not finite is a gap. */
struct curve {
    const char *name; /* in the legend */
    const double *y;
    bool dashed; /* training is dashed, validation is solid */
};

struct curve_panel {
    const char *title; /* "loss" */
    const struct curve *curves;
    int n_curves;     /* up to 6, distinguished by colour (safe for the colour-blind) and dashes */
    double low, high; /* of the y axis; both 0: from the data */
    bool log;         /* y on a logarithmic scale */
};

/* Panels side by side (two in a row), sharing x, e.g. epochs. mark: an x to mark with a line (the
 * best epoch); not finite: none. Either path may be NULL. n may be 1. */
bool curves_write(const char *svg_path, const char *png_path, const char *title,
                  const char *x_label, const double *x, int64_t n, const struct curve_panel *panels,
                  int n_panels, double mark, struct err *err);

/* y [n] over x [n], in the order in which they are joined. A value that is not finite is a gap. */
struct chart_curve {
    const char *name; /* in the legend, below the plot */
    const double *x, *y;
    int64_t n;
    bool dashed;
};

struct chart {
    const char *title, *x_label, *y_label;
    const struct chart_curve *curves;
    int n_curves;
    double x_low, x_high, y_low,
        y_high;    /* of the axes, low < high; values beyond are at the ends */
    bool log_x;    /* x on a logarithmic scale, with ticks at powers of two */
    bool decades;  /* both axes on a logarithmic scale, with ticks at powers of ten */
    bool square;   /* both axes of the same length */
    bool diagonal; /* a thin line from corner to corner */
};

/* One plot. Either path may be NULL. */
bool curves_chart(const char *svg_path, const char *png_path, const struct chart *chart,
                  struct err *err);

/* counts [classes, classes], rows are the truth. Every cell shows its count and share of the row.
 */
bool curves_confusion(const char *svg_path, const char *png_path, const int64_t *counts,
                      const char *const *class_names, int64_t classes, struct err *err);
#endif
