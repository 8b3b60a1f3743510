/* test_quality.c: bad areas of tissue: the measure of focus against scipy, and what is found of
 * artefacts that were planted. */
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
#include "phantom/phantom.h"
#include "phantom/phantom_artefacts.h"
#include "stain/colour.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/golden_image.h"
#include "tests/unit/support/golden_json.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/plain_slide.h"
#include "tissue/focus.h"
#include "tissue/quality.h"

static int64_t clamp(int64_t value, int64_t end)
{
    return value < 0 ? 0 : value >= end ? end - 1 : value;
}

static void variance_is_that_of_scipy(void **state)
{
    (void)state;
    struct image rgb = golden_image("tissue", "overview", 3);
    json_t *rows = golden_json("tests/golden/tissue/focus.json");
    assert_int_equal(json_array_size(rows), 4);
    for (size_t r = 0; r < 4; r++) {
        const json_t *row = json_array_get(rows, r);
        int64_t x = (int64_t)golden_number(row, "x", 0), y = (int64_t)golden_number(row, "y", 0);
        int64_t width = (int64_t)golden_number(row, "width", 0), n = 0;
        int64_t height = (int64_t)golden_number(row, "height", 0);
        uint8_t *grey = malloc((size_t)((width + 2) * (height + 2)));
        uint8_t *keep = malloc((size_t)(width * height));
        assert_true(grey && keep);
        memset(keep, 1, (size_t)(width * height));
        for (int64_t j = -1; j <= height; j++)
            for (int64_t i = -1; i <= width; i++)
                grey[(j + 1) * (width + 2) + i + 1] =
                    colour_grey(image_at(&rgb, x + clamp(i, width), y + clamp(j, height)));
        double got = focus_variance(grey, keep, width, height, &n);
        assert_int_equal(n, width * height);
        assert_near(got, golden_number(row, "variance", 0), 1e-12, "variance");
        free(grey);
        free(keep);
    }
    json_decref(rows);
    image_free(&rgb);
}

static void variance_counts_kept_pixels_only(void **state)
{
    (void)state;
    uint8_t grey[6 * 5] = { 0 }, keep[4 * 3] = { 0 };
    int64_t n = -1;
    grey[2 * 6 + 2] = 10; /* pixel (1, 1) */
    assert_true(focus_variance(grey, keep, 4, 3, &n) == 0);
    assert_int_equal(n, 0);
    keep[1 * 4 + 1] = keep[1 * 4 + 2] = 1; /* Laplacian -40 and 10 */
    assert_near(focus_variance(grey, keep, 4, 3, &n), 625, 1e-12, "variance");
    assert_int_equal(n, 2);
}

static void kinds_have_names(void **state)
{
    (void)state;
    unsigned kinds = 0;
    char text[QUALITY_TEXT_ROOM];
    struct err err;
    assert_true(quality_parse("all", "omit", &kinds, &err));
    assert_int_equal(kinds, QUALITY_ALL);
    quality_text(kinds, text);
    assert_string_equal(text, "blur,fold,pen,bubble");
    assert_true(quality_parse("pen,blur,pen", "omit", &kinds, &err));
    quality_text(kinds, text);
    assert_string_equal(text, "blur,pen");
    static const char *const wrong[] = { "", "blur,", "good", "blurry", "all,pen", "pen blur" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(quality_parse(wrong[i], "omit", &kinds, &err));
        assert_non_null(strstr(err.text, "--omit"));
        assert_non_null(strstr(err.text, "bubble"));
    }
}

/* A mask of twice the size in one direction. */
static void omitted_pixels_are_cleared_by_place(void **state)
{
    (void)state;
    uint8_t kinds[] = { QUALITY_GOOD, QUALITY_BLUR, QUALITY_PEN, QUALITY_FOLD };
    uint8_t px[] = { 255, 255, 255, 255, 0, 255, 255, 255 };
    struct quality_map quality = { .kinds = { kinds, 2, 2, 1 } };
    struct tissue_mask mask = { .mask = { px, 4, 2, 1 }, .l0_per_px_x = 8, .l0_per_px_y = 16 };
    quality_omit(&quality, 1U << QUALITY_BLUR | 1U << QUALITY_PEN, 32, 32, &mask);
    static const uint8_t want[] = { 255, 255, 0, 0, 0, 0, 255, 255 };
    assert_memory_equal(px, want, sizeof want);
    assert_int_equal(mask.tissue_px, 4);
}

/* Of the planted area of each kind, how much is found as it, and how much clean tissue is marked
 * at all: hundredths of the tissue. */
static void compare(const struct image *truth, const struct quality_map *found,
                    const struct tissue_mask *tissue, int64_t got[QUALITY_KINDS])
{
    int64_t planted[QUALITY_KINDS] = { 0 }, same[QUALITY_KINDS] = { 0 };
    for (int64_t i = 0; i < truth->width * truth->height; i++) {
        int kind = found->kinds.px[i];
        if (!tissue->mask.px[i] && !(kind >= QUALITY_PEN && truth->px[i]))
            continue;
        planted[truth->px[i]]++;
        same[truth->px[i]] += truth->px[i] ? kind == truth->px[i] : kind != 0;
    }
    for (int kind = 0; kind < QUALITY_KINDS; kind++) {
        assert_true(planted[kind] > 0);
        got[kind] = 100 * same[kind] / planted[kind];
    }
}

