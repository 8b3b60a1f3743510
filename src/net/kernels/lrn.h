/* lrn.h: local response normalisation across channels, plain layout. */
#ifndef NET_KERNELS_LRN_H
#define NET_KERNELS_LRN_H
#include <stdint.h>

struct lrn {
    int64_t size; /* of the window, in channels */
    float alpha, beta, bias;
    int64_t batch, channels, pixels;
    int threads;
};

/* base [as x]: bias + alpha / size * sum of squares, kept for the backward pass. */
void lrn_run(const struct lrn *l, const float *x, float *y, float *base);
void lrn_back(const struct lrn *l, const float *x, const float *base, const float *dy, float *dx);
#endif
