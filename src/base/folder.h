/* folder.h: what is in a folder. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

/* What a folder holds with one of the endings (NULL-terminated, with the dot; NULL: whatever there
 * is), hidden names apart, sorted by name: *names [*n] without folder, the caller's; free with
 * folder_names_free. */
bool folder_names(const char *folder, const char *const *endings, char ***names, size_t *n,
                  struct err *err);
void folder_names_free(char **names, size_t n);
#endif
