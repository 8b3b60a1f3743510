/* test_advice.c: advice on grids and schedules for a small network with costs given by hand: every
 * grid that divides the ranks, memory and time of choices on paper, limits, what the user fixes,
 * order, and the chart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "parallel/advice.h"
#include "support/paths.h"

#define LAYERS 8
#define KEPT ((size_t)1000000)

struct task {
    struct graph *graph;
    struct node_cost costs[LAYERS];
    struct advice_request request;
};

/* Eight equal layers; a forward pass of the whole takes 8 s. */
static void task_new(struct task *task, int ranks, int64_t images)
{
    struct err err = { 0 };
    memset(task, 0, sizeof *task);
    struct graph *g = task->graph = graph_new("eight");
    value_id x = graph_input(g, "input", SHAPE(1, 4, 16, 16));
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "conv%d", i);
        x = graph_conv(g, x, name, 4, false, conv_square(1, 1, 0));
        task->costs[i] =
            (struct node_cost){ .forward_s = 1, .backward_s = 2, .weights_s = 1, .kept = KEPT };
    }
    graph_output(g, "y", x);
    assert_true(graph_ok(g, &err));
    assert_int_equal(g->n_nodes, LAYERS);
    task->request = (struct advice_request){ .graph = g,
                                             .costs = task->costs,
                                             .ranks = ranks,
                                             .step_images = images,
                                             .optimizer_arrays = 1,
                                             .wire = { 1e-9, 1e15 },
                                             .schedule = -1,
                                             .recompute = -1 };
}

static struct advice ask(const struct task *task)
{
    struct advice advice;
    struct err err = { 0 };
    if (!advise(&task->request, &advice, &err))
        fail_msg("%s", err.text);
    return advice;
}

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-4 * wanted))
        fail_msg("%.9g instead of %.9g", value, wanted);
}

static const struct advice_choice *find(const struct advice *advice, int stages,
                                        enum program_kind schedule, bool recompute, int64_t micros)
{
    for (int i = 0; i < advice->n; i++) {
        const struct advice_choice *c = &advice->choices[i];
        if (c->stages == stages && c->schedule == schedule && c->recompute == recompute &&
            c->micros == micros)
            return c;
    }
    fail_msg("no choice of %d stages, %s, %d micro-batches", stages, program_names[schedule],
             (int)micros);
    return NULL;
}

static void all_grids(void **state)
{
    (void)state;
    struct task task;
    task_new(&task, 8, 32);
    struct advice advice = ask(&task);
    bool seen[9] = { false };
    for (int i = 0; i < advice.n; i++) {
        const struct advice_choice *c = &advice.choices[i];
        assert_int_equal(c->data * c->stages, 8);
        assert_int_equal(c->micros * c->micro_batch * c->data, 32);
        assert_true(c->fits);
        assert_int_equal(c->begin[0], 0);
        assert_int_equal(c->begin[c->stages], LAYERS);
        assert_true(i == 0 || c->seconds > advice.choices[i - 1].seconds * (1 - 2e-6));
        seen[c->stages] = true;
    }
    assert_true(seen[1] && seen[2] && seen[4] && seen[8]);
    assert_false(seen[3]);
    assert_int_equal(advice.n_fit, advice.n);
    assert_int_equal(advice.choices[0].stages, 1); /* without a limit nothing beats replicas */
    near(advice.choices[0].seconds, 4 * 24);
    near(find(&advice, 4, PROGRAM_BASIC, false, 16)->seconds, 16 * 24);
    near(find(&advice, 4, PROGRAM_GPIPE, false, 16)->seconds, 6.0 * (16 + 3));
    near(find(&advice, 4, PROGRAM_1F1B, false, 16)->seconds, 6.0 * (16 + 3));
    near(find(&advice, 4, PROGRAM_ZB_H1, false, 16)->seconds, 6.0 * 16 + 3 * 2);
    near(find(&advice, 4, PROGRAM_MASTER, false, 16)->seconds,
         2.0 * (5 * 4 + 1) + 7 * 2.0 * (4 * 4 + 2));
    near(find(&advice, 4, PROGRAM_MAST, false, 2)->seconds, 8 * 2.0 * (5 * 4 + 1));
    advice_free(&advice);
    graph_free(task.graph);
}

/* All weights, and gradients, one array of the optimizer and activations of its stages: besides
 * what its layers keep, those are its input, its output with the gradient, and what it received. */
static void memory_of_a_rank(void **state)
{
    (void)state;
    struct task task;
    task_new(&task, 4, 16);
    task.request.besides = 12345;
    struct advice advice = ask(&task);
    const size_t layer = 16 * sizeof(float), all = LAYERS * layer, map = 4 * 16 * 16 * 4;
    const size_t first = 2 * KEPT + 3 * map, middle = 2 * KEPT + 4 * map;
    const size_t each = 12345 + all + 2 * 2 * layer;
    assert_int_equal(find(&advice, 1, PROGRAM_BASIC, false, 4)->peak,
                     12345 + 3 * all + LAYERS * KEPT + 3 * map + map);
    /* the middle ranks: a neighbour on either side, four messages from and to each */
    assert_int_equal(find(&advice, 4, PROGRAM_BASIC, false, 16)->peak, each + middle + 8 * map);
    /* stages of both copies */
    assert_int_equal(find(&advice, 4, PROGRAM_MASTER, false, 16)->peak,
                     each + 2 * 2 * layer + middle + 8 * map);
    /* the first rank keeps four; with recomputation the second needs most, with three inputs */
    assert_int_equal(find(&advice, 4, PROGRAM_1F1B, false, 16)->peak, each + 4 * first + 5 * map);
    assert_int_equal(find(&advice, 4, PROGRAM_1F1B, true, 16)->peak,
                     each + middle + 3 * map + 8 * map);
    assert_int_equal(find(&advice, 4, PROGRAM_1F1B, true, 8)->peak,
                     each + 2 * (middle + 3 * map + 8 * map));
    advice_free(&advice);
    graph_free(task.graph);
}

