/* clipped.c: see clipped.h. */
#include "train/clipped.h"

#include <stdlib.h>
#include "net/graph/transform.h"
#include "net/plan/shared_weights.h"
#include "privacy/clip.h"
#include "train/optimizer.h"

struct slot {
    struct plan *plan;
    bool ok;
    struct err err;
};

struct clipped {
    struct clipped_options options;
    struct graph *graph;
    int64_t count;                /* of gradients */
    struct plan_weights *weights; /* transformed once for all slots; NULL: in every pass */
    struct slot *slots;
    float **gradients; /* [threads]: zero between steps */
    double *factors;   /* [threads] */
};

static bool check_graph(const struct graph *graph, const struct plan_options *options,
                        struct err *err)
{
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op->kind == OP_BATCH_NORM && !options->norm_frozen)
            return err_set(err, ERR_USAGE,
                           "%s: batch norm (%s) couples the patches of a batch, so their gradients "
                           "cannot be clipped one by one; set network.norm: group, or frozen with "
                           "public network.weights",
                           graph->name, graph->nodes[i].name);
    return true;
}

static bool new_slots(struct clipped *c, struct err *err)
{
    size_t threads = (size_t)c->options.threads;
    c->slots = calloc(threads, sizeof *c->slots);
    c->gradients = calloc(threads, sizeof *c->gradients);
    c->factors = calloc(threads, sizeof *c->factors);
    if (!c->slots || !c->gradients || !c->factors)
        return err_memory(err, "plans");
    struct plan_options options = c->options.plan;
    options.threads = 1;
    if (options.saving != SAVING_RECOMPUTE && !(options.weights = c->weights = plan_weights_new()))
        return err_memory(err, "weights");
    for (size_t i = 0; i < threads; i++) {
        c->gradients[i] = calloc((size_t)c->count + 1, sizeof *c->gradients[i]);
        if (!c->gradients[i])
            return err_memory(err, "gradients");
        options.gradients = c->gradients[i];
        if (!plan_new(c->graph, &options, &c->slots[i].plan, err))
            return false;
    }
    return true;
}

bool clipped_new(const struct graph *graph, const struct clipped_options *options,
                 struct clipped **out, struct err *err)
{
    struct clipped *c = calloc(1, sizeof *c);
    if (!c)
        return err_memory(err, "plans");
    c->options = *options;
    c->count = graph_parameter_count(graph);
    if (!check_graph(graph, &options->plan, err) ||
        !transform_resize(graph, options->copies, 0, 0, &c->graph, err) || !new_slots(c, err)) {
        clipped_free(c);
        return false;
    }
    *out = c;
    return true;
}

void clipped_free(struct clipped *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->options.threads; i++) {
        if (c->slots)
            plan_free(c->slots[i].plan);
        if (c->gradients)
            free(c->gradients[i]);
    }
    free(c->slots);
    free(c->gradients);
    free(c->factors);
    plan_weights_free(c->weights);
    graph_free(c->graph);
    free(c);
}

int clipped_slots(const struct clipped *c)
{
    return c->options.threads;
}

const struct graph *clipped_graph(const struct clipped *c)
{
    return c->graph;
}

struct plan *clipped_plan(struct clipped *c, int slot)
{
    return c->slots[slot].plan;
}

bool clipped_refresh(struct clipped *c, struct err *err)
{
    for (int i = 0; c->weights && i < c->options.threads; i++)
        if (!plan_refresh(c->slots[i].plan, err))
            return false;
    return true;
}

/* Whether all slots are ok; else the error of the first that is not. */
static bool all_ok(const struct clipped *c, int n, struct err *err)
{
    for (int i = 0; i < n; i++)
        if (!c->slots[i].ok) {
            if (err)
                *err = c->slots[i].err;
            return false;
        }
    return true;
}

bool clipped_forward(struct clipped *c, int n, struct err *err)
{
#pragma omp parallel for num_threads(c->options.threads) schedule(static, 1)
    for (int i = 0; i < n; i++)
        c->slots[i].ok = plan_forward(c->slots[i].plan, &c->slots[i].err);
    return all_ok(c, n, err);
}

bool clipped_backward(struct clipped *c, int n, float *sum, double *norms, struct err *err)
{
#pragma omp parallel for num_threads(c->options.threads) schedule(static, 1)
    for (int i = 0; i < n; i++) {
        c->slots[i].ok = plan_backward(c->slots[i].plan, &c->slots[i].err);
        double norm = optimizer_norm(c->gradients[i], c->count, 1);
        c->factors[i] = clip_factor(norm, c->options.clip);
        if (norms)
            norms[i] = norm;
    }
    bool ok = all_ok(c, n, err);
    for (int i = 0; !ok && i < n; i++)
        c->factors[i] = 0;
    clip_sum(c->gradients, c->factors, n, c->count, c->options.threads, sum);
    return ok;
}
