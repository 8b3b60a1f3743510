/* test_augment.c: every change against torchvision, numpy and skimage (tests/golden/augment), and
 * what must hold for all of them: keyed by (seed, epoch, sample) alone, one independent of the
 * others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/pool.h"
#include "net/model/model_prepare.h"
#include "support/golden_image.h"
#include "prepare/augment.h"
#include "prepare/augment_ops.h"

static struct image golden(const char *name)
{
    return golden_image("augment", name, 3);
}

static struct image copy_of(const struct image *image)
{
    struct image copy = { 0 };
    struct err err = { 0 };
    assert_true(image_new(&copy, image->width, image->height, image->channels, &err));
    memcpy(copy.px, image->px, image_bytes(image));
    return copy;
}

static bool same(const struct image *a, const struct image *b)
{
    return a->width == b->width && a->height == b->height &&
           memcmp(a->px, b->px, image_bytes(a)) == 0;
}

/* Frees the patch. At most `levels` apart anywhere. */
static void assert_near(struct image *patch, const char *name, int levels)
{
    struct image want = golden(name);
    assert_int_equal(patch->width, want.width);
    assert_int_equal(patch->height, want.height);
    for (size_t i = 0; i < image_bytes(&want); i++)
        if (abs(patch->px[i] - want.px[i]) > levels)
            fail_msg("%s: byte %zu is %d, want %d", name, i, patch->px[i], want.px[i]);
    image_free(&want), image_free(patch);
}

static void hsv_noise_is_as_in_opencv_units(void **state)
{
    (void)state;
    struct image patch = golden("source");
    augment_hsv(&patch, (double[]){ 7.9, 12.4, 18.2 });
    assert_near(&patch, "hsv", 1);
    patch = golden("source");
    augment_hsv(&patch, (double[]){ 0, 0, 0 });
    assert_near(&patch, "hsv_none", 1);
    patch = golden("source");
    augment_hsv(&patch, (double[]){ 20, 20, 20 });
    assert_near(&patch, "hsv_most", 1);
}

static void stain_jitter_is_as_with_skimage_matrices(void **state)
{
    (void)state;
    struct image patch = golden("source");
    augment_hed(&patch, (double[]){ 1.1, 0.85, 1.2 }, (double[]){ 0.03, -0.05, 0.02 });
    assert_near(&patch, "hed", 1);
    patch = golden("source");
    augment_hed(&patch, (double[]){ 0.8, 1.2, 0.8 }, (double[]){ -0.2, 0.2, 0.2 });
    assert_near(&patch, "hed_strong", 1);
    patch = golden("source");
    augment_hed(&patch, (double[]){ 1, 1, 1 }, (double[]){ 0, 0, 0 });
    assert_near(&patch, "source", 0);
}

/* skimage's own functions, where they clip nothing. */
static void stain_jitter_is_as_skimage(void **state)
{
    (void)state;
    struct image patch = golden("source"), want = golden("hed_skimage");
    struct image mask = golden("hed_skimage_mask");
    int compared = 0;
    augment_hed(&patch, (double[]){ 1.1, 0.85, 1.2 }, (double[]){ 0, 0, 0 });
    for (size_t i = 0; i < image_bytes(&want); i++)
        if (mask.px[i]) {
            assert_in_range(patch.px[i] + 1, want.px[i], want.px[i] + 2);
            compared++;
        }
    assert_true(compared > 1000);
    image_free(&patch), image_free(&want), image_free(&mask);
}

static void colour_jitter_is_as_torchvision(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*change)(struct image *patch, double factor);
        double factor;
    } cases[] = {
        { "brightness_low", augment_brightness, 0.6 },
        { "brightness_high", augment_brightness, 1.35 },
        { "contrast_low", augment_contrast, 0.6 },
        { "contrast_high", augment_contrast, 1.35 },
        { "saturation_low", augment_saturation, 0.6 },
        { "saturation_high", augment_saturation, 1.35 },
        { "hue_low", augment_hue, -0.31 },
        { "hue_high", augment_hue, 0.07 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct image patch = golden("source");
        cases[i].change(&patch, cases[i].factor);
        assert_near(&patch, cases[i].name, 1);
    }
}

static void blur_is_as_torchvision(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct image patch = golden("source");
    assert_int_equal(augment_blur_radius(0.4, 48, 40), 2);
    assert_true(augment_blur(&patch, 0.4, &err));
    assert_near(&patch, "blur_small", 1);
    patch = golden("source");
    assert_int_equal(augment_blur_radius(2.3, 48, 40), 7);
    assert_true(augment_blur(&patch, 2.3, &err));
    assert_near(&patch, "blur_large", 1);
}

