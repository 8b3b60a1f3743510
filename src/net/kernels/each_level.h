/* each_level.h: a file of loops for every instruction set. Define LOOPS as the name of the file, in
 * quotes, and include this one: LOOPS is included with EACH_TARGET, the attribute of a function,
 * EACH_NAME(name), its name: name_portable and, on x86, name_avx2 and name_avx512, and EACH_LANES,
 * floats that are best processed together (reg.h): 8, or 16 with AVX-512. */
#define EACH_TARGET
#define EACH_LANES 8
#define EACH_NAME(name) name##_portable
#include LOOPS
#undef EACH_TARGET
#undef EACH_NAME
#ifdef SIMD_X86
#define EACH_TARGET SIMD_TARGET_AVX2
#define EACH_NAME(name) name##_avx2
#include LOOPS
#undef EACH_TARGET
#undef EACH_NAME
#undef EACH_LANES
#define EACH_TARGET SIMD_TARGET_AVX512
#define EACH_NAME(name) name##_avx512
#define EACH_LANES 16
#include LOOPS
#undef EACH_TARGET
#undef EACH_NAME
#endif
#undef EACH_LANES
#undef LOOPS
