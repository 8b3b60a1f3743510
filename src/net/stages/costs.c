/* costs.c: the costs of layers, measured or counted, and of the stages that are made of them. */
#include "net/stages/costs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/graph/transform.h"
#include "net/plan/node_costs.h"

/* --- counted --- */

/* A processor to count for. */
#define MULTIPLY_ADDS_PER_S 3e10
#define BYTES_PER_S 1e10

static double bytes_of(const struct graph *graph, value_id value)
{
    return (double)shape_count(graph_shape(graph, value)) * sizeof(float);
}

/* Of the activations that a node reads and writes. */
static double activation_bytes(const struct graph *graph, const struct node *node)
{
    double bytes = bytes_of(graph, node->output);
    for (int k = 0; k < node->n_inputs; k++)
        if (node->inputs[k] != NO_VALUE && !graph_is_parameter(graph, node->inputs[k]))
            bytes += bytes_of(graph, node->inputs[k]);
    return bytes;
}

/* Whether the backward pass of a node needs the numbers that it read. */
static bool needs_input(enum op_kind kind)
{
    switch (kind) {
    case OP_CONV:
    case OP_CONV_TRANSPOSE:
    case OP_LINEAR:
    case OP_MATMUL:
    case OP_ATTENTION:
    case OP_RMS_NORM:
    case OP_BATCH_NORM:
    case OP_GROUP_NORM:
    case OP_LAYER_NORM:
    case OP_SILU:
    case OP_GELU:
    case OP_LRN:
    case OP_MUL:
    case OP_DIV:
    case OP_GLOBAL_LSE_POOL:
    case OP_ATTENTION_POOL:
    case OP_STANDARDIZE:
    case OP_FUNCTION:
    case OP_REDUCE_MAX:
    case OP_EMBEDDING:
        return true;
    default:
        return false;
    }
}

/* The same of the numbers that it made. */
static bool needs_output(enum op_kind kind)
{
    switch (kind) {
    case OP_RELU:
    case OP_LEAKY_RELU:
    case OP_SIGMOID:
    case OP_TANH:
    case OP_MAX_POOL: /* where the maxima were, about as much */
    case OP_SOFTMAX:
    case OP_LOG_SOFTMAX:
    case OP_DROPOUT:
    case OP_ATTENTION:
        return true;
    default:
        return false;
    }
}

static void count_kept(const struct graph *graph, struct node_cost *costs)
{
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        if (needs_output(node->op->kind))
            costs[i].kept = (size_t)bytes_of(graph, node->output);
        for (int k = 0; k < node->n_inputs && needs_input(node->op->kind); k++) {
            const struct node *maker = graph_maker(graph, node->inputs[k]);
            if (maker)
                costs[maker - graph->nodes].kept = (size_t)bytes_of(graph, maker->output);
        }
        costs[i].working = (size_t)activation_bytes(graph, node);
    }
}

bool costs_count(const struct graph *graph, struct node_cost *costs, struct err *err)
{
    bool *learns = calloc((size_t)graph->n_values + 1, sizeof *learns);
    if (!learns)
        return err_memory(err, graph->name);
    memset(costs, 0, (size_t)graph->n_nodes * sizeof *costs);
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        bool weights = false, inputs = false;
        for (int k = 0; k < node->n_inputs; k++) {
            value_id x = node->inputs[k];
            bool parameter = x != NO_VALUE && graph->values[x].kind == VALUE_PARAMETER;
            weights = weights || parameter;
            inputs = inputs || (x != NO_VALUE && learns[x]);
        }
        learns[node->output] = weights || inputs;
        double once = graph_node_multiply_adds(graph, node) / MULTIPLY_ADDS_PER_S;
        double moved = activation_bytes(graph, node) / BYTES_PER_S;
        costs[i].forward_s = once + moved;
        costs[i].weights_s = weights && once > 0 ? once : 0;
        costs[i].backward_s =
            costs[i].weights_s + (inputs ? once : 0) + (learns[node->output] ? moved : 0);
    }
    count_kept(graph, costs);
    free(learns);
    return true;
}

