/* test_nuclei_find.c: nuclei of drawn tissue at several resolutions, the steps they are found with
 * against definitions, and images without nuclei. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "nuclei/nuclei.h"
#include "nuclei/planes.h"
#include "nuclei/watershed.h"

struct disc {
    double x_um, y_um, radius_um;
};

static bool within(const struct disc *disc, double x_um, double y_um)
{
    double dx = x_um - disc->x_um, dy = y_um - disc->y_um;
    return dx * dx + dy * dy <= disc->radius_um * disc->radius_um;
}

/* Purple discs on pink tissue. */
static struct image draw(int64_t side, double mpp, const struct disc *discs, int n)
{
    struct image rgb;
    assert_true(image_new(&rgb, side, side, 3, NULL));
    struct rng rng = rng_new(18, 0, 0);
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++) {
            bool inside = false;
            for (int k = 0; k < n; k++)
                inside |= within(&discs[k], ((double)x + 0.5) * mpp, ((double)y + 0.5) * mpp);
            static const uint8_t colours[2][3] = { { 225, 160, 200 }, { 90, 60, 140 } };
            for (int c = 0; c < 3; c++)
                image_at(&rgb, x, y)[c] =
                    (uint8_t)(colours[inside][c] + (int)rng_below(&rng, 9) - 4);
        }
    return rgb;
}

static struct nuclei_labels find(const struct image *rgb, double mpp)
{
    struct nuclei_settings settings = nuclei_defaults();
    struct nuclei_labels labels;
    struct err err;
    if (!nuclei_find(rgb, mpp, &settings, &labels, &err))
        fail_msg("%s", err.text);
    return labels;
}

/* Four nuclei: one alone, two that touch, and one cut by the border. */
static void nuclei_at_every_magnification(void **state)
{
    (void)state;
    static const struct disc discs[] = {
        { 15, 15, 4 }, { 40, 30, 4.5 }, { 47, 30, 4.5 }, { 0, 50, 5 }
    };
    static const double mpps[] = { 0.125, 0.25, 0.5, 1.0 };
    for (size_t i = 0; i < 4; i++) {
        double mpp = mpps[i];
        struct image rgb = draw((int64_t)(64 / mpp), mpp, discs, 4);
        struct nuclei_labels labels = find(&rgb, mpp);
        struct nucleus *nuclei;
        assert_int_equal(labels.n, 4);
        assert_true(nuclei_measure(&rgb, mpp, &labels, &nuclei, NULL));
        for (int k = 0; k < 4; k++) {
            double share = discs[k].x_um > 0 ? 1 : 0.5, radius = discs[k].radius_um;
            double area = share * M_PI * radius * radius, found = nuclei[k].features[NUCLEUS_AREA];
            if (fabs(found - area) > (mpp < 1 ? 0.15 : 0.3) * area)
                fail_msg("%g um/px: nucleus %d has %g um2, drawn %g", mpp, k, found, area);
            assert_int_equal(nuclei[k].touches_border, discs[k].x_um <= 0);
        }
        free(nuclei);
        nuclei_labels_free(&labels);
        image_free(&rgb);
    }
}

static void tissue_without_nuclei(void **state)
{
    (void)state;
    struct image rgb = draw(256, 0.25, NULL, 0);
    struct nuclei_labels labels = find(&rgb, 0.25);
    assert_int_equal(labels.n, 0);
    assert_int_equal(labels.width, 256);
    nuclei_labels_free(&labels);
    for (int grey = 0; grey < 256; grey += 51) { /* black, white and between */
        memset(rgb.px, grey, image_bytes(&rgb));
        labels = find(&rgb, 0.25);
        assert_int_equal(labels.n, 0);
        nuclei_labels_free(&labels);
    }
    image_free(&rgb);
}