/* Wider than the patch: the mirror ends the kernel, and a flat patch stays flat. */
static void blur_of_a_tiny_patch(void **state)
{
    (void)state;
    struct err err = { 0 };
    for (int64_t side = 1; side < 5; side++) {
        struct image patch = { 0 };
        assert_true(image_new(&patch, side, side, 3, &err));
        memset(patch.px, 255, image_bytes(&patch));
        assert_true(augment_blur(&patch, 5, &err));
        for (size_t i = 0; i < image_bytes(&patch); i++)
            assert_int_equal(patch.px[i], 255);
        image_free(&patch);
    }
}

static void turns_are_as_torch(void **state)
{
    (void)state;
    for (int quarters = 1; quarters <= 3; quarters += 2) {
        struct image patch = golden("source");
        augment_crop(&patch, 0, 0, 40);
        augment_turn(&patch, quarters);
        assert_near(&patch, quarters == 1 ? "turn_1" : "turn_3", 0);
    }
    struct image twice = golden("source"), flipped = golden("source");
    augment_turn(&twice, 2);
    augment_flip(&flipped, true, true);
    assert_true(same(&twice, &flipped));
    augment_flip(&flipped, true, false);
    augment_flip(&flipped, false, true);
    assert_near(&flipped, "source", 0);
    image_free(&twice);
}

/* The eight ways are flips after a turn, each another one. */
static void ways_are_turns_and_flips(void **state)
{
    (void)state;
    enum { SIDE = 5, N = 3 * SIDE * SIDE };
    float from[N], to[MODEL_WAYS][N];
    for (int i = 0; i < N; i++)
        from[i] = (float)i;
    for (int way = 0; way < MODEL_WAYS; way++) {
        uint8_t px[SIDE * SIDE * 3];
        struct image patch = { .px = px, .width = SIDE, .height = SIDE, .channels = 3 };
        for (int i = 0; i < SIDE * SIDE; i++)
            px[3 * i] = px[3 * i + 1] = px[3 * i + 2] = (uint8_t)i;
        if (way & 4) { /* transposed: a quarter turn, then upside down */
            augment_turn(&patch, 1);
            augment_flip(&patch, false, true);
        }
        augment_flip(&patch, way & 1, way & 2);
        model_lay(from, 3, SIDE, way, to[way]);
        for (int i = 0; i < N; i++)
            assert_true(to[way][i] == (float)(px[3 * (i % (SIDE * SIDE))] + i / 25 * 25));
        for (int other = 0; other < way; other++)
            assert_memory_not_equal(to[way], to[other], sizeof to[way]);
    }
}

static const struct augment_options all_changes = { .crop_px = 32,
                                                    .flip = true,
                                                    .rotate = true,
                                                    .hsv_noise = 20,
                                                    .hed_jitter = 0.05,
                                                    .brightness = 0.2,
                                                    .contrast = 0.2,
                                                    .saturation = 0.2,
                                                    .hue = 0.05,
                                                    .blur = 0.5,
                                                    .blur_sigma = 2 };

static struct image augmented(const struct augment_options *options, struct augment_key key)
{
    struct image patch = golden("source");
    struct err err = { 0 };
    if (!augment_train(options, key, &patch, &err))
        fail_msg("%s", err.text);
    return patch;
}

#define SAMPLES 64

static bool augment_one(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker;
    struct image *patches = arg;
    struct augment_key key = { 7, (uint64_t)index % 2, (uint64_t)index / 2 };
    return augment_train(&all_changes, key, &patches[index], err);
}

static void same_on_any_thread_in_any_order(void **state)
{
    (void)state;
    struct image source = golden("source"), patches[SAMPLES];
    struct err err = { 0 };
    struct pool *pool = pool_new(3);
    assert_non_null(pool);
    for (int i = 0; i < SAMPLES; i++)
        patches[i] = copy_of(&source);
    assert_true(pool_for(pool, SAMPLES, augment_one, patches, NULL, &err));
    pool_free(pool);
    for (int i = SAMPLES - 1; i >= 0; i--) {
        struct image patch = copy_of(&source);
        struct augment_key key = { 7, (uint64_t)i % 2, (uint64_t)i / 2 };
        assert_true(augment_train(&all_changes, key, &patch, &err));
        assert_int_equal(patch.width, 32);
        assert_true(same(&patch, &patches[i]));
        image_free(&patch);
    }
    for (int i = 1; i < SAMPLES; i++) /* and all different */
        for (int k = 0; k < i; k++)
            assert_false(same(&patches[i], &patches[k]));
    for (int i = 0; i < SAMPLES; i++)
        image_free(&patches[i]);
    image_free(&source);
}

static void seed_epoch_and_sample_all_count(void **state)
{
    (void)state;
    static const struct augment_key keys[] = { { 1, 2, 3 }, { 2, 2, 3 }, { 1, 3, 3 },
                                               { 1, 2, 4 }, { 2, 1, 3 }, { 3, 2, 1 } };
    struct image first = augmented(&all_changes, keys[0]);
    for (size_t i = 1; i < sizeof keys / sizeof *keys; i++) {
        struct image other = augmented(&all_changes, keys[i]);
        assert_false(same(&first, &other));
        image_free(&other);
    }
    image_free(&first);
}

