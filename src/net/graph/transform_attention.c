/* transform_attention.c: attention as products of matrices and a softmax, whose output is the map
 * of attention [N, heads, T, S]. */
#include <math.h>
#include <stdlib.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

/* A score that is never seen: added where the mask is 0. */
#define UNSEEN 1e9f

/* A node that is being expanded. */
struct expansion {
    struct rewrite *r;
    const struct node *node;
};

/* A node "NAME.suffix": generated names could be those of nodes that are copied later. b NO_VALUE:
 * one input. */
static value_id put(const struct expansion *e, enum op_kind kind, const char *suffix, value_id a,
                    value_id b, union attr attr)
{
    char *name = a == NO_VALUE ? NULL : rewrite_new_name(e->r, e->node->name, suffix);
    value_id made = NO_VALUE;
    if (name)
        made = graph_node(e->r->to, kind, name, (const value_id[]){ a, b }, b == NO_VALUE ? 1 : 2,
                          &attr);
    free(name);
    return made;
}

static value_id put_reshape(const struct expansion *e, const char *suffix, value_id x,
                            struct shape target)
{
    return put(e, OP_RESHAPE, suffix, x, NO_VALUE, (union attr){ .reshape = { target } });
}

/* Exchanges the axes 1 and 2 of x, [.., .., .., ..] */
static value_id put_swap(const struct expansion *e, const char *suffix, value_id x)
{
    return put(e, OP_TRANSPOSE, suffix, x, NO_VALUE,
               (union attr){ .transpose = { 4, { 0, 2, 1, 3 } } });
}

/* Part i of q, k and v side by side. */
static value_id put_part(const struct expansion *e, const char *suffix, value_id x, int64_t i,
                         int64_t features)
{
    return put(e, OP_SLICE, suffix, x, NO_VALUE,
               (union attr){ .slice = { 2, i * features, (i + 1) * features, 1 } });
}

static value_id input_of(const struct expansion *e, int i)
{
    const struct node *node = e->node;
    return i < node->n_inputs && node->inputs[i] != NO_VALUE ? rewrite_value(e->r, node->inputs[i])
                                                             : NO_VALUE;
}

/* The scores before the softmax, [N, heads, T, S], of q [N, heads, T, d], k [N, heads, S, d] */
static value_id put_scores(const struct expansion *e, value_id q, value_id k, int64_t features)
{
    const struct attention_attr *attr = &e->node->attr.attention;
    float scale =
        attr->scale != 0 ? attr->scale : (float)(1 / sqrt((double)features / (double)attr->heads));
    value_id bias = input_of(e, 3), mask = input_of(e, 4);
    value_id y = put(e, OP_MATMUL, ".products", q, k,
                     (union attr){ .matmul = { .transpose_b = true, .scale = scale } });
    if (bias != NO_VALUE)
        y = put(e, OP_ADD, ".biased", y, bias, (union attr){ 0 });
    if (mask == NO_VALUE)
        return y;
    mask = put_reshape(e, ".mask", mask, SHAPE(0, 1, 1, -1));
    mask =
        put(e, OP_SCALE, ".unseen", mask, NO_VALUE, (union attr){ .scale = { UNSEEN, -UNSEEN } });
    return put(e, OP_ADD, ".masked", y, mask, (union attr){ 0 });
}

static value_id expand(struct rewrite *r, const struct node *node)
{
    struct expansion e = { r, node };
    int64_t features = graph_shape(r->from, node->output)->dim[2];
    struct shape heads = SHAPE(0, 0, node->attr.attention.heads, -1);
    value_id q = input_of(&e, 0), k = input_of(&e, 1), v = input_of(&e, 2);
    if (k == NO_VALUE) {
        k = put_part(&e, ".k", q, 1, features);
        v = put_part(&e, ".v", q, 2, features);
        q = put_part(&e, ".q", q, 0, features);
    }
    q = put_swap(&e, ".q_by_head", put_reshape(&e, ".q_heads", q, heads));
    k = put_swap(&e, ".k_by_head", put_reshape(&e, ".k_heads", k, heads));
    v = put_swap(&e, ".v_by_head", put_reshape(&e, ".v_heads", v, heads));
    value_id y = put_scores(&e, q, k, features);
    y = put(&e, OP_SOFTMAX, ".map", y, NO_VALUE, (union attr){ .axis = { -1 } });
    y = put(&e, OP_MATMUL, ".seen", y, v, (union attr){ 0 });
    y = put_swap(&e, ".heads", y);
    if (y == NO_VALUE)
        return NO_VALUE;
    return graph_node(r->to, OP_RESHAPE, node->name, &y, 1,
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
