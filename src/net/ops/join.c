/* join.c: joining and splitting tensors: concat, slice, pad and crop, repetition. */
#include <math.h>
#include <string.h>
#include "base/divide.h"
#include "net/kernels/strided.h"
#include "net/ops/ops.h"
#include "net/ops/resampling.h"

static const char *const pad_modes[] = { "zero", "reflect", "replicate", NULL };

#define ATTR_STRUCT struct axis_attr
static const struct attr_field concat_fields[] = {
    FIELD(ATTR_INT, axis, 1, -SHAPE_DIMS, SHAPE_DIMS - 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

#define ATTR_STRUCT struct slice_attr
static const struct attr_field slice_fields[] = {
    FIELD(ATTR_INT, axis, 1, -SHAPE_DIMS, SHAPE_DIMS - 1),
    FIELD(ATTR_INT, begin, 1, -1e19, 1e19),
    FIELD(ATTR_INT, end, 1, -1e19, 1e19),
    FIELD(ATTR_INT, step, 1, 1, ATTR_LIMIT),
    { .name = NULL },
};
#undef ATTR_STRUCT

#define ATTR_STRUCT struct pad_attr
static const struct attr_field pad_fields[] = {
    FIELD(ATTR_INT, pad, SIDES, -ATTR_LIMIT, ATTR_LIMIT),
    { .name = "mode",
      .type = ATTR_CHOICE,
      .offset = offsetof(struct pad_attr, mode),
      .count = 1,
      .min = PAD_ZERO,
      .max = PAD_REPLICATE,
      .choices = pad_modes },
    FIELD(ATTR_REAL, value, 1, -INFINITY, INFINITY), /* -infinity in front of a maximum */
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool concat_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    int axis = axis_of(attr->axis.axis, in[0]->rank);
    if (axis < 0)
        return no_axis(attr->axis.axis, in[0]->rank, err);
    *out = *in[0];
    for (int i = 1; i < n_inputs; i++) {
        struct shape other = *in[i];
        if (other.rank == out->rank)
            other.dim[axis] = out->dim[axis];
        if (!shape_equal(&other, out))
            return err_set(err, ERR_FORMAT, "%s and %s cannot be joined along axis %d",
                           shape_text(in[0], a), shape_text(in[i], b), axis);
        out->dim[axis] += in[i]->dim[axis];
    }
    return true;
}

static void slice_complete(union attr *attr)
{
    complete_ones(&attr->slice.step, 1);
}

static bool slice_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                        struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct slice_attr *a = &attr->slice;
    char text[SHAPE_TEXT];
    int64_t begin, end;
    int axis = slice_range(a, in[0], &begin, &end);
    if (axis < 0 || begin >= end)
        return err_set(err, ERR_FORMAT, "slicing %s along axis %lld leaves nothing",
                       shape_text(in[0], text), (long long)a->axis);
    *out = *in[0];
    out->dim[axis] = ceil_div(end - begin, a->step);
    return true;
}

static bool pad_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                      struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct pad_attr *a = &attr->pad;
    char text[SHAPE_TEXT];
    if (!shape_is_image(in[0], err))
        return false;
    *out = *in[0];
    for (int side = 0; side < SIDES; side++) {
        int64_t extent = in[0]->dim[2 + side % 2];
        if (a->mode == PAD_REFLECT && a->pad[side] >= extent)
            return err_set(err, ERR_FORMAT, "%lld px cannot be reflected at the border of %s",
                           (long long)a->pad[side], shape_text(in[0], text));
        if (a->pad[side] <= -extent)
            return err_set(err, ERR_FORMAT, "cropping %s leaves nothing", shape_text(in[0], text));
        out->dim[2 + side % 2] += a->pad[side];
    }
    if (out->dim[2] < 1 || out->dim[3] < 1)
        return err_set(err, ERR_FORMAT, "cropping %s leaves nothing", shape_text(in[0], text));
    return true;
}

static bool expand_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs;
    char text[SHAPE_TEXT];
    if (in[0]->rank < 1 || in[0]->dim[0] != 1 || in[1]->rank < 1)
        return err_set(err, ERR_FORMAT, "the input is %s; [1, ..] is needed",
                       shape_text(in[0], text));
    *out = *in[0];
    out->dim[0] = in[1]->dim[0];
    return true;
}

/* A copy with strides between places inside two slots. */
struct part {
    struct strided walk;
    int64_t from, to;  /* offsets, floats */
    size_t zero_bytes; /* of the target, first; 0: none */
};

static bool run_part(const struct step *step, struct err *err)
{
    (void)err;
    const struct part *p = step->state;
    if (p->zero_bytes)
        memset(step->at[1], 0, p->zero_bytes);
    strided_copy(&p->walk, (const float *)step->at[0] + p->from, (float *)step->at[1] + p->to,
                 false);
    return true;
}

