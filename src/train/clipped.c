/* clipped.c: see clipped.h. */
#include "train/clipped.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "net/graph/transform.h"
#include "net/plan/shared_weights.h"
#include "privacy/clip.h"

#define UNITS 4 /* in a plan: with more, their gradients leave the caches */
#define FEW 32  /* in a step: a plan has one, so that more threads have some */
/* Floats of gradients that a plan keeps apart, unless it is of one unit. */
#define MOST_FLOATS ((int64_t)1 << 24)

/* What one thread runs. */
struct worker {
    struct plan *plan;
    double *squares; /* [units]: of the gradients that are complete */
    const struct clipped *of;
    bool ok;
    struct err err;
};

/* Gradients side by side that are all joined (plan_is_joined), or all not. */
struct span {
    int64_t begin, end;
    bool joined;
};

struct clipped {
    struct clipped_options options;
    struct graph *graph;          /* of a unit */
    struct graph *several;        /* of the units of a plan */
    int64_t count;                /* of gradients */
    int64_t units;                /* of a plan */
    struct plan_weights *weights; /* transformed once for all plans; NULL: in every pass */
    struct worker *workers;       /* [threads] */
    struct span *spans;           /* from 0 to count */
    int n_spans;
    float **gradients; /* [slots]: zero between steps */
    float **places;    /* [slots]: of a span */
    double *factors;   /* [slots] */
};

/* The gradients of a parameter are complete, and still in a cache. */
static void add_squares(void *arg, value_id parameter, float *gradient, int64_t count)
{
    struct worker *worker = arg;
    (void)parameter;
    for (int64_t u = 0; u < worker->of->units; u++)
        worker->squares[u] += clip_squares(gradient + u * worker->of->count, count);
}

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

/* Whether the samples of a batch are the first axis of every value that has them. */
static bool is_by_sample(const struct graph *one, const struct graph *several, int64_t units)
{
    for (value_id v = 0; v < one->n_values; v++) {
        const struct shape *a = graph_shape(one, v), *b = graph_shape(several, v);
        if (graph_is_parameter(one, v))
            continue;
        if (a->rank < 1 || a->rank != b->rank || b->dim[0] != units * a->dim[0])
            return false;
        for (int i = 1; i < a->rank; i++)
            if (a->dim[i] != b->dim[i])
                return false;
    }
    return true;
}

static bool new_worker(struct clipped *c, struct worker *worker, struct err *err)
{
    struct plan_options options = c->options.plan;
    worker->of = c;
    worker->squares = calloc((size_t)c->units, sizeof *worker->squares);
    if (!worker->squares)
        return err_memory(err, "gradients");
    options.threads = 1;
    options.units = c->units;
    options.join = true;
    options.weights = c->weights;
    if (!plan_new(c->several, &options, &worker->plan, err))
        return false;
    plan_on_gradient(worker->plan, add_squares, worker);
    return true;
}

static bool find_spans(struct clipped *c, struct err *err)
{
    const struct plan *plan = c->workers[0].plan;
    int64_t at = 0;
    c->n_spans = 0;
    c->spans = calloc((size_t)c->several->n_values + 1, sizeof *c->spans);
    for (value_id v = 0; c->spans && v < c->several->n_values; v++) {
        if (c->several->values[v].kind != VALUE_PARAMETER)
            continue;
        bool joined = plan_is_joined(plan, v);
        if (c->n_spans == 0 || c->spans[c->n_spans - 1].joined != joined)
            c->spans[c->n_spans++] = (struct span){ at, at, joined };
        at += shape_count(&c->several->values[v].shape);
        c->spans[c->n_spans - 1].end = at;
    }
    return c->spans || err_memory(err, "gradients");
}

/* Whether the gradients that are kept apart are few enough. */
static bool is_small(const struct clipped *c)
{
    int64_t apart = 0;
    for (int i = 0; i < c->n_spans; i++)
        apart += c->spans[i].joined ? 0 : c->spans[i].end - c->spans[i].begin;
    return c->units == 1 || c->units * apart <= MOST_FLOATS;
}

static void free_workers(struct clipped *c)
{
    for (int i = 0; c->workers && i < c->options.threads; i++) {
        plan_free(c->workers[i].plan);
        free(c->workers[i].squares);
    }
    free(c->workers), free(c->gradients), free(c->factors), free(c->places), free(c->spans);
    graph_free(c->several);
    c->workers = NULL, c->gradients = NULL, c->factors = NULL, c->places = NULL, c->spans = NULL;
    c->several = NULL;
}

/* Plans of so many units; *can: this network can, and memory suffices. */
static bool new_workers(struct clipped *c, const struct graph *graph, int64_t units, bool *can,
                        struct err *err)
{
    size_t threads = (size_t)c->options.threads, slots = threads * (size_t)units;
    c->units = units;
    *can = true;
    if (!transform_resize(graph, units * c->options.copies, 0, 0, &c->several, err))
        return false;
    *can = units == 1 || is_by_sample(c->graph, c->several, units);
    if (!*can)
        return true;
    c->workers = calloc(threads, sizeof *c->workers);
    c->gradients = calloc(slots, sizeof *c->gradients);
    c->factors = calloc(slots, sizeof *c->factors);
    c->places = calloc(slots, sizeof *c->places);
    if (!c->workers || !c->gradients || !c->factors || !c->places)
        return err_memory(err, "plans");
    struct err why = { 0 };
    int64_t count;
    bool ok = true;
    for (size_t i = 0; ok && *can && i < threads; i++) {
        ok = new_worker(c, &c->workers[i], &why) && (i > 0 || find_spans(c, &why));
        *can = !ok || is_small(c);
    }
    for (size_t i = 0; ok && *can && i < slots; i++)
        c->gradients[i] = plan_gradients(c->workers[i / (size_t)units].plan, &count) +
                          (int64_t)(i % (size_t)units) * c->count;
    if (!ok && units > 1 && (why.kind == ERR_USAGE || why.kind == ERR_MEMORY))
        *can = false;
    if (!ok && *can && err)
        *err = why;
    return ok || !*can;
}

