/* names.h: lists of names, in order and in sentences. */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

/* For qsort of char *: by their bytes, the same order in every locale. */
int names_order(const void *a, const void *b);

/* "a, b, c" in text [size], which is returned. Only whole names: if not all fit, the list ends in
 * "...". */
const char *names_join(const char *const *names, size_t n, char *text, size_t size);

/* The candidate closest to `word` by edit distance, or NULL if none is near. */
const char *names_nearest(const char *word, const char *const *candidates, size_t n);

/* err_set(ERR_USAGE) "'word' is not one of a, b, c; did you mean b?". */
bool names_refuse(const char *word, const char *const *names, size_t n, struct err *err);
#endif