static bool add_part(struct plan_node *pn, struct part *part, int from, int to, struct err *err)
{
    part->walk.threads = pn->tape->options.threads;
    strided_simplify(&part->walk);
    struct step_spec spec = { pn->node->op->name, run_part, part, sizeof *part, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, from, ACCESS_READ, err) && step_use(step, to, ACCESS_WRITE, err);
}

/* Joined along an axis of [N, C/b, H, W, b] if that cuts no block, else plain. */
static enum layout concat_layout(const struct plan_node *pn)
{
    bool blocked = false;
    for (int i = 0; i < pn->node->n_inputs; i++) {
        if (!layout_is_whole(pn->tape, in_shape(pn, i)))
            return LAYOUT_PLAIN;
        blocked = blocked || in_layout(pn, i) == LAYOUT_BLOCKED;
    }
    return blocked ? LAYOUT_BLOCKED : LAYOUT_PLAIN;
}

/* Floats in front of input i within one piece of the output, in one piece of input i and of the
 * output, and how many pieces there are. */
struct pieces {
    int64_t before, own, all, count;
};

static struct pieces pieces_of(const struct plan_node *pn, int i)
{
    const struct shape *y = out_shape(pn);
    int axis = axis_of(pn->node->attr.axis.axis, y->rank);
    int64_t behind = shape_span(y, axis + 1, y->rank);
    struct pieces p = { .all = y->dim[axis] * behind, .count = shape_span(y, 0, axis) };
    for (int k = 0; k < i; k++)
        p.before += in_shape(pn, k)->dim[axis] * behind;
    p.own = in_shape(pn, i)->dim[axis] * behind;
    return p;
}

static struct part part_of(const struct plan_node *pn, int i, enum layout layout, bool backward)
{
    struct pieces p = pieces_of(pn, i);
    int axis = axis_of(pn->node->attr.axis.axis, out_shape(pn)->rank);
    if (layout == LAYOUT_BLOCKED && axis >= 2) {
        int64_t b = pn->tape->block;
        p.before *= b, p.own *= b, p.all *= b, p.count /= b;
    }
    struct part part = { .walk = { .rank = 2, .extent = { p.count, p.own } } };
    part.walk.a[0] = backward ? p.all : p.own, part.walk.a[1] = 1;
    part.walk.out[0] = backward ? p.own : p.all, part.walk.out[1] = 1;
    part.from = backward ? p.before : 0, part.to = backward ? 0 : p.before;
    return part;
}

static bool concat_forward(struct plan_node *pn, struct err *err)
{
    enum layout layout = concat_layout(pn);
    bool ok = true;
    int y = out_slot(pn, layout);
    for (int i = 0; i < pn->node->n_inputs && ok; i++) {
        struct part part = part_of(pn, i, layout, false);
        int x = in_slot(pn, i, layout, err);
        if (part.walk.extent[0] == 1)
            ok = step_copy(pn->tape, x, y, (size_t)part.to * sizeof(float),
                           (size_t)part.walk.extent[1] * sizeof(float), err);
        else
            ok = add_part(pn, &part, x, y, err);
    }
    return ok;
}

static bool concat_backward(struct plan_node *pn, struct err *err)
{
    enum layout layout = out_layout(pn);
    int dy = out_gradient(pn, layout, err);
    for (int i = 0; i < pn->node->n_inputs; i++) {
        struct part part = part_of(pn, i, layout, true);
        int dx;
        if (!wants_gradient(pn, i))
            continue;
        if (part.walk.extent[0] == 1) {
            dx = slot_view(pn->tape, dy, (size_t)part.from * sizeof(float),
                           (size_t)part.walk.extent[1] * sizeof(float));
        } else {
            dx = gradient_slot(pn, i, layout);
            if (!add_part(pn, &part, dy, dx, err))
                return false;
        }
        if (!gradient_add(pn, i, dx, layout, err))
            return false;
    }
    return true;
}

/* Channels of a blocked image are cut at whole blocks only. */
static enum layout slice_layout(const struct plan_node *pn)
{
    const struct slice_attr *a = &pn->node->attr.slice;
    const struct shape *x = in_shape(pn, 0);
    int64_t begin, end;
    int axis = slice_range(a, x, &begin, &end);
    int64_t b = pn->tape->block;
    if (axis == 1 && (begin % b || end % b || a->step != 1))
        return LAYOUT_PLAIN;
    return in_layout_whole(pn, 0);
}

static struct part slice_part(const struct plan_node *pn, enum layout layout, bool backward)
{
    const struct slice_attr *a = &pn->node->attr.slice;
    const struct shape *x = in_shape(pn, 0);
    int64_t begin, end, extent, behind, before, step = a->step;
    int axis = slice_range(a, x, &begin, &end);
    extent = x->dim[axis], behind = shape_span(x, axis + 1, x->rank);
    before = shape_span(x, 0, axis);
    int64_t b = pn->tape->block;
    if (layout == LAYOUT_BLOCKED && axis == 1)
        begin /= b, end /= b, extent /= b, behind *= b;
    else if (layout == LAYOUT_BLOCKED && axis >= 2)
        behind *= b, before /= b;
    int64_t taken = ceil_div(end - begin, step);
    struct part part = { .walk = { .rank = 3, .extent = { before, taken, behind } } };
    int64_t whole[3] = { extent * behind, step * behind, 1 };
    int64_t small[3] = { taken * behind, behind, 1 };
    for (int k = 0; k < 3; k++) {
        part.walk.a[k] = backward ? small[k] : whole[k];
        part.walk.out[k] = backward ? whole[k] : small[k];
    }
    part.from = backward ? 0 : begin * behind, part.to = backward ? begin * behind : 0;
    return part;
}

