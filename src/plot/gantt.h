/* gantt.h: who did what when: a row for each worker, time to the right, a box for everything that
 * it did, in the colour of its kind; gaps are waiting. As SVG and as PNG of the same content.
 * Written beside and renamed; same data, same bytes. */
#ifndef PLOT_GANTT_H
#define PLOT_GANTT_H
#include "base/err.h"

struct gantt_bar {
    int row, kind;
    double begin, end; /* of the axis */
    int number;        /* written into it, if there is room; -1: none */
    bool below;        /* a thin one under the row, which may be at the same time as others */
    bool marked;       /* with a dark edge above */
};

struct gantt {
    const char *title, *subtitle; /* subtitle may be NULL */
    const char *x_label;
    const char *const *rows; /* names [n_rows] */
    int n_rows;
    const char *const *kinds; /* names [n_kinds], at most 6 */
    int n_kinds;
    const char *idle;   /* the name of gaps */
    const char *marked; /* what is marked; NULL: nothing is */
    const struct gantt_bar *bars;
    int n_bars;
    double end; /* of the axis, from 0 */
};

/* Either path may be NULL. */
bool gantt_write(const char *svg_path, const char *png_path, const struct gantt *gantt,
                 struct err *err);
#endif
