/* hull.c: see hull.h. Coordinates are doubled, so that the middles of edges are integers. The hull
 * is two chains from the top to the bottom: the left one and the right one. */
#include "nuclei/hull.h"

#include "base/divide.h"

/* Above 0: o, a, b turn one way; below: the other. */
static int64_t turn(struct hull_point o, struct hull_point a, struct hull_point b)
{
    return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

/* Adds a point to a chain of n; returns its new length. side: 1 left, -1 right. Of points of the
 * same y the outermost one stays. */
static int64_t add_point(struct hull_point *chain, int64_t n, struct hull_point p, int side)
{
    if (n > 0 && chain[n - 1].y == p.y) {
        if (side * p.x >= side * chain[n - 1].x)
            return n;
        n--;
    }
    while (n >= 2 && side * turn(chain[n - 2], chain[n - 1], p) >= 0)
        n--;
    chain[n] = p;
    return n + 1;
}

/* Each pixel (x, y) has the points (2x, 2y - 1), (2x - 1, 2y), (2x + 1, 2y) and (2x, 2y + 1). */
static void make_chain(const struct hull_row *rows, int64_t n, int side, struct hull_point *chain)
{
    int64_t length = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t x = 2 * (side > 0 ? rows[i].left : rows[i].right), y = 2 * rows[i].y;
        length = add_point(chain, length, (struct hull_point){ x, y - 1 }, side);
        length = add_point(chain, length, (struct hull_point){ x - side, y }, side);
        length = add_point(chain, length, (struct hull_point){ x, y + 1 }, side);
    }
}

/* The first (side 1) or last (side -1) px of row y on the inner side of a chain; *at: a segment at
 * or above the row. */
static int64_t end_of_row(const struct hull_point *chain, int64_t *at, int64_t y, int side)
{
    while (chain[*at + 1].y < 2 * y)
        (*at)++;
    struct hull_point a = chain[*at], b = chain[*at + 1];
    int64_t tall = b.y - a.y, across = a.x * tall + (b.x - a.x) * (2 * y - a.y); /* x * tall */
    return side > 0 ? -floor_div(-across, 2 * tall) : floor_div(across, 2 * tall);
}

int64_t hull_count_px(const struct hull_row *rows, int64_t n, struct hull_point *points)
{
    struct hull_point *left = points, *right = points + 3 * n;
    make_chain(rows, n, 1, left);
    make_chain(rows, n, -1, right);
    int64_t count = 0, at_left = 0, at_right = 0;
    for (int64_t y = rows[0].y; y <= rows[n - 1].y; y++)
        count += end_of_row(right, &at_right, y, -1) - end_of_row(left, &at_left, y, 1) + 1;
    return count;
}
