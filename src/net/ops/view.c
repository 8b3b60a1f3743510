/* view.c: the same elements under another shape or order. */
#include "net/plan/step.h"
#include "net/kernels/strided.h"
#include "net/ops/ops.h"

static const struct attr_field reshape_fields[] = {
    { .name = "target",
      .type = ATTR_SHAPE,
      .offset = offsetof(struct reshape_attr, target),
      .count = 1 },
    { .name = NULL },
};

#define ATTR_STRUCT struct axis_attr
static const struct attr_field flatten_fields[] = {
    FIELD(ATTR_INT, axis, 1, -SHAPE_DIMS, SHAPE_DIMS),
    { .name = NULL },
};
#undef ATTR_STRUCT

#define ATTR_STRUCT struct transpose_attr
static const struct attr_field transpose_fields[] = {
    FIELD(ATTR_INT, order, SHAPE_DIMS, 0, SHAPE_DIMS - 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool reshape_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                          struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct shape *target = &attr->reshape.target;
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    struct shape y = *target;
    int64_t known = 1, count = shape_count(in[0]);
    int infer = -1;
    bool fits = y.rank >= 0 && y.rank <= SHAPE_DIMS;
    for (int i = 0; fits && i < y.rank; i++) {
        if (y.dim[i] == 0)
            y.dim[i] = i < in[0]->rank ? in[0]->dim[i] : -2;
        if (y.dim[i] == -1 && infer < 0)
            infer = i;
        else if (y.dim[i] < 1 || y.dim[i] > count / known)
            fits = false;
        else
            known *= y.dim[i];
    }
    if (fits && infer >= 0)
        y.dim[infer] = count / known;
    if (!fits || (infer >= 0 ? known * y.dim[infer] : known) != count)
        return err_set(err, ERR_FORMAT, "%s cannot be reshaped to %s", shape_text(in[0], a),
                       target->rank >= 0 && target->rank <= SHAPE_DIMS ? shape_text(target, b)
                                                                       : "(too many axes)");
    *out = y;
    return true;
}

static bool flatten_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                          struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct shape *x = in[0];
    int64_t axis = attr->axis.axis < 0 ? attr->axis.axis + x->rank : attr->axis.axis;
    if (axis < 0 || axis > x->rank)
        return no_axis(attr->axis.axis, x->rank, err);
    *out = SHAPE(shape_span(x, 0, (int)axis), shape_span(x, (int)axis, x->rank));
    return true;
}

static bool transpose_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                            struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct transpose_attr *a = &attr->transpose;
    const struct shape *x = in[0];
    unsigned seen = 0;
    for (int i = 0; i < x->rank && a->rank == x->rank; i++)
        seen |= 1u << a->order[i];
    if (a->rank != x->rank || seen != (1u << x->rank) - 1)
        return err_set(err, ERR_FORMAT, "the order does not name each of the %d axes once",
                       x->rank);
    *out = *x;
    for (int i = 0; i < x->rank; i++)
        out->dim[i] = x->dim[a->order[i]];
    return true;
}

/* The output is the input's memory, whatever is stored there. */
static bool view_forward(struct plan_node *pn, struct err *err)
{
    int x = in_stored(pn, 0, LAYOUT_PLAIN, err);
    out_is(pn, x, (struct form){ LAYOUT_PLAIN, in_storage(pn, 0)->dtype });
    return x != NO_SLOT || err_memory(err, pn->node->name);
}

static bool view_backward(struct plan_node *pn, struct err *err)
{
    return !wants_gradient(pn, 0) ||
           gradient_add(pn, 0, out_gradient(pn, LAYOUT_PLAIN, err), LAYOUT_PLAIN, err);
}

static bool run_transpose(const struct step *step, struct err *err)
{
    (void)err;
    strided_copy(step->state, step->at[0], step->at[1], false);
    return true;
}

/* Goes through the output in its order (forward), or through the gradient in its order. */
static bool add_transpose(struct plan_node *pn, bool backward, int from, int to, struct err *err)
{
    const struct shape *x = in_shape(pn, 0);
    struct strided s = { .rank = x->rank, .threads = pn->tape->options.threads };
    for (int i = 0; i < x->rank; i++) {
        int axis = (int)pn->node->attr.transpose.order[i];
        int64_t here = shape_span(out_shape(pn), i + 1, x->rank);
        int64_t there = shape_span(x, axis + 1, x->rank);
        s.extent[i] = x->dim[axis];
        s.a[i] = backward ? here : there, s.out[i] = backward ? there : here;
    }
    strided_simplify(&s);
    struct step_spec spec = { "transpose", run_transpose, &s, sizeof s, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, from, ACCESS_READ, err) && step_use(step, to, ACCESS_WRITE, err);
}

static bool transpose_forward(struct plan_node *pn, struct err *err)
{
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err);
    return add_transpose(pn, false, x, out_slot(pn, LAYOUT_PLAIN), err);
}

static bool transpose_backward(struct plan_node *pn, struct err *err)
{
    if (!wants_gradient(pn, 0))
        return true;
    int dy = out_gradient(pn, LAYOUT_PLAIN, err), dx = gradient_slot(pn, 0, LAYOUT_PLAIN);
    return add_transpose(pn, true, dy, dx, err) && gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
}

const struct op op_reshape = {
    .kind = OP_RESHAPE,
    .name = "reshape",
    .onnx = "Reshape",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = reshape_fields,
    .shape = reshape_shape,
    .storage = storage_same,
    .forward = view_forward,
    .backward = view_backward,
};

const struct op op_flatten = {
    .kind = OP_FLATTEN,
    .name = "flatten",
    .onnx = "Flatten",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = flatten_fields,
    .shape = flatten_shape,
    .storage = storage_same,
    .forward = view_forward,
    .backward = view_backward,
};

const struct op op_transpose = {
    .kind = OP_TRANSPOSE,
    .name = "transpose",
    .onnx = "Transpose",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = transpose_fields,
    .shape = transpose_shape,
    .forward = transpose_forward,
    .backward = transpose_backward,
};
