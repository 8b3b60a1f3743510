/* standardized.c: a network with standardised weights (op standardize) as one in which they are
 * ordinary weights: they are computed before a forward pass, and the gradients of what they are
 * computed from follow from theirs after a backward pass. So kernels that know their weights run
 * them, and any other execution, tile by tile as well. */
#include <stdlib.h>
#include <string.h>
#include "net/graph/rewrite.h"
#include "net/kernels/standardize.h"
#include "net/plan/execution.h"

/* `to` is a parameter of the inner graph, the others are of the outer one. */
struct weight {
    struct standardize rows;
    value_id from, gain, to;
};

struct standardized {
    struct plan plan;
    const struct graph *outer;
    struct graph *graph; /* the inner one */
    struct plan *inner;
    value_id *map; /* [outer n_values]: in the inner graph; NO_VALUE: it is not there */
    struct weight *weights;
    int n_weights;
    int64_t *offsets; /* [outer n_values]: of gradients; -1: not learnt */
    float *gradients, *scratch;
    int64_t n_gradients, most; /* most: of the gradients of a weight and its gain */
    bool lent;
    plan_gradient_hook hook;
    void *hook_arg;
};

static struct standardized *of(struct plan *plan)
{
    return (struct standardized *)plan;
}

static const struct standardized *of_const(const struct plan *plan)
{
    return (const struct standardized *)plan;
}

static void standardized_free(struct plan *plan)
{
    struct standardized *s = of(plan);
    plan_free(s->inner);
    graph_free(s->graph);
    free(s->map), free(s->weights), free(s->offsets), free(s->scratch);
    if (!s->lent)
        free(s->gradients);
    free(s);
}

/* Of a weight that nothing else reads. */
static bool is_ours(const struct graph *graph, const struct node *node)
{
    return node->op->kind == OP_STANDARDIZE && graph_is_parameter(graph, node->inputs[0]) &&
           graph_is_parameter(graph, node->inputs[1]) && graph_users(graph, node->inputs[0]) == 1;
}

static int count_ours(const struct graph *graph)
{
    int n = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        n += is_ours(graph, &graph->nodes[i]);
    return n;
}

static void compute_weights(const struct standardized *s)
{
    for (int i = 0; i < s->n_weights; i++) {
        const struct weight *w = &s->weights[i];
        standardize_run(&w->rows, graph_data(s->outer, w->from), graph_data(s->outer, w->gain),
                        graph_data(s->graph, w->to));
    }
}

static void add_weight(struct standardized *s, struct rewrite *r, const struct node *node,
                       int threads)
{
    const struct shape *shape = graph_shape(r->from, node->inputs[0]);
    struct weight *w = &s->weights[s->n_weights++];
    float *floats; /* written by compute_weights */
    *w = (struct weight){ { shape->dim[0], shape_span(shape, 1, shape->rank),
                            node->attr.norm.epsilon, threads },
                          node->inputs[0],
                          node->inputs[1],
                          rewrite_fresh(r, node->inputs[0], *shape, &floats) };
    if (shape_count(shape) + shape->dim[0] > s->most)
        s->most = shape_count(shape) + shape->dim[0];
    r->map[node->output] = w->to;
}

static bool make_graph(struct standardized *s, int threads, struct err *err)
{
    const struct graph *outer = s->outer;
    struct rewrite r;
    if (!rewrite_begin(&r, outer, true, NULL, 0, err))
        return false;
    for (int32_t i = 0; i < outer->n_nodes; i++)
        if (is_ours(outer, &outer->nodes[i]))
            add_weight(s, &r, &outer->nodes[i], threads);
        else
            rewrite_node(&r, &outer->nodes[i], NULL);
    memcpy(s->map, r.map, (size_t)outer->n_values * sizeof *s->map);
    if (!rewrite_end(&r, &s->graph, err))
        return false;
    compute_weights(s);
    return true;
}

static bool make_gradients(struct standardized *s, const struct plan_options *options,
                           struct err *err)
{
    for (int32_t i = 0; i < s->outer->n_values; i++) {
        bool learnt = s->outer->values[i].kind == VALUE_PARAMETER;
        s->offsets[i] = learnt ? s->n_gradients : -1;
        s->n_gradients += learnt ? shape_count(&s->outer->values[i].shape) : 0;
    }
    s->lent = options->gradients != NULL;
    s->gradients =
        s->lent ? options->gradients : calloc((size_t)s->n_gradients + 1, sizeof *s->gradients);
    s->scratch = calloc((size_t)s->most + 1, sizeof *s->scratch);
    return (s->gradients && s->scratch) || err_memory(err, "gradients");
}

