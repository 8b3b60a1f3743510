/* utf8.h: characters of UTF-8 text. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H
#include <stdint.h>

/* Bytes of the UTF-8 sequence that begins here, and its code point; 0 if it is not valid (including
 * overlong forms and surrogates). The text must end with a 0 byte. */
int utf8_length(const unsigned char *at, uint32_t *code);
#endif
