/* axis.c: see axis.h. */
#include "plot/axis.h"

#include <math.h>
#include <stdio.h>

static void add_tick(struct axis *axis, double value)
{
    const double slack = 1e-9 * (axis->high - axis->low);
    if (axis->n_ticks < AXIS_TICKS && value >= axis->low - slack && value <= axis->high + slack)
        axis->ticks[axis->n_ticks++] = value;
}

/* Steps of 1, 2 or 5 times a power of ten: the smallest one that gives few enough ticks. */
static void tick_evenly(struct axis *axis, bool whole, int most_ticks)
{
    double least = (axis->high - axis->low) / most_ticks, power = pow(10, floor(log10(least)));
    double step = power;
    for (int i = 0; i < 3 && step < least * (1 - 1e-9); i++)
        step = power * (double[]){ 2, 5, 10 }[i];
    if (whole)
        step = fmax(step, 1);
    axis->decimals = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-9);
    for (double i = ceil(axis->low / step - 1e-9); i * step <= axis->high + 1e-9 * step; i++)
        add_tick(axis, i == 0 ? 0 : i * step); /* never -0 */
    if (axis->decimals > 6 || fmax(fabs(axis->low), fabs(axis->high)) >= 1e6)
        axis->decimals = -1;
}

/* Powers of ten, some skipped if there are many; also 2 and 5 times them if there are few. */
static void tick_by_powers(struct axis *axis, int most_ticks)
{
    double first = floor(log10(axis->low)), last = ceil(log10(axis->high));
    double every = fmax(1, ceil((last - first) / most_ticks));
    bool few = log10(axis->high / axis->low) < 2;
    for (double i = first; i <= last; i += every) {
        add_tick(axis, pow(10, i));
        if (few) {
            add_tick(axis, 2 * pow(10, i));
            add_tick(axis, 5 * pow(10, i));
        }
    }
    axis->decimals = -1;
}

struct axis axis_new(double low, double high, bool log, bool whole, int most_ticks)
{
    struct axis axis = { .low = low, .high = high, .log = log };
    if (!(high - low > 1e-12 * fmax(fabs(low), fabs(high)))) { /* one value only */
        double half = log ? 0 : whole || low == 0 ? 0.5 : fabs(low) / 10;
        axis.low = log ? low / 2 : low - half;
        axis.high = log ? low * 2 : low + half;
    }
    if (log)
        tick_by_powers(&axis, most_ticks);
    else
        tick_evenly(&axis, whole, most_ticks);
    return axis;
}

struct axis axis_around(double low, double high, bool log, int most_ticks)
{
    if (low > high)
        low = log ? 0.1 : 0, high = 1;
    if (log && high > low) {
        double room = pow(high / low, 0.05);
        low /= room, high *= room;
    } else if (high > low) {
        double room = 0.05 * (high - low);
        low = low >= 0 && low < room ? 0 : low - room;
        high += room;
    }
    return axis_new(low, high, log, false, most_ticks);
}

double axis_place(const struct axis *axis, double value)
{
    double place = axis->log ? log(value / axis->low) / log(axis->high / axis->low)
                             : (value - axis->low) / (axis->high - axis->low);
    return fmin(fmax(place, 0), 1);
}

void axis_label(const struct axis *axis, double tick, char text[32])
{
    if (axis->decimals < 0)
        snprintf(text, 32, "%.6g", tick);
    else
        snprintf(text, 32, "%.*f", axis->decimals, tick);
}
