/* variant.c: see variant.h. */
#include "net/model/variant.h"
#include "net/graph/rewrite.h"
#include "net/kernels/standardize.h"

static bool replace(struct graph **graph, bool ok, struct graph *const *by)
{
    if (!ok)
        return false;
    graph_free(*graph);
    *graph = *by;
    return true;
}

bool variant_apply(struct graph **graph, const struct network_variant *variant, struct err *err)
{
    struct graph *next = NULL;
    if (variant->head != HEAD_AUTO &&
        !replace(graph, transform_head(*graph, variant->head, &next, err), &next))
        return false;
    if (variant->norm != NORM_BATCH && variant->norm != NORM_FROZEN &&
        !replace(graph, transform_norm(*graph, variant->norm, &next, err), &next))
        return false;
    return variant->padding == PADDING_ZERO ||
           replace(graph, transform_padding(*graph, variant->padding, &next, err), &next);
}

/* The weight under its own name, with other floats. */
static void settle(struct rewrite *r, const struct node *node)
{
    const struct graph *graph = r->from;
    const struct shape *shape = graph_shape(graph, node->inputs[0]);
    struct standardize rows = { shape->dim[0], shape_span(shape, 1, shape->rank),
                                node->attr.norm.epsilon, 1 };
    float *floats = NULL;
    value_id made = rewrite_fresh(r, node->inputs[0], *shape, &floats);
    if (made != NO_VALUE)
        standardize_run(&rows, graph_data(graph, node->inputs[0]),
                        graph_data(graph, node->inputs[1]), floats);
    r->map[node->output] = made;
}

/* Whether a node standardises a weight that it alone reads and that has floats. */
static bool is_settled(const struct graph *graph, const struct node *node)
{
    return node->op->kind == OP_STANDARDIZE && graph_is_parameter(graph, node->inputs[0]) &&
           graph_is_parameter(graph, node->inputs[1]) && graph_data(graph, node->inputs[0]) &&
           graph_data(graph, node->inputs[1]) && graph_users(graph, node->inputs[0]) == 1;
}

bool variant_settle(struct graph **graph, struct err *err)
{
    struct graph *next = NULL;
    struct rewrite r;
    bool any = false;
    for (int32_t i = 0; i < (*graph)->n_nodes; i++)
        any = any || is_settled(*graph, &(*graph)->nodes[i]);
    if (!any)
        return true;
    if (!rewrite_begin(&r, *graph, true, NULL, 0, err))
        return false;
    for (int32_t i = 0; i < (*graph)->n_nodes; i++)
        if (is_settled(*graph, &(*graph)->nodes[i]))
            settle(&r, &(*graph)->nodes[i]);
        else
            rewrite_node(&r, &(*graph)->nodes[i], NULL);
    return replace(graph, rewrite_end(&r, &next, err), &next);
}