static bool slice_forward(struct plan_node *pn, struct err *err)
{
    enum layout layout = slice_layout(pn);
    struct part part = slice_part(pn, layout, false);
    int x = in_slot(pn, 0, layout, err);
    return add_part(pn, &part, x, out_slot(pn, layout), err);
}

static bool slice_backward(struct plan_node *pn, struct err *err)
{
    enum layout layout = out_layout(pn);
    if (!wants_gradient(pn, 0))
        return true;
    struct part part = slice_part(pn, layout, true);
    part.zero_bytes = layout_bytes(pn->tape, in_shape(pn, 0), layout);
    int dy = out_gradient(pn, layout, err), dx = gradient_slot(pn, 0, layout);
    return add_part(pn, &part, dy, dx, err) && gradient_add(pn, 0, dx, layout, err);
}

static void fill_tables(const struct node *node, struct resample *r)
{
    static const enum resample_border borders[] = {
        [PAD_ZERO] = BORDER_FILL, [PAD_REFLECT] = BORDER_REFLECT, [PAD_REPLICATE] = BORDER_REPLICATE
    };
    const struct pad_attr *a = &node->attr.pad;
    r->fill = a->value;
    for (int i = 0; i < 2; i++) {
        r->axis[i].far = NULL, r->axis[i].weight = NULL;
        resample_pad_axis(&r->axis[i], borders[a->mode], a->pad[i]);
    }
}

static bool pad_forward(struct plan_node *pn, struct err *err)
{
    bool zeros_stay = pn->node->attr.pad.value == 0 || pn->node->attr.pad.mode != PAD_ZERO;
    return resampling_forward(pn, zeros_stay ? in_layout(pn, 0) : in_layout_whole(pn, 0),
                              fill_tables, err);
}

static bool pad_backward(struct plan_node *pn, struct err *err)
{
    return resampling_backward(pn, fill_tables, err);
}

static bool run_repeat_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct part *p = step->state;
    strided_sum(&p->walk, step->at[0], 1, step->at[1]);
    return true;
}

static bool expand_forward(struct plan_node *pn, struct err *err)
{
    const struct shape *y = out_shape(pn);
    int64_t count = shape_span(y, 1, y->rank);
    struct part part = {
        .walk = { .rank = 2, .extent = { y->dim[0], count }, .a = { 0, 1 }, .out = { count, 1 } }
    };
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err);
    return add_part(pn, &part, x, out_slot(pn, LAYOUT_PLAIN), err);
}

static bool expand_backward(struct plan_node *pn, struct err *err)
{
    const struct shape *y = out_shape(pn);
    int64_t count = shape_span(y, 1, y->rank);
    struct part part = { .walk = { .rank = 2,
                                   .extent = { y->dim[0], count },
                                   .a = { count, 1 },
                                   .out = { 0, 1 },
                                   .threads = pn->tape->options.threads } };
    struct step_spec spec = { "sum over batch", run_repeat_back, &part, sizeof part, 0 };
    if (!wants_gradient(pn, 0))
        return true;
    int dy = out_gradient(pn, LAYOUT_PLAIN, err), dx = gradient_slot(pn, 0, LAYOUT_PLAIN);
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, dy, ACCESS_READ, err) && step_use(step, dx, ACCESS_WRITE, err) &&
           gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
}

const struct op op_concat = {
    .kind = OP_CONCAT,
    .name = "concat",
    .onnx = "Concat",
    .min_inputs = 1,
    .max_inputs = 4096,
    .fields = concat_fields,
    .shape = concat_shape,
    .forward = concat_forward,
    .backward = concat_backward,
};

const struct op op_slice = {
    .kind = OP_SLICE,
    .name = "slice",
    .onnx = "Slice",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = slice_fields,
    .complete = slice_complete,
    .shape = slice_shape,
    .forward = slice_forward,
    .backward = slice_backward,
};

const struct op op_pad = {
    .kind = OP_PAD,
    .name = "pad",
    .onnx = "Pad",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = pad_fields,
    .shape = pad_shape,
    .forward = pad_forward,
    .backward = pad_backward,
};

const struct op op_expand_batch = {
    .kind = OP_EXPAND_BATCH,
    .name = "expand_batch",
    .onnx = NULL,
    .min_inputs = 2,
    .max_inputs = 2,
    .shape = expand_shape,
    .forward = expand_forward,
    .backward = expand_backward,
};
