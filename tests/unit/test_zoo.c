/* test_zoo.c: every network of the zoo against PyTorch on the same weights, in eval and in train
 * mode: names and shapes of all parameters, outputs (1e-4 relative), the gradients of all
 * parameters and inputs (1e-3), running statistics. By checksums from tests/golden/zoo; in full if
 * ZOO_FULL names a folder with CASE.bin. Arguments: only these cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/plan/plan.h"
#include "net/graph/transform.h"
#include "support/paths.h"
#include "support/zoo_golden.h"
#include "base/text.h"

static const double output_tolerance = 1e-4, gradient_tolerance = 1e-3;

static const char *const mode_names[ZOO_MODES] = { "eval", "train" };

/* One comparison of many tensors. Errors are Euclidean norms of differences, relative to that of
 * the reference; a reference below `floor` (batch norm makes some gradients 0) counts as floor. */
struct comparison {
    struct zoo_golden *golden;
    enum zoo_mode mode;
    double tolerance, floor;
    double worst, worst_near_kinks; /* beyond the slack; with it */
    char worst_name[96];
    int failures;
};

static void note(struct comparison *c, const char *name, double error)
{
    if (!(error <= c->worst)) {
        c->worst = error;
        snprintf(c->worst_name, sizeof c->worst_name, "%s", name);
    }
    if (error <= c->tolerance)
        return;
    if (c->failures++ < 8)
        print_error("%s %s: error %.2e\n", mode_names[c->mode], name, error);
}

/* Twice, because what is near a kink may fall to either side one by one. */
static double slack_of(const struct zoo_record *record, enum zoo_mode mode)
{
    return 2 * (double)record->slack[mode];
}

/* Where the floats of a record lie in CASE.bin: those of all records before it, eval and train. */
static const float *full_values(const struct comparison *c, const struct zoo_record *record,
                                const int64_t *counts, int64_t count)
{
    size_t at = 0;
    for (const struct zoo_record *r = c->golden->records; r < record; r++)
        at += 2 * (size_t)counts[r - c->golden->records];
    at += c->mode == ZOO_TRAIN ? (size_t)count : 0;
    assert_true(at + (size_t)count <= c->golden->n_full);
    return c->golden->full + at;
}

/* counts: elements of every record, needed for CASE.bin only. */
static void compare(struct comparison *c, const char *name, const struct shape *shape,
                    const float *ours, const int64_t *counts)
{
    const struct zoo_record *record = zoo_golden_find(c->golden, name, shape);
    if (!record) {
        note(c, name, INFINITY);
        return;
    }
    int64_t count = shape_count(shape);
    uint64_t stream = zoo_stream("dot:", name);
    double squares = 0, dot = 0, difference = 0, reference = (double)record->norm[c->mode];
    const float *full = c->golden->full ? full_values(c, record, counts, count) : NULL;
    for (int64_t i = 0; i < count; i++) {
        double x = (double)ours[i], d = full ? x - (double)full[i] : 0;
        squares += x * x, difference += d * d, dot += x * zoo_number(stream, i);
    }
    double error = fmax(fabs(sqrt(squares) - reference), fabs(dot - (double)record->dot[c->mode]));
    error = fmax(error, sqrt(difference));
    if (isnan(squares) || isnan(dot))
        error = INFINITY;
    c->worst_near_kinks = fmax(c->worst_near_kinks, error / (reference + c->floor));
    error = fmax(0, error - slack_of(record, c->mode) * reference);
    note(c, name, error / (reference + c->floor));
}

/* The values that are in CASE.txt, one by one. */
static void compare_text(struct comparison *c, const char *name, const float *ours, int64_t count,
                         double slack)
{
    double largest = 0, worst = 0, *values = zoo_golden_values(c->golden, c->mode, name, count);
    for (int64_t i = 0; values && i < count; i++) {
        largest = fmax(largest, fabs(values[i]));
        worst = fmax(worst, fabs((double)ours[i] - values[i]));
    }
    free(values);
    if (largest > 0)
        note(c, name, fmax(0, worst / (largest + c->floor) - slack));
}

