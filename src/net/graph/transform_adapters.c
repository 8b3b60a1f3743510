/* transform_adapters.c: networks of which only a part is learnt: adapters of low rank beside
 * convolutions and linear layers (Hu et al. 2021), and parameters by name. */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "base/text.h"
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

#define DOWN ".adapter_down"
#define UP ".adapter_up"
#define SUM ".adapted"

/* --- adding --- */

/* Inputs of one output: C, or C kh kw. */
static int64_t fan_in(const struct shape *weight)
{
    return shape_span(weight, 1, weight->rank);
}

/* A layer whose weight it alone reads, and that has more numbers than its adapter. */
static bool takes_adapter(const struct graph *graph, const struct node *node, int64_t rank)
{
    if ((node->op->kind != OP_CONV && node->op->kind != OP_LINEAR) || node->n_inputs > 3 ||
        !graph_is_parameter(graph, node->inputs[1]) || graph_users(graph, node->inputs[1]) != 1 ||
        !graph_data(graph, node->inputs[1]))
        return false;
    if (node->op->kind == OP_CONV &&
        (node->attr.conv.groups != 1 || node->attr.conv.activation != ACT_NONE))
        return false;
    if (node->op->kind == OP_LINEAR && node->attr.linear.activation != ACT_NONE)
        return false;
    const struct shape *weight = graph_shape(graph, node->inputs[1]);
    return rank * (weight->dim[0] + fan_in(weight)) < weight->dim[0] * fan_in(weight);
}

/* A layer NAME + suffix with a new weight, without bias. */
static value_id layer(struct rewrite *r, const struct node *node, const char *suffix, value_id x,
                      struct shape shape, const union attr *attr, float deviation)
{
    char *name = text_format("%s%s", node->name, suffix);
    char *weight_name = text_format("%s%s.weight", node->name, suffix);
    value_id weight = NO_VALUE, made = NO_VALUE;
    if (name && weight_name)
        weight = graph_parameter(r->to, weight_name, shape);
    else
        err_memory(&r->to->err, node->name);
    if (weight != NO_VALUE) {
        r->to->values[weight].init = deviation > 0 ? (struct init){ INIT_NORMAL, deviation }
                                                   : (struct init){ INIT_CONSTANT, 0 };
        made = graph_node(r->to, node->op->kind, name, (value_id[]){ x, weight }, 2, attr);
    }
    free(name);
    free(weight_name);
    return made;
}

/* y = W x becomes W x + B (A x) with B = 0 at first. */
static void adapt(struct rewrite *r, const struct node *node, int64_t rank)
{
    struct shape down = *graph_shape(r->from, node->inputs[1]), up = down;
    bool conv = node->op->kind == OP_CONV;
    union attr place = { .conv = conv_square(1, 1, 0) };
    value_id y = rewrite_node(r, node, NULL), x = rewrite_value(r, node->inputs[0]);
    down.dim[0] = rank;
    up.dim[1] = rank;
    for (int i = 2; i < up.rank; i++)
        up.dim[i] = 1;
    value_id z =
        layer(r, node, DOWN, x, down, &node->attr, (float)(1 / sqrt((double)fan_in(&down))));
    z = layer(r, node, UP, z, up, conv ? &place : &node->attr, 0);
    char *name = text_format("%s" SUM, node->name);
    if (name && y != NO_VALUE && z != NO_VALUE)
        r->map[node->output] = graph_node(r->to, OP_ADD, name, (value_id[]){ y, z }, 2, NULL);
    r->replaced[node->output] = true;
    free(name);
}

/* First values of what has none yet: the adapters. */
static bool initialize(struct graph *graph, uint64_t seed, struct err *err)
{
    for (value_id v = 0; v < graph->n_values; v++) {
        struct value *value = &graph->values[v];
        if (!graph_is_parameter(graph, v) || value->data)
            continue;
        int64_t count = shape_count(&value->shape);
        struct rng rng = rng_new(seed, rng_hash(value->name), 0);
        if (!(value->data = buffer_new(count)))
            return err_memory(err, value->name);
        for (int64_t i = 0; value->init.kind == INIT_NORMAL && i < count; i++)
            buffer_data(value->data)[i] = value->init.a * (float)rng_normal(&rng);
    }
    return true;
}

bool transform_adapters(const struct graph *graph, int64_t rank, uint64_t seed, struct graph **out,
                        struct err *err)
{
    struct rewrite r;
    int64_t n = 0;
    if (!rewrite_begin(&r, graph, true, NULL, 0, err))
        return false;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (takes_adapter(graph, &graph->nodes[i], rank)) {
            adapt(&r, &graph->nodes[i], rank);
            n++;
        } else {
            rewrite_node(&r, &graph->nodes[i], NULL);
        }
    struct graph *made = NULL;
    if (!rewrite_end(&r, &made, err))
        return false;
    bool ok =
        n > 0 || err_set(err, ERR_USAGE, "%s: no layer is larger than an adapter of rank %lld",
                         graph->name, (long long)rank);
    if (ok && initialize(made, seed, err)) {
        *out = made;
        return true;
    }
    graph_free(made);
    return false;
}

