/* transform_space_read.c: the cells of a divided map that a layer reads, brought by halos. */
#include <stdlib.h>
#include <string.h>
#include "net/graph/space.h"

static const enum peer_group groups[2] = { PEERS_BANDS, PEERS_SPACE };

bool space_divided(const struct space *s, value_id value)
{
    return value != NO_VALUE && s->values[value].axes;
}

int64_t space_extent(const struct space_axis *axis, int p)
{
    return axis->cuts[p + 1] - axis->cuts[p];
}

bool space_refuse(const struct node *node, const char *why, struct err *err)
{
    return err_set(err, ERR_USAGE, "%s: %s %s", node->name, node->op->name, why);
}

value_id space_node(struct space *s, const struct node *node, const char *suffix, enum op_kind kind,
                    const value_id *inputs, int n, const union attr *attr)
{
    if (!*suffix)
        return graph_node(s->r.to, kind, node->name, inputs, n, attr);
    char *name = rewrite_new_name(&s->r, node->name, suffix);
    value_id made = name ? graph_node(s->r.to, kind, name, inputs, n, attr) : NO_VALUE;
    free(name);
    return made;
}

/* What part p gets from the neighbours along an axis; negative: what it leaves out. */
struct borders {
    int64_t before, after;
};

static struct borders borders_of(const struct space_axis *axis, const struct space_range *want,
                                 int p)
{
    return (struct borders){ axis->cuts[p] - want[p].begin, want[p].end - axis->cuts[p + 1] };
}

/* Whether every part and its neighbours have what it needs. */
static bool borders_exist(const struct node *node, const struct space_axis *axis,
                          const struct space_range *want, int parts, struct err *err)
{
    for (int p = 0; p < parts; p++) {
        struct borders b = borders_of(axis, want, p);
        int64_t in_front = p > 0 ? space_extent(axis, p - 1) : 0;
        int64_t behind = p + 1 < parts ? space_extent(axis, p + 1) : 0;
        int64_t needed = b.before > in_front ? b.before : b.after > behind ? b.after : 0;
        int64_t own = space_extent(axis, p);
        if (needed > 0)
            return err_set(err, ERR_USAGE,
                           "%s: %s needs %lld rows or columns of the part beside its own, which "
                           "has %lld of a map of %lld; divide images among fewer processes "
                           "(parallel.space) or use larger ones",
                           node->name, node->op->name, (long long)needed,
                           (long long)(b.before > in_front ? in_front : behind),
                           (long long)axis->cuts[parts]);
        if (-b.before > own || -b.after > own || own + b.before + b.after < 1)
            return err_set(err, ERR_USAGE,
                           "%s: %s reads nothing of the %lld rows or columns of a part; divide "
                           "images among fewer processes (parallel.space) or use larger ones",
                           node->name, node->op->name, (long long)own);
    }
    return true;
}

static bool is_all_there(const struct space_axis *axis, const struct space_range *want, int parts)
{
    for (int p = 0; p < parts; p++) {
        struct borders b = borders_of(axis, want, p);
        if (b.before || b.after)
            return false;
    }
    return true;
}

static int64_t at_least_0(int64_t n)
{
    return n > 0 ? n : 0;
}

static value_id add_halo(struct space *s, const struct node *node, value_id x, int axis,
                         const struct space_axis *have, const struct space_range *want)
{
    int p = s->at[axis];
    struct borders own = borders_of(have, want, p);
    struct halo_attr attr = { .axis = 2 + axis,
                              .before = own.before,
                              .after = own.after,
                              .group = groups[axis],
                              .uneven = true };
    if (p > 0)
        attr.given[0] = at_least_0(borders_of(have, want, p - 1).after);
    if (p + 1 < s->parts[axis])
        attr.given[1] = at_least_0(borders_of(have, want, p + 1).before);
    return space_node(s, node, axis ? ".columns" : ".rows", OP_HALO, &x, 1,
                      &(union attr){ .halo = attr });
}

static bool same_want(const struct space *s, const struct space_want *a, const struct space_want *b)
{
    for (int i = 0; i < 2; i++)
        if (memcmp(a->part[i], b->part[i], (size_t)s->parts[i] * sizeof a->part[i][0]) != 0)
            return false;
    return true;
}

/* Height first; the columns of what then is taller bring the corners along. Layers that read the
 * same share it. */
bool space_read(struct space *s, const struct node *node, value_id value,
                const struct space_want *want, value_id *out, struct err *err)
{
    struct space_value *v = &s->values[value];
    if (v->wider && same_want(s, v->wider, want)) {
        *out = v->widened;
        return true;
    }
    value_id x = s->r.map[value];
    for (int i = 0; i < 2; i++) {
        if (!borders_exist(node, &v->axes[i], want->part[i], s->parts[i], err))
            return false;
        if (x != NO_VALUE && !is_all_there(&v->axes[i], want->part[i], s->parts[i]))
            x = add_halo(s, node, x, i, &v->axes[i], want->part[i]);
    }
    if (x == NO_VALUE)
        return graph_ok(s->r.to, err);
    if (!v->wider && !(v->wider = malloc(sizeof *v->wider)))
        return err_memory(err, node->name);
    *v->wider = *want;
    *out = v->widened = x;
    return true;
}

bool space_read_as(struct space *s, const struct node *node, value_id value,
                   const struct space_axis *axes, value_id *out, struct err *err)
{
    struct space_want want;
    for (int i = 0; i < 2; i++)
        for (int p = 0; p < s->parts[i]; p++)
            want.part[i][p] = (struct space_range){ axes[i].cuts[p], axes[i].cuts[p + 1] };
    return space_read(s, node, value, &want, out, err);
}
