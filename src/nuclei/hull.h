/* hull.h: pixels -> how many pixels their convex hull has. Private to this folder. */
#ifndef NUCLEI_HULL_H
#define NUCLEI_HULL_H
#include <stdint.h>

/* The pixels of one row: the first and the last. */
struct hull_row {
    int64_t y, left, right;
};

struct hull_point {
    int64_t x, y;
};

/* The hull is that of the middles of the pixels' edges, and a pixel is in it if its centre is, the
 * border included: skimage.morphology.convex_hull_image. rows [n], n > 0, from the top down; points
 * [6 n]: room. Exact: all numbers are integers. */
int64_t hull_count_px(const struct hull_row *rows, int64_t n, struct hull_point *points);
#endif
