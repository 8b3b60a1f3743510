/* each_level.h: a file of loops for every instruction set. Define LOOPS as the name of the file, in
 * quotes, and include this one: LOOPS is included with TARGET, the attribute of a function, and
 * VARIANT(name), its name: name_portable and, on x86, name_avx2 and name_avx512. */
#define TARGET
#define VARIANT(name) name##_portable
#include LOOPS
#undef TARGET
#undef VARIANT
#ifdef SIMD_X86
#define TARGET SIMD_TARGET_AVX2
#define VARIANT(name) name##_avx2
#include LOOPS
#undef TARGET
#undef VARIANT
#define TARGET SIMD_TARGET_AVX512
#define VARIANT(name) name##_avx512
#include LOOPS
#undef TARGET
#undef VARIANT
#endif
#undef LOOPS