/* --- measured --- */

struct measuring {
    const struct costs_options *options;
    struct plan_options plan;
    struct graph *graph; /* that is measured */
    size_t needed;       /* bytes for it */
};

/* The graph at this batch and size, with running statistics that may change; NULL: not a size for
 * this network. */
static bool resized(const struct graph *graph, int64_t batch, int64_t height, int64_t width,
                    struct graph **out, struct err *err)
{
    *out = NULL;
    if (!transform_resize(graph, batch, height, width, out, NULL))
        return true;
    for (int32_t v = 0; v < (*out)->n_values; v++)
        if ((*out)->values[v].kind == VALUE_BUFFER && !graph_own(*out, v, err)) {
            graph_free(*out);
            return false;
        }
    return true;
}

/* Whether it fits; if so it is in m->graph. */
static bool try_size(struct measuring *m, const struct graph *graph, int64_t batch, int64_t height,
                     int64_t width, struct err *err)
{
    struct graph *small = NULL;
    struct plan_estimate estimate = { 0 };
    if (!resized(graph, batch, height, width, &small, err))
        return false;
    if (!small)
        return true;
    if (!plan_estimate(small, &m->plan, &estimate, err)) {
        graph_free(small);
        return false;
    }
    m->needed =
        estimate.arena + estimate.plan + (size_t)graph_parameter_count(small) * sizeof(float);
    if (m->options->room == 0 || m->needed <= m->options->room)
        m->graph = small;
    else
        graph_free(small);
    return true;
}

/* The largest that fits: the batch first, then sides of 3/4, 1/2, 3/8, 1/4 .. as long as the
 * network takes them. */
static bool find_size(struct measuring *m, const struct graph *graph, int64_t *px, struct err *err)
{
    const struct shape *input = graph_shape(graph, graph->inputs[0].value);
    int64_t batch = input->rank > 0 ? input->dim[0] : 1;
    int64_t height = input->rank == 4 ? input->dim[2] : 0;
    int64_t width = input->rank == 4 ? input->dim[3] : 0;
    bool ok = try_size(m, graph, batch, height, width, err);
    for (; ok && !m->graph && batch > 1;)
        ok = try_size(m, graph, batch /= 2, height, width, err);
    bool fourths = false;
    while (ok && !m->graph && height > 0) {
        fourths = !fourths; /* times 3/4, then 2/3 */
        height = fourths ? height * 3 / 4 : height * 2 / 3;
        width = fourths ? width * 3 / 4 : width * 2 / 3;
        if ((height < width ? height : width) < (m->options->least_px ? m->options->least_px : 1))
            break;
        ok = try_size(m, graph, batch, height, width, err);
    }
    *px = height;
    if (ok && !m->graph)
        return err_set(err, ERR_MEMORY,
                       "%s: measuring its layers takes at least %.0f MB, but only %.0f MB are "
                       "there; allow more memory or use smaller images",
                       graph->name, ceil((double)m->needed / 1e6), (double)m->options->room / 1e6);
    return ok;
}

static void fill(struct plan *plan, const struct graph *graph)
{
    struct rng rng = rng_new(1, 2, 3);
    for (int i = 0; i < graph->n_inputs; i++) {
        int64_t count = shape_count(graph_shape(graph, graph->inputs[i].value));
        float *to = plan_input(plan, i);
        for (int64_t k = 0; k < count; k++)
            to[k] = (float)(rng_u32(&rng) >> 8) / (1 << 24) - 0.5f;
    }
}

static bool run_all(struct measuring *m, struct plan_node_times *times, struct err *err)
{
    struct plan *plan = NULL;
    if (!plan_new(m->graph, &m->plan, &plan, err))
        return false;
    fill(plan, m->graph);
    bool ok = true;
    for (int r = 0; ok && r < (m->options->repeats ? m->options->repeats : 2); r++) {
        ok = plan_forward(plan, err);
        for (int i = 0; ok && i < m->graph->n_outputs; i++) {
            int64_t count = shape_count(graph_shape(m->graph, m->graph->outputs[i].value));
            float *gradient = plan_output_gradient(plan, i);
            for (int64_t k = 0; k < count; k++)
                gradient[k] = 1e-3f;
        }
        ok = ok && plan_backward(plan, err);
    }
    ok = ok && plan_node_times(plan, times, err);
    plan_free(plan);
    return ok;
}