/* What fits is first, by time; the rest by memory; nothing at all is an error with the least. */
static void limits(void **state)
{
    (void)state;
    struct task task;
    struct err err = { 0 };
    task_new(&task, 4, 16);
    task.request.micro_batch = 1;
    task.request.memory = (size_t)2.5e6;
    struct advice advice = ask(&task);
    const struct advice_choice *first = &advice.choices[0];
    assert_int_equal(first->stages, 4);
    assert_int_equal(first->schedule, PROGRAM_1F1B);
    assert_true(first->recompute && first->fits && first->peak <= task.request.memory);
    assert_true(advice.n_fit > 1 && advice.n_fit < advice.n);
    for (int i = 1; i < advice.n; i++) {
        const struct advice_choice *a = &advice.choices[i - 1], *b = &advice.choices[i];
        assert_true(a->fits >= b->fits);
        if (a->fits && b->fits)
            assert_true(a->seconds <= b->seconds * (1 + 2e-6));
        else if (!a->fits)
            assert_true(a->peak <= b->peak);
    }
    assert_true(advice_fits(&task.request, &advice, &err));
    advice_free(&advice);

    task.request.memory = (size_t)1e6;
    advice = ask(&task);
    assert_int_equal(advice.n_fit, 0);
    assert_false(advice_fits(&task.request, &advice, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "eight: nothing fits into 1 MB a rank on 4 ranks; the least "
                                     "is 3 MB (data 1 x stages 4, basic, 16 micro-batches of 1)"));
    advice_free(&advice);
    graph_free(task.graph);
}

static void fixed_by_the_user(void **state)
{
    (void)state;
    struct task task;
    struct err err = { 0 };
    task_new(&task, 8, 32);
    task.request.stages = 4;
    task.request.schedule = PROGRAM_MASTER;
    task.request.times = 2;
    struct advice advice = ask(&task);
    assert_int_equal(advice.n, 1);
    assert_int_equal(advice.choices[0].data, 2);
    assert_int_equal(advice.choices[0].micros, 4);
    assert_int_equal(advice.choices[0].micro_batch, 4);
    advice_free(&advice);

    task.request.micro_batch = 2; /* 8 micro-batches are not two pairs */
    assert_false(advise(&task.request, &advice, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "32 patches in a step on 8 ranks cannot be divided"));
    task.request.times = 0, task.request.schedule = -1, task.request.recompute = 1;
    advice = ask(&task);
    for (int i = 0; i < advice.n; i++)
        assert_true(advice.choices[i].recompute || advice.choices[i].schedule <= PROGRAM_MASTER);
    advice_free(&advice);

    task.request.stages = 3;
    assert_false(advise(&task.request, &advice, &err));
    assert_string_equal(err.text, "parallel.stages: 3: 8 ranks are not a multiple of it");
    task.request.stages = 4, task.request.data = 4;
    assert_false(advise(&task.request, &advice, &err));
    assert_string_equal(err.text, "parallel: data 4 x stages 4 does not make 8 ranks");
    task.request.ranks = 16, task.request.stages = 16, task.request.data = 1;
    assert_false(advise(&task.request, &advice, &err)); /* more stages than layers */
    assert_int_equal(err.kind, ERR_USAGE);
    graph_free(task.graph);
}

/* Replicas on one machine share its processors: on one, all ways take the sum of all work. */
static void one_processor(void **state)
{
    (void)state;
    struct task task;
    task_new(&task, 4, 8);
    task.request.micro_batch = 1;
    task.request.ranks_a_machine = 4, task.request.cores = 1, task.request.threads = 1;
    struct advice advice = ask(&task);
    near(find(&advice, 1, PROGRAM_BASIC, false, 2)->seconds, 8 * 24);
    near(find(&advice, 4, PROGRAM_BASIC, false, 8)->seconds, 8 * 24);
    near(find(&advice, 2, PROGRAM_BASIC, false, 4)->seconds, 8 * 24);
    advice_free(&advice);
    graph_free(task.graph);
}

static void chart(void **state)
{
    (void)state;
    struct task task;
    struct err err = { 0 };
    task_new(&task, 8, 32);
    task.request.micro_batch = 1;
    struct advice advice = ask(&task);
    char *svg = scratch_path("advice.svg"), *png = scratch_path("advice.png");
    const struct advice_choice *choice = find(&advice, 4, PROGRAM_MASTER, false, 16);
    assert_true(advice_chart(&task.request, choice, svg, png, &err));
    assert_true(file_exists(png));
    char *text = NULL;
    size_t size;
    assert_true(file_read(svg, 1 << 22, &text, &size, &err));
    assert_non_null(strstr(text, "eight: data 2 x stages 4, master, 16 micro-batches of 1"));
    assert_non_null(strstr(text, "one replica is shown"));
    assert_non_null(strstr(text, "second copy of the network"));
    assert_non_null(strstr(text, "rank 3"));
    assert_null(strstr(text, "rank 4"));
    assert_null(strstr(text, "forward again"));
    assert_false(advice_chart(&task.request, choice, "/nonexistent/a.svg", NULL, &err));
    free(text), free(svg), free(png);
    advice_free(&advice);
    graph_free(task.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_grids),     cmocka_unit_test(memory_of_a_rank),
        cmocka_unit_test(limits),        cmocka_unit_test(fixed_by_the_user),
        cmocka_unit_test(one_processor), cmocka_unit_test(chart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