/* --- choosing what is learnt --- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_adapter(const char *name)
{
    return ends_with(name, DOWN ".weight") || ends_with(name, UP ".weight");
}

/* Whether a parameter is an adapter's, a norm's, or the bias of a layer. */
static bool is_of_kind(const struct graph *graph, value_id parameter, const char *kind)
{
    if (strcmp(kind, "adapters") == 0)
        return is_adapter(graph->values[parameter].name);
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        enum op_kind op = node->op->kind;
        bool norm =
            op == OP_GROUP_NORM || op == OP_LAYER_NORM || op == OP_RMS_NORM || op == OP_BATCH_NORM;
        for (int k = 1; k < node->n_inputs && k < 3; k++)
            if (node->inputs[k] == parameter &&
                ((norm && strcmp(kind, "norms") == 0) ||
                 (k == 2 && (op == OP_CONV || op == OP_LINEAR) && strcmp(kind, "biases") == 0)))
                return true;
    }
    return false;
}

static bool is_chosen(const struct graph *graph, value_id parameter, const char *pattern)
{
    if (strcmp(pattern, "adapters") == 0 || strcmp(pattern, "norms") == 0 ||
        strcmp(pattern, "biases") == 0)
        return is_of_kind(graph, parameter, pattern);
    return fnmatch(pattern, graph->values[parameter].name, 0) == 0;
}

bool transform_learn(const struct graph *graph, const char *const *patterns, size_t n,
                     struct graph **out, struct err *err)
{
    struct graph *copy = NULL;
    bool ok = graph_copy(graph, &copy, err);
    bool *chosen = ok ? calloc((size_t)copy->n_values + 1, sizeof *chosen) : NULL;
    ok = ok && (chosen || err_memory(err, graph->name));
    for (size_t p = 0; ok && p < n; p++) {
        bool any = false;
        for (value_id v = 0; v < copy->n_values; v++)
            if (copy->values[v].kind == VALUE_PARAMETER && is_chosen(copy, v, patterns[p]))
                any = chosen[v] = true;
        if (!any)
            ok = err_set(err, ERR_USAGE, "%s: has no parameter '%s'", graph->name, patterns[p]);
    }
    for (value_id v = 0; ok && v < copy->n_values; v++)
        if (copy->values[v].kind == VALUE_PARAMETER && !chosen[v])
            copy->values[v].kind = VALUE_BUFFER;
    free(chosen);
    if (ok)
        *out = copy;
    else
        graph_free(copy);
    return ok;
}

/* --- merging --- */

static value_id weight_of(const struct graph *graph, const char *name, const char *suffix)
{
    char *text = text_format("%s%s.weight", name, suffix);
    value_id found = text ? graph_find(graph, text) : NO_VALUE;
    free(text);
    return found;
}

/* W + B A; w, out [outputs, inner], a [rank, inner], b [outputs, rank] */
static void add_product(const float *w, const float *a, const float *b, int64_t outputs,
                        int64_t inner, int64_t rank, float *out)
{
    for (int64_t o = 0; o < outputs; o++)
        for (int64_t i = 0; i < inner; i++) {
            double sum = (double)w[o * inner + i];
            for (int64_t k = 0; k < rank; k++)
                sum += (double)b[o * rank + k] * (double)a[k * inner + i];
            out[o * inner + i] = (float)sum;
        }
}

static void merge(struct rewrite *r, const struct node *node, value_id down, value_id up)
{
    const struct graph *graph = r->from;
    const struct shape *shape = graph_shape(graph, node->inputs[1]);
    float *floats = NULL;
    value_id made = rewrite_fresh(r, node->inputs[1], *shape, &floats);
    if (made == NO_VALUE)
        return;
    add_product(graph_data(graph, node->inputs[1]), graph_data(graph, down), graph_data(graph, up),
                shape->dim[0], fan_in(shape), graph_shape(graph, down)->dim[0], floats);
    r->to->values[made].kind = VALUE_PARAMETER;
    r->map[node->inputs[1]] = made;
    rewrite_node(r, node, NULL);
}

bool transform_merge_adapters(const struct graph *graph, struct graph **out, struct err *err)
{
    struct rewrite r;
    if (!rewrite_begin(&r, graph, true, NULL, 0, err))
        return false;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        value_id down = weight_of(graph, node->name, DOWN), up = weight_of(graph, node->name, UP);
        if (down != NO_VALUE && up != NO_VALUE)
            merge(&r, node, down, up);
        else if (ends_with(node->name, SUM))
            r.map[node->output] = r.map[node->inputs[0]];
        else if (!ends_with(node->name, DOWN) && !ends_with(node->name, UP))
            rewrite_node(&r, node, NULL);
    }
    return rewrite_end(&r, out, err);
}
