/* arithmetic.c: sums, differences, products and quotients of two tensors, and of a tensor and a
 * number. */
#include "base/divide.h"
#include "net/plan/step.h"
#include "net/kernels/strided.h"
#include "net/ops/ops.h"

#define ATTR_STRUCT struct scale_attr
static const struct attr_field scale_fields[] = {
    FIELD(ATTR_REAL, factor, 1, -1e30, 1e30),
    FIELD(ATTR_REAL, offset, 1, -1e30, 1e30),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool binary_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs;
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    if (!shape_broadcast(in[0], in[1], out))
        return err_set(err, ERR_FORMAT, "the shapes %s and %s do not match", shape_text(in[0], a),
                       shape_text(in[1], b));
    return true;
}

/* One pass over the output: rows where all shapes are the same, strides where one is repeated. */
struct pass {
    struct strided walk;
    enum elementwise kind;
    bool same;
    int64_t count;
    struct elementwise_args args;
};

static bool run_pass(const struct step *step, struct err *err)
{
    (void)err;
    const struct pass *p = step->state;
    if (p->same)
        elementwise_run(p->kind, p->count, step->at[0], step->at[1], step->at[2], p->args,
                        p->walk.threads);
    else
        strided_binary(&p->walk, p->kind, step->at[0], step->at[1], step->at[2]);
    return true;
}

static bool run_sum_pass(const struct step *step, struct err *err)
{
    (void)err;
    const struct pass *p = step->state;
    strided_sum(&p->walk, step->at[0], p->args.alpha, step->at[1]);
    return true;
}

/* Whether input i can be read with strides while the output is blocked. */
static bool can_block(const struct plan_node *pn, int i)
{
    const struct shape *x = in_shape(pn, i), *y = out_shape(pn);
    int64_t channels = x->rank < 3 ? 1 : x->dim[x->rank - 3];
    bool last_one = x->rank < 3 && shape_count(x) != 1;
    if (last_one)
        return false;
    return channels == 1 || x->rank == 4 ||
           (channels == y->dim[1] && shape_span(x, x->rank - 2, x->rank) == 1);
}

static enum layout binary_layout(const struct plan_node *pn)
{
    const struct shape *y = out_shape(pn);
    bool blocked = false, same = true;
    for (int i = 0; i < 2; i++) {
        same = same && shape_equal(in_shape(pn, i), y);
        blocked =
            blocked || (in_layout(pn, i) == LAYOUT_BLOCKED && shape_equal(in_shape(pn, i), y));
    }
    bool zeros_stay = layout_is_whole(pn->tape, y) || (same && pn->node->op->kind != OP_DIV);
    return blocked && zeros_stay && can_block(pn, 0) && can_block(pn, 1) ? LAYOUT_BLOCKED
                                                                         : LAYOUT_PLAIN;
}

/* Strides of input i along the axes of the output in memory ([N, C/b, H, W, b] if it is blocked),
 * and the layout it is to be read in. */
static enum layout operand_strides(const struct plan_node *pn, int i, enum layout layout,
                                   int64_t strides[STRIDED_AXES])
{
    const struct shape *x = in_shape(pn, i), *y = out_shape(pn);
    int lead = y->rank - x->rank, block = pn->tape->block;
    bool channels = layout == LAYOUT_BLOCKED && 1 >= lead && x->dim[1 - lead] == y->dim[1];
    int64_t stride = channels ? block : 1;
    for (int k = y->rank - 1; k >= 0; k--) {
        bool repeated = k < lead || (x->dim[k - lead] == 1 && y->dim[k] > 1);
        int64_t extent = k < lead ? 1 : x->dim[k - lead];
        if (channels && k == 1)
            extent = ceil_div(extent, block);
        strides[k] = repeated ? 0 : stride;
        stride *= extent;
    }
    if (layout == LAYOUT_BLOCKED)
        strides[4] = channels ? 1 : 0;
    return channels && x->rank == 4 ? LAYOUT_BLOCKED : LAYOUT_PLAIN;
}