/* Nuclei are purple; discs as dark in the colours of eosin, red cells and ink are not nuclei. */
static void other_colours_are_no_nuclei(void **state)
{
    (void)state;
    static const uint8_t colours[][3] = { { 190, 40, 90 }, { 200, 60, 70 }, { 20, 140, 120 } };
    static const struct disc disc = { 32, 32, 4 };
    for (size_t k = 0; k < 3; k++) {
        struct image rgb = draw(256, 0.25, &disc, 1);
        struct nuclei_labels labels = find(&rgb, 0.25);
        assert_int_equal(labels.n, 1);
        nuclei_labels_free(&labels);
        for (int64_t y = 0; y < 256; y++)
            for (int64_t x = 0; x < 256; x++)
                if (within(&disc, (double)x * 0.25, (double)y * 0.25))
                    memcpy(image_at(&rgb, x, y), colours[k], 3);
        labels = find(&rgb, 0.25);
        assert_int_equal(labels.n, 0);
        nuclei_labels_free(&labels);
        image_free(&rgb);
    }
}

/* A nucleus that is much paler than those around it is found by the second search. */
static void a_pale_nucleus_among_dark_ones(void **state)
{
    (void)state;
    static const struct disc dark[] = {
        { 18, 18, 4.5 }, { 32, 18, 4.5 }, { 46, 18, 4.5 }, { 18, 32, 4.5 },
        { 46, 32, 4.5 }, { 18, 46, 4.5 }, { 32, 46, 4.5 }, { 46, 46, 4.5 },
    };
    static const struct disc pale = { 32, 32, 4 };
    static const uint8_t colour[3] = { 190, 140, 190 };
    struct image rgb = draw(256, 0.25, dark, 8);
    for (int64_t y = 0; y < 256; y++)
        for (int64_t x = 0; x < 256; x++)
            if (within(&pale, (double)x * 0.25, (double)y * 0.25))
                memcpy(image_at(&rgb, x, y), colour, 3);
    struct nuclei_settings settings = nuclei_defaults();
    struct nuclei_labels labels = find(&rgb, 0.25);
    assert_int_equal(labels.n, 9);
    /* Its first row is below those of its larger neighbours. */
    assert_int_equal(labels.labels[128 * 256 + 128], 6);
    nuclei_labels_free(&labels);
    settings.pale_area_um2 = settings.max_area_um2 + 1;
    assert_true(nuclei_find(&rgb, 0.25, &settings, &labels, NULL));
    assert_int_equal(labels.n, 8);
    nuclei_labels_free(&labels);
    image_free(&rgb);
}

static void the_smallest_image(void **state)
{
    (void)state;
    struct image rgb = draw(1, 0.25, NULL, 0);
    struct nuclei_labels labels = find(&rgb, 0.25);
    assert_int_equal(labels.n, 0);
    nuclei_labels_free(&labels);
    image_free(&rgb);
}

static void bad_requests(void **state)
{
    (void)state;
    struct image rgb = draw(16, 1, NULL, 0), grey;
    struct nuclei_settings settings = nuclei_defaults();
    struct nuclei_labels labels;
    struct err err;
    assert_false(nuclei_find(&rgb, 2, &settings, &labels, &err));
    assert_string_equal(err.text, "nuclei cannot be resolved at 2 um/px; use 1 um/px or finer, "
                                  "best 0.25 to 0.5");
    assert_false(nuclei_find(&rgb, NAN, &settings, &labels, &err));
    assert_string_equal(err.text, "nan is not a resolution in um/px");
    assert_true(image_new(&grey, 4, 4, 1, NULL));
    assert_false(nuclei_find(&grey, 0.5, &settings, &labels, &err));
    assert_string_equal(err.text, "nuclei are found in RGB images, not in grey ones");
    assert_null(labels.labels);
    image_free(&grey);
    image_free(&rgb);
}

