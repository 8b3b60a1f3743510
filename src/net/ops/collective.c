/* collective.c: the op halo: the borders of the neighbours' parts of an image, of which every
 * process has a part (collective.h). */
#include <string.h>
#include "net/ops/collective.h"

#define ATTR_STRUCT struct halo_attr
static const struct attr_field halo_fields[] = {
    FIELD(ATTR_INT, axis, 1, -2, 3),
    FIELD(ATTR_INT, before, 1, -ATTR_LIMIT, ATTR_LIMIT),
    FIELD(ATTR_INT, after, 1, -ATTR_LIMIT, ATTR_LIMIT),
    GROUP_FIELD,
    FIELD(ATTR_BOOL, uneven, 1, 0, 1),
    FIELD(ATTR_INT, given, 2, 0, ATTR_LIMIT),
    { .name = NULL },
};
#undef ATTR_STRUCT

struct around around_axis(const struct tape *tape, const struct shape *shape, int axis,
                          enum layout layout)
{
    if (layout == LAYOUT_PLAIN)
        return (struct around){ shape_span(shape, 0, axis), shape->dim[axis],
                                shape_span(shape, axis + 1, shape->rank) };
    int64_t extents[5];
    struct around a = { 1, 1, 1 };
    layout_extents(tape, shape, layout, extents);
    for (int i = 0; i < 5; i++)
        *(i < axis ? &a.outer : i == axis ? &a.extent : &a.inner) *= extents[i];
    return a;
}

/* A step from x to y, with scratch behind them (0 bytes: none) that ends with it. */
static bool add_step(struct plan_node *pn, const struct step_spec *spec, bool talks, int x, int y,
                     const size_t scratch[2], struct err *err)
{
    struct step *step = step_add(pn->tape, spec, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) || !step_use(step, y, ACCESS_WRITE, err))
        return false;
    step->talks = talks;
    for (int i = 0; i < 2; i++)
        if (scratch[i] && !step_use(step, slot_new(pn->tape, scratch[i]), ACCESS_WRITE, err))
            return false;
    return true;
}

/* --- halo --- */

static bool halo_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                       struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct halo_attr *a = &attr->halo;
    if (!shape_is_image(in[0], err))
        return false;
    int axis = axis_of(a->axis, 4);
    if (axis < 2)
        return err_set(err, ERR_FORMAT, "axis %lld is neither height (2) nor width (3)",
                       (long long)a->axis);
    *out = *in[0];
    out->dim[axis] += a->before + a->after;
    int64_t left_out = (a->before < 0 ? -a->before : 0) + (a->after < 0 ? -a->after : 0);
    return (out->dim[axis] > 0 && left_out <= in[0]->dim[axis]) ||
           err_set(err, ERR_FORMAT, "%lld rows or columns are left out of %lld",
                   (long long)left_out, (long long)in[0]->dim[axis]);
}

/* Along the axis; a side is 0 in front, 1 behind. */
struct halo {
    struct around own;              /* the part of this process, without its halo */
    int64_t extent;                 /* with it */
    int64_t taken[2];               /* rows that come from the neighbours */
    int64_t given[2];               /* rows that the neighbours get */
    int64_t cut[2];                 /* own rows that are left out */
    const struct plan_peers *peers; /* NULL: none */
};

static struct halo halo_of(const struct plan_node *pn, enum layout layout)
{
    const struct halo_attr *a = &pn->node->attr.halo;
    const int64_t wanted[2] = { a->before, a->after };
    struct halo h = { .own = around_axis(pn->tape, in_shape(pn, 0), axis_of(a->axis, 4), layout),
                      .peers = peers_of(pn, a->group) };
    for (int side = 0; side < 2; side++) {
        h.taken[side] = wanted[side] > 0 ? wanted[side] : 0;
        h.cut[side] = wanted[side] < 0 ? -wanted[side] : 0;
    }
    for (int side = 0; side < 2; side++)
        h.given[side] = a->uneven ? a->given[side] : h.taken[1 - side];
    h.extent = h.own.extent + a->before + a->after;
    return h;
}

/* n rows of an [outer, extents, inner] tensor from another. */
static void copy_rows(const struct halo *h, const float *from, int64_t from_extent,
                      int64_t from_row, float *to, int64_t to_extent, int64_t to_row, int64_t n)
{
    int64_t inner = h->own.inner;
    for (int64_t o = 0; n > 0 && o < h->own.outer; o++)
        memcpy(to + (o * to_extent + to_row) * inner, from + (o * from_extent + from_row) * inner,
               (size_t)(n * inner) * sizeof *to);
}

/* rows [outer, n, inner] are added to those of `to` from `row` on. */
static void add_rows(const struct halo *h, const float *rows, int64_t n, float *to, int64_t row)
{
    int64_t count = n * h->own.inner;
    for (int64_t o = 0; o < h->own.outer; o++) {
        const float *from = rows + o * count;
        float *at = to + (o * h->own.extent + row) * h->own.inner;
        for (int64_t i = 0; i < count; i++)
            at[i] += from[i];
    }
}

static void clear_rows(const struct halo *h, float *to, int64_t extent, int64_t row, int64_t n)
{
    for (int64_t o = 0; n > 0 && o < h->own.outer; o++)
        memset(to + (o * extent + row) * h->own.inner, 0, (size_t)(n * h->own.inner) * sizeof *to);
}

