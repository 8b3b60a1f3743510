/* optimizer.c: gradients -> new weights, for all kinds of optimizer. A step works through spans,
 * pieces of one parameter short enough to divide among threads; every element is computed
 * independently, so neither threads nor spans change a bit of the result. */
#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include "base/divide.h"

#define SPAN_COUNT 16384
#define NORM_PARTS 256
#define NORM_LANES 8

const char *const optimizer_names[] = { "sgd", "adam", "adamw", "lars", NULL };

struct parameter {
    value_id value;
    int64_t at, count; /* its place in the flat vectors */
    bool matrix;       /* two or more axes: decays, and LARS takes its own rate */
};

struct span {
    int32_t parameter;
    int64_t begin, count; /* within the parameter */
};

/* What one step is made of, for one span: w [n] changes by g [n] and the states a, b [n]. */
struct update {
    float rate, momentum;
    float decay; /* of the weights, added to the gradient */
    float keep;  /* of the weights (adam, adamw) */
    float beta1, beta2, epsilon;
    float rest1, rest2; /* 1 - beta, rounded after the difference */
    float second_scale; /* 1 / sqrt(1 - beta2^t) */
    bool nesterov;
};

typedef void (*update_fn)(const struct update *u, int64_t n, float *restrict w,
                          const float *restrict g, float *restrict a, float *restrict b);

struct optimizer {
    struct graph *graph;
    struct optimizer_options options;
    struct parameter *parameters;
    int32_t n_parameters;
    struct span *spans;
    int64_t n_spans, count;
    float *arrays[2]; /* of the own part; see array_names */
    int n_arrays;
    float *local; /* [n_parameters]: LARS's factor of the rate */
    int64_t steps;
};

static void update_plain(const struct update *u, int64_t n, float *restrict w,
                         const float *restrict g, float *restrict a, float *restrict b)
{
    (void)a, (void)b;
    const float rate = u->rate, decay = u->decay;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        w[i] -= rate * (g[i] + decay * w[i]);
}

static void update_momentum(const struct update *u, int64_t n, float *restrict w,
                            const float *restrict g, float *restrict a, float *restrict b)
{
    (void)b;
    const float rate = u->rate, decay = u->decay, momentum = u->momentum;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        a[i] = momentum * a[i] + (g[i] + decay * w[i]);
        w[i] -= rate * a[i];
    }
}

static void update_nesterov(const struct update *u, int64_t n, float *restrict w,
                            const float *restrict g, float *restrict a, float *restrict b)
{
    (void)b;
    const float rate = u->rate, decay = u->decay, momentum = u->momentum;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float slope = g[i] + decay * w[i];
        a[i] = momentum * a[i] + slope;
        w[i] -= rate * (slope + momentum * a[i]);
    }
}

/* Adam has its decay in the gradient and keeps all of the weights; AdamW has it in what it keeps.
 */
static void update_adam(const struct update *u, int64_t n, float *restrict w,
                        const float *restrict g, float *restrict a, float *restrict b)
{
    const float rate = u->rate, decay = u->decay, beta1 = u->beta1, beta2 = u->beta2;
    const float rest1 = u->rest1, rest2 = u->rest2, keep = u->keep;
    const float epsilon = u->epsilon, second_scale = u->second_scale;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float slope = g[i] + decay * w[i];
        a[i] = beta1 * a[i] + rest1 * slope;
        b[i] = beta2 * b[i] + rest2 * slope * slope;
        w[i] = keep * w[i] - rate * a[i] / (sqrtf(b[i]) * second_scale + epsilon);
    }
}

/* The rate is part of the velocity (You, Gitman and Ginsburg 2017). */
static void update_lars(const struct update *u, int64_t n, float *restrict w,
                        const float *restrict g, float *restrict a, float *restrict b)
{
    (void)b;
    const float rate = u->rate, decay = u->decay, momentum = u->momentum;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        a[i] = momentum * a[i] + rate * (g[i] + decay * w[i]);
        w[i] -= a[i];
    }
}

static const struct {
    int n_arrays;
    const char *array_names[2];
    update_fn update;
} kinds[] = {
    [OPTIMIZER_SGD] = { 1, { "momentum" }, update_momentum },
    [OPTIMIZER_ADAM] = { 2, { "first_moment", "second_moment" }, update_adam },
    [OPTIMIZER_ADAMW] = { 2, { "first_moment", "second_moment" }, update_adam },
    [OPTIMIZER_LARS] = { 1, { "momentum" }, update_lars },
};

