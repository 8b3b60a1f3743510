/* test_jp2k.c: a slide of JPEG 2000 tiles: its pixels, its overview at reduced resolution, and a
 * damaged tile of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include "slide/slide.h"
#include "slide/source.h"
#include "slide/tiff_file.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/tile_encoder.h"

enum { SIDE = 480, TILE = 64, ROWS = (SIDE + TILE - 1) / TILE };

/* Smooth, so that a wavelet's low band is nearly the mean. */
static void draw(struct image *out)
{
    assert_true(image_new(out, SIDE, SIDE, 3, NULL));
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        out->px[i] =
            (uint8_t)(128 + 100 * sin(0.03 * (i / 3 % SIDE) + i % 3) * cos(0.02 * (i / 3 / SIDE)));
}

/* The bytes are the caller's. Beyond the image a tile repeats its last pixels. */
static uint8_t *encode_tile(const struct image *image, int column, int row, size_t *size)
{
    struct tile_kind kind = { TILE_JP2K_RGB, TILE, TILE, 3, 8, .lossless = true };
    uint8_t px[TILE * TILE * 3];
    for (int i = 0; i < TILE * TILE; i++) {
        int x = column * TILE + i % TILE, y = row * TILE + i / TILE;
        memcpy(px + 3 * i, image_at(image, x < SIDE ? x : SIDE - 1, y < SIDE ? y : SIDE - 1), 3);
    }
    return tile_encode(&kind, px, size);
}

/* One level of JPEG 2000; the tile `damaged` has lost its second half, unless it is -1. */
static char *make_slide(const char *name, const struct image *image, int damaged)
{
    char *path = scratch_path(name);
    tiff_file_silence();
    TIFF *tiff = TIFFOpen(path, "w");
    assert_non_null(tiff);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, SIDE);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, SIDE);
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, TILE);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, TILE);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, TILE_JP2K_RGB);
    for (int i = 0; i < ROWS * ROWS; i++) {
        size_t size = 0;
        uint8_t *bytes = encode_tile(image, i % ROWS, i / ROWS, &size);
        size = i == damaged ? size / 2 : size;
        assert_int_equal(TIFFWriteRawTile(tiff, (uint32_t)i, bytes, (tmsize_t)size), size);
        free(bytes);
    }
    TIFFClose(tiff);
    return path;
}

static struct slide *open_slide(char *path)
{
    struct slide *slide = NULL;
    struct err err = { 0 };
    if (!slide_open(path, 0, &slide, &err))
        fail_msg("%s", err.text);
    free(path);
    return slide;
}

static void pixels_are_those_that_were_encoded(void **unused)
{
    (void)unused;
    struct image drawn, ours;
    draw(&drawn);
    struct slide *slide = open_slide(make_slide("jp2k.tiff", &drawn, -1));
    assert_int_equal(slide_info(slide)->levels[0].reader, READER_FAST);
    assert_true(slide_read(slide, 0, 0, 0, SIDE, SIDE, &ours, NULL));
    assert_memory_equal(ours.px, drawn.px, SIDE * SIDE * 3);
    image_free(&ours);
    image_free(&drawn);
    slide_close(slide);
}

/* The mean of the drawn pixels under one of the overview. */
static int mean_under(const struct image *drawn, int x, int y, int by, int c)
{
    int sum = 0, n = 0;
    for (int j = y * by; j < (y + 1) * by && j < SIDE; j++)
        for (int i = x * by; i < (x + 1) * by && i < SIDE; i++, n++)
            sum += image_at(drawn, i, j)[c];
    return (sum + n / 2) / n;
}

/* Wavelets of three resolutions: two halvings by the codec, the rest by averaging. */
static void overviews_are_decoded_at_reduced_resolution(void **unused)
{
    (void)unused;
    struct image drawn, ours;
    draw(&drawn);
    struct slide *slide = open_slide(make_slide("jp2k_overview.tiff", &drawn, -1));
    struct tile_source source = slide_source(slide, 0), small = source_reduced(&source, 2);
    assert_int_equal(source.max_reduce, 2);
    assert_int_equal(small.tile_width, TILE / 4);
    assert_int_equal(small.width, SIDE / 4);
    for (int by = 2; by <= 10; by *= 2) {
        assert_true(slide_overview(slide, by, NULL, &ours, NULL));
        assert_int_equal(ours.width, (SIDE + by - 1) / by);
        for (int i = 0; i < ours.width * ours.height * 3; i++) {
            int x = (int)(i / 3 % ours.width), y = (int)(i / 3 / ours.width);
            assert_in_range(abs(ours.px[i] - mean_under(&drawn, x, y, by, i % 3)), 0, 8);
        }
        image_free(&ours);
    }
    image_free(&drawn);
    slide_close(slide);
}

static void a_damaged_tile_is_named(void **unused)
{
    (void)unused;
    struct image drawn, ours;
    struct err err = { 0 };
    draw(&drawn);
    struct slide *slide = open_slide(make_slide("jp2k_damaged.tiff", &drawn, ROWS + 2));
    assert_false(slide_read(slide, 0, 0, 0, SIDE, SIDE, &ours, &err));
    assert_non_null(strstr(err.text, "level 0, tile column 2, row 1: damaged JPEG 2000 tile"));
    err.text[0] = 0;
    assert_false(slide_overview(slide, 8, NULL, &ours, &err));
    assert_non_null(strstr(err.text, "tile column 2, row 1: damaged JPEG 2000 tile"));
    assert_true(slide_read(slide, 0, 0, 0, TILE, TILE, &ours, NULL)); /* the others are not */
    image_free(&ours);
    image_free(&drawn);
    slide_close(slide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_those_that_were_encoded),
        cmocka_unit_test(overviews_are_decoded_at_reduced_resolution),
        cmocka_unit_test(a_damaged_tile_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
