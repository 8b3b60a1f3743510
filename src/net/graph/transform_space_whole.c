/* transform_space_whole.c: where parts of a map become one thing that every process has: poolings
 * of a whole map, from those of the parts; or the whole map. Each process may use it for another
 * part of the loss, or one process for all of it, so gradients are summed over all. */
#include <math.h>
#include "net/graph/space.h"

static const enum peer_group groups[2] = { PEERS_BANDS, PEERS_SPACE };
static const char *const suffixes[2] = { ".over_rows", ".over_columns" };

static double cells(const struct space *s, value_id value, bool whole)
{
    double n = 1;
    for (int i = 0; i < 2; i++) {
        const struct space_axis *axis = &s->values[value].axes[i];
        n *= (double)(whole ? axis->cuts[s->parts[i]] : space_extent(axis, s->at[i]));
    }
    return n;
}

/* Summed over all parts; the last node has the name of `node`, if it is to end with it. */
static value_id sum(struct space *s, const struct node *node, value_id x, bool ends)
{
    for (int i = 0; i < 2 && x != NO_VALUE; i++) {
        bool last = i == 1 || s->parts[1] == 1;
        struct all_reduce_attr attr = { groups[i], true, true };
        if (s->parts[i] > 1)
            x = space_node(s, node, last && ends ? "" : suffixes[i], OP_ALL_REDUCE, &x, 1,
                           &(union attr){ .all_reduce = attr });
    }
    return x;
}

/* [N, C, 1, 1] of every part -> [N, C, rows, columns]. */
static value_id gather(struct space *s, const struct node *node, const char *what, value_id x)
{
    for (int i = 0; i < 2 && x != NO_VALUE; i++) {
        struct all_gather_attr attr = {
            .axis = 2 + i, .parts = s->parts[i], .group = groups[i], .sum_backward = true
        };
        if (s->parts[i] > 1)
            x = space_node(s, node, what, OP_ALL_GATHER, &x, 1,
                           &(union attr){ .all_gather = attr });
    }
    return x;
}

static value_id shift(struct space *s, const struct node *node, const char *suffix, value_id x,
                      double factor, double offset)
{
    struct scale_attr attr = { (float)factor, (float)offset };
    return x == NO_VALUE
               ? NO_VALUE
               : space_node(s, node, suffix, OP_SCALE, &x, 1, &(union attr){ .scale = attr });
}

/* Numbers of parts become one by the same op. The log-sum-exp of a part counts as its cells do:
 * 1/r log(sum over parts of cells/all exp(r part)). */
static value_id pool_again(struct space *s, const struct node *node, value_id part)
{
    double parts = (double)s->parts[0] * s->parts[1];
    if (node->op->kind == OP_GLOBAL_LSE_POOL)
        part =
            shift(s, node, ".share", part, 1,
                  log(cells(s, node->inputs[0], false) * parts / cells(s, node->inputs[0], true)) /
                      (double)node->attr.lse.r);
    part = gather(s, node, ".parts", part);
    return part == NO_VALUE ? NO_VALUE
                            : space_node(s, node, "", node->op->kind, &part, 1, &node->attr);
}

/* A mean with the softmax of scores as weights: that of the parts' means, with the logs of the
 * parts' sums of exponentials as scores. */
static value_id attend_again(struct space *s, const struct node *node, value_id part,
                             value_id scores)
{
    union attr lse = { .lse = { 1 } };
    value_id log_sum = space_node(s, node, ".log_sum", OP_GLOBAL_LSE_POOL, &scores, 1, &lse);
    log_sum = shift(s, node, ".share", log_sum, 1, log(cells(s, node->inputs[0], false)));
    value_id inputs[2] = { gather(s, node, ".parts", part), gather(s, node, ".scores", log_sum) };
    return inputs[0] == NO_VALUE || inputs[1] == NO_VALUE
               ? NO_VALUE
               : space_node(s, node, "", node->op->kind, inputs, 2, &node->attr);
}

bool space_pool(struct space *s, const struct node *node, struct err *err)
{
    value_id inputs[2] = { s->r.map[node->inputs[0]], NO_VALUE }, made = NO_VALUE;
    if (node->op->kind == OP_ATTENTION_POOL &&
        (!space_divided(s, node->inputs[1]) ||
         !space_read_as(s, node, node->inputs[1], s->values[node->inputs[0]].axes, &inputs[1],
                        err)))
        return space_refuse(node, "has scores that are not divided as its map is", err);
    value_id part =
        space_node(s, node, ".part", node->op->kind, inputs, node->n_inputs, &node->attr);
    if (part == NO_VALUE)
        return graph_ok(s->r.to, err);
    if (node->op->kind == OP_ATTENTION_POOL)
        made = attend_again(s, node, part, inputs[1]);
    else if (node->op->kind == OP_GLOBAL_MAX_POOL || node->op->kind == OP_GLOBAL_LSE_POOL)
        made = pool_again(s, node, part);
    else
        made = sum(s, node,
                   shift(s, node, ".share", part,
                         cells(s, node->inputs[0], false) / cells(s, node->inputs[0], true), 0),
                   true);
    s->r.map[node->output] = made;
    return made != NO_VALUE || graph_ok(s->r.to, err);
}

/* The sum of parts that are zero where the others are. */
value_id space_whole(struct space *s, const struct node *node, value_id value)
{
    value_id x = s->r.map[value];
    struct pad_attr around = { .mode = PAD_ZERO };
    for (int i = 0; i < 2; i++) {
        const struct space_axis *axis = &s->values[value].axes[i];
        around.pad[i] = axis->cuts[s->at[i]];
        around.pad[2 + i] = axis->cuts[s->parts[i]] - axis->cuts[s->at[i] + 1];
    }
    return sum(s, node, space_node(s, node, ".part", OP_PAD, &x, 1, &(union attr){ .pad = around }),
               false);
}

bool space_join(struct space *s, const struct node *node, struct err *err)
{
    value_id own = s->r.map[node->inputs[0]], x = space_whole(s, node, node->inputs[0]);
    s->r.map[node->inputs[0]] = x; /* for this node only */
    if (x != NO_VALUE)
        rewrite_node(&s->r, node, NULL);
    s->r.map[node->inputs[0]] = own;
    return x != NO_VALUE || graph_ok(s->r.to, err);
}