/* The walk over the output; `b` and `a` strides are those of the two inputs. */
static struct strided walk_of(const struct plan_node *pn, enum layout layout)
{
    const struct shape *y = out_shape(pn);
    struct strided s = { .rank = y->rank, .threads = pn->tape->options.threads };
    for (int k = 0; k < y->rank; k++)
        s.extent[k] = y->dim[k];
    if (layout == LAYOUT_BLOCKED) {
        layout_extents(pn->tape, y, layout, s.extent);
        s.rank = 5;
    }
    int64_t stride = 1;
    for (int k = s.rank - 1; k >= 0; k--) {
        s.out[k] = stride;
        stride *= s.extent[k];
    }
    operand_strides(pn, 0, layout, s.a);
    operand_strides(pn, 1, layout, s.b);
    return s;
}

static bool add_pass(struct plan_node *pn, const char *name, const struct pass *pass, int a, int b,
                     int out, struct err *err)
{
    struct step_spec spec = { name, run_pass, pass, sizeof *pass, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, a, ACCESS_READ, err))
        return false;
    step_use_optional(step, b, ACCESS_READ);
    if (!step_use(step, out, ACCESS_WRITE, err))
        return false;
    if (pass->same)
        step_in_place(step, 0, 1, 2);
    return true;
}

static enum elementwise kind_of(const struct node *node)
{
    switch (node->op->kind) {
    case OP_ADD:
        return EW_ADD;
    case OP_SUB:
        return EW_SUB;
    case OP_MUL:
        return EW_MUL;
    default:
        return EW_DIV;
    }
}

static bool same_shapes(const struct plan_node *pn)
{
    return shape_equal(in_shape(pn, 0), in_shape(pn, 1));
}

static int operand(struct plan_node *pn, int i, enum layout layout, struct err *err)
{
    int64_t strides[STRIDED_AXES];
    return in_slot(pn, i, operand_strides(pn, i, layout, strides), err);
}

static bool binary_forward(struct plan_node *pn, struct err *err)
{
    enum layout layout = binary_layout(pn);
    struct pass pass = { walk_of(pn, layout),
                         kind_of(pn->node),
                         same_shapes(pn),
                         layout_count(pn->tape, out_shape(pn), layout),
                         { 0, 0 } };
    int a = operand(pn, 0, layout, err), b = operand(pn, 1, layout, err);
    strided_simplify(&pass.walk);
    return add_pass(pn, pn->node->op->name, &pass, a, b, out_slot(pn, layout), err);
}

/* factor * sum of `from` (shaped and laid out as the output) over what input i was repeated along
 */
static bool add_reduced(struct plan_node *pn, int i, enum layout layout, int from, float factor,
                        struct err *err)
{
    struct pass pass = { .walk = walk_of(pn, layout), .args = { factor, 0 } };
    int64_t operand_at[STRIDED_AXES];
    enum layout target_layout = operand_strides(pn, i, layout, operand_at);
    for (int k = 0; k < pass.walk.rank; k++) {
        pass.walk.a[k] = pass.walk.out[k], pass.walk.b[k] = 0;
        pass.walk.out[k] = operand_at[k];
    }
    int target = gradient_slot(pn, i, target_layout);
    struct step_spec spec = { "sum over repeats", run_sum_pass, &pass, sizeof pass, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, from, ACCESS_READ, err) &&
           step_use(step, target, ACCESS_WRITE, err) &&
           gradient_add(pn, i, target, target_layout, err);
}

/* kind(dy, input `other`), shaped as the output */
static int gradient_product(struct plan_node *pn, enum elementwise kind, int dy, int other,
                            enum layout layout, struct err *err)
{
    struct pass pass = { .walk = walk_of(pn, layout), .kind = kind };
    size_t bytes = layout_bytes(pn->tape, out_shape(pn), layout);
    for (int k = 0; k < pass.walk.rank; k++) {
        if (other == 0)
            pass.walk.b[k] = pass.walk.a[k];
        pass.walk.a[k] = pass.walk.out[k];
    }
    pass.same = shape_equal(in_shape(pn, other), out_shape(pn));
    pass.count = (int64_t)(bytes / sizeof(float));
    strided_simplify(&pass.walk);
    int slot = slot_new(pn->tape, bytes), x = operand(pn, other, layout, err);
    return add_pass(pn, "product", &pass, dy, x, slot, err) ? slot : NO_SLOT;
}

