/* transform_padding.c: one kind of padding for a whole network. */
#include <stdlib.h>
#include <string.h>
#include "net/graph/rewrite.h"
#include "net/graph/transform.h"

/* The padding of a sliding window, or NULL if the node has none to change. */
static int64_t *pad_of(const struct node *node, union attr *attr)
{
    switch (node->op->kind) {
    case OP_CONV:
        return attr->conv.pad;
    case OP_MAX_POOL:
    case OP_AVERAGE_POOL:
        return attr->pool.pad;
    default:
        return NULL;
    }
}

static void with_border(struct rewrite *r, const struct node *node, union attr *attr,
                        enum pad_mode mode)
{
    struct pad_attr border = { .mode = mode };
    int64_t *pad = pad_of(node, attr);
    memcpy(border.pad, pad, sizeof border.pad);
    memset(pad, 0, sizeof border.pad);
    char *name = rewrite_new_name(r, node->name, ".pad");
    value_id x = rewrite_value(r, node->inputs[0]);
    value_id padded = !name || x == NO_VALUE
                          ? NO_VALUE
                          : graph_node(r->to, OP_PAD, name, &x, 1, &(union attr){ .pad = border });
    free(name);
    r->map[node->inputs[0]] = padded; /* for this node only */
    rewrite_node(r, node, attr);
    r->map[node->inputs[0]] = x;
}

/* x cropped around its middle to height x width. */
static value_id crop(struct rewrite *r, const char *name, value_id x, int64_t height, int64_t width)
{
    const struct shape *shape = graph_shape(r->to, x);
    int64_t rows = shape->dim[2] - height, columns = shape->dim[3] - width;
    if (rows == 0 && columns == 0)
        return x;
    struct pad_attr attr = { .pad = { -(rows / 2), -(columns / 2), rows / 2 - rows,
                                      columns / 2 - columns } };
    return graph_node(r->to, OP_PAD, name, &x, 1, &(union attr){ .pad = attr });
}

/* Branches that meet are cropped to the smallest of them. */
static void meet(struct rewrite *r, const struct node *node)
{
    int64_t height = INT64_MAX, width = INT64_MAX;
    value_id *inputs = calloc((size_t)node->n_inputs, sizeof *inputs);
    bool images = inputs != NULL;
    for (int i = 0; images && i < node->n_inputs; i++) {
        inputs[i] = rewrite_value(r, node->inputs[i]);
        if (inputs[i] == NO_VALUE || graph_shape(r->to, inputs[i])->rank != 4) {
            images = false;
            break;
        }
        const struct shape *shape = graph_shape(r->to, inputs[i]);
        images = images && shape->dim[2] * shape->dim[3] > 1;
        height = shape->dim[2] < height ? shape->dim[2] : height;
        width = shape->dim[3] < width ? shape->dim[3] : width;
    }
    for (int i = 0; images && i < node->n_inputs; i++) {
        char suffix[24];
        snprintf(suffix, sizeof suffix, ".crop%d", i);
        char *name = rewrite_new_name(r, node->name, suffix);
        inputs[i] = name ? crop(r, name, inputs[i], height, width) : NO_VALUE;
        free(name);
    }
    if (images)
        r->map[node->output] =
            graph_node(r->to, node->op->kind, node->name, inputs, node->n_inputs, &node->attr);
    else
        rewrite_node(r, node, NULL);
    free(inputs);
}

bool transform_padding(const struct graph *graph, enum padding padding, struct graph **out,
                       struct err *err)
{
    static const enum pad_mode modes[] = { [PADDING_ZERO] = PAD_ZERO,
                                           [PADDING_REFLECT] = PAD_REFLECT,
                                           [PADDING_REPLICATE] = PAD_REPLICATE,
                                           [PADDING_VALID] = PAD_ZERO };
    struct rewrite r;
    if (padding == PADDING_ZERO)
        return graph_copy(graph, out, err);
    if (!rewrite_begin(&r, graph, true, NULL, 0, err))
        return false;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        union attr attr = node->attr;
        int64_t *pad = pad_of(node, &attr);
        bool padded = pad && (pad[0] || pad[1] || pad[2] || pad[3]);
        if (padded && padding == PADDING_VALID) {
            memset(pad, 0, SIDES * sizeof *pad);
            rewrite_node(&r, node, &attr);
        } else if (padded) {
            with_border(&r, node, &attr, modes[padding]);
        } else if (padding == PADDING_VALID &&
                   (node->op->kind == OP_ADD || node->op->kind == OP_SUB ||
                    node->op->kind == OP_MUL || node->op->kind == OP_CONCAT)) {
            meet(&r, node);
        } else {
            rewrite_node(&r, node, NULL);
        }
    }
    return rewrite_end(&r, out, err);
}