static struct graph *build(const struct zoo_case *zoo_case)
{
    struct graph *graph = NULL;
    struct err err = { 0 };
    if (!zoo_build(zoo_case->network, &zoo_case->options, &graph, &err) ||
        !graph_allocate(graph, &err))
        fail_msg("%s", err.text);
    for (int32_t i = 0; i < graph->n_nodes; i++) /* its numbers are not PyTorch's */
        if (graph->nodes[i].op->kind == OP_DROPOUT)
            graph->nodes[i].attr.dropout.rate = 0;
    return graph;
}

/* Every name and shape of PyTorch's state_dict, and no other. counts [n_records] is filled. */
static void check_names(const struct graph *graph, struct zoo_golden *golden, int64_t *counts)
{
    int wrong = 0;
    for (int32_t i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        const char *prefix = value->kind == VALUE_INPUT ? "input " : "";
        if (value->kind == VALUE_NODE)
            continue;
        char *name = text_format("%s%s", prefix, value->name);
        struct zoo_record *record = zoo_golden_find(golden, name, &value->shape);
        if (record)
            record->seen = true, counts[record - golden->records] = shape_count(&value->shape);
        else if (wrong++ < 8)
            print_error("PyTorch has no %s of this shape\n", name);
        free(name);
    }
    for (int i = 0; i < graph->n_outputs; i++) {
        char *name = text_format("output %s", graph->outputs[i].name);
        const struct shape *shape = graph_shape(graph, graph->outputs[i].value);
        struct zoo_record *record = zoo_golden_find(golden, name, shape);
        assert_non_null(record);
        record->seen = true, counts[record - golden->records] = shape_count(shape);
        free(name);
    }
    int missing = 0;
    for (size_t i = 0; i < golden->n_records; i++)
        missing += !golden->records[i].seen;
    if (missing)
        print_error("%d parameters of PyTorch are missing\n", missing);
    assert_int_equal(wrong + missing, 0);
}

static bool has_running_statistics(const struct graph *graph)
{
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph->values[i].kind == VALUE_BUFFER && strstr(graph->values[i].name, "running_mean"))
            return true;
    return false;
}

static bool takes_text(const struct graph *graph)
{
    return zoo_find(graph->name, NULL)->input == ZOO_TEXT;
}

/* Numbers -> ids from 2 on, and a mask; as make_texts and length do it. */
static void fill_texts(const struct graph *graph, float *ids, float *mask)
{
    const struct shape *shape = graph_shape(graph, graph->inputs[0].value);
    int64_t batch = shape->dim[0], tokens = shape->dim[1], rows = 0;
    for (int32_t i = 0; i < graph->n_nodes && rows == 0; i++)
        if (graph->nodes[i].op->kind == OP_EMBEDDING)
            rows = graph_shape(graph, graph->nodes[i].inputs[1])->dim[0];
    for (int64_t i = 0; i < batch * tokens; i++) {
        ids[i] = floorf((ids[i] + 1) / 2 * (float)(rows - 2)) + 2;
        mask[i] = i % tokens < tokens - i / tokens * tokens / (2 * batch);
    }
}

static bool takes_audio(const struct graph *graph)
{
    return zoo_find(graph->name, NULL)->input == ZOO_AUDIO;
}

/* As make_audio does it. */
static void fill_audio(const struct graph *graph, float *mask)
{
    const struct shape *shape = graph_shape(graph, graph->inputs[1].value);
    int64_t batch = shape->dim[0], tokens = shape->dim[1];
    for (int64_t i = 0; i < batch * tokens; i++)
        mask[i] = i % tokens < tokens - i / tokens * tokens / (2 * batch);
}

