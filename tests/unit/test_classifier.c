/* test_classifier.c: whatever layer a network ends in, its scores are those of ONNX Runtime
 * (tests/golden/onnx_scores.py), also in a dense run; and a network that does not return class
 * scores, or does not expect RGB, is rejected by name before anything is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "net/model/classifier.h"
#include "net/model/model_run.h"
#include "net/onnx/onnx.h"
#include "net/plan/plan.h"
#include "net/graph/transform.h"
#include "support/paths.h"
#include "base/text.h"

#define SIDE 16
#define MOST 3 /* classes */

static void fill_image(struct image *image, int64_t side)
{
    assert_true(image_new(image, side, side, 3, NULL));
    for (int64_t i = 0; i < side * side * 3; i++)
        image->px[i] = (uint8_t)((i * 37 + i / 7) % 256);
}

static struct model *open_golden(const char *name, enum model_outputs outputs)
{
    struct err err = { 0 };
    char relative[128];
    snprintf(relative, sizeof relative, "tests/golden/onnx_scores/%s.onnx", name);
    char *path = source_path(relative);
    struct model *model = NULL;
    if (!model_open_classifier(&(struct model_source){ .file = path, .outputs = outputs }, &model,
                               &err))
        fail_msg("%s", err.text);
    free(path);
    return model;
}

static bool score(const struct model *model, int64_t side, double scores[MOST], struct err *err)
{
    struct image image = { 0 };
    struct model_run run = { 0 };
    fill_image(&image, side);
    bool ok = model_classify(model, &run, 1, &image, scores, err);
    model_run_free(&run);
    image_free(&image);
    return ok;
}

/* Calls visit(name, probabilities, classes) for every line of expected.txt. */
static void each_golden(void (*visit)(const char *name, const double *expected, int64_t classes))
{
    char *path = source_path("tests/golden/onnx_scores/expected.txt"), *text = NULL, *rest = NULL;
    size_t size = 0;
    assert_true(file_read(path, 4096, &text, &size, NULL));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        double expected[MOST];
        char name[64];
        int used = 0, n = 0;
        assert_int_equal(sscanf(line, "%63s%n", name, &used), 1);
        for (char *at = line + used, *end; n < MOST; at = end, n++) {
            expected[n] = strtod(at, &end);
            if (end == at)
                break;
        }
        visit(name, expected, n);
    }
    free(text);
    free(path);
}

static bool is_hidden(const char *name)
{
    return strcmp(name, "softmax_swapped") == 0;
}

static void judge_scores(const char *name, const double *expected, int64_t classes)
{
    struct err err = { 0 };
    double scores[MOST];
    struct model *model = open_golden(name, is_hidden(name) ? OUTPUTS_PROBABILITIES : OUTPUTS_AUTO);
    assert_int_equal(model->config.num_classes, classes);
    if (!score(model, SIDE, scores, &err))
        fail_msg("%s: %s", name, err.text);
    for (int64_t c = 0; c < classes; c++)
        if (!(fabs(scores[c] - expected[c]) < 1e-6))
            fail_msg("%s: class %d: %.9f, ONNX Runtime %.9f", name, (int)c, scores[c], expected[c]);
    model_close(model);
}

static void scores_are_those_of_onnx_runtime(void **state)
{
    (void)state;
    each_golden(judge_scores);
}

/* Every score of a dense run over a larger image is that of its window: the softmax runs over the
 * classes of a place, not over places. */
static void judge_dense(const char *name, const double *expected, int64_t classes)
{
    enum { LARGE = 24, STRIDE = 2, CELLS = (LARGE - SIDE) / STRIDE + 1 };
    (void)expected;
    struct err err = { 0 };
    struct model *model = open_golden(name, is_hidden(name) ? OUTPUTS_PROBABILITIES : OUTPUTS_AUTO);
    struct dense_spec spec = { SIDE, STRIDE, LARGE, LARGE };
    struct graph *dense = NULL;
    struct plan *plan = NULL;
    struct image image = { 0 };
    struct model_run run = { 0 };
    if (!transform_dense(model->graph, &spec, &dense, &err)) {
        assert_non_null(strstr(err.text, "reshape")); /* then it is run by windows */
        model_close(model);
        return;
    }
    assert_true(plan_new(dense, &(struct plan_options){ .threads = 1 }, &plan, &err));
    fill_image(&image, LARGE);
    assert_true(model_prepare(&model->config, &image, plan_input(plan, 0), &err));
    assert_true(plan_forward(plan, &err));
    for (int at = 0; at < CELLS * CELLS; at++) {
        struct image window = { 0 };
        float outputs[MOST];
        double p[MOST], q[MOST];
        assert_true(image_new(&window, SIDE, SIDE, 3, &err));
        for (int y = 0; y < SIDE; y++)
            memcpy(image_at(&window, 0, y),
                   image_at(&image, at % CELLS * STRIDE, at / CELLS * STRIDE + y), 3 * SIDE);
        for (int64_t c = 0; c < classes; c++)
            outputs[c] = plan_output(plan, 0)[c * CELLS * CELLS + at];
        assert_true(model_score(model, outputs, p, &err));
        assert_true(model_classify(model, &run, 1, &window, q, &err));
        for (int64_t c = 0; c < classes; c++)
            assert_true(fabs(p[c] - q[c]) < 1e-6);
        image_free(&window);
    }
    model_run_free(&run);
    image_free(&image);
    plan_free(plan);
    graph_free(dense);
    model_close(model);
}

