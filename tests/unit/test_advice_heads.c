/* test_advice_heads.c: advice on grids where attention heads are divided, for a ViT whose layers
 * are counted: which grids there are, what sums take on paper, how work and memory are divided,
 * limits, what the user fixes; none for other networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/zoo/zoo.h"
#include "parallel/advice.h"

#define BLOCKS 12
#define WIDTH 384
#define TOKENS 5 /* of 64 px in patches of 32, and the class */

struct task {
    struct graph *graph;
    struct node_cost *costs;
    struct advice_request request;
};

/* On connections that take no time. */
static void task_new(struct task *task, const char *network, int ranks, int64_t images)
{
    struct err err = { 0 };
    struct zoo_options options = { .height = 64, .width = 64, .classes = 2 };
    assert_true(zoo_build(network, &options, &task->graph, &err));
    assert_true(graph_allocate(task->graph, &err));
    task->costs = calloc((size_t)task->graph->n_nodes, sizeof *task->costs);
    assert_non_null(task->costs);
    assert_true(costs_count(task->graph, task->costs, &err));
    task->request = (struct advice_request){ .graph = task->graph,
                                             .costs = task->costs,
                                             .ranks = ranks,
                                             .step_images = images,
                                             .optimizer_arrays = 2,
                                             .wire = { 1e-12, 1e18 },
                                             .schedule = -1,
                                             .recompute = -1 };
}

static void task_free(struct task *task)
{
    graph_free(task->graph);
    free(task->costs);
}

static struct advice ask(const struct task *task)
{
    struct advice advice;
    struct err err = { 0 };
    if (!advise(&task->request, &advice, &err))
        fail_msg("%s", err.text);
    return advice;
}

static void near(double value, double wanted, double tolerance)
{
    if (!(fabs(value - wanted) <= tolerance * wanted))
        fail_msg("%.9g instead of %.9g", value, wanted);
}

/* Without stages. */
static const struct advice_choice *find(const struct advice *advice, int heads, int64_t micros)
{
    for (int i = 0; i < advice->n; i++) {
        const struct advice_choice *c = &advice->choices[i];
        if (c->stages == 1 && c->heads == heads && c->micros == micros)
            return c;
    }
    fail_msg("no choice of heads %d, %d micro-batches", heads, (int)micros);
    return NULL;
}

/* Six heads: 2, 3 and 6 of 12 ranks divide them, 4 and 12 do not. */
static void grids(void **state)
{
    (void)state;
    struct task task;
    task_new(&task, "vit_small_patch32_224", 12, 24);
    struct advice advice = ask(&task);
    bool seen[13] = { false };
    for (int i = 0; i < advice.n; i++) {
        const struct advice_choice *c = &advice.choices[i];
        assert_int_equal(c->data * c->stages * c->heads, 12);
        assert_int_equal(c->data * c->micros * c->micro_batch, 24);
        assert_true(c->stages == 1 || c->heads == 1);
        seen[c->heads] = true;
    }
    for (int heads = 1; heads <= 12; heads++)
        assert_int_equal(seen[heads], heads == 1 || heads == 2 || heads == 3 || heads == 6);
    advice_free(&advice);
    task_free(&task);

    task_new(&task, "resnet18", 4, 8);
    advice = ask(&task);
    for (int i = 0; i < advice.n; i++)
        assert_int_equal(advice.choices[i].heads, 1);
    char words[160];
    advice_heads_words(&advice, words, sizeof words);
    assert_string_equal(words, "");
    advice_free(&advice);
    task_free(&task);
}

/* Four sums in a block, and one of the gradients over two copies. */
static void sums_on_paper(void **state)
{
    (void)state;
    struct task task;
    task_new(&task, "vit_small_patch32_224", 4, 8);
    struct advice free_wire = ask(&task);
    task.request.wire.latency_s = 1;
    struct advice late = ask(&task);
    for (int64_t micros = 1; micros <= 4; micros *= 2)
        near(find(&late, 2, micros)->seconds - find(&free_wire, 2, micros)->seconds,
             2.0 * (4 * BLOCKS * (double)micros + 1), 1e-6);
    advice_free(&late);

    double bytes = 4.0 * TOKENS * WIDTH * 4 * BLOCKS * 4; /* of four images */
    task.request.wire = (struct wire){ 1e-12, 1 };
    task.request.heads = 2;
    task.request.ranks = 2; /* one copy has no gradients to sum */
    task.request.step_images = 4;
    struct advice slow = ask(&task);
    const struct advice_choice *c = find(&slow, 2, 1);
    near(c->seconds, bytes, 1e-4);
    near(c->sums, 1, 1e-4);
    assert_int_equal(slow.choices[0].heads, 2);
    advice_free(&slow);
    advice_free(&free_wire);
    task_free(&task);
}

