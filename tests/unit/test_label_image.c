/* test_label_image.c: label images as PNG and as .npy, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/image.h"
#include "base/label_image.h"
#include "tests/unit/support/paths.h"

static int32_t numbers[6] = { 0, 1, 256, 65535, 7, 0 };

static void png_keeps_16_bits(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct label_image image = { numbers, 3, 2 }, back;
    char *path = scratch_path("labels.png"), *none = scratch_path("labels-none.png");
    assert_true(label_image_write_png(path, &image, &err));
    assert_true(label_image_read(path, &back, &err));
    assert_int_equal(back.width, 3);
    assert_int_equal(back.height, 2);
    assert_memory_equal(back.px, numbers, sizeof numbers);
    label_image_free(&back);
    int32_t many[1] = { 65536 };
    assert_false(label_image_write_png(none, &(struct label_image){ many, 1, 1 }, &err));
    assert_non_null(strstr(err.text, "label 65536 does not fit into 16 bits"));
    FILE *stream = fopen(none, "rb");
    assert_null(stream);
    free(path);
    free(none);
}

/* header: the text, padded as numpy.save pads it. */
static void write_npy(const char *path, const char *header, const void *data, size_t size)
{
    char fixed[128] = "\x93NUMPY\x01";
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    memset(fixed + 10, ' ', 117);
    memcpy(fixed + 10, header, strlen(header));
    fixed[8] = 118;
    fixed[127] = '\n';
    assert_int_equal(fwrite(fixed, 1, sizeof fixed, stream), sizeof fixed);
    assert_int_equal(fwrite(data, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

#define HEADER(type, shape) "{'descr': '" type "', 'fortran_order': False, 'shape': " shape ", }"

static void npy_is_read(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct label_image back;
    const int64_t wide[6] = { 0, 1, 256, 65535, 7, 0 };
    const uint16_t narrow[6] = { 0, 1, 256, 65535, 7, 0 };
    char *path = scratch_path("labels.npy");
    write_npy(path, HEADER("<i4", "(2, 3)"), numbers, sizeof numbers);
    assert_true(label_image_read(path, &back, &err));
    assert_memory_equal(back.px, numbers, sizeof numbers);
    label_image_free(&back);
    write_npy(path, HEADER("<i8", "(2, 3)"), wide, sizeof wide);
    assert_true(label_image_read(path, &back, &err));
    assert_memory_equal(back.px, numbers, sizeof numbers);
    label_image_free(&back);
    write_npy(path, HEADER("<u2", "(3, 2)"), narrow, sizeof narrow);
    assert_true(label_image_read(path, &back, &err));
    assert_int_equal(back.height, 3);
    assert_memory_equal(back.px, numbers, sizeof numbers);
    label_image_free(&back);
    free(path);
}

static void npy_is_written(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct label_image back;
    int32_t many[6] = { 0, 1, 65536, 70000, 0, 2147483647 };
    char *path = scratch_path("written.npy");
    assert_true(label_image_write_npy(path, &(struct label_image){ many, 3, 2 }, &err));
    assert_true(label_image_read(path, &back, &err));
    assert_int_equal(back.width, 3);
    assert_int_equal(back.height, 2);
    assert_memory_equal(back.px, many, sizeof many);
    label_image_free(&back);
    free(path);
}

static void refused(const char *path, const char *want)
{
    struct err err = { 0 };
    struct label_image image;
    assert_false(label_image_read(path, &image, &err));
    if (!strstr(err.text, want) || !strstr(err.text, path))
        fail_msg("'%s' has no '%s'", err.text, want);
}

static void others_are_refused(void **state)
{
    (void)state;
    struct image colour = { 0 };
    const int32_t below[6] = { 0, 1, 2, -3, 4, 5 };
    char *path = scratch_path("labels-bad");
    write_npy(path, HEADER("<i4", "(2, 3)"), below, sizeof below);
    refused(path, "a number at x 0, y 1 is below 0");
    write_npy(path, HEADER("<f4", "(2, 3)"), numbers, sizeof numbers);
    refused(path, "its numbers are not whole numbers");
    write_npy(path, HEADER("<i4", "(1, 2, 3)"), numbers, sizeof numbers);
    refused(path, "it does not have two axes");
    write_npy(path, HEADER("<i4", "(2, 4)"), numbers, sizeof numbers);
    refused(path, "its shape does not fit the length of the file");
    write_npy(path, HEADER("<i4", "(1000000, 1000000)"), numbers, sizeof numbers);
    refused(path, "a label image has from 1 to 2^30 pixels");
    write_npy(path, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }", numbers,
              sizeof numbers);
    refused(path, "is in Fortran order; save numpy.ascontiguousarray");
    assert_true(image_new(&colour, 3, 2, 3, NULL) && image_write_png(path, &colour, NULL));
    image_free(&colour);
    refused(path, "a colour image");
    FILE *stream = fopen(path, "wb");
    fputs("text", stream);
    fclose(stream);
    refused(path, "not a label image");
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png_keeps_16_bits),
        cmocka_unit_test(npy_is_read),
        cmocka_unit_test(npy_is_written),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
