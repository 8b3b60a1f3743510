/* test_zoo_layers.c: a layer of the zoo is the module of the same name in torchvision: its output
 * against PyTorch's on the same weights, by checksums from tests/golden/zoo/layers.txt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "net/plan/plan.h"
#include "support/paths.h"
#include "support/zoo_golden.h"

enum { CASES = 15 }; /* of cases.txt with layers in layers.txt */

static char *golden;           /* layers.txt */
static struct zoo_case *cases; /* cases.txt */
static size_t n_cases;

/* The network with all its layers as outputs, after a forward pass. */
static struct plan *run(struct graph *graph)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    for (int i = 0; i < graph->n_aliases; i++)
        if (graph_output(graph, graph->aliases[i].name, graph->aliases[i].value) == NO_VALUE)
            fail_msg("%s", graph->err.text);
    if (!plan_new(graph, &(struct plan_options){ .mode = PLAN_INFER, .threads = 1 }, &plan, &err))
        fail_msg("%s", err.text);
    int64_t n = shape_count(graph_shape(graph, graph->inputs[0].value));
    uint64_t stream = zoo_stream("", graph->inputs[0].name);
    for (int64_t i = 0; i < n; i++)
        plan_input(plan, 0)[i] = (float)zoo_number(stream, i);
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

/* The line of a layer in layers.txt; false if there is none. */
static bool find_line(const char *name, const char *layer, int64_t *count, double *norm,
                      double *dot)
{
    char case_name[40], layer_name[80], shape[80];
    for (const char *line = golden; line && *line; line = strchr(line, '\n') + 1) {
        if (sscanf(line, "%39s %79s %79s %lf %lf", case_name, layer_name, shape, norm, dot) != 5)
            fail_msg("layers.txt: %.60s", line);
        if (strcmp(case_name, name) != 0 || strcmp(layer_name, layer) != 0)
            continue;
        *count = 1;
        for (char *at = shape; *at; at += *at == 'x')
            *count *= strtoll(at, &at, 10);
        return true;
    }
    return false;
}

static void layers_are_torchvisions_modules(void **state)
{
    const struct zoo_case *c = *state;
    struct err err = { 0 };
    struct graph *graph = NULL;
    int compared = 0;
    struct zoo_options options = c->options;
    options.auxiliary = false; /* in eval mode torchvision's heads give nothing */
    if (!zoo_build(c->network, &options, &graph, &err) || !graph_allocate(graph, &err))
        fail_msg("%s", err.text);
    zoo_fill_parameters(graph, c->gain, false);
    struct plan *plan = run(graph);
    for (int i = 0; i < graph->n_aliases; i++) {
        const char *layer = graph->aliases[i].name;
        int64_t count = shape_count(graph_shape(graph, graph->aliases[i].value)), wanted = 0;
        double norm = 0, dot = 0, squares = 0, ours = 0;
        if (!find_line(c->name, layer, &wanted, &norm, &dot))
            continue;
        assert_int_equal(count, wanted);
        const float *y = plan_output(plan, graph->n_outputs - graph->n_aliases + i);
        uint64_t stream = zoo_stream("dot:", layer);
        for (int64_t k = 0; k < count; k++)
            squares += (double)y[k] * (double)y[k], ours += (double)y[k] * zoo_number(stream, k);
        if (!(fabs(sqrt(squares) - norm) <= 1e-4 * norm && fabs(ours - dot) <= 1e-4 * norm))
            fail_msg("%s: %s: norm %g, not %g; dot product %g, not %g", c->name, layer,
                     sqrt(squares), norm, ours, dot);
        compared++;
    }
    assert_true(compared >= graph->n_aliases - 3); /* a few are no modules in models.py */
    plan_free(plan);
    graph_free(graph);
}

int main(void)
{
    char *folder = source_path("tests/golden/zoo"),
         *path = source_path("tests/golden/zoo/layers.txt");
    struct CMUnitTest tests[CASES];
    size_t n = 0, size = 0;
    n_cases = zoo_cases(folder, &cases);
    if (!file_read(path, (size_t)1 << 20, &golden, &size, NULL) || !n_cases)
        return 1;
    for (size_t i = 0; i < n_cases && n < CASES; i++) {
        int64_t count;
        double norm, dot;
        if (find_line(cases[i].name, "fc", &count, &norm, &dot) ||
            find_line(cases[i].name, "features", &count, &norm, &dot) ||
            find_line(cases[i].name, "classif", &count, &norm, &dot))
            tests[n++] = (struct CMUnitTest){ .name = cases[i].name,
                                              .test_func = layers_are_torchvisions_modules,
                                              .initial_state = &cases[i] };
    }
    int failures = n < CASES ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
    free(folder), free(path), free(golden), free(cases);
    return failures;
}
