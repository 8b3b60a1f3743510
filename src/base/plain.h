/* plain.h: text of others (names of files, cells of tables, properties of slides) on a terminal.
 * Control characters, which could move the cursor, set the window's title or turn the direction of
 * writing, and bytes that are not UTF-8 are written as \u001b, which is also how JSON writes them.
 * Newline and tab stay. */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H
#include <stddef.h>
#include <stdio.h>

/* A stream that writes to `under` what it is given, made plain. Flushing it flushes `under`;
 * closing it leaves `under` open. NULL if there is no memory. */
FILE *plain_stream(FILE *under);

/* Writes a text, made plain. */
void plain_print(FILE *stream, const char *text);

/* Copies a text, made plain, as far as it fits; ends with 0. */
void plain_copy(char *out, size_t size, const char *text);
#endif
