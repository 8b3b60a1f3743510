/* half.h: the bits of 16-bit floats as 32-bit floats. Exact: every one of them is a float. */
#ifndef NET_KERNELS_HALF_H
#define NET_KERNELS_HALF_H
#include <stdint.h>
#include <string.h>

static inline float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The upper half of a float. */
static inline float float_of_bfloat16(uint16_t bits)
{
    return float_of_bits((uint32_t)bits << 16);
}

/* IEEE 754 binary16. */
static inline float float_of_half(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31;
    uint32_t mantissa = bits & 1023;
    if (exponent == 31) /* infinity and NaN */
        return float_of_bits(sign | 0x7f800000 | mantissa << 13);
    if (exponent == 0) { /* zero and the numbers below 2^-14 */
        float small = (float)mantissa * 0x1p-24f;
        return sign ? -small : small;
    }
    return float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}
#endif
