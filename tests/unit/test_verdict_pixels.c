/* test_verdict_pixels.c: heatmaps against masks and annotations, cell by cell, compared with a
 * plain count of all cells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/auc.h"
#include "base/file.h"
#include "base/image.h"
#include "base/rng.h"
#include "support/golden_json.h"
#include "support/heatmaps.h"
#include "support/paths.h"
#include "verdict/pixels.h"

#define WIDTH 50
#define HEIGHT 30
#define STRIDE 16
#define DOWNSAMPLE 2 /* level-0 px per raster px: a cell is 32 level-0 px */

static struct heatmap *make_heatmap(const float *scores)
{
    struct heatmap_info info =
        heatmaps_facts("s", WIDTH * STRIDE * DOWNSAMPLE, HEIGHT * STRIDE * DOWNSAMPLE, 2);
    info.downsample = DOWNSAMPLE, info.width = WIDTH, info.height = HEIGHT;
    struct heatmap_writer *writer;
    struct heatmap *heatmap;
    struct err err = { 0 };
    float *both = malloc(2 * WIDTH * HEIGHT * sizeof *both);
    char *folder = scratch_path("pixels_heatmap");
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        both[2 * i] = 1 - scores[i], both[2 * i + 1] = scores[i];
    if (!file_make_folder(folder, &err) || !heatmap_create(folder, &info, &writer, &err) ||
        !heatmap_write_rows(writer, both, HEIGHT, &err) || !heatmap_commit(writer, &err) ||
        !heatmap_open(folder, &heatmap, &err))
        fail_msg("%s", err.text);
    free(both), free(folder);
    return heatmap;
}

/* Scores as networks give them: most very near 0 or 1; some cells without tissue. */
static void draw_scores(float *scores, const bool *tumour)
{
    struct rng rng = rng_new(4, 5, 6);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        double logit = 6 * rng_normal(&rng) + (tumour[i] ? 8 : -8);
        scores[i] = rng_below(&rng, 5) == 0 ? NAN : (float)(1 / (1 + exp(-logit)));
    }
    scores[7] = -0.0f, scores[8] = 1, scores[9] = 0.5f;
}

static void check(const struct pixel_counts *counts, const float *scores, const bool *tumour)
{
    double exact, list[WIDTH * HEIGHT];
    bool positive[WIDTH * HEIGHT];
    int64_t n = 0, hit = 0, wrong = 0, missed = 0;
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        bool called = scores[i] > 0.5f; /* not where NaN */
        hit += called && tumour[i], wrong += called && !tumour[i], missed += !called && tumour[i];
        if (!isnan(scores[i]))
            list[n] = (double)scores[i], positive[n++] = tumour[i];
    }
    struct pixel_measures m = pixel_measures(counts);
    assert_true(auc_area(list, positive, n, &exact, NULL));
    assert_int_equal(counts->scored, n);
    assert_true(counts->hit == hit && counts->wrong == wrong && counts->missed == missed);
    assert_true(m.auc_error < 1e-3);
    assert_true(fabs(m.auc - exact) <= m.auc_error + 1e-12);
    assert_near(m.dice, 2 * (double)hit / (double)(2 * hit + wrong + missed), 1e-12, "Dice");
    assert_near(m.iou, (double)hit / (double)(hit + wrong + missed), 1e-12, "IoU");
}

static void against_a_drawing_and_a_mask(void **state)
{
    (void)state;
    bool tumour[WIDTH * HEIGHT];
    float scores[WIDTH * HEIGHT];
    struct pixel_counts counts;
    struct err err = { 0 };
    struct ctx ctx = { 0 };
    struct image mask;
    char *drawn = scratch_path("pixels_truth.json"), *painted = scratch_path("pixels_truth.png");
    /* Level-0 box 320..960 x 160..800: cells 10..29 x 5..24; in a mask of 16 px a pixel 20..59. */
    assert_true(image_new(&mask, 2 * WIDTH, 2 * HEIGHT, 1, &err));
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            tumour[y * WIDTH + x] = x >= 10 && x < 30 && y >= 5 && y < 25;
    for (int64_t y = 10; y < 50; y++)
        memset(image_at(&mask, 20, y), 255, 40);
    assert_true(image_write_png(painted, &mask, &err));
    FILE *file = fopen(drawn, "w");
    fputs("{\"positive\":[{\"name\":\"a\",\"vertices\":[[320,160],[960,160],[960,800],[320,800]]}],"
          "\"negative\":[]}",
          file);
    assert_int_equal(fclose(file), 0);
    draw_scores(scores, tumour);
    struct heatmap *heatmap = make_heatmap(scores);
    assert_true(pixel_counts_new(&counts, &err));
    const char *truths[] = { drawn, painted };
    for (int k = 0; k < 2; k++) {
        pixel_counts_clear(&counts);
        if (!pixel_counts_add(heatmap, 1, truths[k], NULL, 16, 0.5, &ctx, &counts, &err))
            fail_msg("%s", err.text);
        assert_int_equal(counts.tumour, 400);
        check(&counts, scores, tumour);
    }
    heatmap_close(heatmap), image_free(&mask), pixel_counts_free(&counts);
    free(drawn), free(painted);
}

static void slides_without_tumour_and_sums(void **state)
{
    (void)state;
    float scores[WIDTH * HEIGHT];
    struct pixel_counts one, all;
    struct ctx ctx = { 0 };
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        scores[i] = (float)i / (WIDTH * HEIGHT * 4);
    struct heatmap *heatmap = make_heatmap(scores);
    assert_true(pixel_counts_new(&one, NULL) && pixel_counts_new(&all, NULL));
    assert_true(pixel_counts_add(heatmap, 1, NULL, NULL, 32, 0.5, &ctx, &one, NULL));
    struct pixel_measures m = pixel_measures(&one);
    assert_true(isnan(m.auc) && isnan(m.dice) && isnan(m.iou));
    assert_true(one.scored == WIDTH * HEIGHT && one.tumour == 0);
    pixel_counts_join(&all, &one), pixel_counts_join(&all, &one);
    assert_int_equal(all.scored, 2 * WIDTH * HEIGHT);
    heatmap_close(heatmap), pixel_counts_free(&one), pixel_counts_free(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_a_drawing_and_a_mask),
        cmocka_unit_test(slides_without_tumour_and_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
