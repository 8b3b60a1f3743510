/* each_level.h: a file of loops for every instruction set. Define LOOPS as the name of the file, in
 * quotes, and include this one: LOOPS is included with EACH_TARGET, the attribute of a function,
 * and EACH_NAME(name), its name: name_portable and, on x86, name_avx2 and name_avx512. */
#define EACH_TARGET
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
#define EACH_TARGET SIMD_TARGET_AVX512
#define EACH_NAME(name) name##_avx512
#include LOOPS
#undef EACH_TARGET
#undef EACH_NAME
#endif
#undef LOOPS
