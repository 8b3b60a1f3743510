/* folder.h: the contents of a folder. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

/* The names in a folder with one of the endings (NULL-terminated, with the dot; NULL: all), except
 * hidden ones, sorted: *names [*n] without the folder, owned by the caller; free with
 * folder_names_free. */
bool folder_names(const char *folder, const char *const *endings, char ***names, size_t *n,
                  struct err *err);
void folder_names_free(char **names, size_t n);
#endif