/* The neighbour on a side, if any rows go this way. */
static int neighbour(const struct halo *h, int side, int64_t rows)
{
    int rank = h->peers->rank + (side ? 1 : -1);
    return rows > 0 && rank >= 0 && rank < h->peers->size ? rank : PEER_NONE;
}

/* `out` rows from at[2] go to the neighbour on `side`; `in` rows of the other one come to at[3]. */
static bool pass_on(const struct halo *h, const struct step *step, int side, int64_t out,
                    int64_t in, struct err *err)
{
    size_t row_bytes = (size_t)(h->own.outer * h->own.inner) * sizeof(float);
    struct peers_exchange x = { .to = neighbour(h, side, out),
                                .from = neighbour(h, 1 - side, in),
                                .out = step->at[2],
                                .out_bytes = (size_t)out * row_bytes,
                                .in = step->at[3],
                                .in_bytes = (size_t)in * row_bytes };
    return h->peers->exchange(h->peers->arg, &x, err);
}

/* Fills the rows of y on a side with the border of the neighbour there, and gives the one on the
 * other side ours. */
static bool fill_side(const struct halo *h, const struct step *step, int side, struct err *err)
{
    int64_t n = h->taken[side], given = h->given[1 - side];
    int64_t row = side ? h->extent - n : 0, own_row = side ? 0 : h->own.extent - given;
    float *y = step->at[1];
    if (h->peers && (n > 0 || given > 0)) {
        copy_rows(h, step->at[0], h->own.extent, own_row, step->at[2], given, 0, given);
        if (!pass_on(h, step, 1 - side, given, n, err))
            return false;
    }
    if (h->peers && neighbour(h, side, n) != PEER_NONE)
        copy_rows(h, step->at[3], n, 0, y, h->extent, row, n);
    else
        clear_rows(h, y, h->extent, row, n);
    return true;
}

/* Own rows that remain. */
static int64_t kept_rows(const struct halo *h)
{
    return h->own.extent - h->cut[0] - h->cut[1];
}

static bool run_halo(const struct step *step, struct err *err)
{
    const struct halo *h = step->state;
    copy_rows(h, step->at[0], h->own.extent, h->cut[0], step->at[1], h->extent, h->taken[0],
              kept_rows(h));
    return fill_side(h, step, 0, err) && fill_side(h, step, 1, err);
}

/* The gradient of the halo on a side goes back to the neighbour whose rows they are; that of ours,
 * which the one on the other side had, comes. */
static bool return_side(const struct halo *h, const struct step *step, int side, struct err *err)
{
    int64_t n = h->taken[side], given = h->given[1 - side];
    int64_t row = side ? h->extent - n : 0, own_row = side ? 0 : h->own.extent - given;
    if (!h->peers || (n == 0 && given == 0))
        return true;
    copy_rows(h, step->at[0], h->extent, row, step->at[2], n, 0, n);
    if (!pass_on(h, step, side, n, given, err))
        return false;
    if (neighbour(h, 1 - side, given) != PEER_NONE)
        add_rows(h, step->at[3], given, step->at[1], own_row);
    return true;
}

static bool run_halo_back(const struct step *step, struct err *err)
{
    const struct halo *h = step->state;
    float *dx = step->at[1];
    copy_rows(h, step->at[0], h->extent, h->taken[0], dx, h->own.extent, h->cut[0], kept_rows(h));
    clear_rows(h, dx, h->own.extent, 0, h->cut[0]);
    clear_rows(h, dx, h->own.extent, h->own.extent - h->cut[1], h->cut[1]);
    return return_side(h, step, 0, err) && return_side(h, step, 1, err);
}

static bool add_halo(struct plan_node *pn, bool back, int x, int y, enum layout layout,
                     struct err *err)
{
    struct halo h = halo_of(pn, layout);
    int64_t most = 0, given = 0;
    for (int side = 0; side < 2; side++) {
        given = h.given[side] > given ? h.given[side] : given;
        most = h.taken[side] > most ? h.taken[side] : most;
    }
    most = given > most ? given : most;
    if (h.peers && given > h.own.extent)
        return err_set(err, ERR_USAGE,
                       "a part of %lld rows is smaller than the border of %lld that its neighbour "
                       "needs; use fewer processes or a larger image",
                       (long long)h.own.extent, (long long)given);
    size_t bytes = h.peers ? (size_t)(h.own.outer * most * h.own.inner) * sizeof(float) : 0;
    struct step_spec spec = { back ? "halo back" : "halo", back ? run_halo_back : run_halo, &h,
                              sizeof h, 0 };
    return add_step(pn, &spec, h.peers, x, y, (size_t[]){ bytes, bytes }, err);
}

static bool halo_forward(struct plan_node *pn, struct err *err)
{
    enum layout layout = in_layout(pn, 0);
    int x = in_slot(pn, 0, layout, err);
    return add_halo(pn, false, x, out_slot(pn, layout), layout, err);
}

static bool halo_backward(struct plan_node *pn, struct err *err)
{
    enum layout layout = out_layout(pn);
    int dy = out_gradient(pn, layout, err), dx = gradient_slot(pn, 0, layout);
    return !wants_gradient(pn, 0) ||
           (add_halo(pn, true, dy, dx, layout, err) && gradient_add(pn, 0, dx, layout, err));
}

const struct op op_halo = {
    .kind = OP_HALO,
    .name = "halo",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = halo_fields,
    .shape = halo_shape,
    .forward = halo_forward,
    .backward = halo_backward,
};
