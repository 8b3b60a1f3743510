/* regions.c: see regions.h. Two passes over the pixels: boxes first, then everything counted within
 * a box; hulls are built from the two ends of every row. */
#include "verdict/regions.h"

#include <math.h>
#include <stdlib.h>

/* Sums over the pixels of a region, coordinates relative to its box. */
struct sums {
    double x, y, xx, xy, yy, value;
    int64_t seen;
    int64_t first_row; /* of its rows in spans */
};

struct span {
    int32_t low, high; /* columns of the two ends of a region in a row, absolute */
};

struct work {
    const struct regions_input *in;
    struct region_measure *regions; /* [n] */
    struct sums *sums;              /* [n] */
    struct span *spans;             /* a row of every region's box */
    struct span *hull;              /* points in half pixels, room for the highest box */
};

static void find_boxes(const struct work *w)
{
    const struct regions_input *in = w->in;
    for (int64_t y = 0; y < in->height; y++)
        for (int64_t x = 0; x < in->width; x++) {
            int32_t label = in->labels[y * in->width + x];
            if (label == 0)
                continue;
            struct region_measure *r = &w->regions[label - 1];
            if (r->area++ == 0)
                r->x0 = r->x1 = x, r->y0 = y;
            r->x0 = x < r->x0 ? x : r->x0;
            r->x1 = x + 1 > r->x1 ? x + 1 : r->x1;
            r->y1 = y + 1;
        }
}

static bool is_border(const struct regions_input *in, int64_t x, int64_t y, int32_t label)
{
    const int32_t *at = in->labels + y * in->width + x;
    return x == 0 || y == 0 || x == in->width - 1 || y == in->height - 1 || at[-1] != label ||
           at[1] != label || at[-in->width] != label || at[in->width] != label;
}

/* How much a border pixel adds to the perimeter, from the number of border pixels that touch it by
 * edges and by corners (Benkrid and Crookes). */
static double border_step(int edges, int corners)
{
    static const double diagonal = 1.4142135623730951;
    switch (1 + 2 * edges + 10 * corners) {
    case 5:
    case 7:
    case 15:
    case 17:
    case 25:
    case 27:
        return 1;
    case 21:
    case 33:
        return diagonal;
    case 13:
    case 23:
        return (1 + diagonal) / 2;
    default:
        return 0;
    }
}

static double length_at(const struct regions_input *in, int64_t x, int64_t y, int32_t label)
{
    int touching[2] = { 0 };
    if (!is_border(in, x, y, label))
        return 0;
    for (int64_t dy = -1; dy <= 1; dy++)
        for (int64_t dx = -1; dx <= 1; dx++) {
            int64_t u = x + dx, v = y + dy;
            if ((dx == 0 && dy == 0) || u < 0 || v < 0 || u >= in->width || v >= in->height)
                continue;
            if (in->labels[v * in->width + u] == label && is_border(in, u, v, label))
                touching[dx != 0 && dy != 0]++;
        }
    return border_step(touching[0], touching[1]);
}

static void sum_up(const struct work *w)
{
    const struct regions_input *in = w->in;
    for (int64_t y = 0; y < in->height; y++)
        for (int64_t x = 0; x < in->width; x++) {
            int64_t i = y * in->width + x;
            int32_t label = in->labels[i];
            if (label == 0)
                continue;
            struct region_measure *r = &w->regions[label - 1];
            struct sums *s = &w->sums[label - 1];
            double u = (double)(x - r->x0), v = (double)(y - r->y0);
            double value = in->values ? (double)in->values[i] : 0;
            if (s->seen++ == 0)
                r->least = r->most = value;
            s->x += u, s->y += v, s->xx += u * u, s->xy += u * v, s->yy += v * v;
            s->value += value;
            r->least = fmin(r->least, value);
            r->most = fmax(r->most, value);
            struct span *span = &w->spans[s->first_row + y - r->y0];
            if (span->high == 0)
                span->low = (int32_t)x;
            span->high = (int32_t)x + 1; /* one beyond, so that 0 means not seen yet */
            r->perimeter += length_at(in, x, y, label);
        }
}

static void set_ellipse(struct region_measure *r, const struct sums *s)
{
    double n = (double)r->area, mx = s->x / n, my = s->y / n;
    double xx = s->xx / n - mx * mx, yy = s->yy / n - my * my, xy = s->xy / n - mx * my;
    double half = sqrt((xx - yy) * (xx - yy) / 4 + xy * xy);
    double large = fmax((xx + yy) / 2 + half, 0), small = fmax((xx + yy) / 2 - half, 0);
    r->centre_x = (double)r->x0 + mx;
    r->centre_y = (double)r->y0 + my;
    r->major_axis = 4 * sqrt(large);
    r->eccentricity = large > 0 ? sqrt(fmax(1 - small / large, 0)) : 0;
    r->extent = n / ((double)(r->x1 - r->x0) * (double)(r->y1 - r->y0));
    r->mean = s->value / n;
}