static struct plan *make_plan(const struct graph *graph, enum plan_mode mode)
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    struct plan_options options = { .mode = mode,
                                    .threads = 1,
                                    .input_gradients = mode != PLAN_INFER };
    if (!plan_new(graph, &options, &plan, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < graph->n_inputs; i++) {
        uint64_t stream = zoo_stream("", graph->inputs[i].name);
        int64_t count = shape_count(graph_shape(graph, graph->inputs[i].value));
        for (int64_t k = 0; k < count; k++)
            plan_input(plan, i)[k] = (float)zoo_number(stream, k);
    }
    if (takes_text(graph))
        fill_texts(graph, plan_input(plan, 0), plan_input(plan, 1));
    if (takes_audio(graph))
        fill_audio(graph, plan_input(plan, 1));
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static void compare_outputs(struct comparison *c, const struct graph *graph,
                            const struct plan *plan, const int64_t *counts)
{
    for (int i = 0; i < graph->n_outputs; i++) {
        const struct shape *shape = graph_shape(graph, graph->outputs[i].value);
        char *name = text_format("output %s", graph->outputs[i].name);
        const struct zoo_record *record = zoo_golden_find(c->golden, name, shape);
        if (record && record->norm[c->mode] > 0) { /* auxiliary heads: in train mode only */
            compare(c, name, shape, plan_output(plan, i), counts);
            compare_text(c, graph->outputs[i].name, plan_output(plan, i), shape_count(shape), 0);
        }
        free(name);
    }
}

static void backward(const struct graph *graph, struct plan *plan, enum zoo_mode mode)
{
    struct err err = { 0 };
    plan_zero_gradients(plan);
    for (int i = 0; i < graph->n_outputs; i++) {
        if (mode != ZOO_TRAIN && strncmp(graph->outputs[i].name, "aux", 3) == 0)
            continue; /* a head that only training has */
        uint64_t stream = zoo_stream("loss:", graph->outputs[i].name);
        int64_t count = shape_count(graph_shape(graph, graph->outputs[i].value));
        for (int64_t k = 0; k < count; k++)
            plan_output_gradient(plan, i)[k] = (float)zoo_number(stream, k);
    }
    if (!plan_backward(plan, &err))
        fail_msg("%s", err.text);
}

static void compare_gradients(struct comparison *c, const struct graph *graph, struct plan *plan,
                              const int64_t *counts)
{
    double largest = 0;
    for (int32_t i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        if (value->kind != VALUE_PARAMETER)
            continue;
        const struct zoo_record *record = zoo_golden_find(c->golden, value->name, &value->shape);
        largest = fmax(largest, (double)record->norm[c->mode]);
    }
    double floor = c->mode == ZOO_TRAIN ? 1e-3 * largest : 1e-6 * largest;
    for (int32_t i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        if (value->kind != VALUE_PARAMETER)
            continue;
        const float *gradient = plan_parameter_gradient(plan, i);
        const struct zoo_record *record = zoo_golden_find(c->golden, value->name, &value->shape);
        /* 0 but for rounding, as that of the biases of keys, which a softmax does not see */
        bool zero = (double)record->norm[c->mode] < 1e-9 * largest;
        c->floor = zero ? fmax(floor, 1e-4 * largest) : floor;
        compare(c, value->name, &value->shape, gradient, counts);
        compare_text(c, value->name, gradient, shape_count(&value->shape),
                     slack_of(record, c->mode));
    }
    c->floor = floor;
    int compared = takes_text(graph) ? 0 : takes_audio(graph) ? 1 : graph->n_inputs; /* no masks */
    for (int i = 0; i < compared; i++) {
        const struct shape *shape = graph_shape(graph, graph->inputs[i].value);
        float *gradient = calloc((size_t)shape_count(shape), sizeof *gradient);
        char *name = text_format("input %s", graph->inputs[i].name);
        struct err err = { 0 };
        if (!plan_activation_gradient(plan, graph->inputs[i].value, gradient, &err))
            fail_msg("%s", err.text);
        compare(c, name, shape, gradient, counts);
        free(gradient), free(name);
    }
}

static void compare_statistics(struct comparison *c, const struct graph *graph,
                               const int64_t *counts)
{
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph->values[i].kind == VALUE_BUFFER)
            compare(c, graph->values[i].name, &graph->values[i].shape, graph_data(graph, i),
                    counts);
}