static int gradient_flat(struct plan_node *pn, enum elementwise kind, int a, int b, float factor,
                         enum layout layout, struct err *err)
{
    size_t bytes = layout_bytes(pn->tape, out_shape(pn), layout);
    struct pass pass = { .walk = { .threads = pn->tape->options.threads },
                         .kind = kind,
                         .same = true,
                         .count = (int64_t)(bytes / sizeof(float)),
                         .args = { factor, 0 } };
    int slot = slot_new(pn->tape, bytes);
    return add_pass(pn, "product", &pass, a, b, slot, err) ? slot : NO_SLOT;
}

/* The gradient by input i before sums over repeats: *factor is still to be multiplied. */
static int full_gradient(struct plan_node *pn, int i, enum layout layout, float *factor,
                         struct err *err)
{
    int dy = out_gradient(pn, layout, err);
    *factor = 1;
    switch (pn->node->op->kind) {
    case OP_ADD:
        return dy;
    case OP_SUB:
        *factor = i ? -1 : 1;
        return dy;
    case OP_MUL:
        return gradient_product(pn, EW_MUL, dy, 1 - i, layout, err);
    default:
        if (i == 0)
            return gradient_product(pn, EW_DIV, dy, 1, layout, err);
        *factor = -1; /* d(a/b)/db = -y/b */
        dy = gradient_flat(pn, EW_MUL, dy, out_value(pn, layout, err), 0, layout, err);
        return gradient_product(pn, EW_DIV, dy, 1, layout, err);
    }
}

static bool binary_backward(struct plan_node *pn, struct err *err)
{
    enum layout layout = out_layout(pn);
    for (int i = 0; i < 2; i++) {
        float factor;
        if (!wants_gradient(pn, i))
            continue;
        int full = full_gradient(pn, i, layout, &factor, err);
        if (full == NO_SLOT)
            return err_memory(err, pn->node->name);
        if (!shape_equal(in_shape(pn, i), out_shape(pn))) {
            if (!add_reduced(pn, i, layout, full, factor, err))
                return false;
            continue;
        }
        if (factor != 1)
            full = gradient_flat(pn, EW_SCALE, full, NO_SLOT, factor, layout, err);
        if (!gradient_add(pn, i, full, layout, err))
            return false;
    }
    return true;
}

static bool scale_forward(struct plan_node *pn, struct err *err)
{
    const struct scale_attr *a = &pn->node->attr.scale;
    enum layout layout = a->offset != 0 ? in_layout_whole(pn, 0) : in_layout(pn, 0);
    struct pass pass = { .walk = { .threads = pn->tape->options.threads },
                         .kind = EW_SCALE,
                         .same = true,
                         .count = layout_count(pn->tape, out_shape(pn), layout),
                         .args = { a->factor, a->offset } };
    int x = in_slot(pn, 0, layout, err);
    return add_pass(pn, "scale", &pass, x, NO_SLOT, out_slot(pn, layout), err);
}

static bool scale_backward(struct plan_node *pn, struct err *err)
{
    enum layout layout = out_layout(pn);
    if (!wants_gradient(pn, 0))
        return true;
    int dy = out_gradient(pn, layout, err);
    int dx = gradient_flat(pn, EW_SCALE, dy, NO_SLOT, pn->node->attr.scale.factor, layout, err);
    return gradient_add(pn, 0, dx, layout, err);
}

#define BINARY(kind_, name_, onnx_)                                                                \
    {                                                                                              \
        .kind = kind_, .name = name_, .onnx = onnx_, .min_inputs = 2, .max_inputs = 2,             \
        .shape = binary_shape, .forward = binary_forward, .backward = binary_backward              \
    }

const struct op op_add = BINARY(OP_ADD, "add", "Add");
const struct op op_sub = BINARY(OP_SUB, "sub", "Sub");
const struct op op_mul = BINARY(OP_MUL, "mul", "Mul");
const struct op op_div = BINARY(OP_DIV, "div", "Div");

const struct op op_scale = {
    .kind = OP_SCALE,
    .name = "scale",
    .onnx = NULL,
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = scale_fields,
    .shape = shape_same,
    .forward = scale_forward,
    .backward = scale_backward,
};
