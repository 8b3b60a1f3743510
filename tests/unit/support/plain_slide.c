/* plain_slide.c: see plain_slide.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include "tests/unit/support/plain_slide.h"
#include <cmocka.h>
#include <stdlib.h>
#include "base/pool.h"
#include "slide/tiff_pyramid.h"
#include "tests/unit/support/paths.h"

struct drawing {
    int64_t tissue_from, tissue_to; /* columns */
};

static bool draw(void *arg, int64_t x0, int64_t y0, int64_t width, int64_t height, uint8_t *px,
                 int64_t stride_bytes, int worker, struct err *err)
{
    (void)worker, (void)err;
    const struct drawing *drawing = arg;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            uint8_t *to = px + y * stride_bytes + 3 * x;
            int64_t at = x0 + x, down = y0 + y;
            if (at < drawing->tissue_from || at >= drawing->tissue_to) {
                to[0] = 244, to[1] = 243, to[2] = 245;
                continue;
            }
            int64_t texture = (at / 8 * 37 + down / 8 * 91 + at * down / 512) % 64;
            to[0] = (uint8_t)(190 - texture);
            to[1] = (uint8_t)(90 - texture / 2);
            to[2] = (uint8_t)(170 - texture / 3);
        }
    return true;
}

static char *write_slide(const char *name, int64_t width, int64_t height, double mpp,
                         struct drawing drawing)
{
    char *path = scratch_path(name);
    struct tiff_pyramid_options options = { .width = width, .height = height, .mpp = mpp };
    struct pool *pool = pool_new(0);
    struct ctx ctx = { .pool = pool };
    struct err err = { 0 };
    assert_non_null(path);
    assert_non_null(pool);
    if (!tiff_pyramid_write(path, &options, draw, &drawing, &ctx, &err))
        fail_msg("%s", err.text);
    pool_free(pool);
    return path;
}

char *plain_slide_write(const char *name, int64_t width, int64_t height, double mpp)
{
    return write_slide(name, width, height, mpp, (struct drawing){ width / 3, width - width / 10 });
}

char *plain_slide_write_glass(const char *name, int64_t width, int64_t height)
{
    return write_slide(name, width, height, 0.25, (struct drawing){ 0 });
}
