/* test_belief.c: how far a map can be believed, on networks and maps whose answer is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/identity.h"
#include "base/pool.h"
#include "base/rng.h"
#include "explain/belief.h"
#include "support/golden_json.h"
#include "prepare/augment_ops.h"

enum { SIDE = 16, PIXELS = SIDE * SIDE };

/* --- agreement and inside --- */

static void test_agreement_is_scipys(void **state)
{
    (void)state;
    json_t *golden = golden_json("tests/golden/explain_belief.json");
    const json_t *lists = json_object_get(golden, "maps");
    const float *maps[4];
    float values[4][60];
    for (size_t k = 0; k < 4; k++) {
        for (size_t i = 0; i < 60; i++)
            values[k][i] = (float)json_number_value(json_array_get(json_array_get(lists, k), i));
        maps[k] = values[k];
    }
    double got[16];
    struct err err;
    assert_true(belief_agreement(maps, 4, 60, got, &err));
    const json_t *rows = json_object_get(golden, "spearman");
    for (size_t k = 0; k < 16; k++)
        assert_near(got[k], json_number_value(json_array_get(json_array_get(rows, k / 4), k % 4)),
                    1e-12, "Spearman's correlation");
    json_decref(golden);
}

static void test_agreement_leaves_out_what_is_hidden(void **state)
{
    (void)state;
    const float a[] = { 1, 2, NAN, 3, 4 }, b[] = { 10, 20, 7, NAN, 30 }, flat[] = { 1, 1, 1, 1, 1 };
    double got[9];
    struct err err;
    assert_true(belief_agreement((const float *[]){ a, b, flat }, 3, 5, got, &err));
    assert_near(got[1], 1, 1e-12, "the same order where both are numbers");
    assert_true(isnan(got[2]) && isnan(got[5]) && isnan(got[8]));
}

static void test_share_inside(void **state)
{
    (void)state;
    const float map[] = { 3, -5, 1, 0, NAN, 4 };
    const uint8_t mask[] = { 1, 1, 0, 0, 1, 0 };
    struct belief_inside inside = belief_mass_inside(map, mask, 6);
    assert_near(inside.map_share, 3.0 / 8, 1e-15, "share of the positive values");
    assert_near(inside.area_share, 2.0 / 5, 1e-15, "share of the pixels");
    assert_near(inside.enrichment, 15.0 / 16, 1e-15, "enrichment");
    const float flat[] = { 2, 2, 2 }, negative[] = { -1, -2, 0 };
    assert_true(isnan(belief_mass_inside(flat, mask, 3).enrichment));
    assert_true(isnan(belief_mass_inside(negative, mask, 3).map_share));
    const uint8_t nothing[6] = { 0 };
    assert_true(isnan(belief_mass_inside(map, nothing, 6).enrichment));
}

/* --- orders: a linear network, whose number is the sum of weight x pixel --- */

struct linear {
    struct model model;
    struct explain_settings settings;
    struct belief_settings belief;
    struct pool *pool;
    struct ctx ctx;
    struct image image;
    struct explain_view view;
    float input[3 * PIXELS];
    double weight[3 * PIXELS];
};

static void begin_linear(struct linear *l)
{
    struct err err = { 0 };
    memset(l, 0, sizeof *l);
    model_config_init(&l->model.config);
    l->model.config.num_classes = 1;
    l->model.config.target.std = 1;
    l->model.rule = SCORE_NUMBER;
    l->model.name = "linear";
    struct graph *graph = l->model.graph = graph_new("linear");
    value_id x = graph_input(graph, "input", SHAPE(1, 3, SIDE, SIDE));
    graph_output(graph, "logits", graph_linear(graph, graph_flatten(graph, x), "fc", 1, true));
    assert_true(graph_ok(graph, &err) && graph_allocate(graph, &err));
    l->settings = (struct explain_settings){
        .model = &l->model, .height = SIDE, .width = SIDE, .batch = 5, .threads = 1
    };
    l->belief = belief_defaults();
    l->pool = pool_new(1);
    l->ctx.pool = l->pool;
    assert_true(image_new(&l->image, SIDE, SIDE, 3, &err));
    l->view = (struct explain_view){ .image = &l->image, .input = l->input, .key = 7 };
}

static void end_linear(struct linear *l)
{
    graph_free(l->model.graph);
    model_config_free(&l->model.config);
    image_free(&l->image);
    pool_free(l->pool);
}