/* A nucleus is the same in a tile with a margin and in the whole image. */
static void tiles_with_a_margin_give_the_nuclei_of_the_whole(void **state)
{
    (void)state;
    struct disc discs[600];
    struct rng rng = rng_new(5, 0, 0);
    for (int k = 0; k < 600; k++)
        discs[k] = (struct disc){ rng_between(&rng, 0, 256), rng_between(&rng, 0, 256),
                                  rng_between(&rng, 2.5, 5) };
    struct nuclei_settings settings = nuclei_defaults();
    int64_t margin = (int64_t)(nuclei_margin_um(&settings) / 0.5);
    assert_in_range(margin, 60, 150);
    struct image whole = draw(512, 0.5, discs, 600), tile;
    assert_true(image_new(&tile, 456, 456, 3, NULL));
    for (int64_t y = 0; y < 456; y++)
        memcpy(image_at(&tile, 0, y), image_at(&whole, 40, 50 + y), 456 * 3);
    struct nuclei_labels a = find(&whole, 0.5), b = find(&tile, 0.5);
    int64_t inside = 0;
    for (int64_t y = margin; y < 456 - margin; y++)
        for (int64_t x = margin; x < 456 - margin; x++) {
            const int32_t *in_whole = a.labels + (y + 50) * 512 + x + 40;
            const int32_t *in_tile = b.labels + y * 456 + x;
            assert_int_equal(in_whole[0] != 0, in_tile[0] != 0);
            assert_int_equal(in_whole[0] == in_whole[1], in_tile[0] == in_tile[1]);
            inside += in_tile[0] != 0;
        }
    assert_in_range(inside, 5000, 40000);
    nuclei_labels_free(&a);
    nuclei_labels_free(&b);
    image_free(&tile);
    image_free(&whole);
}

static struct image random_mask(int64_t width, int64_t height, double share)
{
    struct image mask;
    assert_true(image_new(&mask, width, height, 1, NULL));
    struct rng rng = rng_new(7, (uint64_t)(width * height), 0);
    for (int64_t i = 0; i < width * height; i++)
        mask.px[i] = rng_uniform(&rng) < share ? 255 : 0;
    return mask;
}

static void distances_are_exact(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = { { 23, 17 }, { 1, 30 }, { 30, 1 }, { 1, 1 } };
    for (size_t k = 0; k < 4; k++) {
        int64_t width = sizes[k][0], height = sizes[k][1];
        struct image mask = random_mask(width, height, 0.93);
        float *got = malloc((size_t)(width * height) * sizeof *got);
        assert_true(planes_distance(&mask, 6.5, got, NULL));
        for (int64_t i = 0; i < width * height; i++) {
            double nearest = mask.px[i] ? 6.5 : 0;
            for (int64_t j = 0; j < width * height; j++)
                if (!mask.px[j])
                    nearest = fmin(nearest, hypot((double)(i % width - j % width),
                                                  (double)(i / width - j / width)));
            assert_true(fabs((double)got[i] - nearest) < 1e-6);
        }
        free(got);
        image_free(&mask);
    }
}

/* plane, above [19, 19]; every fifth pixel is skipped. */
static double level_by_definition(const float *plane, const bool *above, int x, int y)
{
    double n[2] = { 0 }, sum[2] = { 0 };
    for (int v = y - 3; v <= y + 3; v++)
        for (int u = x - 3; u <= x + 3; u++)
            if (u >= 0 && u < 19 && v >= 0 && v < 19 && (v * 19 + u) % 5 != 0) {
                int k = above[v * 19 + u];
                n[k]++, sum[k] += (double)plane[v * 19 + u];
            }
    double below = n[0] > 0 ? sum[0] / n[0] : 0, higher = n[1] > 0 ? sum[1] / n[1] : below;
    return fmax(below + fmax(0.45 * (higher - below), 0.02), 0.3);
}

static void the_local_threshold_is_that_of_each_window(void **state)
{
    (void)state;
    struct image skip, mask;
    assert_true(image_new(&skip, 19, 19, 1, NULL) && image_new(&mask, 19, 19, 1, NULL));
    float plane[19 * 19];
    struct rng rng = rng_new(9, 0, 0);
    for (int i = 0; i < 19 * 19; i++) {
        plane[i] = (float)rng_below(&rng, 4096) / 4096; /* steps of the sums */
        skip.px[i] = i % 5 == 0;
    }
    struct planes_threshold threshold = {
        .half_px = 3, .share = 0.45, .rounds = 1, .contrast = 0.02, .least = 0.3
    };
    assert_true(planes_above_local(plane, &skip, &threshold, &mask, NULL));
    bool above[19 * 19] = { 0 }, next[19 * 19];
    for (int round = 0; round <= 1; round++) {
        for (int i = 0; i < 19 * 19; i++)
            next[i] =
                i % 5 != 0 && (double)plane[i] > level_by_definition(plane, above, i % 19, i / 19);
        memcpy(above, next, sizeof above);
    }
    for (int i = 0; i < 19 * 19; i++)
        assert_int_equal(mask.px[i], above[i] ? 255 : 0);
    image_free(&mask);
    image_free(&skip);
}

