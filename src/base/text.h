/* text.h: text made like printf's, in memory of its own size. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

/* printf into newly allocated memory, owned by the caller; NULL if out of memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
#endif