/* What is allocated besides the inner plan. */
static size_t own_bytes(const struct standardized *s)
{
    size_t floats = (size_t)s->most + (s->lent ? 0 : (size_t)s->n_gradients);
    for (int i = 0; i < s->n_weights; i++)
        floats += (size_t)(s->weights[i].rows.rows * s->weights[i].rows.length);
    return floats * sizeof(float);
}

static bool make_inner(struct standardized *s, struct plan_options options, struct err *err)
{
    value_id *keep = calloc((size_t)options.n_keep + 1, sizeof *keep);
    bool ok = keep || err_memory(err, s->outer->name);
    for (int i = 0; ok && i < options.n_keep; i++) {
        keep[i] = s->map[options.keep[i]];
        ok = keep[i] != NO_VALUE ||
             err_set(err, ERR_USAGE, "%s: a value to keep is not computed", s->outer->name);
    }
    options.keep = keep;
    options.gradients = NULL;
    struct plan_stream stream;
    if (options.stream) {
        size_t own = own_bytes(s);
        stream = *options.stream;
        stream.besides += own;
        if (stream.budget)
            stream.budget = stream.budget > own ? stream.budget - own : 1;
        options.stream = &stream;
    }
    ok = ok && plan_new(s->graph, &options, &s->inner, err);
    free(keep);
    return ok;
}

static bool standardized_make(const struct graph *graph, const struct plan_options *options,
                              struct plan **out, struct err *err)
{
    int n = count_ours(graph);
    if (n == 0 || options->per_sample)
        return true;
    struct standardized *s = calloc(1, sizeof *s);
    if (!s)
        return err_memory(err, graph->name);
    s->outer = graph;
    s->map = calloc((size_t)graph->n_values + 1, sizeof *s->map);
    s->offsets = calloc((size_t)graph->n_values + 1, sizeof *s->offsets);
    s->weights = calloc((size_t)n, sizeof *s->weights);
    bool ok = (s->map && s->offsets && s->weights) || err_memory(err, graph->name);
    ok = ok && make_graph(s, options->threads, err) &&
         (options->mode == PLAN_INFER || make_gradients(s, options, err)) &&
         make_inner(s, *options, err);
    if (ok)
        *out = &s->plan;
    else
        standardized_free(&s->plan);
    return ok;
}

/* Parameters may have changed; in PLAN_INFER only plan_refresh says so. */
static bool standardized_forward(struct plan *plan, struct err *err)
{
    if (plan->mode != PLAN_INFER)
        compute_weights(of(plan));
    return plan_forward(of(plan)->inner, err);
}

static bool standardized_refresh(struct plan *plan, struct err *err)
{
    compute_weights(of(plan));
    return plan_refresh(of(plan)->inner, err);
}

static bool find(const struct standardized *s, value_id value, value_id *out, struct err *err)
{
    *out = s->map[value];
    return *out != NO_VALUE || err_set(err, ERR_USAGE, "%s: %s is not computed by the plan",
                                       s->outer->name, s->outer->values[value].name);
}

static bool standardized_forward_until(struct plan *plan, value_id value, struct err *err)
{
    value_id own;
    if (plan->mode != PLAN_INFER)
        compute_weights(of(plan));
    return find(of(plan), value, &own, err) && plan_forward_until(of(plan)->inner, own, err);
}

static bool standardized_activation(struct plan *plan, value_id value, bool gradient, float *out,
                                    struct err *err)
{
    value_id own;
    return find(of(plan), value, &own, err) &&
           (gradient ? plan_activation_gradient(of(plan)->inner, own, out, err)
                     : plan_activation(of(plan)->inner, own, out, err));
}

