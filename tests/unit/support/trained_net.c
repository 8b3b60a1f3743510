/* trained_net.c: see trained_net.h. */
#include "support/trained_net.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/zoo/zoo.h"

#define CLASSES 3
#define STEPS 2 /* the second begins with what the first left in memory */

static void fill(float *at, int64_t count, uint64_t stream)
{
    struct rng rng = rng_new(5, stream, 0);
    for (int64_t i = 0; i < count; i++)
        at[i] = (float)rng_between(&rng, -1, 1);
}

static void note_buffers(const struct graph *g, struct trained_net *out)
{
    out->buffers = NULL, out->n_buffers = 0;
    for (int32_t i = 0; i < g->n_values; i++) {
        if (g->values[i].kind != VALUE_BUFFER)
            continue;
        int64_t n = shape_count(graph_shape(g, i));
        out->buffers = realloc(out->buffers, (size_t)(out->n_buffers + n) * sizeof(float));
        memcpy(out->buffers + out->n_buffers, graph_data(g, i), (size_t)n * sizeof(float));
        out->n_buffers += n;
    }
}

struct trained_net trained_net(const char *network, int64_t side, int64_t batch,
                               struct plan_options options)
{
    struct trained_net out = { 0 };
    struct err err = { 0 };
    struct graph *g = NULL;
    struct plan *plan = NULL;
    struct zoo_options zoo = { .batch = batch, .height = side, .width = side, .classes = CLASSES };
    options.mode = PLAN_TRAIN;
    if (!zoo_build(network, &zoo, &g, &err) || !graph_initialize(g, 3, &err) ||
        !plan_new(g, &options, &plan, &err))
        fail_msg("%s: %s", network, err.text);
    int64_t floats = shape_count(graph_shape(g, g->outputs[0].value));
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < g->n_inputs; i++)
            fill(plan_input(plan, i), shape_count(graph_shape(g, g->inputs[i].value)),
                 (uint64_t)(s * 10 + i));
        plan_set_random(plan, 11, (uint64_t)(s * batch));
        assert_true(plan_forward(plan, &err));
        fill(plan_output_gradient(plan, 0), floats, 77);
        assert_true(plan_backward(plan, &err));
    }
    const float *gradients = plan_gradients(plan, &out.n_gradients);
    out.gradients = malloc((size_t)out.n_gradients * sizeof(float));
    memcpy(out.gradients, gradients, (size_t)out.n_gradients * sizeof(float));
    memcpy(out.outputs, plan_output(plan, 0), sizeof(float) * (size_t)(floats < 64 ? floats : 64));
    note_buffers(g, &out);
    out.memory = plan_memory(plan);
    plan_free(plan);
    graph_free(g);
    return out;
}

void trained_net_free(struct trained_net *t)
{
    free(t->gradients), free(t->buffers);
}

void assert_trained_same(const struct trained_net *a, const struct trained_net *b)
{
    assert_int_equal(a->n_gradients, b->n_gradients);
    assert_memory_equal(a->outputs, b->outputs, sizeof a->outputs);
    assert_memory_equal(a->gradients, b->gradients, (size_t)a->n_gradients * sizeof(float));
    assert_int_equal(a->n_buffers, b->n_buffers);
    assert_memory_equal(a->buffers, b->buffers, (size_t)a->n_buffers * sizeof(float));
}
