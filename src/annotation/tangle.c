/* tangle.c: counts crossings by a sweep over lines sorted by height. */
#include "annotation/tangle.h"

#include <math.h>
#include <stdlib.h>
#include "annotation/orient.h"

#define CROSSINGS_FREE 20000   /* allowed in any drawing */
#define CROSSINGS_PER_LINE 2   /* plus these per line: outlines drawn twice */
#define PAIRS_LIMIT 100000000L /* stop counting: dense, but not tangled so far */

struct line {
    double x0, y0, x1, y1; /* y0 <= y1 */
    const struct region *region;
};

static int by_lower_end(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    return (a->y0 > b->y0) - (a->y0 < b->y0);
}

static size_t lines_of_ring(const struct drawing *drawing, const struct region *region,
                            const struct drawn_ring *ring, struct line *lines)
{
    const double *xy = drawing->xy + 2 * ring->first;
    for (size_t i = 0; i < ring->n; i++) {
        const double *a = xy + 2 * i, *b = xy + 2 * ((i + 1) % ring->n);
        lines[i] = a[1] <= b[1] ? (struct line){ a[0], a[1], b[0], b[1], region }
                                : (struct line){ b[0], b[1], a[0], a[1], region };
    }
    return ring->n;
}

static bool cross(const struct line *a, const struct line *b)
{
    if (fmax(a->x0, a->x1) < fmin(b->x0, b->x1) || fmax(b->x0, b->x1) < fmin(a->x0, a->x1))
        return false;
    return orient(a->x0, a->y0, a->x1, a->y1, b->x0, b->y0) *
                   orient(a->x0, a->y0, a->x1, a->y1, b->x1, b->y1) <
               0 &&
           orient(b->x0, b->y0, b->x1, b->y1, a->x0, a->y0) *
                   orient(b->x0, b->y0, b->x1, b->y1, a->x1, a->y1) <
               0;
}

/* The line at which the count exceeds the limit, or NULL. */
static const struct line *sweep(const struct line *lines, size_t n, size_t limit)
{
    size_t crossings = 0;
    long pairs = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n && lines[k].y0 <= lines[i].y1; k++) {
            crossings += cross(&lines[i], &lines[k]);
            if (crossings > limit)
                return &lines[i];
            if (++pairs > PAIRS_LIMIT)
                return NULL;
        }
    return NULL;
}

bool tangle_check(const struct drawing *drawing, struct err *err)
{
    if (drawing->n_points == 0 || drawing->disjoint)
        return true;
    struct line *lines = calloc(drawing->n_points, sizeof *lines);
    if (!lines)
        return err_memory(err, "an annotation");
    size_t n = 0;
    for (size_t i = 0; i < drawing->n_regions; i++) {
        const struct region *region = &drawing->regions[i];
        for (size_t k = 0; k < region->n; k++)
            n += lines_of_ring(drawing, region, &drawing->rings[region->first + k], lines + n);
    }
    qsort(lines, n, sizeof *lines, by_lower_end);
    size_t limit = CROSSINGS_FREE + CROSSINGS_PER_LINE * n;
    const struct line *at = sweep(lines, n, limit);
    if (at)
        drawing_refuse(drawing->path, at->region->place, err,
                       "the outlines here cross themselves or others more than %zu times", limit);
    free(lines);
    return !at;
}
