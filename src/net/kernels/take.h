/* take.h: places along one axis, in any order and as often as wanted. */
#ifndef NET_KERNELS_TAKE_H
#define NET_KERNELS_TAKE_H
#include <stdint.h>

/* x [outer, extent, inner], places [count] -> y [outer, count, inner]. A place is a whole number as
 * a float; one that is none of the axis is the nearest that is. */
struct take {
    int64_t outer, extent, inner, count;
    int threads;
};

void take_run(const struct take *t, const float *x, const float *places, float *y);
/* dx = the sums of dy over the places that were taken from it. */
void take_back(const struct take *t, const float *dy, const float *places, float *dx);
#endif