static update_fn choose_update(const struct optimizer_options *options)
{
    if (options->kind != OPTIMIZER_SGD)
        return kinds[options->kind].update;
    if (options->momentum == 0)
        return update_plain;
    return options->nesterov ? update_nesterov : update_momentum;
}

/* Lists the parameters and cuts them into spans. */
static bool lay_out(struct optimizer *o, struct err *err)
{
    const struct graph *graph = o->graph;
    int64_t n_spans = 0;
    for (value_id v = 0; v < graph->n_values; v++)
        if (graph->values[v].kind == VALUE_PARAMETER) {
            o->n_parameters++;
            n_spans += shape_count(&graph->values[v].shape) / SPAN_COUNT + 1;
        }
    o->parameters = calloc((size_t)o->n_parameters + 1, sizeof *o->parameters);
    o->spans = calloc((size_t)n_spans + 1, sizeof *o->spans);
    o->local = calloc((size_t)o->n_parameters + 1, sizeof *o->local);
    if (!o->parameters || !o->spans || !o->local)
        return err_memory(err, "the optimizer");
    struct parameter *p = o->parameters;
    for (value_id v = 0; v < graph->n_values; v++) {
        const struct value *value = &graph->values[v];
        if (value->kind != VALUE_PARAMETER)
            continue;
        *p = (struct parameter){ v, o->count, shape_count(&value->shape), value->shape.rank >= 2 };
        for (int64_t at = 0; at < p->count; at += SPAN_COUNT)
            o->spans[o->n_spans++] =
                (struct span){ (int32_t)(p - o->parameters), at,
                               p->count - at < SPAN_COUNT ? p->count - at : SPAN_COUNT };
        o->count += p->count;
        p++;
    }
    return true;
}

bool optimizer_new(struct graph *graph, const struct optimizer_options *options,
                   struct optimizer **out, struct err *err)
{
    struct optimizer *o = calloc(1, sizeof *o);
    bool ok = false;
    if (!o)
        return err_memory(err, "the optimizer");
    o->graph = graph;
    o->options = *options;
    if (!lay_out(o, err))
        goto done;
    o->n_arrays = choose_update(options) == update_plain ? 0 : kinds[options->kind].n_arrays;
    if (o->options.own_end == 0)
        o->options.own_end = o->count;
    for (int i = 0; i < o->n_arrays; i++) {
        o->arrays[i] =
            calloc((size_t)(o->options.own_end - o->options.own_begin) + 1, sizeof *o->arrays[i]);
        if (!o->arrays[i]) {
            err_memory(err, "the state of the optimizer");
            goto done;
        }
    }
    *out = o, o = NULL, ok = true;
done:
    optimizer_free(o);
    return ok;
}

void optimizer_free(struct optimizer *optimizer)
{
    if (!optimizer)
        return;
    free(optimizer->arrays[0]), free(optimizer->arrays[1]);
    free(optimizer->parameters), free(optimizer->spans), free(optimizer->local);
    free(optimizer);
}

/* trust |w| / (|g| + decay |w|), or 1 where one of them is nothing (fresh zeros). */
static void find_local_rates(struct optimizer *o, const float *gradients)
{
    const struct optimizer_options *options = &o->options;
    for (int32_t i = 0; i < o->n_parameters; i++) {
        const struct parameter *p = &o->parameters[i];
        o->local[i] = 1;
        if (!p->matrix)
            continue;
        double w = optimizer_norm(graph_data(o->graph, p->value), p->count, options->threads);
        double g = optimizer_norm(gradients + p->at, p->count, options->threads);
        if (w > 0 && g > 0)
            o->local[i] = (float)(options->trust * w / (g + options->weight_decay * w));
    }
}

