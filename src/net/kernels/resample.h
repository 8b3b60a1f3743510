/* resample.h: images whose pixels come from other positions of an image: padding of any kind,
 * cropping, nearest and bilinear upsampling. Planes [H, W, inner] as in pool.h. */
#ifndef NET_KERNELS_RESAMPLE_H
#define NET_KERNELS_RESAMPLE_H
#include <stdbool.h>
#include <stdint.h>
#include "net/kernels/simd.h"

/* Along one axis: output i is (1 - weight[i]) x[near[i]] + weight[i] x[far[i]]; near -1: outside.
 */
struct resample_axis {
    int64_t in, out;
    int32_t *near, *far; /* far and weight NULL: one pixel each */
    float *weight;
};

struct resample {
    struct resample_axis axis[2]; /* h, w */
    int64_t planes, inner;
    float fill; /* outside */
    int threads;
};

/* What lies outside of an image: `fill`, or pixels of the image. */
enum resample_border { BORDER_FILL, BORDER_REFLECT, BORDER_REPLICATE };

/* Tables of padding and of upsampling along one axis; the arrays have `out` entries. */
void resample_pad_axis(struct resample_axis *axis, enum resample_border border, int64_t begin);
/* Output i is input floor(i / scale), in floats, as in ONNX Runtime. */
void resample_nearest_axis(struct resample_axis *axis, float scale);
void resample_bilinear_axis(struct resample_axis *axis, double step, bool align_corners);

void resample_run(const struct resample *r, enum simd level, const float *x, float *y);
/* dx is set to 0 first. */
void resample_back(const struct resample *r, enum simd level, const float *dy, float *dx);
#endif
