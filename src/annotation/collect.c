/* collect.c: regions that are valid and disjoint -> one shape, edge by edge (geometry.h). Where two
 * of them share an edge, its signs cancel out. */
#include <math.h>
#include <stdlib.h>
#include "annotation/geometry.h"
#include "base/array.h"

/* Twice the area, relative to the ring's first point; its sign is the direction. */
static double twice_area(const double *xy, size_t n)
{
    double sum = 0;
    for (size_t i = 1; i + 1 < n; i++) {
        const double *a = xy + 2 * i, *b = a + 2;
        sum += (a[0] - xy[0]) * (b[1] - xy[1]) - (b[0] - xy[0]) * (a[1] - xy[1]);
    }
    return sum;
}

static void add_edges(struct merged_region *shape, const double *xy, size_t n, int sign)
{
    for (size_t i = 0; i < n; i++) {
        const double *a = xy + 2 * i, *b = xy + 2 * ((i + 1) % n);
        if (a[1] < b[1])
            shape->edges[shape->n_edges++] = (struct edge){ a[0], a[1], b[0], b[1], -sign };
        else if (a[1] > b[1])
            shape->edges[shape->n_edges++] = (struct edge){ b[0], b[1], a[0], a[1], sign };
    }
}

static void widen(struct merged_region *shape, const double *xy, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        shape->x0 = fmin(shape->x0, xy[2 * i]), shape->x1 = fmax(shape->x1, xy[2 * i]);
        shape->y0 = fmin(shape->y0, xy[2 * i + 1]), shape->y1 = fmax(shape->y1, xy[2 * i + 1]);
    }
}

static bool add_region(const struct drawing *drawing, const struct region *region,
                       struct merged_region *shape, struct err *err)
{
    for (size_t k = 0; k < region->n; k++) {
        const struct drawn_ring *ring = &drawing->rings[region->first + k];
        const double *xy = drawing->xy + 2 * ring->first;
        double area = twice_area(xy, ring->n);
        if (!array_grow(&shape->edges, &shape->room_edges, (int64_t)(shape->n_edges + ring->n),
                        sizeof *shape->edges, "an annotation", err))
            return false;
        add_edges(shape, xy, ring->n, (area > 0) == (k == 0) ? 1 : -1);
        shape->area_px += (k == 0 ? 0.5 : -0.5) * fabs(area);
        if (k == 0)
            widen(shape, xy, ring->n);
    }
    shape->polygons++;
    return true;
}

bool geometry_collect(const struct drawing *drawing, int meaning, struct merged_region *out,
                      struct err *err)
{
    struct merged_region shape = {
        .x0 = INFINITY, .y0 = INFINITY, .x1 = -INFINITY, .y1 = -INFINITY
    };
    bool ok = true;
    for (size_t i = 0; ok && i < drawing->n_regions; i++)
        if (drawing->regions[i].meaning == meaning)
            ok = add_region(drawing, &drawing->regions[i], &shape, err);
    if (ok)
        *out = shape;
    else
        merged_region_free(&shape);
    return ok;
}
