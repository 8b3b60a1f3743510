/* batch.c: a file that leaves the batch open computes shapes from it, and an import knows them for
 * one batch only. A second import with another batch shows which extents of a reshape depend on it.
 */
#include <string.h>
#include "net/onnx/import.h"

static bool same_nodes(const struct graph *a, const struct graph *b)
{
    if (a->n_nodes != b->n_nodes || a->n_values != b->n_values)
        return false;
    for (int32_t i = 0; i < a->n_nodes; i++)
        if (a->nodes[i].op != b->nodes[i].op || a->nodes[i].output != b->nodes[i].output)
            return false;
    return true;
}

/* The target of one reshape: 0 for what stays at its axis, -1 for the one axis that changes with
 * the batch; false if there are several. An axis that the file itself leaves open stays so if none
 * depends on the batch. */
static bool free_target(const struct shape *in_a, const struct shape *in_b,
                        const struct shape *out_a, const struct shape *out_b, struct shape *target)
{
    struct shape made = *out_a;
    int open = -1;
    for (int k = 0; k < made.rank; k++) {
        bool varies = out_a->dim[k] != out_b->dim[k];
        bool stays = k < in_a->rank && k < in_b->rank && in_a->dim[k] == out_a->dim[k] &&
                     in_b->dim[k] == out_b->dim[k];
        if (stays) {
            made.dim[k] = 0;
        } else if (varies) {
            if (open >= 0)
                return false;
            open = k;
            made.dim[k] = -1;
        }
    }
    for (int k = 0; k < made.rank && open < 0; k++)
        if (target->dim[k] == -1 && made.dim[k] != 0)
            made.dim[k] = -1, open = k;
    *target = made;
    return true;
}

void onnx_free_batch(struct graph *graph, const struct graph *other)
{
    if (!same_nodes(graph, other))
        return;
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        struct node *node = &graph->nodes[i];
        value_id x = node->inputs[0], y = node->output;
        if (node->op->kind != OP_RESHAPE || graph_shape(graph, y)->rank == 0 ||
            graph_shape(graph, y)->rank != graph_shape(other, y)->rank)
            continue;
        struct shape target = node->attr.reshape.target;
        if (free_target(graph_shape(graph, x), graph_shape(other, x), graph_shape(graph, y),
                        graph_shape(other, y), &target))
            node->attr.reshape.target = target;
    }
}
