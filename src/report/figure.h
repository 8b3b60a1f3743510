/* figure.h: curves as SVG within the page, in the page's colours (light and dark). */
#ifndef REPORT_FIGURE_H
#define REPORT_FIGURE_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FIGURE_LINES 6 /* distinguished by colour and dashes */

/* y [n] over x [n]; a value that is not finite is a gap. */
struct figure_line {
    const char *name; /* foreign text is fine */
    const double *x, *y;
    int64_t n;
    char colour[16]; /* CSS; "": one that follows from the number of the line */
};

struct figure {
    const char *title, *x_label, *y_label;
    struct figure_line lines[FIGURE_LINES];
    int n_lines;
    double x_low, x_high, y_low, y_high; /* low == high: from the data */
    bool whole_x;                        /* ticks at whole numbers only */
    bool diagonal;                       /* the line of chance */
    double mark;                         /* an x that is marked, with mark_name; NAN: none */
    const char *mark_name;
    const char *summary; /* what it shows, for screen readers */
};

/* A <figure> with its legend. Points too close to distinguish are merged. */
void figure_write(FILE *page, const struct figure *figure);
#endif