static int report(const char *name, const char *what, const struct comparison *c)
{
    if (!c->worst_name[0])
        return 0;
    print_message("%-20s %-5s %-10s %.1e %s", name, mode_names[c->mode], what, c->worst,
                  c->worst_name);
    if (c->worst_near_kinks > c->worst)
        print_message(" (%.1e near kinks)", c->worst_near_kinks);
    print_message("\n");
    return c->failures;
}

static int run_mode(const struct zoo_case *zoo_case, struct graph *graph, struct zoo_golden *golden,
                    enum zoo_mode mode, const int64_t *counts)
{
    zoo_fill_parameters(graph, zoo_case->gain, mode == ZOO_TRAIN && has_running_statistics(graph));
    struct plan *plan = make_plan(graph, mode == ZOO_TRAIN ? PLAN_TRAIN : PLAN_TUNE);
    struct comparison outputs = { golden, mode, .tolerance = output_tolerance };
    struct comparison statistics = outputs, gradients = outputs;
    gradients.tolerance = gradient_tolerance;
    compare_outputs(&outputs, graph, plan, counts);
    if (mode == ZOO_TRAIN)
        compare_statistics(&statistics, graph, counts);
    backward(graph, plan, mode);
    compare_gradients(&gradients, graph, plan, counts);
    plan_free(plan);
    return report(zoo_case->name, "outputs", &outputs) +
           report(zoo_case->name, "statistics", &statistics) +
           report(zoo_case->name, "gradients", &gradients);
}

/* As it is used: batch norm folded, layers fused, weights in the kernels' layouts. */
static int run_inference(const struct zoo_case *zoo_case, struct graph *graph,
                         struct zoo_golden *golden, const int64_t *counts)
{
    struct graph *fused = NULL;
    struct err err = { 0 };
    zoo_fill_parameters(graph, zoo_case->gain, false);
    if (!transform_for_inference(graph, NULL, 0, &fused, &err))
        fail_msg("%s", err.text);
    struct plan *plan = make_plan(fused, PLAN_INFER);
    struct comparison outputs = { golden, ZOO_EVAL, .tolerance = output_tolerance };
    compare_outputs(&outputs, fused, plan, counts);
    plan_free(plan);
    graph_free(fused);
    return report(zoo_case->name, "inference", &outputs);
}

static void same_as_pytorch(void **state)
{
    const struct zoo_case *zoo_case = *state;
    struct zoo_golden golden;
    char *folder = source_path("tests/golden/zoo");
    const char *full = getenv("ZOO_FULL");
    assert_true(zoo_golden_read(&golden, full ? full : folder, full, zoo_case->name));
    int64_t *counts = calloc(golden.n_records, sizeof *counts);
    struct graph *graph = build(zoo_case);
    check_names(graph, &golden, counts);
    int failures = run_inference(zoo_case, graph, &golden, counts);
    failures += run_mode(zoo_case, graph, &golden, ZOO_EVAL, counts);
    failures += run_mode(zoo_case, graph, &golden, ZOO_TRAIN, counts);
    graph_free(graph);
    free(counts);
    zoo_golden_free(&golden);
    free(folder);
    assert_int_equal(failures, 0);
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    char *folder = source_path("tests/golden/zoo");
    struct zoo_case *cases = NULL;
    size_t n = zoo_cases(folder, &cases), wanted = 0;
    struct CMUnitTest *tests = calloc(n + 1, sizeof *tests);
    for (size_t i = 0; i < n; i++)
        if (is_wanted(cases[i].name, argc, argv))
            tests[wanted++] = (struct CMUnitTest){ .name = cases[i].name,
                                                   .test_func = same_as_pytorch,
                                                   .initial_state = &cases[i] };
    if (wanted == 0)
        fprintf(stderr, "no cases in %s; set SOURCE to the source folder\n", folder);
    int failures = wanted ? _cmocka_run_group_tests("zoo", tests, wanted, NULL, NULL) : 1;
    free(tests), free(cases), free(folder);
    return failures;
}
