/* frame.h: an area of a drawing with two axes, a grid and a legend, for all plots of curves. */
#ifndef PLOT_FRAME_H
#define PLOT_FRAME_H
#include <stdbool.h>
#include <stdint.h>
#include "plot/axis.h"
#include "plot/sketch.h"

#define FRAME_TEXT 12.0       /* size of the letters */
#define FRAME_LEGEND_ROW 19.0 /* height of an entry of the legend */
#define FRAME_INK 0x333333
#define FRAME_LINE 0x999999

struct frame {
    struct sketch *sketch; /* not owned */
    double left, top, width, height;
    struct axis x, y;
};

/* Where a value is on the drawing; values beyond the axes are at their ends. */
struct sketch_point frame_place(const struct frame *frame, double x, double y);

/* Grid, lines, numbers and the name of x below. */
void frame_axes(const struct frame *frame, const char *x_label);

/* The colour of curve c; colours repeat after six. */
uint32_t frame_colour(int c);

/* An entry of a legend: a piece of the curve's line and its name; y is the middle of the line. */
void frame_entry(struct sketch *sketch, double x, double y, int c, const char *name, bool dashed);
double frame_entry_width(const char *name);
#endif
