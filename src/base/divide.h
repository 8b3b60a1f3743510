/* divide.h: whole numbers divided with rounding, and the smaller and larger of two. */
#ifndef BASE_DIVIDE_H
#define BASE_DIVIDE_H
#include <stdint.h>

/* a / b, rounded up; neither is negative. */
static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* a / b, rounded down; b is above 0. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -ceil_div(-a, b);
}

static inline int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
#endif
