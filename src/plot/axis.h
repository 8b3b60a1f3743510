/* axis.h: an axis of a plot: its ends, the position of a value and round numbers along it. */
#ifndef PLOT_AXIS_H
#define PLOT_AXIS_H
#include <stdbool.h>
#include <stdint.h>

#define AXIS_TICKS 24

struct axis {
    double low, high; /* low < high */
    bool log;
    double ticks[AXIS_TICKS];
    int n_ticks;
    int decimals; /* of the labels, -1: as %g */
};

/* From low to high as they are. whole: ticks at whole numbers only. Both must be finite; on a
 * logarithmic axis above 0. */
struct axis axis_new(double low, double high, bool log, bool whole, int most_ticks);

/* Widens the range of some values so that curves do not touch the frame; low > high: no values. */
struct axis axis_around(double low, double high, bool log, int most_ticks);

/* Position of a value: 0 at low, 1 at high; values beyond are at the ends. */
double axis_place(const struct axis *axis, double value);

void axis_label(const struct axis *axis, double tick, char text[32]);
#endif