/* After its pixels and weights were set. */
static void finish_linear(struct linear *l)
{
    float *weight = graph_data(l->model.graph, graph_find(l->model.graph, "fc.weight"));
    for (int i = 0; i < 3 * PIXELS; i++)
        weight[i] = (float)l->weight[i];
    model_normalize(&l->model.config, &l->image, l->input);
}

static void measure(struct linear *l, const float *map, struct belief_order *out)
{
    struct err err = { 0 };
    struct probe *probe = NULL;
    struct probe_options options = { .height = SIDE,
                                     .width = SIDE,
                                     .batch = l->settings.batch,
                                     .threads = 1,
                                     .forward_only = true };
    if (!probe_new(&l->model, &options, &probe, &err) ||
        !belief_orders(&l->settings, &l->belief, probe, &l->view, &map, 1, &l->ctx, out, &err))
        fail_msg("%s", err.text);
    probe_free(probe);
}

/* Red is full in the left half, which is all that the network looks at: the score is 1, and 1/2 for
 * the mean colour. */
static void halves(struct linear *l)
{
    begin_linear(l);
    for (int i = 0; i < PIXELS; i++)
        if (i % SIDE < SIDE / 2) {
            l->image.px[3 * i] = 255;
            l->weight[i] = 2.0 / PIXELS;
        }
    finish_linear(l);
}

static void test_deletion_by_hand(void **state)
{
    (void)state;
    struct linear l;
    struct belief_order right, wrong;
    float map[PIXELS], opposite[PIXELS];
    halves(&l);
    for (int i = 0; i < PIXELS; i++)
        map[i] = (float)l.weight[i], opposite[i] = -map[i];
    measure(&l, map, &right);
    measure(&l, opposite, &wrong);
    assert_near(right.deletion, 0.625, 1e-6, "1 - f until 1/2, then 1/2");
    assert_near(right.deletion_curve[4], 0.75, 1e-6, "a quarter deleted");
    assert_near(right.deletion_curve[12], 0.5, 1e-6, "three quarters deleted");
    assert_near(wrong.deletion, 0.875, 1e-6, "1 until 1/2, then 3/2 - f");
    assert_true(right.insertion > wrong.insertion);
    assert_near(right.insertion_curve[8], 1, 1e-6, "half inserted");
    assert_true(right.better_by > 0 && wrong.better_by < 0);
    assert_near(right.better_by,
                (right.random_deletion - 0.625 + right.insertion - right.random_insertion) / 2,
                1e-6, "better by");
    end_linear(&l);
}

static void test_random_orders_are_of_no_use(void **state)
{
    (void)state;
    struct linear l;
    struct belief_order order;
    float map[PIXELS];
    halves(&l);
    for (int i = 0; i < PIXELS; i++)
        map[i] = (float)l.weight[i];
    l.belief.random_orders = 400;
    measure(&l, map, &order);
    assert_near(order.random_deletion, 0.75, 0.01, "a straight line from 1 to 1/2, on average");
    end_linear(&l);
}

/* The areas as sums in double, for a map without equal values. */
static void by_hand(const struct linear *l, const float *map, double *deletion, double *insertion)
{
    struct err err;
    struct image blurred = { 0 };
    assert_true(image_new(&blurred, SIDE, SIDE, 3, &err));
    memcpy(blurred.px, l->image.px, image_bytes(&l->image));
    assert_true(augment_blur(&blurred, SIDE / 8.0, &err));
    double mean[3] = { 0 };
    for (int i = 0; i < 3 * PIXELS; i++)
        mean[i % 3] += l->image.px[i] / 255.0 / PIXELS;
    *deletion = *insertion = 0;
    for (int step = 0; step <= 16; step++) {
        double deleted = 0, inserted = 0;
        for (int i = 0; i < PIXELS; i++) {
            int higher = 0;
            for (int k = 0; k < PIXELS; k++)
                higher += map[k] > map[i];
            bool changed = higher < step * PIXELS / 16;
            for (int c = 0; c < 3; c++) {
                double whole = l->image.px[3 * i + c] / 255.0, weight = l->weight[c * PIXELS + i];
                deleted += weight * (changed ? mean[c] : whole);
                inserted += weight * (changed ? whole : blurred.px[3 * i + c] / 255.0);
            }
        }
        double share = step == 0 || step == 16 ? 0.5 / 16 : 1.0 / 16;
        *deletion += share * deleted, *insertion += share * inserted;
    }
    image_free(&blurred);
}