static void dense_scores_are_those_of_windows(void **state)
{
    (void)state;
    each_golden(judge_dense);
}

static void the_user_overrules(void **state)
{
    (void)state;
    struct err err = { 0 };
    double plain[MOST], twice[MOST], p[MOST], sum = 0;
    struct model *model = open_golden("softmax", OUTPUTS_AUTO);
    assert_true(score(model, SIDE, plain, &err));
    assert_string_equal(model_ending(model), "Softmax");
    assert_string_equal(model_outputs_word(model), "Softmax");
    model_close(model);
    /* a softmax of probabilities, as asked for */
    model = open_golden("softmax", OUTPUTS_LOGITS);
    assert_true(score(model, SIDE, twice, &err));
    assert_string_equal(model_outputs_word(model), "logits");
    for (int c = 0; c < MOST; c++)
        sum += exp(plain[c]);
    for (int c = 0; c < MOST; c++)
        assert_true(fabs(twice[c] - exp(plain[c]) / sum) < 1e-6);
    model_close(model);
    /* logits are no probabilities, whatever the user says */
    model = open_golden("logits", OUTPUTS_PROBABILITIES);
    assert_false(score(model, SIDE, p, &err));
    assert_non_null(strstr(err.text, "not a probability"));
    model_close(model);
}

/* A softmax that cannot be recognised is seen by what it gives. */
static void hidden_probabilities_are_noticed(void **state)
{
    (void)state;
    struct err err = { 0 };
    double p[MOST];
    struct model *model = open_golden("softmax_swapped", OUTPUTS_AUTO);
    assert_false(score(model, SIDE, p, &err));
    assert_non_null(strstr(err.text, "--scores probabilities"));
    model_close(model);
    model = open_golden("softmax_swapped", OUTPUTS_LOGITS);
    assert_true(score(model, SIDE, p, &err));
    model_close(model);
}

/* --- networks of our own --- */

enum ends {
    ENDS_SCORES,
    ENDS_MAP,
    ENDS_TOKENS,
    ENDS_RANK_1,
    ENDS_TWO,
    ENDS_ONE_CLASS,
    ENDS_SOFTMAX,
    ENDS_ROUNDED, /* a softmax, quantised */
};

/* A folder in which no config.json of another test lies. */
static char *own_file(const char *name)
{
    char *folder = scratch_path("classifier"), *file = text_format("classifier/%s", name);
    assert_true(file_make_folder(folder, NULL));
    char *path = scratch_path(file);
    free(folder);
    free(file);
    return path;
}

static char *write_network(int64_t channels, enum ends ends)
{
    struct graph *g = graph_new("network");
    struct err err = { 0 };
    value_id x = graph_input(g, "input", SHAPE(1, channels, SIDE, SIDE));
    x = graph_conv(g, x, "conv", 8, true, conv_square(3, 2, 1));
    value_id p = graph_flatten(g, graph_global_average_pool(g, x));
    value_id y = graph_linear(g, p, "fc", ends == ENDS_ONE_CLASS ? 1 : 3, true);
    if (ends == ENDS_MAP)
        y = x;
    if (ends == ENDS_TOKENS)
        y = graph_transpose(g, graph_reshape(g, x, SHAPE(1, 8, 64)), (int64_t[]){ 0, 2, 1 });
    if (ends == ENDS_RANK_1)
        y = graph_reshape(g, y, SHAPE(3));
    if (ends == ENDS_ONE_CLASS || ends >= ENDS_SOFTMAX)
        y = graph_softmax(g, y, 1);
    if (ends == ENDS_ROUNDED) {
        y = graph_convert(g, y, (struct storage){ .dtype = DTYPE_BFLOAT16 });
        y = graph_convert(g, graph_reshape(g, y, SHAPE(0, 3)),
                          (struct storage){ DTYPE_INT8, 1.0f / 256, -128 });
    }
    graph_output(g, "scores", y);
    if (ends == ENDS_TWO)
        graph_output(g, "features", p);
    if (!graph_ok(g, &err) || !graph_allocate(g, &err) || !graph_initialize(g, 1, &err))
        fail_msg("%s", err.text);
    char *path = own_file("network.onnx");
    if (!onnx_write(g, path, NULL, &err))
        fail_msg("%s", err.text);
    graph_free(g);
    return path;
}

/* The scores of a network that quantises its probabilities are not rounded. */
static void rounding_goes_with_the_softmax(void **state)
{
    (void)state;
    struct err err = { 0 };
    double p[2][MOST];
    for (int i = 0; i < 2; i++) {
        struct model *model = NULL;
        char *path = write_network(3, i ? ENDS_ROUNDED : ENDS_SOFTMAX);
        if (!model_open_classifier(&(struct model_source){ .file = path }, &model, &err))
            fail_msg("%s", err.text);
        assert_string_equal(model_ending(model), "Softmax");
        assert_true(score(model, SIDE, p[i], &err));
        model_close(model);
        free(path);
    }
    assert_memory_equal(p[0], p[1], sizeof p[0]);
}

