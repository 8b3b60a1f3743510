/* simd.c: see simd.h. */
#include "net/kernels/simd.h"
#ifdef SIMD_X86
#include <cpuid.h>
#include <stdatomic.h>
#include <string.h>

#define ZEN_3_AND_4 0x19 /* family; of the two only Zen 4 has AVX-512 */

static bool is_amd(unsigned family)
{
    unsigned a, b, c, d;
    char vendor[12];
    if (!__get_cpuid(0, &a, &b, &c, &d))
        return false;
    memcpy(vendor, &b, 4), memcpy(vendor + 4, &d, 4), memcpy(vendor + 8, &c, 4);
    if (memcmp(vendor, "AuthenticAMD", sizeof vendor) != 0 || !__get_cpuid(1, &a, &b, &c, &d))
        return false;
    return (a >> 8 & 0xf) + (a >> 20 & 0xff) == family;
}
#endif

int simd_multiply_adds(enum simd level)
{
#ifdef SIMD_X86
    static atomic_int of_avx512; /* asked once: a virtual machine's host has to answer */
    if (level == SIMD_AVX512 && !of_avx512)
        of_avx512 = is_amd(ZEN_3_AND_4) ? 1 : 2;
    if (level == SIMD_AVX512)
        return of_avx512;
#endif
    (void)level;
    return 2;
}