/* Of 60 more images in a step, that is without the optimizer's step. What is not divided is done
 * for the images of both ranks: a little longer than two copies. */
static void work(void **state)
{
    (void)state;
    struct task task;
    double seconds[2] = { 0 };
    task_new(&task, "vit_small_patch32_224", 2, 64);
    for (int more = 1; more >= 0; more--) {
        task.request.step_images = more ? 64 : 4;
        struct advice advice = ask(&task);
        for (int heads = 1; heads <= 2; heads++)
            seconds[heads - 1] += (more ? 1 : -1) * find(&advice, heads, 1)->seconds;
        assert_true(find(&advice, 2, 1)->sums < 1e-3);
        advice_free(&advice);
    }
    assert_true(seconds[1] > 1.01 * seconds[0] && seconds[1] < 1.2 * seconds[0]);
    task_free(&task);
}

static void words_of(const struct task *task, const char *wanted, int heads)
{
    struct advice advice = ask(task);
    char words[160];
    assert_int_equal(advice.choices[0].heads, heads);
    advice_heads_words(&advice, words, sizeof words);
    if (!strstr(words, wanted))
        fail_msg("%s", words);
    advice_free(&advice);
}

/* A limit below what stages and copies take leaves heads. */
static void memory(void **state)
{
    (void)state;
    struct task task;
    task_new(&task, "vit_small_patch32_224", 2, 4);
    task.request.wire = (struct wire){ 1e-2, 1e9 };
    struct advice advice = ask(&task);
    size_t heads = find(&advice, 2, 4)->peak, others = SIZE_MAX;
    for (int i = 0; i < advice.n; i++)
        if (advice.choices[i].heads == 1 && advice.choices[i].peak < others)
            others = advice.choices[i].peak;
    double whole = 4.0 * (double)graph_parameter_count(task.graph);
    assert_true((double)heads > 0.5 * 4 * whole && (double)heads < 0.6 * 4 * whole);
    assert_true(heads < others);
    advice_free(&advice);
    words_of(&task, "data 1 x heads 2 would take ", 1);
    task.request.memory = (heads + others) / 2;
    words_of(&task, "the whole network on every rank needs 3", 2);
    task_free(&task);
}

static void refused(const struct task *task, const char *wanted)
{
    struct advice advice;
    struct err err = { 0 };
    assert_false(advise(&task->request, &advice, &err));
    if (!strstr(err.text, wanted))
        fail_msg("%s", err.text);
}

static void fixed_by_the_user(void **state)
{
    (void)state;
    struct task task;
    task_new(&task, "vit_small_patch32_224", 4, 8);
    task.request.heads = 2;
    struct advice advice = ask(&task);
    for (int i = 0; i < advice.n; i++)
        assert_int_equal(advice.choices[i].heads, 2);
    advice_free(&advice);
    task.request.data = 4;
    refused(&task, "parallel: data 4 x heads 2 does not make 4 ranks");
    task.request.data = 0;
    task.request.heads = 4;
    refused(&task, "6 heads cannot be divided among 4 ranks");
    task.request.heads = 3;
    refused(&task, "parallel.heads: 3: 4 ranks are not a multiple of it");
    task.request.heads = 1;
    advice = ask(&task);
    for (int i = 0; i < advice.n; i++)
        assert_int_equal(advice.choices[i].heads, 1);
    advice_free(&advice);
    task_free(&task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grids),  cmocka_unit_test(sums_on_paper),     cmocka_unit_test(work),
        cmocka_unit_test(memory), cmocka_unit_test(fixed_by_the_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
