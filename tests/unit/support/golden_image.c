/* golden_image.c: see golden_image.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "base/file.h"
#include "tests/unit/support/golden_image.h"

struct image golden_image(const char *folder, const char *name)
{
    const char *source = getenv("SOURCE");
    char *path = file_format("%s/tests/golden/%s/%s.png", source ? source : ".", folder, name);
    struct image image = { 0 };
    struct err err = { 0 };
    if (!image_read_png(path, 3, &image, &err))
        fail_msg("%s", err.text);
    free(path);
    return image;
}
