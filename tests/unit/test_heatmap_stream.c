/* test_heatmap_stream.c: dense blocks that are streamed: their scores are those of one dense run
 * over the same rectangle, also where tiles meet and where tiles without tissue are left out;
 * slides are divided by counted work; what was streamed is not mixed with what was not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/rng.h"
#include "heatmap/cover.h"
#include "heatmap/ensemble.h"
#include "heatmap/scorer.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/plain_slide.h"
#include "tests/unit/support/predictions.h"

/* A small padded network and, if asked for, one with another window and halo. */
static struct ensemble ensemble_of(bool both, int64_t stride, bool tta)
{
    char *onnx = padded_onnx();
    struct model_source sources[] = {
        { .file = onnx },
        { .network = "resnet18", .init_seed = 3, .classes = 2, .height = 96, .width = 96 }
    };
    struct model *models[2] = { 0 };
    struct ensemble e;
    struct err err = { 0 };
    for (int i = 0; i <= both; i++)
        if (!model_open_classifier(&sources[i], &models[i], &err))
            fail_msg("%s", err.text);
    if (!ensemble_init(&e, models, 1 + both, stride, &err) ||
        !ensemble_choose(&e, true, tta, INT64_C(1) << 30, &err))
        fail_msg("%s", err.text);
    e.n_sizes = 0; /* a block is computed with its own size, as it is if it is streamed */
    free(onnx);
    return e;
}

/* The region of a block. */
static bool read_region(void *arg, int64_t x, int64_t y, int64_t width, int64_t height,
                        struct image *out, struct err *err)
{
    const struct image *region = arg;
    assert_true(x >= 0 && y >= 0 && x + width <= region->width && y + height <= region->height);
    if (!image_new(out, width, height, 3, err))
        return false;
    for (int64_t row = 0; row < height; row++)
        memcpy(image_at(out, 0, row), image_at(region, x, y + row), (size_t)width * 3);
    return true;
}

/* Smooth enough that scores differ from place to place. */
static void draw_region(const struct ensemble *e, int64_t width, int64_t height, struct image *out)
{
    struct err err = { 0 };
    struct rng rng = rng_new(11, 0, 0);
    assert_true(image_new(out, ensemble_region(e, width), ensemble_region(e, height), 3, &err));
    for (int64_t y = 0; y < out->height; y++)
        for (int64_t x = 0; x < out->width; x++)
            for (int c = 0; c < 3; c++) {
                double wave = 100 + 60 * sin((double)x / (23 + 9 * c)) * cos((double)y / 31);
                image_at(out, x, y)[c] = (uint8_t)(wave + rng_between(&rng, 0, 60));
            }
}

static double gap(const float *a, const float *b, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(isnan(a[i]), isnan(b[i]));
        most = isnan(a[i]) ? most : fmax(most, fabs((double)a[i] - (double)b[i]));
    }
    return most;
}

/* Blocks of width x height cells: streamed with several sizes of tiles against one run. */
static void compare(struct ensemble *e, int64_t width, int64_t height, bool sparse)
{
    struct err err = { 0 };
    struct image region;
    int64_t cells = width * height, n = cells * e->n_classes;
    bool *wanted = malloc((size_t)cells * sizeof *wanted);
    float *whole = malloc((size_t)n * sizeof *whole), *tiled = malloc((size_t)n * sizeof *tiled);
    float *again = malloc((size_t)n * sizeof *again);
    for (int64_t i = 0; i < cells; i++)
        wanted[i] = !sparse || i % width < 2 || (i / width == height - 2 && i % width > width - 4);
    struct scorer_block block = { width, height, wanted };
    struct scorer *scorer = scorer_new(e);
    draw_region(e, width, height, &region);
    struct scorer_pixels pixels = { &region, read_region };
    if (!scorer_run(scorer, &region, &block, whole, &err))
        fail_msg("%s", err.text);
    const int64_t tiles_px[] = { 64, 128, 208 };
    for (size_t t = 0; t < (e->n > 1 ? 1 : 3); t++) { /* of an ensemble one size, it takes long */
        int64_t cost = 0, all = ensemble_cost(e, width, height, 0);
        e->stream.tile = tiles_px[t];
        if (!scorer_stream(scorer, &pixels, &block, 1, tiled, &err) ||
            !scorer_stream(scorer, &pixels, &block, 3, again, &err) ||
            !scorer_stream_cost(e, &block, &cost, &err))
            fail_msg("%s", err.text);
        double most = gap(whole, tiled, n);
        print_message("%lld x %lld cells, tiles of %lld px: %.2g; %lld of %lld px\n",
                      (long long)width, (long long)height, (long long)tiles_px[t], most,
                      (long long)cost, (long long)all);
        assert_true(most < 2e-6);
        assert_memory_equal(tiled, again, (size_t)n * sizeof *tiled); /* threads change no bit */
        assert_true(sparse ? cost <= all + 1 : cost == all + 1);
        assert_true(!sparse || tiles_px[t] > 64 || cost < 0.98 * (double)all);
    }
    double least = 1, largest = 0; /* scores that tell of their place */
    for (int64_t i = 0; i < n; i++)
        if (!isnan(whole[i]))
            least = fmin(least, (double)whole[i]), largest = fmax(largest, (double)whole[i]);
    assert_true(largest - least > 0.01);
    scorer_free(scorer);
    image_free(&region);
    free(wanted), free(whole), free(tiled), free(again);
}