/* Leaving out a change does not alter what the others draw: the crop and the flips are found again
 * when the colour changes are gone, for every sample. */
static void changes_are_independent(void **state)
{
    (void)state;
    const struct augment_options with = { .crop_px = 32, .hue = 0.5, .flip = true };
    const struct augment_options without = { .crop_px = 32, .flip = true };
    const struct augment_options crop = { .crop_px = 32 };
    for (uint64_t sample = 0; sample < 40; sample++) {
        struct augment_key key = { 5, 1, sample };
        struct image a = augmented(&with, key), b = augmented(&without, key);
        struct image c = augmented(&crop, key);
        for (size_t i = 0; i < image_bytes(&a); i += 3) { /* the value is left alone by hue */
            uint8_t *p = a.px + i, *q = b.px + i;
            int high_p = p[0] > p[1] ? p[0] : p[1], high_q = q[0] > q[1] ? q[0] : q[1];
            high_p = high_p > p[2] ? high_p : p[2], high_q = high_q > q[2] ? high_q : q[2];
            assert_int_equal(high_p, high_q);
        }
        bool found = false;
        for (int f = 0; f < 4; f++) {
            struct image flipped = copy_of(&c);
            augment_flip(&flipped, f & 1, f & 2);
            found = found || same(&flipped, &b);
            image_free(&flipped);
        }
        assert_true(found);
        image_free(&a), image_free(&b), image_free(&c);
    }
}

/* All eight places of a square, and all corners of the crop, in about equal numbers. */
static void draws_cover_all_places(void **state)
{
    (void)state;
    const struct augment_options turn = { .flip = true, .rotate = true };
    struct image square = { 0 };
    struct err err = { 0 };
    int seen[8] = { 0 }, lefts[3] = { 0 };
    assert_true(image_new(&square, 2, 2, 3, &err));
    for (int i = 0; i < 4; i++)
        square.px[3 * i] = (uint8_t)(1 + i);
    for (uint64_t sample = 0; sample < 1600; sample++) {
        struct image patch = copy_of(&square);
        assert_true(augment_train(&turn, (struct augment_key){ 1, 0, sample }, &patch, &err));
        seen[(patch.px[0] - 1) * 2 + (patch.px[3] > patch.px[6])]++;
        image_free(&patch);
    }
    for (int i = 0; i < 8; i++)
        assert_in_range(seen[i], 150, 250);
    image_free(&square);
    assert_true(image_new(&square, 4, 2, 3, &err));
    for (int i = 0; i < 8; i++)
        square.px[3 * i] = (uint8_t)i;
    const struct augment_options crop = { .crop_px = 2 };
    for (uint64_t sample = 0; sample < 900; sample++) {
        struct image patch = copy_of(&square);
        assert_true(augment_train(&crop, (struct augment_key){ 1, 0, sample }, &patch, &err));
        assert_in_range(patch.px[0], 0, 2);
        lefts[patch.px[0]]++;
        assert_int_equal(patch.px[9], patch.px[0] + 5);
        image_free(&patch);
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(lefts[i], 240, 360);
    image_free(&square);
}

static void nothing_asked_nothing_done(void **state)
{
    (void)state;
    struct image patch = augmented(&(struct augment_options){ 0 }, (struct augment_key){ 1, 2, 3 });
    assert_near(&patch, "source", 0);
}

static void patches_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct image patch = golden("source");
    const struct augment_options large = { .crop_px = 41 };
    assert_false(augment_train(&large, (struct augment_key){ 0 }, &patch, &err));
    assert_non_null(strstr(err.text, "48 x 40 px is smaller than the crop of 41 px"));
    patch.channels = 1;
    assert_false(augment_train(&all_changes, (struct augment_key){ 0 }, &patch, &err));
    assert_non_null(strstr(err.text, "1 channels"));
    image_free(&patch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hsv_noise_is_as_in_opencv_units),
        cmocka_unit_test(stain_jitter_is_as_with_skimage_matrices),
        cmocka_unit_test(stain_jitter_is_as_skimage),
        cmocka_unit_test(colour_jitter_is_as_torchvision),
        cmocka_unit_test(blur_is_as_torchvision),
        cmocka_unit_test(blur_of_a_tiny_patch),
        cmocka_unit_test(turns_are_as_torch),
        cmocka_unit_test(ways_are_turns_and_flips),
        cmocka_unit_test(same_on_any_thread_in_any_order),
        cmocka_unit_test(seed_epoch_and_sample_all_count),
        cmocka_unit_test(changes_are_independent),
        cmocka_unit_test(draws_cover_all_places),
        cmocka_unit_test(nothing_asked_nothing_done),
        cmocka_unit_test(patches_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
