/* test_whole.c: a slide through a network as one image, tile by tile: its score and the map of its
 * classes are those of a plain run, CAM adds up to the logits, and Grad-CAM is what its definition
 * gives with the gradients of a plain run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "heatmap/whole.h"
#include "tests/unit/support/plain_slide.h"

enum head { MEAN, MAX, LSE, ATTENTION, CLASSES, HEADS };

static struct pool *pool;
static char *class_names[] = { (char *)"a", (char *)"b", (char *)"c" };

/* Two convolutions of stride 2, then a head. The map that Grad-CAM is of is called "last". */
static struct model *make_model(enum head head)
{
    struct model *model = calloc(1, sizeof *model);
    struct err err = { 0 };
    assert_non_null(model);
    struct graph *g = graph_new("toy");
    value_id x = graph_input(g, "input", SHAPE(1, 3, 64, 64));
    x = graph_relu(g, graph_conv(g, x, "one", 8, true, conv_square(5, 2, 2)));
    x = graph_relu(g, graph_conv(g, x, "two", 16, true, conv_square(3, 2, 1)));
    graph_alias(g, "last", x);
    value_id scores =
        head == ATTENTION ? graph_conv(g, x, "score", 1, true, conv_square(1, 1, 0)) : NO_VALUE;
    if (head == CLASSES)
        x = graph_conv(g, x, "classes", 3, true, conv_square(1, 1, 0));
    x = head == MAX                      ? graph_global_max_pool(g, x)
        : head == LSE || head == CLASSES ? graph_global_lse_pool(g, x, 0)
        : head == ATTENTION              ? graph_attention_pool(g, x, scores)
                                         : graph_global_average_pool(g, x);
    x = graph_flatten(g, x);
    if (head != CLASSES)
        x = graph_linear(g, graph_dropout(g, x, 0.5f), "fc", 3, true);
    graph_output(g, "logits", x);
    assert_true(graph_ok(g, &err));
    assert_true(graph_allocate(g, &err) && graph_initialize(g, 5, &err));
    float *bias = graph_data(g, graph_find(g, head == CLASSES ? "classes.bias" : "fc.bias"));
    for (int c = 0; c < 3; c++)
        bias[c] = 0.3f * (float)(c + 1);
    model->graph = g;
    model->name = (char *)"toy";
    model_config_init(&model->config);
    model->config.num_classes = 3;
    model->config.class_names = class_names;
    return model;
}

static void free_model(struct model *model)
{
    graph_free(model->graph);
    free(model);
}

static struct slide_image *open_image(const char *path)
{
    struct slide_image_options options = slide_image_defaults();
    struct slide_entry entry = { .path = (char *)path, .name = "slide", .origin = (char *)path };
    struct slide_access access = { 0 };
    struct ctx ctx = { .pool = pool };
    struct slide_image *image = NULL;
    struct err err = { 0 };
    options.mpp = 1.7;
    if (!slide_image_open(&entry, &access, &options, &ctx, &image, &err))
        fail_msg("%s", err.text);
    return image;
}

static struct whole_output run(const struct whole_net *net, struct slide_image *image,
                               int64_t tile_px)
{
    struct ctx ctx = { .pool = pool };
    struct whole_settings settings = { .threads = 2, .tile_px = tile_px };
    struct whole_output result;
    struct err err = { 0 };
    if (!whole_pass(net, image, &settings, &ctx, &result, &err))
        fail_msg("%s", err.text);
    return result;
}

/* The whole image in a plain plan. With gradients of the map "last" for every class. */
struct plain {
    struct graph *graph;
    struct plan *plan;
    float *last, *gradient;
    int64_t channels, cells;
};

