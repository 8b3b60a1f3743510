/* test_tiff_pyramid.c: every flavour of pyramid, as OpenSlide and libtiff read it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <openslide.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include <unistd.h>
#include "base/file.h"
#include "base/pool.h"
#include "slide/tiff_pyramid.h"
#include "tests/unit/support/paths.h"

enum { WIDTH = 1531, HEIGHT = 1037 };

/* Smooth colours that JPEG keeps to within a few grey values, different at every place. */
static void colour_at(double x, double y, double rgb[3])
{
    rgb[0] = 40 + 180 * x / WIDTH;
    rgb[1] = 220 - 170 * y / HEIGHT;
    rgb[2] = 60 + 60 * x / WIDTH + 90 * y / HEIGHT;
}

static bool draw_colours(void *arg, int64_t x, int64_t y, int64_t width, int64_t height,
                         uint8_t *px, int64_t stride_bytes, int worker, struct err *err)
{
    (void)arg, (void)worker, (void)err;
    assert_true(x >= 0 && y >= 0 && x + width <= WIDTH && y + height <= HEIGHT);
    for (int64_t j = 0; j < height; j++)
        for (int64_t i = 0; i < width; i++) {
            double rgb[3];
            colour_at((double)(x + i), (double)(y + j), rgb);
            for (int c = 0; c < 3; c++)
                px[j * stride_bytes + i * 3 + c] = (uint8_t)(rgb[c] + 0.5);
        }
    return true;
}

static void write_pyramid(const char *path, const struct tiff_pyramid_options *options, int threads)
{
    struct err err = { 0 };
    struct ctx ctx = { .pool = pool_new(threads) };
    if (!tiff_pyramid_write(path, options, draw_colours, NULL, &ctx, &err))
        fail_msg("%s", err.text);
    pool_free(ctx.pool);
}

static void check_level(openslide_t *slide, int level)
{
    int64_t width, height;
    openslide_get_level_dimensions(slide, level, &width, &height);
    assert_int_equal(width, (WIDTH + (1 << level) - 1) >> level);
    assert_int_equal(height, (HEIGHT + (1 << level) - 1) >> level);
    uint32_t *argb = malloc((size_t)(width * height) * 4);
    openslide_read_region(slide, argb, 0, 0, level, width, height);
    assert_null(openslide_get_error(slide));
    double scale = 1 << level;
    for (int64_t y = 0; y < height; y += 3)
        for (int64_t x = 0; x < width; x += 3) {
            double want[3];
            colour_at(((double)x + 0.5) * scale - 0.5, ((double)y + 0.5) * scale - 0.5, want);
            uint32_t got = argb[y * width + x];
            for (int c = 0; c < 3; c++) {
                double error = (double)((got >> (16 - 8 * c)) & 255) - want[c];
                if (error < -5 || error > 5)
                    fail_msg("level %d (%d, %d) channel %d: off by %g", level, (int)x, (int)y, c,
                             error);
            }
        }
    free(argb);
}

static void check_flavour(const char *name, struct tiff_pyramid_options options)
{
    char *path = scratch_path(name);
    options.width = WIDTH, options.height = HEIGHT, options.mpp = 0.25, options.quality = 90;
    write_pyramid(path, &options, 2);
    openslide_t *slide = openslide_open(path);
    assert_non_null(slide);
    assert_null(openslide_get_error(slide));
    assert_string_equal(openslide_get_property_value(slide, OPENSLIDE_PROPERTY_NAME_VENDOR),
                        "generic-tiff");
    assert_string_equal(openslide_get_property_value(slide, "tiff.ResolutionUnit"), "centimeter");
    assert_true(strtod(openslide_get_property_value(slide, "tiff.XResolution"), NULL) == 40000);
    assert_int_equal(openslide_get_level_count(slide), 3);
    for (int level = 0; level < 3; level++)
        check_level(slide, level);
    openslide_close(slide);
    free(path);
}

static void openslide_reads_every_flavour(void **state)
{
    (void)state;
    typedef struct tiff_pyramid_options flavour;
    check_flavour("default.tiff", (flavour){ 0 });
    check_flavour("tiles240.tiff", (flavour){ .tile_px = 240, .chroma_y = 1 });
    check_flavour("rgb.tiff", (flavour){ .rgb = true, .tile_px = 512 });
    check_flavour("classic.tiff", (flavour){ .classic = true, .chroma_x = 1, .chroma_y = 1 });
    check_flavour("big-be.tiff", (flavour){ .big_endian = true, .tile_px = 128 });
    check_flavour("full.tiff", (flavour){ .full_jpeg = true });
    check_flavour("full-rgb.tiff", (flavour){ .full_jpeg = true, .rgb = true });
}