/* Twice the area of the triangle o, a, b; its sign says on which side of o-a the point b is. */
static int64_t turn(struct span o, struct span a, struct span b)
{
    return (int64_t)(a.low - o.low) * (b.high - o.high) -
           (int64_t)(a.high - o.high) * (b.low - o.low);
}

/* One side of the hull. A pixel is the diamond of the middles of its edges; in half pixels its
 * corners are (2x, 2y +- 1) and (2x +- 1, 2y). side -1: the left ends, +1: the right ones. Points
 * come from top to bottom as { low: x, high: y }. Returns how many. */
static int64_t hull_side(const struct work *w, int32_t k, int side)
{
    const struct region_measure *r = &w->regions[k];
    const struct span *rows = w->spans + w->sums[k].first_row;
    int64_t n = 0, height = r->y1 - r->y0;
    for (int64_t row = 0; row < height; row++)
        for (int part = -1; rows[row].high > 0 && part <= 1; part++) {
            int32_t x = 2 * (side < 0 ? rows[row].low : rows[row].high - 1);
            struct span point = { part == 0 ? x + side : x, (int32_t)(2 * row + part) };
            while (n > 1 && turn(w->hull[n - 2], w->hull[n - 1], point) * side <= 0)
                n--;
            w->hull[n++] = point;
        }
    return n;
}

/* Adds the columns between the middle of the slide's left edge and one side of the hull, row by
 * row: for the right side those up to it, for the left side minus those before it. */
static int64_t columns_up_to(const struct work *w, int64_t n_points, int64_t height, int side)
{
    int64_t sum = 0, at = 0;
    for (int64_t row = 0; row < height; row++) {
        int64_t y = 2 * row;
        while (at + 2 < n_points && w->hull[at + 1].high < y)
            at++;
        struct span a = w->hull[at], b = w->hull[at + 1];
        /* x of the side at this row, in whole pixels, is top / bottom */
        int64_t bottom = 2 * (int64_t)(b.high - a.high);
        int64_t top = (int64_t)a.low * (b.high - a.high) + (y - a.high) * (int64_t)(b.low - a.low);
        int64_t whole = top / bottom, rest = top % bottom;
        if (rest < 0)
            whole--, rest += bottom; /* rounded down */
        sum += side > 0 ? whole + 1 : rest > 0 ? -(whole + 1) : -whole;
    }
    return sum;
}

static double hull_area(const struct work *w, int32_t k)
{
    int64_t height = w->regions[k].y1 - w->regions[k].y0, area = 0;
    for (int side = -1; side <= 1; side += 2)
        area += columns_up_to(w, hull_side(w, k, side), height, side);
    return (double)area;
}

bool regions_measure(const struct regions_input *input, struct region_measure **out,
                     struct err *err)
{
    size_t n = (size_t)input->n;
    int64_t rows = 0, highest = 0;
    struct work w = { .in = input,
                      .regions = calloc(n + 1, sizeof *w.regions),
                      .sums = calloc(n + 1, sizeof *w.sums) };
    bool ok = w.regions && w.sums;
    if (ok)
        find_boxes(&w);
    for (size_t k = 0; ok && k < n; k++) {
        int64_t height = w.regions[k].y1 - w.regions[k].y0;
        w.sums[k].first_row = rows;
        rows += height;
        highest = height > highest ? height : highest;
    }
    w.spans = ok ? calloc((size_t)rows + 1, sizeof *w.spans) : NULL;
    w.hull = ok ? calloc(3 * (size_t)highest + 2, sizeof *w.hull) : NULL;
    ok = ok && w.spans && w.hull;
    if (ok)
        sum_up(&w);
    for (int32_t k = 0; ok && k < input->n; k++) {
        if (w.regions[k].area == 0)
            continue;
        set_ellipse(&w.regions[k], &w.sums[k]);
        w.regions[k].solidity = (double)w.regions[k].area / hull_area(&w, k);
    }
    free(w.sums), free(w.spans), free(w.hull);
    if (!ok) {
        free(w.regions);
        return err_memory(err, "the regions");
    }
    *out = w.regions;
    return true;
}
