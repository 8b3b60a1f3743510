/* shapes.c: see shapes.h. */
#include "annotation/shapes.h"

#include <math.h>

#define ELLIPSE_POINTS 360 /* area exact to 5e-5 */

/* Removes the points of the last ring and returns their bounding box. */
static bool take_box(struct drawing *drawing, double low[2], double high[2])
{
    struct drawn_ring *ring = &drawing->rings[drawing->n_rings - 1];
    size_t n = ring->n;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++) {
            double value = drawing->xy[2 * (ring->first + i) + k];
            low[k] = i == 0 ? value : fmin(low[k], value);
            high[k] = i == 0 ? value : fmax(high[k], value);
        }
    drawing->n_points = ring->first;
    ring->n = 0;
    return n > 0;
}

bool shape_rectangle(struct drawing *drawing, struct err *err)
{
    double low[2], high[2];
    return !take_box(drawing, low, high) || (drawing_point(drawing, low[0], low[1], err) &&
                                             drawing_point(drawing, high[0], low[1], err) &&
                                             drawing_point(drawing, high[0], high[1], err) &&
                                             drawing_point(drawing, low[0], high[1], err));
}

bool shape_ellipse(struct drawing *drawing, struct err *err)
{
    double low[2], high[2];
    if (!take_box(drawing, low, high))
        return true;
    for (int i = 0; i < ELLIPSE_POINTS; i++) {
        double angle = 2 * acos(-1) * i / ELLIPSE_POINTS;
        if (!drawing_point(drawing, (low[0] + high[0]) / 2 + (high[0] - low[0]) / 2 * cos(angle),
                           (low[1] + high[1]) / 2 + (high[1] - low[1]) / 2 * sin(angle), err))
            return false;
    }
    return true;
}