/* A network of one channel, on RGB: the scores of an image are those of its grey version, here
 * computed by hand from the network's weights. */
static void one_channel_sees_grey(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct model *model = NULL, *rgb = NULL;
    double p[MOST], want[MOST];
    char *path = write_network(1, ENDS_SCORES);
    if (!model_open_classifier(&(struct model_source){ .file = path }, &model, &err))
        fail_msg("%s", err.text);
    assert_int_equal(graph_shape(model->graph, model->graph->inputs[0].value)->dim[1], 3);
    free(path);
    /* The same network for RGB, each channel with its share of the weights. */
    path = write_network(3, ENDS_SCORES);
    assert_true(model_open_classifier(&(struct model_source){ .file = path }, &rgb, &err));
    static const float luma[3] = { 0.299f, 0.587f, 0.114f };
    for (int32_t i = 0; i < rgb->graph->n_values; i++) {
        const struct value *to = &rgb->graph->values[i];
        value_id from = to->data ? graph_find(model->graph, to->name) : NO_VALUE;
        if (from == NO_VALUE)
            continue;
        float *floats = graph_data(rgb->graph, i);
        const float *given = graph_data(model->graph, from);
        bool first = to->shape.rank == 4; /* [8, 3, 3, 3] and [8, 1, 3, 3] */
        for (int64_t k = 0; k < shape_count(&to->shape); k++)
            floats[k] = first ? luma[k / 9 % 3] * given[k / 27 * 9 + k % 9] : given[k];
    }
    assert_true(score(model, SIDE, p, &err) && score(rgb, SIDE, want, &err));
    for (int i = 0; i < 3; i++)
        assert_true(fabs(p[i] - want[i]) < 1e-6);
    assert_true(fabs(p[0] - p[1]) > 1e-4); /* not all alike */
    model_close(model), model_close(rgb);
    free(path);
}

static void others_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        int64_t channels;
        enum ends ends;
        const char *said;
    } cases[] = {
        { 2, ENDS_SCORES, "expects 2 channels [1, 2, 16, 16]" },
        { 4, ENDS_SCORES, "expects 4 channels [1, 4, 16, 16]" },
        { 3, ENDS_MAP, "returns a map [1, 8, 8, 8]" },
        { 3, ENDS_TOKENS, "returns [1, 64, 8] for 1 image, not class scores" },
        { 3, ENDS_RANK_1, "returns [3] for 1 image, not class scores" },
        { 3, ENDS_TWO, "has 2 outputs ('scores' [1, 3], 'features' [1, 8])" },
        { 3, ENDS_ONE_CLASS, "ends in Softmax, but not over two or more classes" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = { 0 };
        struct model *model = NULL;
        double p[8];
        char *path = write_network(cases[i].channels, cases[i].ends);
        struct model_source source = { .file = path };
        assert_false(model_open_classifier(&source, &model, &err));
        if (!strstr(err.text, cases[i].said) || !strstr(err.text, "network: "))
            fail_msg("'%s' is not in '%s'", cases[i].said, err.text);
        /* nor is it run by who did not ask */
        assert_true(model_open(&source, &model, &err));
        if (cases[i].ends != ENDS_ONE_CLASS)
            assert_false(score(model, SIDE, p, &err));
        model_close(model);
        free(path);
    }
}

/* One score at the size it was made for, a map at a larger one. */
static void a_map_at_another_size_is_refused(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = graph_new("whole");
    double p[MOST];
    value_id x = graph_input(g, "input", SHAPE(1, 3, SIDE, SIDE));
    x = graph_conv(g, x, "conv", 3, true, conv_square(SIDE, SIDE, 0));
    graph_output(g, "scores", x);
    char *path = own_file("whole.onnx");
    struct model *model = NULL;
    assert_true(graph_ok(g, &err) && graph_allocate(g, &err) && graph_initialize(g, 1, &err));
    assert_true(onnx_write(g, path, NULL, &err));
    assert_true(model_open_classifier(&(struct model_source){ .file = path }, &model, &err));
    assert_true(score(model, SIDE, p, &err));
    assert_false(score(model, 2 * SIDE, p, &err));
    assert_non_null(strstr(err.text, "returns a map [1, 3, 2, 2] for an image of 32 x 32 px"));
    model_close(model);
    graph_free(g);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_onnx_runtime),
        cmocka_unit_test(dense_scores_are_those_of_windows),
        cmocka_unit_test(the_user_overrules),
        cmocka_unit_test(hidden_probabilities_are_noticed),
        cmocka_unit_test(rounding_goes_with_the_softmax),
        cmocka_unit_test(one_channel_sees_grey),
        cmocka_unit_test(others_are_refused_by_name),
        cmocka_unit_test(a_map_at_another_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
