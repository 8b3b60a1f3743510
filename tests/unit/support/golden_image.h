/* golden_image.h: pictures of tests/golden. */
#ifndef TESTS_UNIT_SUPPORT_GOLDEN_IMAGE_H
#define TESTS_UNIT_SUPPORT_GOLDEN_IMAGE_H
#include "base/image.h"

/* tests/golden/<folder>/<name>.png with so many channels, 1 or 3; the caller's. The test fails if
 * it cannot be read. */
struct image golden_image(const char *folder, const char *name, int channels);
#endif
