/* golden_image.c: see golden_image.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "tests/unit/support/golden_image.h"
#include "tests/unit/support/paths.h"
#include "base/text.h"

struct image golden_image(const char *folder, const char *name, int channels)
{
    char *file = text_format("tests/golden/%s/%s.png", folder, name), *path = source_path(file);
    struct image image = { 0 };
    struct err err = { 0 };
    if (!image_read_png(path, channels, &image, &err))
        fail_msg("%s", err.text);
    free(file), free(path);
    return image;
}