static void smoothing_keeps_the_sum(void **state)
{
    (void)state;
    enum { WIDTH = 31, HEIGHT = 5 };
    float plane[WIDTH * HEIGHT] = { 0 }, room[WIDTH * HEIGHT];
    plane[2 * WIDTH + 15] = 1;
    assert_true(planes_smooth(plane, room, WIDTH, HEIGHT, 2, NULL));
    double sum = 0, total = 0;
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        sum += (double)plane[i];
    assert_true(fabs(sum - 1) < 1e-5); /* mirrored at the borders */
    for (int k = -8; k <= 8; k++)
        total += exp(-0.125 * k * k);
    double column = 0, want = exp(-0.125 * 9) / total;
    for (int y = 0; y < HEIGHT; y++)
        column += (double)plane[y * WIDTH + 18];
    assert_true(fabs(column - want) < 1e-6);
}

/* Two hills of heights 4 and 6 with a pass of 3 between. */
static void hills_are_one_by_their_pass_or_distance(void **state)
{
    (void)state;
    float land[] = { 1, 4, 3, 5, 6, 2, 0, 1 };
    struct image mask;
    assert_true(image_new(&mask, 8, 1, 1, NULL));
    memset(mask.px, 255, 8);
    mask.px[6] = 0;
    static const struct {
        struct watershed_split split;
        int32_t labels[8];
    } cases[] = {
        { { 0.8, 0 }, { 1, 1, 2, 2, 2, 2, 0, 3 } }, /* 3 < 0.8 * 4: apart */
        { { 0.7, 0 }, { 1, 1, 1, 1, 1, 1, 0, 2 } },
        { { 0.8, 3.1 }, { 1, 1, 1, 1, 1, 1, 0, 2 } },
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct nuclei_labels labels;
        assert_true(watershed_hills(land, &mask, &cases[k].split, &labels, NULL));
        assert_true(nuclei_labels_tidy(&labels, 1, 100, NULL));
        assert_memory_equal(labels.labels, cases[k].labels, sizeof cases[k].labels);
        nuclei_labels_free(&labels);
    }
    image_free(&mask);
}

static void tidy_labels_are_in_order_and_within_limits(void **state)
{
    (void)state;
    struct nuclei_labels labels = { .width = 5, .height = 2, .n = 4 };
    static const int32_t given[] = { 4, 4, 0, 2, 1, 0, 1, 1, 2, 2 };
    static const int32_t wanted[] = { 1, 1, 0, 2, 3, 0, 3, 3, 2, 2 };
    static const int32_t within[] = { 1, 1, 0, 0, 0, 0, 0, 0, 0, 0 };
    labels.labels = malloc(sizeof given);
    memcpy(labels.labels, given, sizeof given);
    assert_true(nuclei_labels_tidy(&labels, 1, 10, NULL));
    assert_int_equal(labels.n, 3);
    assert_memory_equal(labels.labels, wanted, sizeof wanted);
    assert_true(nuclei_labels_tidy(&labels, 2, 2, NULL));
    assert_int_equal(labels.n, 1);
    assert_memory_equal(labels.labels, within, sizeof within);
    nuclei_labels_free(&labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nuclei_at_every_magnification),
        cmocka_unit_test(tissue_without_nuclei),
        cmocka_unit_test(other_colours_are_no_nuclei),
        cmocka_unit_test(a_pale_nucleus_among_dark_ones),
        cmocka_unit_test(the_smallest_image),
        cmocka_unit_test(bad_requests),
        cmocka_unit_test(tiles_with_a_margin_give_the_nuclei_of_the_whole),
        cmocka_unit_test(distances_are_exact),
        cmocka_unit_test(the_local_threshold_is_that_of_each_window),
        cmocka_unit_test(smoothing_keeps_the_sum),
        cmocka_unit_test(hills_are_one_by_their_pass_or_distance),
        cmocka_unit_test(tidy_labels_are_in_order_and_within_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
