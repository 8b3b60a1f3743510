/* plain_slide.h: a slide that is cheap to make, for tests: glass at the left third, tissue-like
 * colours with texture in the middle, glass at the right tenth. */
#ifndef TESTS_UNIT_SUPPORT_PLAIN_SLIDE_H
#define TESTS_UNIT_SUPPORT_PLAIN_SLIDE_H
#include <stdint.h>

/* Writes SCRATCH/name with a pyramid of 256-px tiles; mpp 0: none. The path is the caller's. */
char *plain_slide_write(const char *name, int64_t width, int64_t height, double mpp);
/* The same with glass all over. */
char *plain_slide_write_glass(const char *name, int64_t width, int64_t height);
#endif
