/* test_zoo_scan.c: the scan networks run densely give the scores of the sliding window, at every
 * stride that is a power of two; networks with padding do not, and are distinguished. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/plan/plan.h"
#include "net/graph/transform.h"
#include "support/zoo_golden.h"

enum { WINDOW = 224, CLASSES = 3 };

static struct graph *build(const char *name)
{
    struct graph *graph = NULL;
    struct err err = { 0 };
    if (!zoo_build(name, &(struct zoo_options){ .classes = CLASSES }, &graph, &err) ||
        !graph_allocate(graph, &err))
        fail_msg("%s", err.text);
    zoo_fill_parameters(graph, 1.2, false);
    return graph;
}

static struct plan *make_plan(const struct graph *graph)
{
    struct plan *plan = NULL;
    struct err err = { 0 };
    if (!plan_new(graph, &(struct plan_options){ .mode = PLAN_INFER, .threads = 1 }, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static void forward(struct plan *plan)
{
    struct err err = { 0 };
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
}

/* image [3, height, width] -> the window at (y, x) into the plan's input */
static void cut_window(struct plan *plan, const float *image, int64_t height, int64_t width,
                       int64_t y, int64_t x)
{
    float *input = plan_input(plan, 0);
    for (int64_t c = 0; c < 3; c++)
        for (int64_t row = 0; row < WINDOW; row++)
            memcpy(input + (c * WINDOW + row) * WINDOW, image + (c * height + y + row) * width + x,
                   WINDOW * sizeof *input);
}

/* The largest difference of dense and window scores at the corners and the middle of the grid,
 * relative to the largest score. */
static double largest_difference(const char *network, int64_t stride, int64_t height, int64_t width)
{
    struct graph *graph = build(network), *dense = NULL;
    struct err err = { 0 };
    if (!transform_dense(graph, &(struct dense_spec){ WINDOW, stride, height, width }, &dense,
                         &err))
        fail_msg("%s", err.text);
    int64_t rows = (height - WINDOW) / stride + 1, columns = (width - WINDOW) / stride + 1;
    assert_true(shape_equal(graph_shape(dense, dense->outputs[0].value),
                            &SHAPE(1, CLASSES, rows, columns)));
    struct plan *whole = make_plan(dense), *window = make_plan(graph);
    float *image = plan_input(whole, 0);
    uint64_t stream = zoo_stream("", "slide");
    for (int64_t i = 0; i < 3 * height * width; i++)
        image[i] = (float)zoo_number(stream, i);
    forward(whole);
    const float *scores = plan_output(whole, 0);
    double difference = 0, largest = 0;
    int64_t some_rows[3] = { 0, rows / 2, rows - 1 },
            some_columns[3] = { 0, columns / 2, columns - 1 };
    for (int k = 0; k < 9; k++) {
        int64_t row = some_rows[k / 3], column = some_columns[k % 3];
        cut_window(window, image, height, width, row * stride, column * stride);
        forward(window);
        for (int64_t c = 0; c < CLASSES; c++) {
            double score = (double)plan_output(window, 0)[c];
            double dense_score = (double)scores[(c * rows + row) * columns + column];
            difference = fmax(difference, fabs(dense_score - score));
            largest = fmax(largest, fabs(score));
        }
    }
    plan_free(whole), plan_free(window);
    graph_free(dense), graph_free(graph);
    return difference / largest;
}

static void dense_equals_window(void **state)
{
    (void)state;
    static const struct {
        const char *network;
        int64_t stride, height, width;
    } runs[] = { { "scan_tiny", 16, 288, 272 }, { "scan_tiny", 8, 256, 248 },
                 { "scan_tiny", 4, 240, 236 },  { "scan_tiny", 2, 230, 229 },
                 { "scan_tiny", 1, 227, 226 },  { "scan_small", 16, 256, 272 },
                 { "scan_small", 4, 235, 232 }, { "scan_small", 1, 226, 225 },
                 { "scan_base", 16, 257, 241 }, { "scan_base", 8, 240, 232 } };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        double difference =
            largest_difference(runs[i].network, runs[i].stride, runs[i].height, runs[i].width);
        print_message("%s at stride %d: %.1e\n", runs[i].network, (int)runs[i].stride, difference);
        assert_true(difference < 1e-5);
    }
}

static void fields_are_as_designed(void **state)
{
    (void)state;
    static const struct {
        const char *network;
        int64_t receptive_px;
    } scans[] = { { "scan_tiny", 144 }, { "scan_small", 192 }, { "scan_base", 208 } };
    for (size_t i = 0; i < 3; i++) {
        struct graph *graph = build(scans[i].network);
        struct field field;
        struct err err = { 0 };
        value_id map = NO_VALUE;
        for (int32_t k = 0; k < graph->n_nodes; k++)
            if (graph->nodes[k].op->kind == OP_GLOBAL_AVERAGE_POOL)
                map = graph->nodes[k].inputs[0];
        assert_true(transform_field(graph, map, WINDOW, &field, &err));
        assert_int_equal(field.receptive_px, scans[i].receptive_px);
        assert_int_equal(field.stride_px, 16);
        assert_false(field.padded);
        assert_true(transform_field(graph, graph->outputs[0].value, WINDOW, &field, &err));
        assert_true(field.exact);
        graph_free(graph);
    }
}

/* What the table says of every network is what its graph says. */
static void the_table_tells_the_truth(void **state)
{
    (void)state;
    size_t n;
    const struct zoo_network *networks = zoo_networks(&n);
    for (size_t i = 0; i < n; i++) {
        if (networks[i].input != ZOO_IMAGE)
            continue;
        struct graph *graph = NULL;
        struct field field;
        struct err err = { 0 };
        assert_true(zoo_build(networks[i].name, NULL, &graph, &err));
        assert_true(
            transform_field(graph, graph->outputs[0].value, networks[i].side, &field, &err));
        assert_int_equal(field.exact, networks[i].dense_exact);
        graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_equals_window),
        cmocka_unit_test(fields_are_as_designed),
        cmocka_unit_test(the_table_tells_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
