/* test_icc.c: colours converted by ICC profiles, against PIL.ImageCms (tests/golden/icc/make.py),
 * and profiles that are damaged or not for RGB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "slide/icc.h"
#include "tests/unit/support/golden_image.h"
#include "tests/unit/support/paths.h"

static uint8_t *read_profile(const char *name, size_t *n)
{
    char *relative = text_format("tests/golden/icc/%s.icc", name);
    char *path = source_path(relative), *bytes = NULL;
    struct err err = { 0 };
    if (!file_read(path, 1 << 20, &bytes, n, &err))
        fail_msg("%s", err.text);
    free(path);
    free(relative);
    return (uint8_t *)bytes;
}

struct piece {
    const struct icc *icc;
    const struct image *from;
    struct image *to;
};

static bool convert_row(void *arg, int64_t y, int worker, struct err *err)
{
    (void)worker, (void)err;
    struct piece *piece = arg;
    uint8_t *row = image_at(piece->to, 0, y % piece->to->height);
    if (y >= piece->to->height) /* the same colours elsewhere, at the same time */
        row = malloc((size_t)(3 * piece->to->width));
    memcpy(row, image_at(piece->from, 0, y % piece->to->height), (size_t)(3 * piece->to->width));
    icc_convert(piece->icc, row, piece->to->width);
    if (y >= piece->to->height)
        free(row);
    return true;
}

static void colours_are_those_of_pil(void **state)
{
    (void)state;
    static const char *const names[] = { "matrix", "lut" };
    static const char *const described[] = { "Matrix of Adobe RGB", "Table of a scanner" };
    struct pool *pool = pool_new(4);
    for (size_t i = 0; i < 2; i++) {
        size_t n = 0;
        char description[64];
        struct err err = { 0 };
        struct icc *icc = NULL;
        uint8_t *profile = read_profile(names[i], &n);
        struct image colours = golden_image("icc", "colours", 3);
        struct image want = golden_image("icc", names[i], 3), got;
        assert_true(image_new(&got, want.width, want.height, 3, &err));
        if (!icc_new(profile, n, "slide.tif", &icc, &err))
            fail_msg("%s", err.text);
        struct piece piece = { icc, &colours, &got };
        assert_true(pool_for(pool, 8 * want.height, convert_row, &piece, NULL, &err));
        assert_memory_equal(got.px, want.px, image_bytes(&want));
        assert_true(memcmp(got.px, colours.px, image_bytes(&want)) != 0);
        assert_true(icc_describe(profile, n, description, sizeof description));
        assert_string_equal(description, described[i]);
        icc_free(icc);
        image_free(&got);
        image_free(&want);
        image_free(&colours);
        free(profile);
    }
    pool_free(pool);
}

static void assert_refused(const uint8_t *profile, size_t n, const char *why)
{
    struct icc *icc = NULL;
    struct err err = { 0 };
    assert_false(icc_new(profile, n, "slide.tif", &icc, &err));
    if (!strstr(err.text, why) || !strstr(err.text, "slide.tif") || !strstr(err.text, "--icc"))
        fail_msg("unexpected error: %s", err.text);
}

static void bad_profiles_are_named(void **state)
{
    (void)state;
    size_t n = 0;
    char text[8];
    uint8_t *profile = read_profile("matrix", &n);
    assert_refused((const uint8_t *)"not a profile at all", 20, "(20 bytes) is damaged");
    assert_false(icc_describe((const uint8_t *)"not", 3, text, sizeof text));
    assert_refused(profile, 100, "(100 bytes) is damaged");
    assert_refused(profile, n / 2, "damaged or incomplete");
    assert_true(icc_describe(profile, n, text, sizeof text)); /* shortened */
    assert_string_equal(text, "Matrix ");
    memcpy(profile + 16, "CMYK", 4);
    assert_refused(profile, n, "is for CMYK pixels, not RGB");
    memcpy(profile + 16, "RGB ", 4);
    for (size_t at = 132; at < 132 + 12 * 9; at += 12) /* rXYZ is no longer there */
        if (memcmp(profile + at, "rXYZ", 4) == 0)
            memcpy(profile + at, "none", 4);
    assert_refused(profile, n, "cannot be converted to sRGB");
    free(profile);
}

/* Every cut and many changed bytes: an answer, whatever it is. */
static void damaged_profiles_do_no_harm(void **state)
{
    (void)state;
    static const char *const names[] = { "matrix", "lut" };
    for (size_t i = 0; i < 2; i++) {
        size_t n = 0;
        uint8_t *profile = read_profile(names[i], &n), px[3] = { 1, 2, 3 };
        for (size_t at = 0; at < n; at += i ? 211 : 5) {
            struct icc *icc = NULL;
            profile[at] ^= 0x55;
            if (icc_new(profile, n, "slide.tif", &icc, NULL))
                icc_convert(icc, px, 1);
            icc_free(icc);
            profile[at] ^= 0x55;
            icc = NULL;
            assert_true(!icc_new(profile, at, "slide.tif", &icc, NULL) || icc);
            icc_free(icc);
        }
        free(profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_are_those_of_pil),
        cmocka_unit_test(bad_profiles_are_named),
        cmocka_unit_test(damaged_profiles_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
