/* plain.h: untrusted text (file names, table cells, slide properties) on a terminal. Control
 * characters, which could move the cursor, set the window title or change the writing direction,
 * and bytes that are not UTF-8 are escaped as \u001b, as in JSON. Newline and tab are kept. */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H
#include <stddef.h>
#include <stdio.h>

/* A stream that escapes its text and writes it to `under`. Flushing it flushes `under`; closing it
 * leaves `under` open. NULL if out of memory. */
FILE *plain_stream(FILE *under);

/* Writes a text, escaped. */
void plain_print(FILE *stream, const char *text);

/* Copies a text, escaped, as far as it fits; 0-terminated. */
void plain_copy(char *out, size_t size, const char *text);
#endif
