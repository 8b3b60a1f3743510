/* wide.h: rows of WIDE floats that are processed together, whatever the instruction set, and SiLU
 * of them. All macros are plain sums and products in a fixed order: the same floats everywhere. */
#ifndef NET_KERNELS_WIDE_H
#define NET_KERNELS_WIDE_H
#include <stdint.h>

#define WIDE 16

typedef float wide __attribute__((vector_size(WIDE * sizeof(float))));
typedef float wide_at __attribute__((vector_size(WIDE * sizeof(float)), aligned(4), may_alias));
typedef int32_t wide_bits __attribute__((vector_size(WIDE * sizeof(float))));

#define WIDE_AT(p) (*(const wide_at *)(p))
#define WIDE_PUT(p, v) (*(wide_at *)(p) = (v))
#define WIDE_WHERE(mask, a, b) (wide)(((wide_bits)(a) & (mask)) | ((wide_bits)(b) & ~(mask)))

/* e^v, to 2.4e-7 of it, for v within +-87; beyond it is that of +-87. NaN stays. The exponent is
 * that of 1.5 * 2^23 + v / ln 2, whose last bits are the next integer. */
#define WIDE_EXP(out, v)                                                                           \
    do {                                                                                           \
        const wide zero_ = { 0 }, magic_ = zero_ + 12582912.0f;                                    \
        wide v_ = (v);                                                                             \
        v_ = WIDE_WHERE(v_ > 87.0f, zero_ + 87.0f, v_);                                            \
        v_ = WIDE_WHERE(v_ < -87.0f, zero_ - 87.0f, v_);                                           \
        wide t_ = v_ * 1.44269504f + magic_, n_ = t_ - magic_;                                     \
        wide r_ = v_ - n_ * 0.693359375f;                                                          \
        r_ = r_ + n_ * 2.12194440e-4f;                                                             \
        wide e_ = 1.0f / 720 * r_ + 1.0f / 120;                                                    \
        e_ = e_ * r_ + 1.0f / 24;                                                                  \
        e_ = e_ * r_ + 1.0f / 6;                                                                   \
        e_ = e_ * r_ + 0.5f;                                                                       \
        e_ = (e_ * r_) * r_ + r_ + 1.0f;                                                           \
        wide_bits power_ = ((wide_bits)t_ - (wide_bits)magic_) << 23;                              \
        (out) = (wide)((wide_bits)e_ + power_);                                                    \
    } while (0)

/* y = z / (1 + e^-z) */
#define WIDE_SILU(y, z)                                                                            \
    do {                                                                                           \
        wide silu_;                                                                                \
        WIDE_EXP(silu_, -(z));                                                                     \
        (y) = (z) / (1.0f + silu_);                                                                \
    } while (0)

/* g = dy times the slope of SiLU at z */
#define WIDE_SILU_BACK(g, dy, z)                                                                   \
    do {                                                                                           \
        wide silu_;                                                                                \
        WIDE_EXP(silu_, -(z));                                                                     \
        silu_ = 1.0f / (1.0f + silu_);                                                             \
        (g) = (dy) * (silu_ * (1.0f + (z) * (1.0f - silu_)));                                      \
    } while (0)
#endif
