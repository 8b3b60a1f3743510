/* transform_attention.c: attention as products of matrices and a softmax, whose output is the map
 * of attention [N, heads, T, S]. */
#include <math.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

/* A score that is never seen: added where the mask is 0. */
#define UNSEEN 1e9f

/* [N, T, heads d] -> [N, heads, T, d] */
static value_id split_heads(struct graph *graph, value_id x, int64_t heads)
{
    return graph_transpose(graph, graph_reshape(graph, x, SHAPE(0, 0, heads, -1)),
                           (const int64_t[]){ 0, 2, 1, 3 });
}

static value_id input_of(struct rewrite *r, const struct node *node, int i)
{
    return i < node->n_inputs && node->inputs[i] != NO_VALUE ? rewrite_value(r, node->inputs[i])
                                                             : NO_VALUE;
}

static value_id expand(struct rewrite *r, const struct node *node)
{
    struct graph *to = r->to;
    const struct attention_attr *attr = &node->attr.attention;
    int64_t features = graph_shape(r->from, node->output)->dim[2];
    float scale =
        attr->scale != 0 ? attr->scale : (float)(1 / sqrt((double)features / (double)attr->heads));
    value_id q = input_of(r, node, 0), k = input_of(r, node, 1), v = input_of(r, node, 2);
    value_id bias = input_of(r, node, 3), mask = input_of(r, node, 4);
    if (k == NO_VALUE) {
        k = graph_slice(to, q, 2, features, 2 * features);
        v = graph_slice(to, q, 2, 2 * features, 3 * features);
        q = graph_slice(to, q, 2, 0, features);
    }
    value_id y = graph_matmul(to, split_heads(to, q, attr->heads), split_heads(to, k, attr->heads),
                              (struct matmul_attr){ .transpose_b = true, .scale = scale });
    if (bias != NO_VALUE)
        y = graph_add(to, y, bias);
    if (mask != NO_VALUE) {
        mask = graph_scale(to, graph_reshape(to, mask, SHAPE(0, 1, 1, -1)), UNSEEN, -UNSEEN);
        y = graph_add(to, y, mask);
    }
    y = graph_matmul(to, graph_softmax(to, y, -1), split_heads(to, v, attr->heads),
                     (struct matmul_attr){ 0 });
    y = graph_transpose(to, y, (const int64_t[]){ 0, 2, 1, 3 });
    if (y == NO_VALUE)
        return NO_VALUE;
    return graph_node(to, OP_RESHAPE, node->name, &y, 1,
                      &(union attr){ .reshape = { SHAPE(0, 0, features) } });
}

bool transform_expand_attention(const struct graph *graph, struct graph **out, struct err *err)
{
    struct rewrite r;
    if (!rewrite_begin(&r, graph, true, NULL, 0, err))
        return false;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        if (node->op->kind == OP_ATTENTION)
            r.map[node->output] = expand(&r, node);
        else
            rewrite_node(&r, node, NULL);
    }
    return rewrite_end(&r, out, err);
}
