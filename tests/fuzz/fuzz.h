/* fuzz.h: a fuzz target is one function over bytes, the same for libFuzzer and for mutate.c. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Inputs so far that were taken and not refused: of a target's seeds there must be some, or it
 * would try nothing but the refusal. */
extern long fuzz_taken;
#endif
