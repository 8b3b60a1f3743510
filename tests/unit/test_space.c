/* test_space.c: networks whose images are divided among 1 x 2, 2 x 1 and 2 x 2 processes (here:
 * threads) are as exact as the network on one: outputs, the gradients of all parameters and of the
 * image, and running statistics are compared with PyTorch in double precision (checksums of
 * tests/golden/zoo, images of odd sizes), and their error is at most 1.5 times that of the whole
 * network. The comparison fails for halos without gradients and for halos that are too small.
 * Arguments: these cases of the zoo instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "support/paths.h"
#include "support/space_parts.h"
#include "support/zoo_golden.h"

#define TIMES 1.5

struct network {
    const struct zoo_case *zoo_case;
    enum zoo_mode mode;
    const struct graph *filled;
};

static struct graph *new_graph(const struct zoo_case *zoo_case)
{
    struct graph *graph = NULL;
    if (!zoo_build(zoo_case->network, &zoo_case->options, &graph, NULL) ||
        !graph_allocate(graph, NULL))
        return NULL;
    for (int32_t i = 0; i < graph->n_nodes; i++) /* its numbers are not PyTorch's */
        if (graph->nodes[i].op->kind == OP_DROPOUT)
            graph->nodes[i].attr.dropout.rate = 0;
    return graph;
}

static struct graph *build(void *arg)
{
    const struct network *n = arg;
    struct graph *graph = new_graph(n->zoo_case);
    for (int32_t i = 0; graph && i < graph->n_values; i++)
        if (graph_is_parameter(graph, i))
            memcpy(graph_data(graph, i), graph_data(n->filled, i),
                   (size_t)shape_count(graph_shape(graph, i)) * sizeof(float));
    return graph;
}

/* The error of a tensor, by its checksums and relative to the norm of the reference; what lies near
 * a kink may fall to either side. */
static double error_of(const struct zoo_golden *golden, enum zoo_mode mode, const char *name,
                       const struct shape *shape, const float *ours, double floor)
{
    const struct zoo_record *record = zoo_golden_find(golden, name, shape);
    assert_non_null(record);
    uint64_t stream = zoo_stream("dot:", name);
    double squares = 0, dot = 0, reference = (double)record->norm[mode];
    for (int64_t i = 0; i < shape_count(shape); i++) {
        squares += (double)ours[i] * (double)ours[i];
        dot += (double)ours[i] * zoo_number(stream, i);
    }
    double error = fmax(fabs(sqrt(squares) - reference), fabs(dot - (double)record->dot[mode]));
    error = fmax(0, error - 2 * (double)record->slack[mode] * reference);
    return isnan(squares) ? INFINITY : error / (reference + floor);
}

struct errors {
    double gradients;  /* root of the mean square over all parameters and the image */
    double statistics; /* the same of running statistics */
    double outputs;
};

static double largest_norm(const struct zoo_golden *golden, enum zoo_mode mode,
                           const struct graph *graph)
{
    double largest = 0;
    for (int32_t i = 0; i < graph->n_values; i++)
        if (graph->values[i].kind == VALUE_PARAMETER)
            largest = fmax(largest, (double)zoo_golden_find(golden, graph->values[i].name,
                                                            &graph->values[i].shape)
                                        ->norm[mode]);
    return largest;
}

static struct errors judge(const struct zoo_golden *golden, enum zoo_mode mode,
                           const struct space_result *result)
{
    const struct graph *graph = result->graph;
    const float *gradient = result->gradients;
    struct errors e = { 0, 0, 0 };
    double floor = (mode == ZOO_TRAIN ? 1e-3 : 1e-6) * largest_norm(golden, mode, graph);
    int n = 1, n_statistics = 0;
    double error = error_of(golden, mode, "input input", graph_shape(graph, graph->inputs[0].value),
                            result->input_gradient, floor);
    e.gradients = error * error;
    for (int32_t i = 0; i < graph->n_values; i++) {
        const struct value *v = &graph->values[i];
        if (v->kind == VALUE_PARAMETER) {
            error = error_of(golden, mode, v->name, &v->shape, gradient, floor);
            gradient += shape_count(&v->shape);
            e.gradients += error * error, n++;
        } else if (v->kind == VALUE_BUFFER && mode == ZOO_TRAIN) {
            error = error_of(golden, mode, v->name, &v->shape, graph_data(graph, i), 0);
            e.statistics += error * error, n_statistics++;
        }
    }
    e.gradients = sqrt(e.gradients / n);
    e.statistics = sqrt(e.statistics / (n_statistics ? n_statistics : 1));
    char *name = text_format("output %s", graph->outputs[0].name);
    e.outputs = error_of(golden, mode, name, graph_shape(graph, graph->outputs[0].value),
                         result->outputs[0], 0);
    free(name);
    return e;
}

