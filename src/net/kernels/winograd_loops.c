/* winograd_loops.c: the vector code of winograd_conv_loops.h for AVX2 and AVX-512. */
#include "net/kernels/winograd_loops.h"
#include <string.h>
#ifdef SIMD_X86
#include <immintrin.h>
#endif

#ifdef SIMD_X86
#define SIMD_BITS 256
#include "net/kernels/vectors.h"

#include "net/kernels/winograd_conv_loops.h"
#define SIMD_BITS 512
#include "net/kernels/vectors.h"

#include "net/kernels/winograd_conv_loops.h"
#endif

const struct winograd_loops *winograd_loops_of(enum simd level)
{
    return SIMD_PICK(level, &loops, NULL);
}
