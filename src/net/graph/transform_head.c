/* transform_head.c: a classifier that pools its last map and ends in a linear layer, with another
 * way from the map to the classes. */
#include <stdlib.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

const char *const head_names[] = { "auto", "mean", "lse", "max", "attention", "classes", NULL };

/* The end of the network: pooling -> flatten, dropout -> linear. */
struct ending {
    const struct node *pooling, *linear;
    bool alone; /* nothing else reads what is between them */
};

static bool find_ending(const struct graph *graph, struct ending *e, struct err *err)
{
    *e = (struct ending){ .linear = graph_maker(graph, graph->outputs[0].value), .alone = true };
    const struct node *at = e->linear && e->linear->op->kind == OP_LINEAR
                                ? graph_maker(graph, e->linear->inputs[0])
                                : NULL;
    while (at && !graph_pools_maps(graph, at)) {
        enum op_kind kind = at->op->kind;
        e->alone = e->alone && graph_only_user(graph, at->output);
        at = kind == OP_FLATTEN || kind == OP_RESHAPE || kind == OP_DROPOUT
                 ? graph_maker(graph, at->inputs[0])
                 : NULL;
    }
    e->pooling = at;
    e->alone = at && e->alone && graph_only_user(graph, at->output);
    return at || err_set(err, ERR_USAGE,
                         "%s: does not end in a pooling of its last map and a linear layer, so it "
                         "has no head that could be replaced",
                         graph->name);
}

/* The scores of attention: w (tanh(V h) sigmoid(U h)) at every cell of the map. A bias of w would
 * be the same at all of them, and the softmax would not see it. */
static value_id gated_scores(struct graph *to, value_id x)
{
    struct conv_attr one = conv_square(1, 1, 0);
    value_id v = graph_tanh(to, graph_conv(to, x, "head.v", HEAD_HIDDEN, true, one));
    value_id u = graph_sigmoid(to, graph_conv(to, x, "head.u", HEAD_HIDDEN, true, one));
    return graph_conv(to, graph_mul(to, v, u), "head.w", 1, false, one);
}

/* The new pooling takes the place of the old one, also in its shape. */
static void replace_pooling(struct rewrite *r, const struct node *old, enum head_kind head)
{
    value_id x = rewrite_value(r, old->inputs[0]), scores = NO_VALUE;
    enum op_kind kind = head == HEAD_LSE   ? OP_GLOBAL_LSE_POOL
                        : head == HEAD_MAX ? OP_GLOBAL_MAX_POOL
                                           : OP_GLOBAL_AVERAGE_POOL;
    bool flat = graph_shape(r->from, old->output)->rank == 2;
    if (head == HEAD_ATTENTION)
        kind = OP_ATTENTION_POOL, scores = gated_scores(r->to, x);
    if (x == NO_VALUE || (head == HEAD_ATTENTION && scores == NO_VALUE))
        return;
    value_id pooled = graph_node(r->to, kind, "head.pool", (value_id[]){ x, scores },
                                 head == HEAD_ATTENTION ? 2 : 1, NULL);
    if (flat && pooled != NO_VALUE)
        pooled =
            graph_node(r->to, OP_FLATTEN, old->name, &pooled, 1, &(union attr){ .axis = { 1 } });
    r->map[old->output] = pooled;
}

/* The linear layer as a 1x1 convolution of the map, then the pooling of every class. */
static void classify_cells(struct rewrite *r, const struct ending *e)
{
    const struct node *linear = e->linear;
    const struct shape *weight = graph_shape(r->from, linear->inputs[1]);
    value_id inputs[3] = { rewrite_value(r, e->pooling->inputs[0]) };
    inputs[1] = rewrite_reshaped(r, linear->inputs[1], SHAPE(weight->dim[0], weight->dim[1], 1, 1));
    if (linear->n_inputs > 2)
        inputs[2] = rewrite_value(r, linear->inputs[2]);
    if (inputs[0] == NO_VALUE || inputs[1] == NO_VALUE)
        return;
    union attr one = { .conv = conv_square(1, 1, 0) };
    value_id map = graph_node(r->to, OP_CONV, "head.map", inputs, linear->n_inputs, &one);
    if (map == NO_VALUE)
        return;
    value_id pooled = graph_node(r->to, OP_GLOBAL_LSE_POOL, "head.pool", &map, 1, NULL);
    if (pooled != NO_VALUE)
        r->map[linear->output] =
            graph_node(r->to, OP_FLATTEN, linear->name, &pooled, 1, &(union attr){ .axis = { 1 } });
}

/* Whether a node is between the pooling and the linear layer, or one of them. */
static bool is_in_ending(const struct graph *graph, const struct ending *e, const struct node *node)
{
    for (const struct node *at = e->linear; at != e->pooling;
         at = graph_maker(graph, at->inputs[0]))
        if (at == node)
            return true;
    return node == e->pooling;
}

bool transform_head(const struct graph *graph, enum head_kind head, struct graph **out,
                    struct err *err)
{
    struct ending e;
    struct rewrite r;
    if (head == HEAD_AUTO)
        return graph_copy(graph, out, err);
    if (!graph_ok(graph, err) || !find_ending(graph, &e, err))
        return false;
    if (head == HEAD_CLASSES && (!e.alone || !graph_is_parameter(graph, e.linear->inputs[1])))
        return err_set(err, ERR_USAGE,
                       "%s: %s is not a linear layer with fixed weights that alone reads what %s "
                       "gives, so it cannot classify every cell of the map",
                       graph->name, e.linear->name, e.pooling->name);
    if (!rewrite_begin(&r, graph, true, NULL, 0, err))
        return false;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        if (head == HEAD_CLASSES && is_in_ending(graph, &e, node)) {
            if (node == e.linear)
                classify_cells(&r, &e);
        } else if (node == e.pooling) {
            replace_pooling(&r, node, head);
        } else {
            rewrite_node(&r, node, NULL);
        }
    }
    return rewrite_end(&r, out, err);
}