static void test_any_image(void **state)
{
    (void)state;
    struct linear l;
    struct belief_order order, again;
    float map[PIXELS];
    begin_linear(&l);
    struct rng rng = rng_new(3, 0, 0);
    for (int i = 0; i < 3 * PIXELS; i++) {
        l.image.px[i] = (uint8_t)rng_below(&rng, 256);
        l.weight[i] = (double)(float)rng_normal(&rng) / PIXELS;
    }
    for (int i = 0; i < PIXELS; i++)
        map[i] = (float)rng_normal(&rng);
    finish_linear(&l);
    double deletion, insertion;
    by_hand(&l, map, &deletion, &insertion);
    measure(&l, map, &order);
    assert_near(order.deletion, deletion, 1e-5, "deletion");
    assert_near(order.insertion, insertion, 1e-5, "insertion");
    l.settings.batch = 64;
    measure(&l, map, &again);
    assert_memory_equal(&order, &again, sizeof order);
    l.view.key = 8;
    measure(&l, map, &again);
    assert_true(again.deletion == order.deletion && again.random_deletion != order.random_deletion);
    end_linear(&l);
}

static void test_map_without_an_order(void **state)
{
    (void)state;
    struct linear l;
    struct belief_order order;
    float map[PIXELS];
    halves(&l);
    for (int i = 0; i < PIXELS; i++)
        map[i] = 0.25f;
    measure(&l, map, &order);
    assert_true(isnan(order.deletion) && isnan(order.insertion) && isnan(order.better_by));
    assert_true(isnan(order.random_deletion) && isnan(order.deletion_curve[0]));
    map[3] = NAN;
    measure(&l, map, &order);
    assert_true(isnan(order.better_by));
    end_linear(&l);
}

/* --- redrawing --- */

/* Says where the edges of the image are, whatever the network is. */
static bool explain_edges(const struct explain_settings *settings, struct probe *probe, int layer,
                          const struct explain_view *view, const struct ctx *ctx,
                          struct attribution *out, struct err *err)
{
    (void)probe, (void)layer, (void)ctx, (void)err;
    *out = (struct attribution){ settings->height, settings->width, calloc(PIXELS, sizeof(float)) };
    for (int i = 1; i < PIXELS; i++)
        out->values[i] = fabsf(view->input[i] - view->input[i - 1]);
    return true;
}

/* The weights of the first channel, as they are in the model of the settings. */
static bool explain_weights(const struct explain_settings *settings, struct probe *probe, int layer,
                            const struct explain_view *view, const struct ctx *ctx,
                            struct attribution *out, struct err *err)
{
    (void)probe, (void)layer, (void)ctx, (void)err, (void)view;
    *out =
        (struct attribution){ settings->height, settings->width, malloc(PIXELS * sizeof(float)) };
    const struct graph *graph = settings->model->graph;
    memcpy(out->values, graph_data(graph, graph_find(graph, "fc.weight")), PIXELS * sizeof(float));
    return true;
}

static bool explain_flat(const struct explain_settings *settings, struct probe *probe, int layer,
                         const struct explain_view *view, const struct ctx *ctx,
                         struct attribution *out, struct err *err)
{
    (void)probe, (void)layer, (void)ctx, (void)err, (void)view;
    *out = (struct attribution){ settings->height, settings->width, calloc(PIXELS, sizeof(float)) };
    return true;
}

