/* text.h: text made like printf's, in memory of its own size. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H
#include <stddef.h>

/* printf into newly allocated memory, owned by the caller; NULL if out of memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The words of a line of options that another line does not have, with spaces between them; those
 * that do not fit into out [room] are omitted. */
void text_other_words(const char *line, const char *than, char *out, size_t room);
#endif