/* OpenSlide 3.4 does not open classic big-endian TIFF, whoever wrote it; libtiff does. */
static void tags_say_what_was_asked_for(void **state)
{
    (void)state;
    char *path = scratch_path("tags.tiff");
    struct tiff_pyramid_options options = { .width = WIDTH,
                                            .height = HEIGHT,
                                            .mpp = 0.5,
                                            .description = "hello",
                                            .classic = true,
                                            .big_endian = true,
                                            .chroma_y = 1 };
    write_pyramid(path, &options, 1);
    char *text, *magic;
    struct err err;
    assert_true(tiff_pyramid_description(path, &text, &err));
    assert_string_equal(text, "hello");
    assert_true(file_read(path, 1 << 24, &magic, NULL, &err));
    assert_memory_equal(magic, "MM\0*", 4);
    TIFF *tiff = TIFFOpen(path, "r");
    uint16_t photometric = 0, chroma_x = 0, chroma_y = 0;
    uint32_t n_tables = 0, subfile = 0;
    void *tables;
    assert_true(TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric));
    assert_int_equal(photometric, PHOTOMETRIC_YCBCR);
    assert_true(TIFFGetField(tiff, TIFFTAG_YCBCRSUBSAMPLING, &chroma_x, &chroma_y));
    assert_true(chroma_x == 2 && chroma_y == 1);
    assert_true(TIFFGetField(tiff, TIFFTAG_JPEGTABLES, &n_tables, &tables));
    assert_in_range(n_tables, 100, 1000);
    uint32_t *tile = malloc(256 * 256 * 4); /* ABGR, last row first */
    double want[3];
    assert_true(TIFFReadRGBATile(tiff, 512, 256, tile));
    colour_at(512 + 100, 256 + 255, want);
    for (int c = 0; c < 3; c++)
        assert_true(abs((int)((tile[100] >> (8 * c)) & 255) - (int)want[c]) < 8);
    free(tile);
    assert_true(TIFFReadDirectory(tiff));
    assert_true(TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &subfile));
    assert_int_equal(subfile, FILETYPE_REDUCEDIMAGE);
    TIFFClose(tiff);
    free(text), free(magic), free(path);
}

static void bytes_do_not_depend_on_threads(void **state)
{
    (void)state;
    char *path = scratch_path("threads.tiff"), *first = NULL;
    size_t first_size = 0;
    struct tiff_pyramid_options options = { .width = WIDTH, .height = HEIGHT, .tile_px = 64 };
    for (int threads = 1; threads <= 3; threads++) {
        char *bytes;
        size_t size;
        struct err err;
        write_pyramid(path, &options, threads);
        assert_true(file_read(path, 1 << 24, &bytes, &size, &err));
        if (!first) {
            first = bytes, first_size = size;
            continue;
        }
        assert_int_equal(size, first_size);
        assert_memory_equal(bytes, first, size);
        free(bytes);
    }
    free(first), free(path);
}

static bool draw_fails_late(void *arg, int64_t x, int64_t y, int64_t width, int64_t height,
                            uint8_t *px, int64_t stride_bytes, int worker, struct err *err)
{
    if (y >= 512 && x == 256)
        return err_set(err, ERR_IO, "no more ink");
    return draw_colours(arg, x, y, width, height, px, stride_bytes, worker, err);
}

static void a_failure_leaves_nothing(void **state)
{
    (void)state;
    char *path = scratch_path("failed.tiff");
    struct tiff_pyramid_options options = { .width = WIDTH, .height = HEIGHT };
    struct ctx ctx = { .pool = pool_new(2) };
    struct err err = { 0 };
    unlink(path);
    assert_false(tiff_pyramid_write(path, &options, draw_fails_late, NULL, &ctx, &err));
    assert_string_equal(err.text, "no more ink");
    assert_false(tiff_pyramid_write("/nowhere/x.tiff", &options, draw_colours, NULL, &ctx, &err));
    assert_non_null(strstr(err.text, "/nowhere/x.tiff: cannot write: No such file"));
    options.tile_px = 250;
    assert_false(tiff_pyramid_write(path, &options, draw_colours, NULL, &ctx, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_false(file_exists(path) || part_left(path));
    pool_free(ctx.pool);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openslide_reads_every_flavour),
        cmocka_unit_test(tags_say_what_was_asked_for),
        cmocka_unit_test(bytes_do_not_depend_on_threads),
        cmocka_unit_test(a_failure_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
