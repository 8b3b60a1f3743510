/* scan.c: point in polygon and rasterisation by winding numbers. An edge whose crossing with a row
 * is at or left of a pixel centre adds its sign to that pixel; the sum is 1 inside, 0 outside. The
 * side is decided by orient(), so nothing depends on how a crossing is rounded. */
#include "annotation/scan.h"

#include <math.h>
#include <stdlib.h>
#include "annotation/orient.h"

static int by_lower_end(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    return (a->y0 > b->y0) - (a->y0 < b->y0);
}

static double fill_highest(struct scan *scan, size_t begin, size_t end)
{
    if (begin == end)
        return -INFINITY;
    size_t middle = begin + (end - begin) / 2;
    double highest = fmax(fill_highest(scan, begin, middle), fill_highest(scan, middle + 1, end));
    return scan->highest[middle] = fmax(highest, scan->edges[middle].y1);
}

bool scan_new(struct scan *scan, struct merged_region *shape, struct err *err)
{
    double *highest = calloc(shape->n_edges + 1, sizeof *highest);
    if (!highest)
        return err_memory(err, "an annotation");
    if (shape->n_edges > 0)
        qsort(shape->edges, shape->n_edges, sizeof *shape->edges, by_lower_end);
    *scan = (struct scan){ .edges = shape->edges, .highest = highest, .n = shape->n_edges };
    fill_highest(scan, 0, scan->n);
    return true;
}

void scan_free(struct scan *scan)
{
    free(scan->highest);
    *scan = (struct scan){ 0 };
}

typedef void (*edge_fn)(void *user, const struct edge *edge);

/* Every edge among [begin, end) that meets a row between top and bottom; its y1 does not belong to
 * it. */
static void visit(const struct scan *scan, size_t begin, size_t end, double top, double bottom,
                  edge_fn fn, void *user)
{
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (scan->highest[middle] <= top)
            return;
        const struct edge *edge = &scan->edges[middle];
        visit(scan, begin, middle, top, bottom, fn, user);
        if (edge->y0 > bottom)
            return;
        if (edge->y1 > top)
            fn(user, edge);
        begin = middle + 1;
    }
}

static bool at_or_left_of(const struct edge *edge, double x, double y)
{
    return orient(edge->x0, edge->y0, edge->x1, edge->y1, x, y) <= 0;
}

struct point_sum {
    double x, y;
    int sum;
};

static void add_to_point(void *user, const struct edge *edge)
{
    struct point_sum *point = user;
    if (at_or_left_of(edge, point->x, point->y))
        point->sum += edge->sign;
}

bool scan_contains(const struct scan *scan, double x_l0, double y_l0)
{
    struct point_sum point = { .x = x_l0, .y = y_l0 };
    if (isfinite(x_l0) && isfinite(y_l0))
        visit(scan, 0, scan->n, y_l0, y_l0, add_to_point, &point);
    return point.sum != 0;
}

static double centre(double origin, double step, int64_t index)
{
    return origin + ((double)index + 0.5) * step;
}

/* About the first index whose centre is not below `value`, within [begin, end]. */
static int64_t near_index(double origin, double step, double value, int64_t begin, int64_t end)
{
    double guess = ceil((value - origin) / step - 0.5);
    return guess > (double)begin ? (guess < (double)end ? (int64_t)guess : end) : begin;
}

/* The first row whose centre is not above y, within the window's and the one after. */
static int64_t first_row(const struct window *window, double y)
{
    int64_t begin = window->row, end = begin + window->height;
    int64_t row = near_index(window->y_l0, window->step_l0, y, begin, end);
    while (row > begin && centre(window->y_l0, window->step_l0, row - 1) >= y)
        row--;
    while (row < end && centre(window->y_l0, window->step_l0, row) < y)
        row++;
    return row;
}

/* The first column whose centre is not left of where the edge crosses the row, within the window's
 * and the one after. */
static int64_t first_column(const struct window *window, const struct edge *edge, double y)
{
    double x0 = window->x_l0, step = window->step_l0;
    double part = (y - edge->y0) / (edge->y1 - edge->y0);
    int64_t begin = window->column, end = begin + window->width;
    int64_t column = near_index(x0, step, edge->x0 + part * (edge->x1 - edge->x0), begin, end);
    while (column > begin && at_or_left_of(edge, centre(x0, step, column - 1), y))
        column--;
    while (column < end && !at_or_left_of(edge, centre(x0, step, column), y))
        column++;
    return column;
}

struct filling {
    const struct window *window;
    double left, right; /* centres of the first and the last column */
    uint8_t *mask;      /* NULL: only count */
    uint64_t count;     /* modulo 2^64 on the way, right at the end */
};

static void add_span(struct filling *filling, int64_t row, int64_t column, int sign)
{
    int64_t width = filling->window->width;
    row -= filling->window->row;
    column -= filling->window->column;
    filling->count += (uint64_t)(sign * (width - column));
    if (filling->mask && column < width) {
        uint8_t *pixel = filling->mask + row * width + column;
        *pixel = (uint8_t)(*pixel + sign); /* modulo 256 on the way, 0 or 1 at the end */
    }
}

static void add_to_window(void *user, const struct edge *edge)
{
    struct filling *filling = user;
    const struct window *window = filling->window;
    if (fmin(edge->x0, edge->x1) > filling->right)
        return;
    bool left = fmax(edge->x0, edge->x1) <= filling->left;
    int64_t begin = first_row(window, edge->y0), end = first_row(window, edge->y1);
    if (left && !filling->mask) {
        filling->count += (uint64_t)(edge->sign * window->width) * (uint64_t)(end - begin);
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        double y = centre(window->y_l0, window->step_l0, row);
        add_span(filling, row, left ? window->column : first_column(window, edge, y), edge->sign);
    }
}

/* Adds the signs of all edges where they cross the window's rows. */
static void fill(const struct scan *scan, struct filling *filling)
{
    const struct window *window = filling->window;
    int64_t column = window->column, row = window->row;
    filling->left = centre(window->x_l0, window->step_l0, column);
    filling->right = centre(window->x_l0, window->step_l0, column + window->width - 1);
    visit(scan, 0, scan->n, centre(window->y_l0, window->step_l0, row),
          centre(window->y_l0, window->step_l0, row + window->height - 1), add_to_window, filling);
}

int64_t scan_count(const struct scan *scan, const struct window *window)
{
    struct filling filling = { .window = window };
    fill(scan, &filling);
    return (int64_t)filling.count;
}

void scan_fill(const struct scan *scan, const struct window *window, uint8_t *mask)
{
    struct filling filling = { .window = window, .mask = mask };
    fill(scan, &filling);
    for (int64_t row = 0; row < window->height; row++) {
        uint8_t *pixels = mask + row * window->width, sum = 0;
        for (int64_t column = 0; column < window->width; column++) {
            sum = (uint8_t)(sum + pixels[column]);
            pixels[column] = sum ? 255 : 0;
        }
    }
}
