/* reg.h: as many floats as are processed together in loops that each_level.h includes: EACH_LANES
 * of them, which fill a register or, without registers that long, several. See curves.h. */
#ifndef NET_KERNELS_REG_H
#define NET_KERNELS_REG_H
#include <stdint.h>

#define REG_TYPES(n)                                                                               \
    typedef float __attribute__((vector_size(4 * (n)))) reg_##n;                                   \
    typedef float __attribute__((vector_size(4 * (n)), aligned(4), may_alias)) reg_at_##n;         \
    typedef int32_t __attribute__((vector_size(4 * (n)))) reg_bits_##n
REG_TYPES(8);
REG_TYPES(16);
#undef REG_TYPES

#define REG_PASTE(name, n) name##_##n
#define REG_NAME(name, n) REG_PASTE(name, n)
#define reg REG_NAME(reg, EACH_LANES)
#define reg_at REG_NAME(reg_at, EACH_LANES)
#define reg_bits REG_NAME(reg_bits, EACH_LANES)

#define REG_AT(p) (*(const reg_at *)(p))
#define REG_PUT(p, v) (*(reg_at *)(p) = (v))
#define REG_WHERE(mask, a, b) ((reg)(((reg_bits)(a) & (mask)) | ((reg_bits)(b) & ~(mask))))
#define REG_ALL(f) ((reg){ 0 } + (f))

/* Functions that take them are inlined everywhere: how they would be passed does not matter. */
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
