/* paths.h: where tests find files, and put them. */
#ifndef TESTS_UNIT_SUPPORT_PATHS_H
#define TESTS_UNIT_SUPPORT_PATHS_H

#include <stdbool.h>

/* A file of the project, named from its root; the caller's. */
char *source_path(const char *name);
/* A file of a test's own; the caller's. */
char *scratch_path(const char *name);
/* Is there a file that is not complete yet, or was never completed, beside this one? */
bool part_left(const char *path);
#endif
