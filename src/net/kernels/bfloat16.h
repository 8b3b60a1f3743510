/* bfloat16.h: rows of floats rounded to the upper 16 of their 32 bits, and back. */
#ifndef NET_KERNELS_BFLOAT16_H
#define NET_KERNELS_BFLOAT16_H
#include <stdint.h>

/* To nearest, ties to even; NaN stays NaN. */
void bfloat16_from_float(int64_t count, const float *from, uint16_t *to, int threads);
/* Exact. */
void bfloat16_to_float(int64_t count, const uint16_t *from, float *to, int threads);
#endif
