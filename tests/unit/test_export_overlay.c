/* test_export_overlay.c: the picture of a heatmap on its slide: what lies where, and in which
 * colours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "base/pool.h"
#include "heatmap/colour_map.h"
#include "heatmap/export.h"
#include "slide/tiff_pyramid.h"
#include "support/heatmaps.h"

extern const struct exporter exporter_overlay;

/* A slide of 3200 x 2400 px: glass, a disc of tissue, in it a dark square. */
enum { SQUARE_X = 1024, SQUARE_Y = 512, SQUARE_END_X = 1536, SQUARE_END_Y = 1024 };

static bool in_square(int64_t x, int64_t y)
{
    return x >= SQUARE_X && x < SQUARE_END_X && y >= SQUARE_Y && y < SQUARE_END_Y;
}

static bool in_disc(int64_t x, int64_t y)
{
    return hypot((double)x - 1500, (double)y - 1150) < 1000;
}

static bool draw_square(void *arg, int64_t x0, int64_t y0, int64_t width, int64_t height,
                        uint8_t *px, int64_t stride_bytes, int worker, struct err *err)
{
    (void)arg, (void)worker, (void)err;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            uint8_t *at = px + y * stride_bytes + 3 * x;
            bool dark = in_square(x0 + x, y0 + y), tissue = in_disc(x0 + x, y0 + y);
            at[0] = dark ? 60 : tissue ? 225 : 245;
            at[1] = dark ? 30 : tissue ? 150 : 245;
            at[2] = dark ? 90 : tissue ? 200 : 245;
        }
    return true;
}

static void square(int64_t column, int64_t row, float *scores)
{
    int64_t x = 16 * column + 8, y = 16 * row + 8;
    scores[1] = !in_disc(x, y) ? NAN : in_square(x, y) ? 0.9F : 0.1F;
    scores[0] = 1 - scores[1];
}

static int sum_at(const struct image *image, int64_t x, int64_t y)
{
    const uint8_t *px = image_at(image, x, y);
    return px[0] + px[1] + px[2];
}

/* The picture is half the slide, 20 px from the left and 64 from the top. The black line around
 * what scores high must lie on the edge of the dark square, one pixel on either side. */
static void overlay_lies_on_the_slide(void **state)
{
    (void)state;
    struct heatmap_info info = heatmaps_facts("export_square", 3200, 2400, 2);
    struct heatmap *heatmap = heatmaps_make(&info, square);
    struct tiff_pyramid_options slide_options = { .width = 3200, .height = 2400, .mpp = 0.25 };
    struct ctx ctx = { .pool = pool_new(2) };
    struct err err = { 0 };
    char *slide_path = heatmaps_path("export_square", "slide.tiff");
    assert_true(tiff_pyramid_write(slide_path, &slide_options, draw_square, NULL, &ctx, &err));
    struct slide *slide;
    assert_true(slide_open(slide_path, 0, &slide, &err));
    struct export_options options = export_defaults();
    struct export_request request = { heatmap, slide, &options };
    char *path = heatmaps_path("export_square", "overlay.png");
    assert_true(exporter_overlay.write(&request, path, &ctx, &err));
    struct image picture;
    assert_true(image_read_png(path, 3, &picture, &err));
    assert_int_equal(picture.width, 1600 + 2 * 20);
    int64_t y = 64 + (SQUARE_Y + SQUARE_END_Y) / 4, x0 = 20 + SQUARE_X / 2;
    int64_t x1 = 20 + SQUARE_END_X / 2, x = (x0 + x1) / 2;
    int64_t y0 = 64 + SQUARE_Y / 2, y1 = 64 + SQUARE_END_Y / 2;
    for (int64_t i = -4; i <= 4; i++) {
        bool line = i == -1 || i == 0;
        assert_int_equal(sum_at(&picture, x0 + i, y) == 0, line);
        assert_int_equal(sum_at(&picture, x1 + i, y) == 0, line);
        assert_int_equal(sum_at(&picture, x, y0 + i) == 0, line);
        assert_int_equal(sum_at(&picture, x, y1 + i) == 0, line);
    }
    /* 0.9 is yellow-green, 0.1 is violet; glass stays grey. */
    const uint8_t *high = image_at(&picture, x, y), *low = image_at(&picture, x, y1 + 40);
    assert_true(high[1] > high[2] + 60 && low[2] > low[1] + 20);
    const uint8_t *glass = image_at(&picture, 30, 74);
    assert_true(glass[0] > 235 && glass[0] == glass[1] && glass[1] == glass[2]);
    image_free(&picture);
    slide_close(slide);
    pool_free(ctx.pool);
    free(path), free(slide_path);
    heatmap_close(heatmap);
}

/* Three classes: the square, the upper and the lower half of the rest of the disc. */
static void three(int64_t column, int64_t row, float *scores)
{
    int64_t x = 16 * column + 8, y = 16 * row + 8;
    int class = in_square(x, y) ? 2 : y < 1150;
    for (int c = 0; c < 3; c++)
        scores[c] = !in_disc(x, y) ? NAN : c == class ? 0.5F : 0.25F;
}