static bool new_plans(struct clipped *c, const struct graph *graph, struct err *err)
{
    bool few = c->options.step_units > 0 && c->options.step_units < FEW;
    int64_t units = few ? 1 : UNITS / c->options.copies;
    bool can;
    if (c->options.plan.saving == SAVING_RECOMPUTE) /* least memory */
        units = 1;
    else if (!(c->weights = plan_weights_new()))
        return err_memory(err, "weights");
    if (!new_workers(c, graph, units > 1 ? units : 1, &can, err))
        return false;
    if (can)
        return true;
    free_workers(c);
    return new_workers(c, graph, 1, &can, err);
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
        !transform_resize(graph, options->copies, 0, 0, &c->graph, err) ||
        !new_plans(c, graph, err)) {
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
    free_workers(c);
    plan_weights_free(c->weights);
    graph_free(c->graph);
    free(c);
}

int clipped_slots(const struct clipped *c)
{
    return c->options.threads * (int)c->units;
}

const struct graph *clipped_graph(const struct clipped *c)
{
    return c->graph;
}

static struct plan *plan_of(const struct clipped *c, int slot)
{
    return c->workers[slot / c->units].plan;
}

/* Floats of the units before that of a slot in its plan. */
static int64_t before(const struct clipped *c, int slot, value_id value)
{
    return slot % c->units * shape_count(graph_shape(c->graph, value));
}

float *clipped_input(struct clipped *c, int slot, int i)
{
    return plan_input(plan_of(c, slot), i) + before(c, slot, c->graph->inputs[i].value);
}

const float *clipped_output(const struct clipped *c, int slot, int i)
{
    return plan_output(plan_of(c, slot), i) + before(c, slot, c->graph->outputs[i].value);
}

float *clipped_output_gradient(struct clipped *c, int slot, int i)
{
    return plan_output_gradient(plan_of(c, slot), i) + before(c, slot, c->graph->outputs[i].value);
}

void clipped_set_random(struct clipped *c, int slot, uint64_t seed, uint64_t first_sample)
{
    if (c->units == 1) /* else nothing is random */
        plan_set_random(plan_of(c, slot), seed, first_sample);
}

bool clipped_refresh(struct clipped *c, struct err *err)
{
    for (int i = 0; c->weights && i < c->options.threads; i++)
        if (!plan_refresh(c->workers[i].plan, err))
            return false;
    return true;
}

/* Plans that the units in the first n slots are in. */
static int plans_of(const struct clipped *c, int n)
{
    return (int)ceil_div(n, c->units);
}

/* Whether all plans are ok; else the error of the first that is not. */
static bool all_ok(const struct clipped *c, int n, struct err *err)
{
    for (int i = 0; i < plans_of(c, n); i++)
        if (!c->workers[i].ok) {
            if (err)
                *err = c->workers[i].err;
            return false;
        }
    return true;
}

bool clipped_forward(struct clipped *c, int n, struct err *err)
{
#pragma omp parallel for num_threads(c->options.threads) schedule(static, 1)
    for (int i = 0; i < plans_of(c, n); i++)
        c->workers[i].ok = plan_forward(c->workers[i].plan, &c->workers[i].err);
    return all_ok(c, n, err);
}

/* The backward pass of a plan, whose first units, up to n, count, and the factors of all. */
static void back(struct clipped *c, int64_t plan, int n, double *norms)
{
    struct worker *worker = &c->workers[plan];
    int64_t first = plan * c->units;
    memset(worker->squares, 0, (size_t)c->units * sizeof *worker->squares);
    worker->ok = plan_backward(worker->plan, &worker->err);
    for (int64_t u = 0; u < c->units; u++) {
        double norm = sqrt(worker->squares[u] + plan_unit_squares(worker->plan)[u]);
        c->factors[first + u] = first + u < n ? clip_factor(norm, c->options.clip) : 0;
        if (norms && first + u < n)
            norms[first + u] = norm;
    }
    if (worker->ok && c->units > 1)
        worker->ok = plan_join_units(worker->plan, c->factors + first, &worker->err);
}

/* Adds the gradients of the first plans; those that are joined have their factors already. */
static void add_plans(struct clipped *c, int plans, bool ok, float *sum)
{
    const double all[1] = { 1 }, none[1] = { 0 };
    int64_t slots = plans * c->units;
    for (int64_t i = 0; i < slots && !ok; i++)
        c->factors[i] = 0;
    for (const struct span *s = c->spans; s < c->spans + c->n_spans; s++) {
        for (int64_t i = 0; i < slots; i++)
            c->places[i] = c->gradients[i] + s->begin;
        for (int64_t i = 0; s->joined && i < slots; i += c->units)
            clip_sum(c->places + i, ok ? all : none, 1, s->end - s->begin, c->options.threads,
                     sum + s->begin);
        if (!s->joined)
            clip_sum(c->places, c->factors, (int)slots, s->end - s->begin, c->options.threads,
                     sum + s->begin);
    }
}

bool clipped_backward(struct clipped *c, int n, float *sum, double *norms, struct err *err)
{
#pragma omp parallel for num_threads(c->options.threads) schedule(static, 1)
    for (int i = 0; i < plans_of(c, n); i++)
        back(c, i, n, norms);
    bool ok = all_ok(c, n, err);
    add_plans(c, plans_of(c, n), ok, sum);
    return ok;
}
