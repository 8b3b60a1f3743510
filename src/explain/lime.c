/* lime.c: samples of superpixels that are on or off and their scores -> a coefficient for each. */
#include "explain/lime.h"
#include <math.h>
#include <stdlib.h>
#include "base/rng.h"
#include "explain/ridge.h"

#define KERNEL_WIDTH 0.25
#define PENALTY 1.0

void lime_draw(uint64_t key, int64_t samples, int64_t segments, uint8_t *on)
{
    const uint64_t stream = rng_hash("lime");
    for (int64_t i = 0; i < samples; i++) {
        struct rng rng = rng_new(key, stream, (uint64_t)i);
        uint32_t bits = 0;
        for (int64_t k = 0; k < segments; k++) {
            bits = k % 32 ? bits >> 1 : rng_u32(&rng);
            on[i * segments + k] = i == 0 || (bits & 1);
        }
    }
}

double lime_weight(int64_t n_on, int64_t segments)
{
    double distance = 1 - sqrt((double)n_on / (double)segments);
    return sqrt(exp(-distance * distance / (KERNEL_WIDTH * KERNEL_WIDTH)));
}

bool lime_fit(const uint8_t *on, const double *y, int64_t samples, int64_t segments, double *coef,
              double *intercept, struct err *err)
{
    double *x = malloc((size_t)(samples * segments) * sizeof *x);
    double *weights = malloc((size_t)samples * sizeof *weights);
    bool ok = (x && weights) || err_memory(err, "samples of LIME");
    for (int64_t i = 0; ok && i < samples; i++) {
        int64_t n_on = 0;
        for (int64_t k = 0; k < segments; k++) {
            x[i * segments + k] = on[i * segments + k];
            n_on += on[i * segments + k];
        }
        weights[i] = lime_weight(n_on, segments);
    }
    ok = ok && ridge_fit(x, y, weights, samples, segments, PENALTY, coef, intercept, err);
    free(x);
    free(weights);
    return ok;
}