static void add(const float *from, int64_t n, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* The gradient of a standardised weight goes to what it is computed from. */
static void pass_on(struct standardized *s, const struct weight *w)
{
    const float *dy = plan_parameter_gradient(s->inner, w->to);
    const float *from = graph_data(s->outer, w->from), *gain = graph_data(s->outer, w->gain);
    int64_t to = s->offsets[w->from], to_gain = s->offsets[w->gain];
    int64_t n = w->rows.rows * w->rows.length;
    if (!dy)
        return;
    standardize_back(&w->rows, from, gain, dy, s->scratch, s->scratch + n);
    if (to >= 0)
        add(s->scratch, n, s->gradients + to);
    if (to_gain >= 0)
        add(s->scratch + n, w->rows.rows, s->gradients + to_gain);
}

/* From the gradients of the inner plan, which are complete. */
static void pass_all_on(struct standardized *s)
{
    const struct graph *outer = s->outer;
    for (int i = 0; i < s->n_weights; i++)
        pass_on(s, &s->weights[i]);
    for (int32_t i = outer->n_values - 1; i >= 0; i--) {
        if (s->offsets[i] < 0)
            continue;
        int64_t n = shape_count(&outer->values[i].shape);
        float *to = s->gradients + s->offsets[i];
        const float *own =
            s->map[i] == NO_VALUE ? NULL : plan_parameter_gradient(s->inner, s->map[i]);
        if (own)
            add(own, n, to);
        if (s->hook)
            s->hook(s->hook_arg, i, to, n);
    }
}

static bool standardized_backward(struct plan *plan, struct err *err)
{
    struct standardized *s = of(plan);
    plan_zero_gradients(s->inner);
    bool ok = plan_backward(s->inner, err);
    if (ok)
        pass_all_on(s);
    return ok;
}

static bool standardized_backward_half(struct plan *plan, enum plan_half half, struct err *err)
{
    struct standardized *s = of(plan);
    if (half == PLAN_HALF_INPUTS) {
        plan_zero_gradients(s->inner);
        return plan_backward_inputs(s->inner, err);
    }
    bool ok = plan_backward_weights(s->inner, err);
    if (ok)
        pass_all_on(s);
    return ok;
}

static void standardized_on_step(struct plan *plan, plan_step_hook hook, void *arg)
{
    plan_on_step(of(plan)->inner, hook, arg);
}

static void standardized_hold_statistics(struct plan *plan, bool hold)
{
    plan_hold_statistics(of(plan)->inner, hold);
}

static float *standardized_input(struct plan *plan, int i)
{
    return plan_input(of(plan)->inner, i);
}

static const float *standardized_output(const struct plan *plan, int i)
{
    return plan_output(of_const(plan)->inner, i);
}

static float *standardized_output_gradient(struct plan *plan, int i)
{
    return plan_output_gradient(of(plan)->inner, i);
}

static float *standardized_gradients(struct plan *plan, int64_t *count)
{
    *count = of(plan)->n_gradients;
    return of(plan)->gradients;
}

static float *standardized_parameter_gradient(struct plan *plan, value_id parameter)
{
    int64_t offset = of(plan)->offsets[parameter];
    return offset < 0 ? NULL : of(plan)->gradients + offset;
}

static void standardized_on_gradient(struct plan *plan, plan_gradient_hook hook, void *arg)
{
    of(plan)->hook = hook, of(plan)->hook_arg = arg;
}

static void standardized_set_random(struct plan *plan, struct plan_random random)
{
    plan_set_random(of(plan)->inner, random.seed, random.first_sample);
}

static bool standardized_streamed(const struct plan *plan, struct plan_streamed *out)
{
    if (!plan_streamed(of_const(plan)->inner, out))
        return false;
    out->predicted_bytes += own_bytes(of_const(plan));
    return true;
}

static struct plan_memory standardized_memory(const struct plan *plan)
{
    const struct standardized *s = of_const(plan);
    struct plan_memory memory = plan_memory(s->inner);
    for (int i = 0; i < s->n_weights; i++)
        memory.weights +=
            (size_t)(s->weights[i].rows.rows * s->weights[i].rows.length) * sizeof(float);
    if (s->gradients)
        memory.gradients += (size_t)s->n_gradients * sizeof(float);
    memory.gradients_lent = s->lent;
    return memory;
}

static int standardized_steps(const struct plan *plan)
{
    return plan_steps(of_const(plan)->inner);
}

static void standardized_print(const struct plan *plan, FILE *stream)
{
    fprintf(stream, "with %d weights that are standardised before:\n", of_const(plan)->n_weights);
    plan_print(of_const(plan)->inner, stream);
}

static const struct tape *standardized_tape(const struct plan *plan)
{
    return plan_tape(of_const(plan)->inner);
}

const struct plan_ops plan_standardized = {
    .name = "standardized",
    .make = standardized_make,
    .free = standardized_free,
    .input = standardized_input,
    .output = standardized_output,
    .forward = standardized_forward,
    .memory = standardized_memory,
    .steps = standardized_steps,
    .print = standardized_print,
    .forward_until = standardized_forward_until,
    .refresh = standardized_refresh,
    .activation = standardized_activation,
    .set_random = standardized_set_random,
    .on_step = standardized_on_step,
    .hold_statistics = standardized_hold_statistics,
    .backward = standardized_backward,
    .backward_half = standardized_backward_half,
    .output_gradient = standardized_output_gradient,
    .gradients = standardized_gradients,
    .parameter_gradient = standardized_parameter_gradient,
    .on_gradient = standardized_on_gradient,
    .streamed = standardized_streamed,
    .tape = standardized_tape,
};
