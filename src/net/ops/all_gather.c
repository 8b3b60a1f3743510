/* all_gather.c: parts of a tensor that peers have, joined, and the reverse (collective.h). The
 * gradient of the one is the other. What goes to others is two steps, between which others may run.
 */
#include <string.h>
#include "net/ops/collective.h"
#include "net/plan/peer_parts.h"

#define ATTR_STRUCT struct all_gather_attr
static const struct attr_field gather_fields[] = {
    FIELD(ATTR_INT, axis, 1, -SHAPE_DIMS, SHAPE_DIMS - 1),
    FIELD(ATTR_INT, parts, 1, 1, ATTR_LIMIT),
    GROUP_FIELD,
    FIELD(ATTR_BOOL, sum_backward, 1, 0, 1),
    FIELD(ATTR_INT, extent, 1, 0, ATTR_LIMIT),
    FIELD(ATTR_BOOL, again, 1, 0, 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

#define ATTR_STRUCT struct reduce_scatter_attr
static const struct attr_field scatter_fields[] = {
    FIELD(ATTR_INT, axis, 1, -SHAPE_DIMS, SHAPE_DIMS - 1),
    FIELD(ATTR_INT, parts, 1, 1, ATTR_LIMIT),
    FIELD(ATTR_INT, part, 1, 0, ATTR_LIMIT),
    GROUP_FIELD,
    FIELD(ATTR_BOOL, sum_forward, 1, 0, 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

static void gather_complete(union attr *attr)
{
    complete_ones(&attr->all_gather.parts, 1);
}

static bool gather_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct all_gather_attr *a = &attr->all_gather;
    int axis = axis_of(a->axis, in[0]->rank);
    if (axis < 0)
        return no_axis(a->axis, in[0]->rank, err);
    int64_t own = in[0]->dim[axis], less = a->extent / a->parts;
    int64_t more = less + (a->extent % a->parts > 0);
    if (a->extent && (own < less || own > more))
        return err_set(err, ERR_FORMAT,
                       "%lld of an extent of %lld, of which each of %lld peers has %lld or %lld",
                       (long long)own, (long long)a->extent, (long long)a->parts, (long long)less,
                       (long long)more);
    *out = *in[0];
    out->dim[axis] = a->extent ? a->extent : own * a->parts;
    return true;
}

static void scatter_complete(union attr *attr)
{
    complete_ones(&attr->reduce_scatter.parts, 1);
}

static bool scatter_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                          struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct reduce_scatter_attr *a = &attr->reduce_scatter;
    int axis = axis_of(a->axis, in[0]->rank), parts = (int)a->parts, part = (int)a->part;
    if (axis < 0)
        return no_axis(a->axis, in[0]->rank, err);
    int64_t extent = in[0]->dim[axis];
    if (part >= parts || extent < parts)
        return err_set(err, ERR_FORMAT, "part %d of %d of an extent of %lld", part, parts,
                       (long long)extent);
    *out = *in[0];
    out->dim[axis] =
        peer_part_begin(extent, parts, part + 1) - peer_part_begin(extent, parts, part);
    return true;
}

/* --- steps --- */

enum { AT_WHOLE, AT_OWN, AT_ROOM };

static bool run_gather_start(const struct step *step, struct err *err)
{
    return peer_gather_start(step->state, step->at[AT_OWN], step->at[AT_WHOLE], step->at[AT_ROOM],
                             err);
}

static bool run_gather_end(const struct step *step, struct err *err)
{
    return peer_gather_end(step->state, step->at[AT_OWN], step->at[AT_WHOLE], step->at[AT_ROOM],
                           err);
}

static bool run_scatter_start(const struct step *step, struct err *err)
{
    return peer_scatter_start(step->state, step->at[AT_WHOLE], step->at[AT_ROOM], err);
}

static bool run_scatter_end(const struct step *step, struct err *err)
{
    return peer_scatter_end(step->state, step->at[AT_WHOLE], step->at[AT_OWN], step->at[AT_ROOM],
                            err);
}

/* The own part of what all have. */
static bool run_take(const struct step *step, struct err *err)
{
    (void)err;
    const struct peer_parts *p = step->state;
    int64_t begin = peer_part_begin(p->extent, p->peers->size, p->peers->rank);
    int64_t row = peer_part_own(p) / p->outer;
    const float *from = (const float *)step->at[AT_WHOLE] + begin * p->inner;
    float *to = step->at[AT_OWN];
    for (int64_t o = 0; o < p->outer; o++)
        memcpy(to + o * row, from + o * p->extent * p->inner, (size_t)row * sizeof *to);
    return true;
}

/* A tensor in parts, with its slots. */
struct exchange {
    struct peer_parts parts;
    int whole, own, room;
};

static bool exchange_of(struct plan_node *pn, const struct plan_peers *peers, int axis,
                        enum layout layout, bool joins, struct exchange *out, struct err *err)
{
    const struct shape *whole = joins ? out_shape(pn) : in_shape(pn, 0);
    const struct shape *own = joins ? in_shape(pn, 0) : out_shape(pn);
    struct around all = around_axis(pn->tape, whole, axis_of(axis, whole->rank), layout);
    *out = (struct exchange){ .parts = { peers, all.outer, all.extent, all.inner } };
    return peer_part_own(&out->parts) == layout_count(pn->tape, own, layout) ||
           err_set(err, ERR_USAGE, "peer %d of %d does not have this part", peers->rank,
                   peers->size);
}

/* With a message, a half of an exchange; without, the own part is taken. */
static bool add_step(struct plan_node *pn, const struct exchange *x, bool gathers,
                     enum step_message message, struct err *err)
{
    bool first = message == MESSAGE_START;
    struct step_spec spec = { gathers ? "parts of peers" : "part of the sum over peers", run_take,
                              &x->parts, sizeof x->parts, 0 };
    if (message == MESSAGE_NONE)
        spec.kernel = "own part";
    else if (gathers)
        spec.run = first ? run_gather_start : run_gather_end;
    else
        spec.run = first ? run_scatter_start : run_scatter_end;
    struct step *step = step_add(pn->tape, &spec, err);
    enum access again = first ? ACCESS_WRITE : ACCESS_BOTH;
    if (!step || !step_use(step, x->whole, gathers ? again : ACCESS_READ, err))
        return false;
    step_use_optional(step, !gathers && first ? NO_SLOT : x->own,
                      gathers ? ACCESS_READ : ACCESS_WRITE);
    step_use_optional(step, message == MESSAGE_NONE ? NO_SLOT : x->room, again);
    step->talks = message != MESSAGE_NONE;
    step->message = message;
    step->peers = step->talks ? x->parts.peers : NULL;
    return true;
}

static bool add_exchange(struct plan_node *pn, struct exchange *x, bool gathers, struct err *err)
{
    if (x->whole == NO_SLOT || x->own == NO_SLOT)
        return err_memory(err, pn->node->name);
    x->room = slot_new(pn->tape, peer_parts_room(&x->parts));
    return add_step(pn, x, gathers, MESSAGE_START, err) &&
           add_step(pn, x, gathers, MESSAGE_END, err);
}

/* The own part of `whole`, or of its sum over peers. */
static bool add_part(struct plan_node *pn, struct exchange *x, bool sum, struct err *err)
{
    return sum ? add_exchange(pn, x, false, err) : add_step(pn, x, false, MESSAGE_NONE, err);
}

static bool check_peers(int64_t parts, const struct plan_peers *peers, enum peer_group group,
                        struct err *err)
{
    int size = peers ? peers->size : 1;
    return parts == size ||
           err_set(err, ERR_USAGE, "it joins %lld parts, but the group %s has %d peers",
                   (long long)parts, peer_group_names[group], size);
}

/* --- all_gather --- */

/* Parts are joined in memory along an axis that no block is cut by. */
static enum layout gather_layout(const struct plan_node *pn)
{
    const struct all_gather_attr *a = &pn->node->attr.all_gather;
    if (a->extent)
        return LAYOUT_PLAIN;
    bool channels = axis_of(a->axis, in_shape(pn, 0)->rank) == 1;
    return channels ? in_layout_whole(pn, 0) : in_layout(pn, 0);
}

static bool gather_forward(struct plan_node *pn, struct err *err)
{
    const struct all_gather_attr *a = &pn->node->attr.all_gather;
    const struct plan_peers *peers = peers_of(pn, a->group);
    enum layout layout = gather_layout(pn);
    struct exchange x;
    int own = in_slot(pn, 0, layout, err);
    if (!check_peers(a->parts, peers, a->group, err))
        return false;
    if (!peers) {
        out_is(pn, own, FLOATS(layout));
        return true;
    }
    if (!exchange_of(pn, peers, (int)a->axis, layout, true, &x, err))
        return false;
    x.own = own;
    x.whole = out_slot(pn, layout);
    return add_exchange(pn, &x, true, err);
}

static bool gather_backward(struct plan_node *pn, struct err *err)
{
    const struct all_gather_attr *a = &pn->node->attr.all_gather;
    const struct plan_peers *peers = peers_of(pn, a->group);
    enum layout layout = out_layout(pn);
    struct exchange x;
    if (!wants_gradient(pn, 0))
        return true;
    int dy = out_gradient(pn, layout, err);
    if (!peers)
        return gradient_add(pn, 0, dy, layout, err);
    if (!exchange_of(pn, peers, (int)a->axis, layout, true, &x, err))
        return false;
    x.whole = dy;
    x.own = gradient_slot(pn, 0, layout);
    return add_part(pn, &x, a->sum_backward, err) && gradient_add(pn, 0, x.own, layout, err);
}

/* --- reduce_scatter --- */

static bool scatter_forward(struct plan_node *pn, struct err *err)
{
    const struct reduce_scatter_attr *a = &pn->node->attr.reduce_scatter;
    const struct plan_peers *peers = peers_of(pn, a->group);
    struct exchange x;
    int whole = in_slot(pn, 0, LAYOUT_PLAIN, err);
    if (!check_peers(a->parts, peers, a->group, err))
        return false;
    if (!peers) {
        out_is(pn, whole, FLOATS(LAYOUT_PLAIN));
        return true;
    }
    if (!exchange_of(pn, peers, (int)a->axis, LAYOUT_PLAIN, false, &x, err))
        return false;
    x.whole = whole;
    x.own = out_slot(pn, LAYOUT_PLAIN);
    return add_part(pn, &x, a->sum_forward, err);
}

static bool scatter_backward(struct plan_node *pn, struct err *err)
{
    const struct reduce_scatter_attr *a = &pn->node->attr.reduce_scatter;
    const struct plan_peers *peers = peers_of(pn, a->group);
    struct exchange x;
    if (!wants_gradient(pn, 0))
        return true;
    int dy = out_gradient(pn, LAYOUT_PLAIN, err);
    if (!peers)
        return gradient_add(pn, 0, dy, LAYOUT_PLAIN, err);
    if (!exchange_of(pn, peers, (int)a->axis, LAYOUT_PLAIN, false, &x, err))
        return false;
    x.own = dy;
    x.whole = gradient_slot(pn, 0, LAYOUT_PLAIN);
    return add_exchange(pn, &x, true, err) && gradient_add(pn, 0, x.whole, LAYOUT_PLAIN, err);
}

const struct op op_all_gather = {
    .kind = OP_ALL_GATHER,
    .name = "all_gather",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = gather_fields,
    .complete = gather_complete,
    .shape = gather_shape,
    .forward = gather_forward,
    .backward = gather_backward,
};

const struct op op_reduce_scatter = {
    .kind = OP_REDUCE_SCATTER,
    .name = "reduce_scatter",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = scatter_fields,
    .complete = scatter_complete,
    .shape = scatter_shape,
    .forward = scatter_forward,
    .backward = scatter_backward,
};