static struct plain run_plain(const struct model *model, struct slide_image *image)
{
    struct plain plain = { 0 };
    struct err err = { 0 };
    int64_t height = 0, width = 0;
    slide_image_size(image, &height, &width);
    assert_true(transform_resize(model->graph, 1, height, width, &plain.graph, &err));
    value_id last = graph_find(plain.graph, "last");
    const struct shape *shape = graph_shape(plain.graph, last);
    struct plan_options options = { .mode = PLAN_TUNE, .threads = 1, .keep = &last, .n_keep = 1 };
    if (!plan_new(plain.graph, &options, &plain.plan, &err))
        fail_msg("%s", err.text);
    struct plan_source source = slide_image_source(image);
    assert_true(source.read(source.arg, 0, 0, height, width, plan_input(plain.plan, 0), &err));
    assert_true(plan_forward(plain.plan, &err));
    plain.channels = shape->dim[1];
    plain.cells = shape->dim[2] * shape->dim[3];
    size_t bytes = (size_t)shape_count(shape) * sizeof(float);
    plain.last = malloc(bytes);
    plain.gradient = malloc(bytes);
    assert_true(plain.last && plain.gradient);
    assert_true(plan_activation(plain.plan, last, plain.last, &err));
    return plain;
}

static void free_plain(struct plain *plain)
{
    plan_free(plain->plan);
    graph_free(plain->graph);
    free(plain->last);
    free(plain->gradient);
}

/* Selvaraju et al. 2017, equations 1 and 2, times the number of cells: map [cells]. */
static void gradcam(struct plain *plain, int class_index, double *map)
{
    struct err err = { 0 };
    float *to = plan_output_gradient(plain->plan, 0);
    for (int c = 0; c < 3; c++)
        to[c] = c == class_index;
    plan_zero_gradients(plain->plan);
    assert_true(plan_forward(plain->plan, &err));
    assert_true(plan_backward(plain->plan, &err));
    assert_true(plan_activation_gradient(plain->plan, graph_find(plain->graph, "last"),
                                         plain->gradient, &err));
    memset(map, 0, (size_t)plain->cells * sizeof *map);
    for (int64_t k = 0; k < plain->channels; k++) {
        double alpha = 0;
        for (int64_t i = 0; i < plain->cells; i++)
            alpha += (double)plain->gradient[k * plain->cells + i];
        for (int64_t i = 0; i < plain->cells; i++)
            map[i] += alpha * (double)plain->last[k * plain->cells + i];
    }
    for (int64_t i = 0; i < plain->cells; i++)
        map[i] = fmax(map[i], 0);
}

static void check_scores(const struct whole_net *net, const struct whole_output *result,
                         const struct model *model)
{
    struct err err = { 0 };
    float logits[3], cell[3];
    double scores[3], expected[3];
    int64_t cells = result->height * result->width;
    for (int64_t i = 0; i < cells; i += 7) {
        double x = result->first[1] + (double)(i % result->width) * result->step[1];
        double y = result->first[0] + (double)(i / result->width) * result->step[0];
        assert_true(whole_at(net, result, x, y, logits, scores, &err));
        for (int c = 0; c < 3; c++)
            cell[c] = result->map[c * cells + i];
        assert_true(model_score(model, cell, expected, &err));
        for (int c = 0; c < 3; c++)
            assert_true(fabs(scores[c] - expected[c]) < 1e-6);
    }
    /* Halfway between two cells: the mean of their logits. Beyond the last one: the last one. */
    assert_true(
        whole_at(net, result, result->first[1] + result->step[1] / 2, 0, logits, scores, &err));
    assert_true(fabsf(logits[1] - (result->map[cells] + result->map[cells + 1]) / 2) < 1e-5f);
    assert_true(whole_at(net, result, 1e9, 1e9, logits, scores, &err));
    assert_true(logits[2] == result->map[3 * cells - 1]);
}

static void cam_adds_up_to_the_logits(void **state)
{
    (void)state;
    char *path = plain_slide_write("cam.tif", 1900, 900, 0.5);
    struct slide_image *image = open_image(path);
    const enum head heads[] = { MEAN, CLASSES };
    for (int h = 0; h < 2; h++) {
        struct err err = { 0 };
        struct model *model = make_model(heads[h]);
        struct whole_net *net = NULL;
        assert_true(whole_open(model, WHOLE_AUTO, &net, &err));
        assert_int_equal(whole_map_of(net), WHOLE_CAM);
        struct plain plain = run_plain(model, image);
        for (int64_t tile = 64; tile <= 512; tile *= 2) {
            struct whole_output result = run(net, image, tile);
            int64_t cells = result.height * result.width;
            assert_int_equal(cells, plain.cells);
            assert_true(result.streamed.tiles_across > 1 || tile == 512);
            for (int c = 0; c < 3; c++) {
                double sum = 0;
                for (int64_t i = 0; i < cells; i++)
                    sum += (double)result.map[c * cells + i] / (double)cells;
                assert_true(fabsf(result.logits[c] - plan_output(plain.plan, 0)[c]) < 1e-4f);
                assert_true(heads[h] == CLASSES || fabs(sum - (double)result.logits[c]) < 1e-4);
            }
            check_scores(net, &result, model);
            whole_output_free(&result);
        }
        free_plain(&plain);
        whole_close(net);
        free_model(model);
    }
    slide_image_close(image);
    free(path);
}

