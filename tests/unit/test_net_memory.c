/* test_net_memory.c: the memory of training plans: lent by the caller, activations and gradients,
 * whatever was in it; and known before it is allocated, so that a budget costs no kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <dnnl.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/graph/transform.h"
#include "net/plan/execution.h"
#include "net/plan/tape.h"
#include "net/zoo/zoo.h"

/* --- counts the kernels that oneDNN makes: this function is found before the library's --- */

static int made;

dnnl_status_t dnnl_primitive_create(dnnl_primitive_t *primitive, const_dnnl_primitive_desc_t pd)
{
    typedef dnnl_status_t (*create)(dnnl_primitive_t *, const_dnnl_primitive_desc_t);
    static create real;
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "dnnl_primitive_create");
        memcpy(&real, &found, sizeof real);
    }
    made++;
    return real(primitive, pd);
}

/* --- */

static struct graph *network(const char *name, int64_t side, int64_t batch)
{
    struct err err = { 0 };
    struct graph *g = NULL;
    struct zoo_options zoo = { .batch = batch, .height = side, .width = side, .classes = 3 };
    if (!zoo_build(name, &zoo, &g, &err) || !graph_initialize(g, 3, &err))
        fail_msg("%s: %s", name, err.text);
    return g;
}

static struct plan *plan_of(const struct graph *g, struct plan_options options)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    options.threads = 1;
    if (!plan_new(g, &options, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static void fill(float *at, int64_t count, uint64_t stream)
{
    struct rng rng = rng_new(5, stream, 0);
    for (int64_t i = 0; i < count; i++)
        at[i] = (float)rng_between(&rng, -1, 1);
}

static void train_step(struct plan *plan, const struct graph *g, uint64_t stream)
{
    struct err err = { 0 };
    for (int i = 0; i < g->n_inputs; i++)
        fill(plan_input(plan, i), shape_count(graph_shape(g, g->inputs[i].value)), stream);
    if (!plan_forward(plan, &err))
        fail_msg("%s", err.text);
    fill(plan_output_gradient(plan, 0), shape_count(graph_shape(g, g->outputs[0].value)),
         stream + 1);
    if (!plan_backward(plan, &err))
        fail_msg("%s", err.text);
}

static void *dirty(size_t bytes)
{
    void *at = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(at);
    memset(at, 0xff, bytes); /* floats: no number */
    return at;
}

struct lending {
    const char *network;
    int64_t side;
    enum plan_saving saving;
    bool per_sample;
};

/* The same bits as in the plan's own memory, which is zeroed. */
static void compare_lent(const struct lending *l)
{
    struct graph *g = network(l->network, l->side, 2);
    struct plan_options options = { .mode = l->per_sample ? PLAN_TUNE : PLAN_TRAIN,
                                    .saving = l->saving,
                                    .per_sample = l->per_sample };
    struct plan *own = plan_of(g, options);
    struct plan_memory needs = plan_memory(own);
    int64_t n;
    assert_false(needs.lent || needs.gradients_lent);
    options.arena_room = needs.arena;
    char *arena = options.arena = dirty(needs.arena);
    float *sums = options.gradients = calloc(1, needs.gradients);
    struct plan *lent = plan_of(g, options);
    struct plan_memory got = plan_memory(lent);
    assert_true(got.lent && got.gradients_lent);
    assert_int_equal(got.arena, needs.arena);
    assert_true(arena[0] == -1 && memcmp(arena, arena + 1, needs.arena - 1) == 0); /* untouched */
    assert_true((char *)plan_input(lent, 0) >= arena &&
                (char *)plan_input(lent, 0) < arena + needs.arena);
    for (uint64_t step = 0; step < 2; step++)
        train_step(own, g, 10 * step);
    for (uint64_t step = 0; step < 2; step++) {
        memset(arena, 0xff, needs.arena);
        train_step(lent, g, 10 * step);
    }
    assert_ptr_equal(plan_gradients(lent, &n), sums);
    assert_int_equal(n, graph_parameter_count(g));
    assert_memory_equal(sums, plan_gradients(own, &n), (size_t)n * sizeof *sums);
    plan_free(own), plan_free(lent);
    free(arena), free(sums);
    graph_free(g);
}

static void lent_memory_may_hold_anything(void **state)
{
    (void)state;
    static const struct lending cases[] = {
        { "resnet18", 64, SAVING_ALL, false },   { "resnet18", 64, SAVING_RECOMPUTE, false },
        { "resnet18", 64, SAVING_HALF, false },  { "densenet121", 64, SAVING_ALL, false },
        { "unet_small", 16, SAVING_ALL, false }, { "scan_tiny", 144, SAVING_RECOMPUTE, true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        compare_lent(&cases[i]);
}

/* Two plans of one graph, for two halves of a batch, in one arena and into one sum. */
static void plans_share_arena_and_gradients(void **state)
{
    (void)state;
    struct graph *g = network("scan_tiny", 144, 2);
    struct plan_options options = { .mode = PLAN_TUNE };
    struct plan *own = plan_of(g, options);
    struct plan_memory needs = plan_memory(own);
    int64_t n;
    options.arena_room = needs.arena, options.arena = dirty(needs.arena);
    options.gradients = calloc(1, needs.gradients);
    struct plan *a = plan_of(g, options), *b = plan_of(g, options);
    for (uint64_t k = 0; k < 4; k++) {
        train_step(own, g, 10 * k);
        train_step(k % 2 ? b : a, g, 10 * k);
    }
    assert_memory_equal(options.gradients, plan_gradients(own, &n), needs.gradients);
    assert_ptr_equal(plan_input(a, 0), plan_input(b, 0));
    options.arena_room--;
    struct plan *c = plan_of(g, options); /* too small: not used */
    assert_false(plan_memory(c).lent);
    plan_free(own), plan_free(a), plan_free(b), plan_free(c);
    free(options.arena), free(options.gradients);
    graph_free(g);
}

static float *parameter_gradient(struct plan *plan, const struct graph *g, const char *name,
                                 int64_t *n)
{
    value_id id = graph_find(g, name);
    if (id == NO_VALUE)
        return NULL;
    *n = shape_count(graph_shape(g, id));
    return plan_parameter_gradient(plan, id);
}

/* A network cut in two, one arena lent to both parts, the second one reading its input where the
 * first one wrote it: as executions that are made of parts work. The same bits as the whole. */
static void parts_of_a_network_train_as_the_whole(void **state)
{
    (void)state;
    struct graph *g = network("resnet18", 64, 2), *head = NULL, *tail = NULL;
    struct plan_options options = { .mode = PLAN_TUNE, .direct = true, .threads = 1 };
    struct err err = { 0 };
    struct plan *whole = plan_of(g, options), *first = NULL, *second = NULL;
    size_t room = 2 * plan_memory(whole).arena;
    assert_true(transform_cut(g, graph_find(g, "layer2"), &head, &tail, &err));
    assert_true(head->n_outputs == 1 && tail->n_inputs == 1);
    options.arena = dirty(room), options.arena_room = room;
    struct loan loan = loan_of(&options);
    assert_true(loan_plan(&loan, head, &options, &first, &err));
    options.input_gradients = true;
    assert_true(loan_plan(&loan, tail, &options, &second, &err));
    assert_true(plan_memory(first).lent && plan_memory(second).lent);
    float *between = (float *)(uintptr_t)plan_output(first, 0);
    assert_true(plan_move(second, PLAN_PORT_INPUT, 0, between, &err));
    assert_ptr_equal(plan_input(second, 0), between);
    train_step(whole, g, 0);
    fill(plan_input(first, 0), shape_count(graph_shape(g, g->inputs[0].value)), 0);
    assert_true(plan_forward(first, &err) && plan_forward(second, &err));
    fill(plan_output_gradient(second, 0), shape_count(graph_shape(g, g->outputs[0].value)), 1);
    assert_true(plan_backward(second, &err));
    assert_true(plan_activation_gradient(second, tail->inputs[0].value,
                                         plan_output_gradient(first, 0), &err));
    assert_true(plan_backward(first, &err));
    for (int32_t i = 0; i < g->n_values; i++) {
        if (g->values[i].kind != VALUE_PARAMETER)
            continue;
        int64_t n = 0;
        const float *part = parameter_gradient(first, head, g->values[i].name, &n);
        part = part ? part : parameter_gradient(second, tail, g->values[i].name, &n);
        assert_non_null(part);
        assert_memory_equal(part, plan_parameter_gradient(whole, i), (size_t)n * sizeof *part);
    }
    plan_free(whole), plan_free(first), plan_free(second);
    free(options.arena);
    graph_free(head), graph_free(tail), graph_free(g);
}

/* A tape finished in `segments`: its arena, and the kernels that were made. */
static size_t arena_of(const struct graph *g, const struct plan_options *options, int segments,
                       int *kernels)
{
    struct err err = { 0 };
    struct tape tape;
    made = 0;
    if (!tape_begin(&tape, g, options, &err) || !tape_finish(&tape, segments, &err))
        fail_msg("%s", err.text);
    *kernels = made;
    size_t bytes = tape.arena_bytes;
    tape_free(&tape);
    return bytes;
}

static const int counts[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32 };
#define COUNTS ((int)(sizeof counts / sizeof *counts))

static void estimates_are_what_is_taken(void **state)
{
    (void)state;
    static const struct lending cases[] = { { .network = "resnet18", .side = 64 },
                                            { .network = "unet_small", .side = 16 } };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct graph *g = network(cases[c].network, cases[c].side, 2);
        struct plan_options options = { .mode = PLAN_TRAIN, .threads = 1 };
        struct err err = { 0 };
        struct tape tape;
        size_t estimate, bytes, first = 0;
        int kernels;
        if (!tape_begin(&tape, g, &options, &err))
            fail_msg("%s", err.text);
        for (int i = 0; i < COUNTS; i++) {
            made = 0;
            assert_true(tape_estimate(&tape, counts[i], &estimate, &err));
            assert_int_equal(made, 0);
            bytes = arena_of(g, &options, counts[i], &kernels);
            assert_int_equal(estimate, bytes);
            first = i == 0 ? bytes : first;
            assert_true(i == 0 || bytes < first);
        }
        tape_free(&tape);
        graph_free(g);
    }
}

/* Whatever the budget, every kernel is made once, and those of repeated steps once more. */
static void a_budget_costs_no_kernels(void **state)
{
    (void)state;
    struct graph *g = network("resnet18", 64, 2);
    struct plan_options options = { .mode = PLAN_TRAIN, .threads = 1 };
    struct err err = { 0 };
    struct plan *plan = NULL;
    int all, kernels[4];
    size_t needs[4];
    for (int i = 0; i < 4; i++)
        needs[i] = arena_of(g, &options, counts[i], &kernels[i]);
    all = kernels[0];
    options.saving = SAVING_RECOMPUTE;
    for (int i = 1; i < 4; i++) {
        int fewest = 0; /* that fit what i needs */
        while (needs[fewest] > needs[i])
            fewest++;
        options.arena_budget = needs[i];
        made = 0;
        assert_true(plan_new(g, &options, &plan, &err));
        assert_int_equal(made, kernels[fewest]);
        assert_true(made > all && made < 2 * all);
        assert_int_equal(plan_memory(plan).arena, needs[fewest]);
        plan_free(plan);
    }
    options.arena_budget = 1000;
    made = 0;
    assert_false(plan_new(g, &options, &plan, &err));
    assert_int_equal(made, all);
    assert_non_null(strstr(err.text, "even when recomputed"));
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lent_memory_may_hold_anything),
        cmocka_unit_test(plans_share_arena_and_gradients),
        cmocka_unit_test(parts_of_a_network_train_as_the_whole),
        cmocka_unit_test(estimates_are_what_is_taken),
        cmocka_unit_test(a_budget_costs_no_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
