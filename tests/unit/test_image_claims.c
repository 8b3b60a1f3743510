/* test_image_claims.c: PNG and JPEG whose header claims more pixels than the file can hold are
 * refused before memory is taken for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <jpeglib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <zlib.h>
#include "base/file.h"
#include "base/image.h"
#include "tests/unit/support/paths.h"

#define CLAIMED_PX 20000
#define MOST_KB (256 << 10)

static long peak_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void refused(const uint8_t *bytes, size_t size, const char *want)
{
    struct image image;
    struct err err = { 0 };
    long before = peak_kb();
    assert_false(image_decode(bytes, size, "large", &image, &err));
    if (!strstr(err.text, want))
        fail_msg("%s", err.text);
    assert_in_range(peak_kb() - before, 0, MOST_KB);
}

static void put_be(uint8_t *at, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static void a_png(void **state)
{
    (void)state;
    struct image image;
    uint8_t *bytes = NULL;
    size_t size = 0;
    char *path = scratch_path("claims.png");
    assert_true(image_new(&image, 8, 8, 3, NULL) && image_write_png(path, &image, NULL));
    image_free(&image);
    assert_true(file_read(path, 1 << 20, (char **)&bytes, &size, NULL));
    assert_true(image_decode(bytes, size, "small", &image, NULL));
    image_free(&image);
    put_be(bytes + 16, CLAIMED_PX, 4); /* IHDR: width, height, .. and its sum */
    put_be(bytes + 20, CLAIMED_PX, 4);
    put_be(bytes + 29, (uint32_t)crc32(0, bytes + 12, 17), 4);
    refused(bytes, size, "claims more pixels than its bytes can hold");
    free(bytes);
    free(path);
}

/* libpng takes memory for a text before it reads it. */
static void a_text_of_a_png(void **state)
{
    (void)state;
    struct image image;
    uint8_t *bytes = NULL;
    size_t size = 0;
    char *path = scratch_path("claims-text.png");
    assert_true(image_new(&image, 8, 8, 3, NULL));
    assert_true(image_write_png_noted(path, &image, "made so", NULL));
    image_free(&image);
    assert_true(file_read(path, 1 << 20, (char **)&bytes, &size, NULL));
    uint8_t *text = memmem(bytes, size, "tEXt", 4);
    assert_non_null(text);
    put_be(text - 4, 1 << 30, 4);
    refused(bytes, size, "claims more bytes than the file has");
    free(bytes);
    free(path);
}

/* Progressive: libjpeg then keeps all coefficients, zeroed at the start. */
static void a_jpeg(void **state)
{
    (void)state;
    struct jpeg_error_mgr errors;
    struct jpeg_compress_struct jpeg = { .err = jpeg_std_error(&errors) };
    unsigned char *bytes = NULL, pixels[8 * 3] = { 0 };
    unsigned long size = 0;
    struct image image;
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &size);
    jpeg.image_width = jpeg.image_height = 8;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    for (int i = 0; i < 8; i++)
        jpeg_write_scanlines(&jpeg, &(JSAMPROW){ pixels }, 1);
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    assert_true(image_decode(bytes, size, "small", &image, NULL));
    image_free(&image);
    uint8_t *frame = memmem(bytes, size, "\xff\xc2", 2);
    assert_non_null(frame);
    put_be(frame + 5, CLAIMED_PX, 2); /* behind the marker, the length and the bits of a sample */
    put_be(frame + 7, CLAIMED_PX, 2);
    refused(bytes, size, "claims more pixels than its bytes can hold");
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_png), cmocka_unit_test(a_text_of_a_png),
                                        cmocka_unit_test(a_jpeg) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