static void test_map_that_ignores_the_weights(void **state)
{
    (void)state;
    const struct explainer
        edges = { .maps = MAPS_INPUT, .forward_only = true, .explain = explain_edges },
        weights = { .maps = MAPS_INPUT, .forward_only = true, .explain = explain_weights },
        flat = { .maps = MAPS_INPUT, .forward_only = true, .explain = explain_flat };
    const struct belief_method methods[3] = { { &edges, NULL }, { &weights, NULL }, { &flat, "" } };
    struct linear l;
    struct err err = { 0 };
    struct attribution maps[6];
    struct belief_redrawn got[3];
    begin_linear(&l);
    struct rng rng = rng_new(4, 0, 0);
    for (int i = 0; i < 3 * PIXELS; i++) {
        l.image.px[i] = (uint8_t)rng_below(&rng, 256);
        l.weight[i] = rng_normal(&rng);
    }
    finish_linear(&l);
    const struct explain_view views[2] = { l.view, l.view };
    for (int i = 0; i < 6; i++)
        methods[i / 2].explainer->explain(&l.settings, NULL, -1, &views[i % 2], &l.ctx, &maps[i],
                                          &err);
    uint64_t before = graph_hash(l.model.graph, IDENTITY_HASH_BEGIN, true);
    if (!belief_redraw(&l.settings, &l.belief, methods, 3, views, 2, maps, &l.ctx, got, &err))
        fail_msg("%s", err.text);
    assert_true(graph_hash(l.model.graph, IDENTITY_HASH_BEGIN, true) == before);
    for (int depth = 0; depth < BELIEF_DEPTHS; depth++) {
        assert_near(got[0].correlation[depth], 1, 1e-12, "edges");
        assert_true(fabs(got[1].correlation[depth]) < 0.25); /* 4 deviations of 256 pixels */
        assert_true(isnan(got[2].correlation[depth]) && got[2].views[depth] == 0);
    }
    assert_true(got[0].no_explanation && !got[1].no_explanation && !got[2].no_explanation);
    assert_true(got[0].views[0] == 2 && got[0].share[BELIEF_DEPTHS - 1] == 1);
    for (int i = 0; i < 6; i++)
        free(maps[i].values);
    end_linear(&l);
}

/* Which of the parameters have other floats than those of the model. */
static void assert_redrawn(const struct model *model, double share, const char *changed)
{
    struct err err = { 0 };
    struct model *redrawn = NULL;
    char got[256] = "";
    assert_true(belief_redrawn_model(model, share, 1, &redrawn, &err));
    for (int32_t i = 0; i < model->graph->n_values; i++) {
        if (!graph_is_parameter(model->graph, i))
            continue;
        size_t bytes = (size_t)shape_count(&model->graph->values[i].shape) * sizeof(float);
        if (memcmp(graph_data(model->graph, i), graph_data(redrawn->graph, i), bytes) != 0) {
            size_t length = strlen(got);
            snprintf(got + length, sizeof got - length, "%s ", model->graph->values[i].name);
        }
    }
    assert_string_equal(got, changed);
    belief_model_free(redrawn);
}

static void test_redrawn_from_the_top(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *graph = graph_new("small");
    value_id x = graph_input(graph, "input", SHAPE(1, 3, SIDE, SIDE));
    x = graph_conv(graph, x, "conv1", 8, false, conv_square(3, 1, 1));
    x = graph_relu(graph, graph_batch_norm(graph, x, "bn1"));
    x = graph_conv(graph, x, "conv2", 8, true, conv_square(3, 1, 1));
    x = graph_flatten(graph, graph_global_average_pool(graph, x));
    graph_output(graph, "logits", graph_linear(graph, x, "fc", 2, true));
    assert_true(graph_ok(graph, &err) && graph_initialize(graph, 1, &err));
    float *bias = graph_data(graph, graph_find(graph, "fc.bias"));
    bias[0] = 3, bias[1] = 5;
    struct model model = { .graph = graph, .name = "small" };
    assert_redrawn(&model, 0, "fc.weight fc.bias ");
    assert_redrawn(&model, 0.25, "fc.weight fc.bias ");
    assert_redrawn(&model, 0.5, "conv2.weight conv2.bias fc.weight fc.bias ");
    /* bn1's weights are all 1 and its biases 0: as if redrawn; its statistics stay. */
    assert_redrawn(&model, 1, "conv1.weight conv2.weight conv2.bias fc.weight fc.bias ");
    graph_free(graph);
}

static void test_nothing_to_redraw(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *graph = graph_new("none");
    value_id x = graph_input(graph, "input", SHAPE(1, 3, SIDE, SIDE));
    graph_output(graph, "logits", graph_flatten(graph, graph_global_average_pool(graph, x)));
    struct model model = { .graph = graph, .name = "none" }, *redrawn;
    assert_false(belief_redrawn_model(&model, 1, 1, &redrawn, &err));
    assert_string_equal(err.text, "none: has no learnt weights to be redrawn");
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agreement_is_scipys),
        cmocka_unit_test(test_agreement_leaves_out_what_is_hidden),
        cmocka_unit_test(test_share_inside),
        cmocka_unit_test(test_deletion_by_hand),
        cmocka_unit_test(test_random_orders_are_of_no_use),
        cmocka_unit_test(test_any_image),
        cmocka_unit_test(test_map_without_an_order),
        cmocka_unit_test(test_map_that_ignores_the_weights),
        cmocka_unit_test(test_redrawn_from_the_top),
        cmocka_unit_test(test_nothing_to_redraw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
