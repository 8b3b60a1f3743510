/* standardize.h: rows of weights with mean 0 and a sum of squares of gain^2. Computed in double. */
#ifndef NET_KERNELS_STANDARDIZE_H
#define NET_KERNELS_STANDARDIZE_H
#include <stdint.h>

struct standardize {
    int64_t rows, length;
    float epsilon; /* added to the variance */
    int threads;
};

/* y = gain (w - mean) / sqrt(length (variance + epsilon)), row by row; gain [rows]. */
void standardize_run(const struct standardize *s, const float *w, const float *gain, float *y);
/* dw is overwritten, dgain [rows] too; either may be NULL. */
void standardize_back(const struct standardize *s, const float *w, const float *gain,
                      const float *dy, float *dw, float *dgain);
#endif