static void streamed_blocks_have_no_seams(void **state)
{
    (void)state;
    const int64_t strides[] = { 8, 16, 24 }; /* at 24 one in three scores is kept */
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        struct ensemble e = ensemble_of(false, strides[i], false);
        compare(&e, 31, 22, false);
        compare(&e, 31, 22, true);
        ensemble_free(&e);
    }
}

static void symmetries_and_ensembles_are_streamed(void **state)
{
    (void)state;
    struct ensemble e = ensemble_of(true, 32, true);
    compare(&e, 7, 5, true);
    ensemble_free(&e);
}

/* --- slides --- */

/* The options of plan.json, and its numbers of blocks and of streamed ones. */
static void look(const char *folder, int64_t *blocks, int64_t *streamed, int64_t *cost)
{
    struct partition partition;
    struct err err = { 0 };
    char path[4096];
    snprintf(path, sizeof path, "%s/s", folder);
    if (!partition_read(path, &partition, &err))
        fail_msg("%s", err.text);
    *blocks = partition.n_blocks, *streamed = *cost = 0;
    for (int64_t i = 0; i < partition.n_blocks; i++) {
        *streamed += partition.blocks[i].streamed;
        *cost += partition.blocks[i].cost;
    }
    bool said = strstr(partition.info.options, " stream=") != NULL;
    assert_int_equal(said, *streamed > 0);
    partition_free(&partition);
}

/* A slide that does not fit into one block: it is divided, and streamed with less work; its scores
 * are those of blocks but for their halos. */
static void a_slide_is_streamed_where_that_is_less_work(void **state)
{
    (void)state;
    char *slide = plain_slide_write("heatmap_stream.tiff", 1500, 1100, 0.25), *onnx = padded_onnx();
    struct heatmap_info info;
    struct predict_options options = options_of(NULL, PREDICT_DENSE, 16);
    options.models[0] = (struct model_source){ .file = onnx };
    options.check_windows = 16;
    options.memory_bytes = INT64_C(48) << 20;
    options.group_cost = 600000;
    int64_t blocks[3], streamed[3], cost[3];
    float *scores[3];
    const enum predict_stream ways[] = { PREDICT_STREAM_NEVER, PREDICT_STREAM_AUTO,
                                         PREDICT_STREAM_ALWAYS };
    for (int i = 0; i < 3; i++) {
        options.stream = ways[i];
        scores[i] = predict_to("heatmap_stream", slide, &options, 1, &info);
        char *folder = scratch_path("heatmap_stream");
        look(folder, &blocks[i], &streamed[i], &cost[i]);
        free(folder);
        print_message("%s: %lld blocks, %lld streamed, %lld px\n", predict_stream_names[ways[i]],
                      (long long)blocks[i], (long long)streamed[i], (long long)cost[i]);
    }
    assert_int_equal(streamed[0], 0);
    assert_int_equal(streamed[2], blocks[2]);
    assert_true(streamed[1] > 0 && cost[1] < cost[0]);
    assert_true(largest_gap(scores[0], scores[1], &info) < 1e-3);
    float *two = NULL;
    options.stream = PREDICT_STREAM_AUTO;
    two = predict_to("heatmap_stream", slide, &options, 3, &info);
    assert_memory_equal(two, scores[1], (size_t)(info.width * info.height * 2) * sizeof *two);
    for (int i = 0; i < 3; i++)
        free(scores[i]);
    unlink(slide);
    free(two), free(slide), free(onnx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streamed_blocks_have_no_seams),
        cmocka_unit_test(symmetries_and_ensembles_are_streamed),
        cmocka_unit_test(a_slide_is_streamed_where_that_is_less_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