/* How much more a node has to do at the shapes of `full` than at those that were measured: in
 * multiply-adds, where it has any, else in elements. */
static double growth(const struct graph *full, const struct graph *measured, int32_t i)
{
    double adds = graph_node_multiply_adds(measured, &measured->nodes[i]);
    if (adds > 0)
        return graph_node_multiply_adds(full, &full->nodes[i]) / adds;
    return activation_bytes(full, &full->nodes[i]) /
           activation_bytes(measured, &measured->nodes[i]);
}

bool costs_measure(const struct graph *graph, const struct costs_options *options,
                   struct node_cost *costs, int64_t *measured_px, struct err *err)
{
    struct measuring m = {
        .options = options,
        .plan = { .mode = PLAN_TRAIN, .threads = options->threads, .profile = true },
    };
    size_t n = (size_t)graph->n_nodes + 1;
    struct plan_node_times *times = calloc(n, sizeof *times);
    struct plan_node_memory *memory = calloc(n, sizeof *memory);
    bool ok = (times && memory) || err_memory(err, graph->name);
    ok = ok && find_size(&m, graph, measured_px, err) && run_all(&m, times, err) &&
         plan_node_memory(graph, &m.plan, memory, err);
    for (int32_t i = 0; ok && i < graph->n_nodes; i++) {
        double more = growth(graph, m.graph, i);
        costs[i] = (struct node_cost){ .forward_s = times[i].forward_s * more,
                                       .backward_s = times[i].backward_s * more,
                                       .weights_s = times[i].weights_s * more,
                                       .kept = memory[i].kept,
                                       .working = memory[i].working };
    }
    graph_free(m.graph);
    free(times), free(memory);
    return ok;
}

/* --- stages --- */

static void sum_nodes(const struct stages *stages, int s, const struct node_cost *costs,
                      struct stage_cost *out)
{
    size_t before = 0;
    for (int32_t i = stages->begin[s]; i < stages->begin[s + 1]; i++) {
        out->forward_s += costs[i].forward_s;
        out->backward_s += costs[i].backward_s;
        out->weights_s += costs[i].weights_s;
        before += costs[i].kept;
        if (before + costs[i].working > out->kept)
            out->kept = before + costs[i].working;
    }
}

/* Inputs and outputs of a stage stay for the whole step; with what was sent there are gradients,
 * and what was received is there in the kernels' layout too. */
static size_t end_bytes(const struct stages *stages, int s)
{
    const struct graph *graph = stages->graphs[s];
    size_t bytes = 0;
    for (int i = 0; i < graph->n_inputs; i++)
        bytes += (size_t)bytes_of(graph, graph->inputs[i].value);
    for (int i = 0; i < graph->n_outputs; i++)
        bytes += 2 * (size_t)bytes_of(graph, graph->outputs[i].value);
    for (int e = 0; e < stages->n_edges; e++)
        bytes += stages->edges[e].to == s ? stages->edges[e].bytes : 0;
    return bytes;
}

void costs_of_stages(const struct stages *stages, const struct node_cost *costs,
                     struct stage_cost *out)
{
    for (int s = 0; s < stages->n; s++) {
        const struct graph *graph = stages->graphs[s];
        out[s] = (struct stage_cost){ .parameters =
                                          (size_t)graph_parameter_count(graph) * sizeof(float) };
        sum_nodes(stages, s, costs, &out[s]);
        out[s].kept += end_bytes(stages, s);
        for (int i = 0; i < graph->n_inputs; i++)
            out[s].inputs += (size_t)bytes_of(graph, graph->inputs[i].value);
    }
}
