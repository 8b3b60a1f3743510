/* eight.h: rows of eight floats that are processed together, whatever the instruction set: where
 * registers have eight lanes or more, compilers keep them in one. See curves.h. */
#ifndef NET_KERNELS_EIGHT_H
#define NET_KERNELS_EIGHT_H
#include <stdint.h>

typedef float __attribute__((vector_size(32))) eight;
typedef float __attribute__((vector_size(32), aligned(4), may_alias)) eight_at;
typedef int32_t __attribute__((vector_size(32))) eight_bits;

#define EIGHT_AT(p) (*(const eight_at *)(p))
#define EIGHT_PUT(p, v) (*(eight_at *)(p) = (v))
#define EIGHT_WHERE(mask, a, b) ((eight)(((eight_bits)(a) & (mask)) | ((eight_bits)(b) & ~(mask))))
#define EIGHT_ALL(f) ((eight){ 0 } + (f))

/* Functions that take eights are inlined everywhere: how they would be passed does not matter. */
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
