/* functions.h: functions of one float from the C library over long rows, and their derivatives. The
 * output may be an input. */
#ifndef NET_KERNELS_FUNCTIONS_H
#define NET_KERNELS_FUNCTIONS_H
#include <stdint.h>

enum function_row {
    ROW_EXP,
    ROW_LOG,
    ROW_SQRT,
    ROW_RECIPROCAL,
    ROW_ABS,
    ROW_ERF,
    ROW_SIN,
    ROW_COS,
    ROW_POWER,    /* x^p */
    ROW_FROM_NAN, /* x, or p where it is NaN */
    FUNCTION_ROWS
};

struct functions {
    enum function_row row;
    float p;
    int64_t count;
    int threads;
};

/* y = f(x) */
void functions_run(const struct functions *f, const float *x, float *y);
/* dx = dy f'(x) */
void functions_back(const struct functions *f, const float *dy, const float *x, float *dx);
#endif
