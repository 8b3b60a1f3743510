/* unicode.h: what tokenizers need to know of characters (Unicode 14). All functions are pure. */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* General categories: L, N, P, Mn, C (with unassigned ones); the others. */
enum unicode_class {
    UNICODE_REST,
    UNICODE_LETTER,
    UNICODE_NUMBER,
    UNICODE_PUNCTUATION,
    UNICODE_MARK,
    UNICODE_OTHER
};
#define UNICODE_MOST_BASES 3

enum unicode_class unicode_class(uint32_t code);
bool unicode_space(uint32_t code); /* White_Space */
/* Ideographs that BERT sets apart. */
bool unicode_ideograph(uint32_t code);
/* The small letters; at most 2 (of U+0130). Returns how many. */
int unicode_lower(uint32_t code, uint32_t out[UNICODE_MOST_BASES]);
/* The canonical decomposition without nonspacing marks; returns how many, perhaps 0. */
int unicode_bases_of(uint32_t code, uint32_t out[UNICODE_MOST_BASES]);
/* As UTF-8 to out; returns the bytes. */
size_t unicode_put(uint32_t code, char out[4]);
#endif