static struct errors run(const struct zoo_golden *golden, struct network *network, int rows,
                         int columns, enum space_fault fault)
{
    struct space_job job = { .build = build,
                             .arg = network,
                             .rows = rows,
                             .columns = columns,
                             .frozen = network->mode == ZOO_EVAL,
                             .outputs = network->mode == ZOO_EVAL ? 1 : 0,
                             .fault = fault };
    struct space_result result = { 0 };
    space_parts_run(&job, &result);
    struct errors e = judge(golden, network->mode, &result);
    space_result_free(&result);
    return e;
}

/* The reference has the precision of a float: 6e-8. */
static bool is_as_exact(struct errors e, struct errors plain)
{
    return e.gradients <= TIMES * plain.gradients && e.outputs <= TIMES * plain.outputs + 1e-6 &&
           e.statistics <= TIMES * plain.statistics + 1e-7;
}

/* These are broken too. */
static bool is_quick(const struct zoo_case *zoo_case)
{
    return strcmp(zoo_case->name, "resnet18") == 0 || strcmp(zoo_case->name, "resnet110_v2") == 0;
}

static void parts_are_as_exact_as_the_whole(void **state)
{
    static const int grids[][2] = { { 1, 2 }, { 2, 1 }, { 2, 2 } };
    const struct zoo_case *zoo_case = *state;
    struct zoo_golden golden;
    char *folder = source_path("tests/golden/zoo");
    int wrong = 0;
    assert_true(zoo_golden_read(&golden, folder, NULL, zoo_case->name));
    for (enum zoo_mode mode = ZOO_EVAL; mode < ZOO_MODES; mode++) {
        struct graph *filled = new_graph(zoo_case);
        assert_non_null(filled);
        zoo_fill_parameters(filled, zoo_case->gain, mode == ZOO_TRAIN);
        struct network network = { zoo_case, mode, filled };
        struct errors plain = run(&golden, &network, 1, 1, FAULT_NONE);
        for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
            struct errors e = run(&golden, &network, grids[i][0], grids[i][1], FAULT_NONE);
            print_message("%-16s %-6s %d x %d: gradients %.2e (whole %.2e), outputs %.1e (%.1e), "
                          "statistics %.1e (%.1e)\n",
                          zoo_case->name, mode == ZOO_EVAL ? "frozen" : "synced", grids[i][0],
                          grids[i][1], e.gradients, plain.gradients, e.outputs, plain.outputs,
                          e.statistics, plain.statistics);
            wrong += !is_as_exact(e, plain);
        }
        for (enum space_fault fault = FAULT_DETACHED; is_quick(zoo_case) && fault <= FAULT_SMALL;
             fault++) {
            struct errors e = run(&golden, &network, 2, 2, fault);
            print_message("%-16s %s: gradients %.2e\n", zoo_case->name,
                          fault == FAULT_SMALL ? "small halo" : "detached", e.gradients);
            assert_false(is_as_exact(e, plain));
        }
        graph_free(filled);
    }
    zoo_golden_free(&golden);
    free(folder);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "resnet18",  "resnet50",    "resnet110_v2",
                                         "googlenet", "densenet121", "segment_unet",
                                         NULL };
    char *folder = source_path("tests/golden/zoo");
    struct zoo_case *cases = NULL;
    size_t n = zoo_cases(folder, &cases), wanted = 0;
    struct CMUnitTest *tests = calloc(n + 1, sizeof *tests);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; argc < 2 ? names[k] != NULL : k < argc - 1; k++)
            if (strcmp(argc < 2 ? names[k] : argv[1 + k], cases[i].name) == 0)
                tests[wanted++] = (struct CMUnitTest){ .name = cases[i].name,
                                                       .test_func = parts_are_as_exact_as_the_whole,
                                                       .initial_state = &cases[i] };
    int failures = wanted ? _cmocka_run_group_tests("space", tests, wanted, NULL, NULL) : 1;
    free(tests), free(cases), free(folder);
    return failures;
}