static void planted_artefacts_are_found(void **state)
{
    (void)state;
    char *folder = cohort_folder("artefacts");
    struct ctx ctx = { .pool = pool_new(0) };
    struct phantom_options options = {
        .folder = folder, .n_slides = 1, .size_px = 6144, .seed = 4, .artefacts = true
    };
    struct err err = { 0 };
    if (!phantom_cohort(&options, &ctx, &err))
        fail_msg("%s", err.text);
    char *path = text_format("%s/slides/patient_000_node_0.tiff", folder);
    char *mask = text_format("%s/artefacts/patient_000_node_0_quality.png", folder);
    struct slide *slide = NULL;
    struct tissue_mask tissue;
    struct tissue_options how = tissue_defaults();
    struct quality_map found;
    struct image truth;
    assert_true(slide_open(path, 0, &slide, &err));
    assert_true(tissue_find(slide, &how, NULL, &tissue, &err));
    assert_true(quality_find(slide, &tissue, QUALITY_ALL, &ctx, &found, &err));
    assert_true(image_read_png(mask, 1, &truth, &err));
    int64_t got[QUALITY_KINDS];
    compare(&truth, &found, &tissue, got);
    print_message("clean marked %d %%; found: blur %d, fold %d, pen %d, bubble %d %%\n",
                  (int)got[0], (int)got[1], (int)got[2], (int)got[3], (int)got[4]);
    assert_true(got[QUALITY_GOOD] <= 2);
    assert_true(got[QUALITY_BLUR] >= 60 && got[QUALITY_FOLD] >= 50);
    assert_true(got[QUALITY_PEN] >= 80 && got[QUALITY_BUBBLE] >= 80);
    double all = 0;
    for (int kind = 0; kind < QUALITY_KINDS; kind++)
        all += found.share[kind];
    assert_near(all, 1, 1e-12, "shares");

    /* One kind alone, by one thread, marks the same places, unless a later kind covers them. */
    struct ctx single = { .pool = pool_new(1) };
    struct quality_map blur;
    assert_true(quality_find(slide, &tissue, 1U << QUALITY_BLUR, &single, &blur, &err));
    for (int64_t i = 0; i < truth.width * truth.height; i++)
        if (found.kinds.px[i] <= QUALITY_BLUR)
            assert_int_equal(blur.kinds.px[i], found.kinds.px[i]);
    pool_free(single.pool);
    quality_free(&blur);
    quality_free(&found);
    tissue_mask_free(&tissue);
    image_free(&truth);
    slide_close(slide);
    pool_free(ctx.pool);
    free(path);
    free(mask);
    free(folder);
}

static void stopping_ends_the_search(void **state)
{
    (void)state;
    char *path = plain_slide_write("stopped.tiff", 1500, 1000, 0.25);
    atomic_bool stop = true;
    struct ctx ctx = { .pool = pool_new(1), .stop = &stop };
    struct slide *slide = NULL;
    struct tissue_mask tissue;
    struct tissue_options how = tissue_defaults();
    struct quality_map found;
    struct err err = { 0 };
    assert_true(slide_open(path, 0, &slide, &err));
    assert_true(tissue_find(slide, &how, NULL, &tissue, &err));
    assert_true(tissue.tissue_px > 0);
    assert_false(quality_find(slide, &tissue, QUALITY_ALL, &ctx, &found, &err));
    assert_int_equal(err.kind, ERR_STOPPED);
    tissue_mask_free(&tissue);
    slide_close(slide);
    pool_free(ctx.pool);
    free(path);
}

static void coarse_slides_have_no_focus(void **state)
{
    (void)state;
    char *path = plain_slide_write("coarse.tiff", 1500, 1000, 2);
    struct ctx ctx = { .pool = pool_new(1) };
    struct slide *slide = NULL;
    struct tissue_mask tissue;
    struct tissue_options how = tissue_defaults();
    struct quality_map found;
    struct err err = { 0 };
    assert_true(slide_open(path, 0, &slide, &err));
    assert_true(tissue_find(slide, &how, NULL, &tissue, &err));
    assert_false(quality_find(slide, &tissue, 1U << QUALITY_BLUR, &ctx, &found, &err));
    assert_non_null(strstr(err.text, "coarse.tiff: has 2 um/px"));
    assert_true(
        quality_find(slide, &tissue, 1U << QUALITY_FOLD | 1U << QUALITY_PEN, &ctx, &found, &err));
    quality_free(&found);
    tissue_mask_free(&tissue);
    slide_close(slide);
    pool_free(ctx.pool);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variance_is_that_of_scipy),
        cmocka_unit_test(variance_counts_kept_pixels_only),
        cmocka_unit_test(kinds_have_names),
        cmocka_unit_test(omitted_pixels_are_cleared_by_place),
        cmocka_unit_test(planted_artefacts_are_found),
        cmocka_unit_test(stopping_ends_the_search),
        cmocka_unit_test(coarse_slides_have_no_focus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
