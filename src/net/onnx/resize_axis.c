/* resize_axis.c: places and weights of pixels along one side of a resized image. */
#include "net/onnx/resize_axis.h"
#include <math.h>
#include <string.h>

float resize_place(const struct resize_axis *axis, int64_t i)
{
    float at = (float)i;
    switch (axis->coordinates) {
    case PYTORCH_HALF_PIXEL:
        return axis->out > 1 ? (at + 0.5f) / axis->scale - 0.5f : 0;
    case ALIGN_CORNERS:
        return axis->out > 1 ? at * (float)(axis->in - 1) / (float)(axis->out - 1) : 0;
    case ASYMMETRIC:
        return at / axis->scale;
    case TF_HALF_PIXEL:
        return (at + 0.5f) / axis->scale;
    default:
        return (at + 0.5f) / axis->scale - 0.5f;
    }
}

static int64_t inside(const struct resize_axis *axis, double at)
{
    return !(at > 0) ? 0 : at > (double)(axis->in - 1) ? axis->in - 1 : (int64_t)at;
}

int64_t resize_nearest(const struct resize_axis *axis, int64_t i)
{
    double at = (double)resize_place(axis, i);
    return inside(axis, axis->rounding == FLOOR          ? floor(at)
                        : axis->rounding == CEIL         ? ceil(at)
                        : axis->rounding == PREFER_FLOOR ? ceil(at - 0.5)
                                                         : floor(at + 0.5));
}

/* The weight of a pixel at this distance. */
static double window(const struct resize_axis *axis, double distance)
{
    double x = fabs(distance), a = (double)axis->cubic;
    if (axis->mode == RESIZE_LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static void normalise(float *weights, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += (double)weights[k];
    for (int64_t k = 0; k < n && sum != 0; k++)
        weights[k] = (float)((double)weights[k] / sum);
}

/* Pixels beyond the border are those of the border, unless they do not count. */
static void add_weight(const struct resize_axis *axis, double place, double weight, float *weights)
{
    bool outside = place < 0 || place > (double)(axis->in - 1);
    if (!(outside && axis->exclude_outside))
        weights[inside(axis, place)] += (float)weight;
}

static void smooth(const struct resize_axis *axis, int64_t i, float *weights)
{
    double shrink = axis->scale < 1 ? (double)axis->scale : 1;
    double reach = ceil((axis->mode == RESIZE_LINEAR ? 1 : 2) / shrink);
    double at = (double)resize_place(axis, i);
    for (double k = floor(at) - reach; k <= floor(at) + reach + 1; k++)
        add_weight(axis, k, window(axis, (k - at) * shrink), weights);
    normalise(weights, axis->in);
}

void resize_weights(const struct resize_axis *axis, int64_t i, float *weights)
{
    memset(weights, 0, (size_t)axis->in * sizeof *weights);
    if (axis->mode == RESIZE_NEAREST) {
        weights[resize_nearest(axis, i)] = 1;
        return;
    }
    if (axis->antialias) {
        smooth(axis, i, weights);
        return;
    }
    double at = (double)resize_place(axis, i);
    if (axis->mode == RESIZE_LINEAR)
        at = at < 0 ? 0 : at > (double)(axis->in - 1) ? (double)(axis->in - 1) : at;
    int reach = axis->mode == RESIZE_LINEAR ? 1 : 2;
    for (int k = 1 - reach; k <= reach; k++) {
        double place = floor(at) + k;
        add_weight(axis, place, window(axis, at - place), weights);
    }
    if (axis->exclude_outside)
        normalise(weights, axis->in);
}