/* Which of the colours (those of stroma, lymphoid, tumor) a pixel is nearest to in hue: the one
 * that mixed with grey gives it. -1: grey. */
static int class_at(const struct image *image, int64_t x, int64_t y)
{
    static const int rgb[3][3] = { { 0, 158, 115 }, { 86, 180, 233 }, { 213, 94, 0 } };
    const uint8_t *px = image_at(image, x, y);
    double best = 12; /* how far a pixel may be from grey */
    int found = -1;
    for (int c = 0; c < 3; c++) {
        double mean = (rgb[c][0] + rgb[c][1] + rgb[c][2]) / 3.0, along = 0, length = 0;
        for (int k = 0; k < 3; k++) {
            along += ((double)px[k] - (px[0] + px[1] + px[2]) / 3.0) * (rgb[c][k] - mean);
            length += (rgb[c][k] - mean) * (rgb[c][k] - mean);
        }
        if (along / sqrt(length) > best)
            best = along / sqrt(length), found = c;
    }
    return found;
}

static struct image overlay_of(const struct heatmap *heatmap, const struct export_options *options)
{
    struct tiff_pyramid_options slide_options = { .width = 3200, .height = 2400, .mpp = 0.25 };
    struct ctx ctx = { .pool = pool_new(2) };
    struct err err = { 0 };
    struct slide *slide;
    struct image picture;
    char *slide_path = heatmaps_path("export_three", "slide.tiff");
    char *path = heatmaps_path("export_three", "overlay.png");
    assert_true(tiff_pyramid_write(slide_path, &slide_options, draw_square, NULL, &ctx, &err));
    assert_true(slide_open(slide_path, 0, &slide, &err));
    struct export_request request = { heatmap, slide, options };
    assert_true(exporter_overlay.write(&request, path, &ctx, &err));
    assert_true(image_read_png(path, 3, &picture, &err));
    slide_close(slide);
    pool_free(ctx.pool);
    free(path), free(slide_path);
    return picture;
}

/* More than two classes: each in its colour, edged with it, and listed in the legend. One chosen
 * class has the colours of scores. */
static void classes_have_their_colours(void **state)
{
    (void)state;
    static char names[3][16] = { "stroma", "lymphoid", "tumor" };
    char *classes[3] = { names[0], names[1], names[2] };
    struct heatmap_info info = heatmaps_facts("export_three", 3200, 2400, 3);
    info.class_names = classes;
    struct heatmap *heatmap = heatmaps_make(&info, three);
    struct export_options options = export_defaults();
    struct image picture = overlay_of(heatmap, &options);
    assert_int_equal(class_at(&picture, 20 + 1280 / 2, 64 + 760 / 2), 2);
    assert_int_equal(class_at(&picture, 20 + 1800 / 2, 64 + 500 / 2), 1);
    assert_int_equal(class_at(&picture, 20 + 1500 / 2, 64 + 1800 / 2), 0);
    assert_int_equal(class_at(&picture, 20 + 100 / 2, 64 + 100 / 2), -1);
    const uint8_t *edge = image_at(&picture, 20 + SQUARE_X / 2, 64 + 760 / 2);
    assert_true(edge[0] == 213 && edge[1] == 94 && edge[2] == 0);
    bool listed[3] = { false };
    for (int64_t x = picture.width / 3; x < picture.width; x++)
        for (int64_t y = 64 + 1200; y < picture.height; y++)
            if (class_at(&picture, x, y) >= 0)
                listed[class_at(&picture, x, y)] = true;
    assert_true(listed[0] && listed[1] && listed[2]);
    image_free(&picture);
    options.class_name = "tumor";
    picture = overlay_of(heatmap, &options);
    const uint8_t *low = image_at(&picture, 20 + 1500 / 2, 64 + 1800 / 2);
    assert_true(low[2] > low[0]); /* 0.25 is blue */
    image_free(&picture);
    heatmap_close(heatmap);
}

/* Lightness (L* of CIELAB, D65) of an sRGB colour. */
static double lightness(const uint8_t rgb[3])
{
    static const double weights[3] = { 0.2126, 0.7152, 0.0722 };
    double luminance = 0;
    for (int c = 0; c < 3; c++) {
        double v = rgb[c] / 255.0;
        luminance += weights[c] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
    }
    return luminance > 0.008856 ? 116 * cbrt(luminance) - 16 : 903.3 * luminance;
}

static void colours_grow_evenly_lighter(void **state)
{
    (void)state;
    uint8_t rgb[3];
    for (int i = 0; i <= 20; i++) {
        colour_map(i / 20.0, rgb);
        double want = 14.9 + (90.9 - 14.9) * i / 20; /* from viridis' first to its last */
        assert_true(fabs(lightness(rgb) - want) < 3.5);
    }
    colour_map(-1, rgb);
    assert_true(rgb[0] == 68 && rgb[1] == 1 && rgb[2] == 84);
    colour_map(7, rgb);
    assert_true(rgb[0] == 253 && rgb[1] == 231 && rgb[2] == 37);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlay_lies_on_the_slide),
        cmocka_unit_test(classes_have_their_colours),
        cmocka_unit_test(colours_grow_evenly_lighter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