static void gradcam_is_as_defined(void **state)
{
    (void)state;
    char *path = plain_slide_write("gradcam.tif", 1100, 900, 0.5);
    struct slide_image *image = open_image(path);
    for (int head = 0; head < HEADS; head++) {
        struct err err = { 0 };
        struct model *model = make_model((enum head)head);
        struct whole_net *net = NULL;
        assert_true(whole_open(model, WHOLE_GRADCAM, &net, &err));
        struct plain plain = run_plain(model, image);
        struct whole_output result = run(net, image, 96);
        double *map = malloc((size_t)plain.cells * sizeof *map), most = 0;
        assert_non_null(map);
        for (int c = 0; c < 3 && head != ATTENTION; c++) { /* whose weights also have gradients */
            gradcam(&plain, c, map);
            for (int64_t i = 0; i < plain.cells; i++) {
                float logits[3];
                double scores[3];
                double x = result.first[1] + (double)(i % result.width) * result.step[1];
                double y = result.first[0] + (double)(i / result.width) * result.step[0];
                assert_true(whole_at(net, &result, x, y, logits, scores, &err));
                assert_true(fabs(scores[c] - tanh(map[i] / 2)) < 1e-4);
                most = fmax(most, map[i]);
            }
        }
        assert_true(most > 0.01 || head == ATTENTION);
        free(map);
        whole_output_free(&result);
        free_plain(&plain);
        whole_close(net);
        free_model(model);
    }
    slide_image_close(image);
    free(path);
}

/* Cell i of two layers of stride 2 that pad alike is centred on px 4 i. */
static void cells_lie_where_the_network_looks(void **state)
{
    (void)state;
    struct err err = { 0 };
    char *path = plain_slide_write("cells.tif", 700, 600, 0.5);
    struct slide_image *image = open_image(path);
    struct model *model = make_model(MEAN);
    struct whole_net *net = NULL;
    assert_true(whole_open(model, WHOLE_CAM, &net, &err));
    struct whole_output result = run(net, image, 0);
    for (int axis = 0; axis < 2; axis++)
        assert_true(result.first[axis] == 0.5 && result.step[axis] == 4);
    whole_output_free(&result);
    whole_close(net);
    free_model(model);
    slide_image_close(image);
    free(path);
}

static void others_are_refused(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct whole_net *net = NULL;
    const enum head heads[] = { MAX, LSE, ATTENTION };
    for (int h = 0; h < 3; h++) {
        struct model *model = make_model(heads[h]);
        assert_false(whole_open(model, WHOLE_CAM, &net, &err));
        assert_non_null(strstr(err.text, "use --map gradcam"));
        assert_true(whole_open(model, WHOLE_AUTO, &net, &err));
        assert_int_equal(whole_map_of(net), WHOLE_GRADCAM);
        whole_close(net);
        free_model(model);
    }
    struct model *model = make_model(MEAN);
    struct graph *deep = NULL;
    assert_true(transform_prefix(model->graph, graph_find(model->graph, "last"), &deep, &err));
    graph_free(model->graph);
    model->graph = deep;
    assert_false(whole_open(model, WHOLE_AUTO, &net, &err));
    assert_non_null(strstr(err.text, "does not end in a pooling"));
    free_model(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cam_adds_up_to_the_logits),
        cmocka_unit_test(gradcam_is_as_defined),
        cmocka_unit_test(cells_lie_where_the_network_looks),
        cmocka_unit_test(others_are_refused),
    };
    pool = pool_new(2);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pool_free(pool);
    return failed;
}
