/* test_explain_slic.c: superpixels against scikit-image (tests/golden/explain_slic.py), what they
 * promise (connected, none too small, the same every time), and images with nothing in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "explain/slic.h"
#include "support/golden_image.h"
#include "support/golden_json.h"

static int32_t *segment(const struct image *image, const struct slic_options *options, int64_t *n)
{
    struct err err = { 0 };
    int32_t *labels = calloc((size_t)(image->width * image->height), sizeof *labels);
    assert_non_null(labels);
    if (!slic(image, options, labels, n, &err))
        fail_msg("%s", err.text);
    return labels;
}

static void clusters_are_those_of_scikit_image(void **state)
{
    (void)state;
    struct image image = golden_image("explain", "slic", 3);
    struct image want = golden_image("explain", "slic_clusters", 1);
    struct slic_options options = slic_defaults();
    options.smooth_px = 0;
    int64_t n, n_px = image.width * image.height, different = 0;
    int32_t *labels = calloc((size_t)n_px, sizeof *labels);
    assert_true(slic_cluster(&image, &options, labels, &n, NULL));
    assert_int_equal(n, 49);
    for (int64_t i = 0; i < n_px; i++)
        different += labels[i] != want.px[i];
    assert_int_equal(different, 0);
    free(labels);
    image_free(&image);
    image_free(&want);
}

static double pairs(double n)
{
    return n * (n - 1) / 2;
}

/* Of pairs of pixels: 1 is the same partition, 0 what chance gives. Labels below 256. */
static double adjusted_rand(const int32_t *a, const uint8_t *b, int64_t n)
{
    static int64_t both[256][256], of_a[256], of_b[256];
    memset(both, 0, sizeof both), memset(of_a, 0, sizeof of_a), memset(of_b, 0, sizeof of_b);
    for (int64_t i = 0; i < n; i++)
        both[a[i]][b[i]]++, of_a[a[i]]++, of_b[b[i]]++;
    double same = 0, in_a = 0, in_b = 0;
    for (int i = 0; i < 256; i++) {
        in_a += pairs((double)of_a[i]), in_b += pairs((double)of_b[i]);
        for (int j = 0; j < 256; j++)
            same += pairs((double)both[i][j]);
    }
    double chance = in_a * in_b / pairs((double)n);
    return (same - chance) / ((in_a + in_b) / 2 - chance);
}

/* Connected areas differ by how small pieces join: scikit-image gives them to any neighbour. */
static void segments_agree_with_scikit_image(void **state)
{
    (void)state;
    struct image image = golden_image("explain", "slic", 3);
    struct image want = golden_image("explain", "slic_segments", 1);
    struct slic_options options = slic_defaults();
    int64_t n;
    int32_t *labels = segment(&image, &options, &n);
    double agreement = adjusted_rand(labels, want.px, image.width * image.height);
    print_message("%lld superpixels, adjusted Rand index %.3f\n", (long long)n, agreement);
    assert_true(agreement > 0.9);
    free(labels);
    image_free(&image);
    image_free(&want);
}

/* Labels 0..n-1 in the order of their first pixels; each is one area of at least smallest px. */
static void check_promises(const int32_t *labels, int64_t width, int64_t height, int64_t n,
                           int64_t smallest)
{
    int64_t n_px = width * height, seen = 0, n_again;
    int64_t *size = calloc((size_t)n, sizeof *size);
    int32_t *again = malloc((size_t)n_px * sizeof *again);
    for (int64_t i = 0; i < n_px; i++) {
        assert_in_range(labels[i], 0, seen);
        seen += labels[i] == seen;
        size[labels[i]]++;
    }
    assert_int_equal(seen, n);
    for (int64_t k = 0; k < n && n > 1; k++)
        assert_true(size[k] >= smallest);
    /* Areas that are allowed any size: there are as many only if every label is one area. */
    memcpy(again, labels, (size_t)n_px * sizeof *again);
    assert_true(slic_connect(width, height, 1, again, &n_again, NULL));
    assert_int_equal(n_again, n);
    free(size);
    free(again);
}

static void segments_are_connected_and_not_small(void **state)
{
    (void)state;
    struct image image = golden_image("explain", "slic", 3);
    static const double compactness[] = { 0.01, 1, 10, 100 };
    for (int c = 0; c < 4; c++)
        for (int64_t segments = 1; segments < 5000; segments = 7 * segments + 3) {
            struct slic_options options = { segments, compactness[c], 1 };
            int64_t n, n_again, n_centres, n_px = image.width * image.height;
            int32_t *labels = segment(&image, &options, &n);
            int32_t *again = segment(&image, &options, &n_again);
            assert_memory_equal(labels, again, (size_t)n_px * sizeof *labels);
            assert_true(slic_cluster(&image, &options, again, &n_centres, NULL));
            check_promises(labels, image.width, image.height, n,
                           (int64_t)(0.5 * (double)n_px / (double)n_centres));
            free(labels);
            free(again);
        }
    image_free(&image);
}

static void fill(struct image *image, int64_t width, int64_t height, int noise)
{
    struct rng rng = rng_new(1, 2, 3);
    assert_true(image_new(image, width, height, 3, NULL));
    for (size_t i = 0; i < image_bytes(image); i++)
        image->px[i] = (uint8_t)(noise ? rng_below(&rng, 256) : 137);
}

static void a_constant_image_is_a_grid(void **state)
{
    (void)state;
    struct image image;
    fill(&image, 80, 60, 0);
    struct slic_options options = slic_defaults();
    options.segments = 48;
    int64_t n;
    int32_t *labels = segment(&image, &options, &n);
    assert_int_equal(n, 48);
    for (int64_t y = 0; y < 60; y++)
        for (int64_t x = 0; x < 80; x++)
            assert_in_range(labels[y * 80 + x] % 8, (x > 0 ? x - 1 : 0) / 10, (x + 1) / 10);
    free(labels);
    image_free(&image);
}

static void small_and_thin_images_have_segments(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {
        { 1, 1 }, { 2, 1 }, { 1, 7 }, { 3, 3 }, { 5, 4 }, { 200, 2 }
    };
    static const int64_t segments[] = { 1, 2, 50, 100000 };
    for (int s = 0; s < 6; s++)
        for (int k = 0; k < 4; k++)
            for (int noise = 0; noise < 2; noise++) {
                struct image image;
                struct slic_options options = { segments[k], 20, 1 };
                int64_t n, n_px = sizes[s][0] * sizes[s][1];
                fill(&image, sizes[s][0], sizes[s][1], noise);
                int32_t *labels = segment(&image, &options, &n);
                assert_in_range(n, 1, n_px);
                check_promises(labels, image.width, image.height, n, 1);
                free(labels);
                image_free(&image);
            }
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    struct image image;
    struct err err = { 0 };
    int32_t labels[4];
    int64_t n;
    fill(&image, 2, 2, 0);
    assert_false(slic(&image, &(struct slic_options){ 0, 10, 1 }, labels, &n, &err));
    assert_string_equal(err.text, "0 superpixels of compactness 10: both must be above 0");
    assert_false(slic(&image, &(struct slic_options){ 4, 0, 1 }, labels, &n, &err));
    image_free(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters_are_those_of_scikit_image),
        cmocka_unit_test(segments_agree_with_scikit_image),
        cmocka_unit_test(segments_are_connected_and_not_small),
        cmocka_unit_test(a_constant_image_is_a_grid),
        cmocka_unit_test(small_and_thin_images_have_segments),
        cmocka_unit_test(bad_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
