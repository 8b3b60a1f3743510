/* tile_seeds.h: seeds of fuzz_codecs. */
#ifndef TESTS_FUZZ_TILE_SEEDS_H
#define TESTS_FUZZ_TILE_SEEDS_H
#include <stddef.h>

/* Gives `write` a tile of every codec, in the form that fuzz_codecs takes. */
void tile_seeds_make(void (*write)(const char *target, const char *name, const void *bytes,
                                   size_t size));
#endif