static struct update update_of(const struct optimizer *o, double learning_rate)
{
    const struct optimizer_options *options = &o->options;
    struct update u = { .rate = (float)learning_rate,
                        .momentum = (float)options->momentum,
                        .beta1 = (float)options->beta1,
                        .beta2 = (float)options->beta2,
                        .rest1 = (float)(1 - options->beta1),
                        .rest2 = (float)(1 - options->beta2),
                        .epsilon = (float)options->epsilon };
    if (options->kind == OPTIMIZER_ADAM || options->kind == OPTIMIZER_ADAMW) {
        u.rate = (float)(learning_rate / (1 - pow(options->beta1, (double)o->steps)));
        u.second_scale = (float)(1 / sqrt(1 - pow(options->beta2, (double)o->steps)));
    }
    return u;
}

void optimizer_step(struct optimizer *optimizer, const float *gradients, double learning_rate)
{
    struct optimizer *o = optimizer;
    const update_fn update = choose_update(&o->options);
    o->steps++;
    const struct update common = update_of(o, learning_rate);
    const bool lars = o->options.kind == OPTIMIZER_LARS;
    const bool apart = o->options.kind == OPTIMIZER_ADAMW; /* decays beside the gradient */
    const double decay = o->options.weight_decay;
    if (lars)
        find_local_rates(o, gradients);
#pragma omp parallel for num_threads(o->options.threads) if (o->options.threads > 1)
    for (int64_t i = 0; i < o->n_spans; i++) {
        const struct span *span = &o->spans[i];
        const struct parameter *p = &o->parameters[span->parameter];
        struct update u = common;
        u.decay = (float)(p->matrix && !apart ? decay : 0);
        u.keep = (float)(p->matrix && apart ? 1 - learning_rate * decay : 1);
        if (lars)
            u.rate *= o->local[span->parameter];
        int64_t at = p->at + span->begin, end = at + span->count, own = o->options.own_begin;
        at = at > own ? at : own;
        end = end < o->options.own_end ? end : o->options.own_end;
        if (at < end)
            update(&u, end - at, graph_data(o->graph, p->value) + (at - p->at), gradients + at,
                   o->arrays[0] ? o->arrays[0] + (at - own) : NULL,
                   o->arrays[1] ? o->arrays[1] + (at - own) : NULL);
    }
}

int optimizer_n_arrays(const struct optimizer *optimizer)
{
    return optimizer->n_arrays;
}

struct state_array optimizer_array(const struct optimizer *optimizer, int i)
{
    return (struct state_array){ kinds[optimizer->options.kind].array_names[i],
                                 optimizer->arrays[i],
                                 optimizer->options.own_end - optimizer->options.own_begin };
}

int64_t optimizer_steps(const struct optimizer *optimizer)
{
    return optimizer->steps;
}

void optimizer_set_steps(struct optimizer *optimizer, int64_t steps)
{
    optimizer->steps = steps;
}

static double sum_of_squares(const float *x, int64_t n)
{
    double lanes[NORM_LANES] = { 0 }, sum = 0;
    int64_t i = 0;
    for (; i + NORM_LANES <= n; i += NORM_LANES)
#pragma omp simd
        for (int k = 0; k < NORM_LANES; k++)
            lanes[k] += (double)x[i + k] * (double)x[i + k];
    for (; i < n; i++)
        lanes[0] += (double)x[i] * (double)x[i];
    for (int k = 0; k < NORM_LANES; k++)
        sum += lanes[k];
    return sum;
}

/* The parts depend on the count alone, and are added in their order. */
double optimizer_norm(const float *gradients, int64_t count, int threads)
{
    double parts[NORM_PARTS] = { 0 }, sum = 0;
    int64_t part = ceil_div(count, NORM_PARTS);
    int64_t least = SPAN_COUNT / 4; /* short vectors: fewer parts */
    part = part < least ? least : part;
    int64_t n_parts = ceil_div(count, part);
#pragma omp parallel for num_threads(threads) if (threads > 1 && n_parts > 1)
    for (int64_t i = 0; i < n_parts; i++) {
        int64_t at = i * part;
        parts[i] = sum_of_squares(gradients + at, count - at < part ? count - at : part);
    }
    for (int64_t i = 0; i < n_parts; i++)
        sum += parts[i];
    return sqrt(sum);
}

void optimizer_clip(float *gradients, int64_t count, double norm, double max_norm, int threads)
{
    if (!(max_norm > 0 && norm > max_norm))
        return;
    const float scale = (float)(max_norm / norm);
#pragma omp parallel for simd num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++)
        gradients[i] *= scale;
}
