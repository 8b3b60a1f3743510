/* reduce.c: means and maxima over axes, and softmax. */
#include "net/plan/lower.h"
#include "net/kernels/strided.h"
#include "net/ops/ops.h"

#define ATTR_STRUCT struct reduce_attr
static const struct attr_field mean_fields[] = {
    FIELD(ATTR_BITS, axes, 1, 1, (1 << SHAPE_DIMS) - 1),
    FIELD(ATTR_BOOL, keep, 1, 0, 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

#define ATTR_STRUCT struct axis_attr
static const struct attr_field softmax_fields[] = {
    FIELD(ATTR_INT, axis, 1, -SHAPE_DIMS, SHAPE_DIMS - 1),
    { .name = NULL },
};
#undef ATTR_STRUCT

static bool mean_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                       struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct shape *x = in[0];
    char text[SHAPE_TEXT];
    if (attr->reduce.axes >> x->rank)
        return err_set(err, ERR_FORMAT, "the input is %s; it has too few axes to reduce",
                       shape_text(x, text));
    struct shape y = { 0, { 0 } };
    for (int i = 0; i < x->rank; i++) {
        bool reduced = attr->reduce.axes >> i & 1;
        if (!reduced || attr->reduce.keep)
            y.dim[y.rank++] = reduced ? 1 : x->dim[i];
    }
    *out = y;
    return true;
}

static bool softmax_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                          struct shape *out, struct err *err)
{
    (void)n_inputs;
    if (axis_of(attr->axis.axis, in[0]->rank) < 0)
        return no_axis(attr->axis.axis, in[0]->rank, err);
    *out = *in[0];
    return true;
}

struct mean {
    struct strided walk; /* a: the full tensor, out: the means, repeated */
    struct strided back; /* the other way round */
    float factor;
};

static bool run_mean(const struct step *step, struct err *err)
{
    (void)err;
    const struct mean *m = step->state;
    strided_sum(&m->walk, step->at[0], m->factor, step->at[1]);
    return true;
}

static bool run_mean_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct mean *m = step->state;
    strided_binary(&m->back, EW_MUL, step->at[0], &m->factor, step->at[1]);
    return true;
}

static struct mean mean_of(const struct plan_node *pn)
{
    const struct shape *x = in_shape(pn, 0);
    struct mean m = { .walk = { .rank = x->rank, .threads = pn->tape->options.threads } };
    int64_t full = 1, kept = 1, reduced = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        bool gone = pn->node->attr.reduce.axes >> i & 1;
        m.walk.extent[i] = x->dim[i];
        m.walk.a[i] = full, m.walk.out[i] = gone ? 0 : kept;
        full *= x->dim[i];
        kept *= gone ? 1 : x->dim[i];
        reduced *= gone ? x->dim[i] : 1;
    }
    m.back = m.walk;
    for (int i = 0; i < x->rank; i++)
        m.back.a[i] = m.walk.out[i], m.back.out[i] = m.walk.a[i];
    m.factor = (float)(1 / (double)reduced);
    return m;
}

static bool add_mean(struct plan_node *pn, bool (*run)(const struct step *, struct err *), int from,
                     int to, struct err *err)
{
    struct mean m = mean_of(pn);
    struct step_spec spec = { pn->node->op->name, run, &m, sizeof m, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, from, ACCESS_READ, err) && step_use(step, to, ACCESS_WRITE, err);
}

static bool mean_forward(struct plan_node *pn, struct err *err)
{
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err);
    return add_mean(pn, run_mean, x, out_slot(pn, LAYOUT_PLAIN), err);
}

static bool mean_backward(struct plan_node *pn, struct err *err)
{
    if (!wants_gradient(pn, 0))
        return true;
    int dy = out_gradient(pn, LAYOUT_PLAIN, err), dx = gradient_slot(pn, 0, LAYOUT_PLAIN);
    return add_mean(pn, run_mean_back, dy, dx, err) && gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
}

static bool run_max(const struct step *step, struct err *err)
{
    (void)err;
    const struct mean *m = step->state;
    strided_max(&m->walk, step->at[0], step->at[1]);
    return true;
}

static bool run_max_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct mean *m = step->state;
    strided_max_back(&m->walk, step->at[0], step->at[1], step->at[2], step->at[3]);
    return true;
}

static bool max_forward(struct plan_node *pn, struct err *err)
{
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err);
    return add_mean(pn, run_max, x, out_slot(pn, LAYOUT_PLAIN), err);
}

static bool max_backward(struct plan_node *pn, struct err *err)
{
    struct mean m = mean_of(pn);
    struct step_spec spec = { "max back", run_max_back, &m, sizeof m, 0 };
    if (!wants_gradient(pn, 0))
        return true;
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err), y = out_value(pn, LAYOUT_PLAIN, err);
    int dy = out_gradient(pn, LAYOUT_PLAIN, err), dx = gradient_slot(pn, 0, LAYOUT_PLAIN);
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, x, ACCESS_READ, err) && step_use(step, y, ACCESS_READ, err) &&
           step_use(step, dy, ACCESS_READ, err) && step_use(step, dx, ACCESS_WRITE, err) &&
           gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
}

const struct op op_reduce_max = {
    .kind = OP_REDUCE_MAX,
    .name = "reduce_max",
    .onnx = "ReduceMax",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = mean_fields,
    .shape = mean_shape,
    .forward = max_forward,
    .backward = max_backward,
};

const struct op op_reduce_mean = {
    .kind = OP_REDUCE_MEAN,
    .name = "reduce_mean",
    .onnx = "ReduceMean",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = mean_fields,
    .shape = mean_shape,
    .forward = mean_forward,
    .backward = mean_backward,
};

const struct op op_softmax = {
    .kind = OP_SOFTMAX,
    .name = "softmax",
    .onnx = "Softmax",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = softmax_fields,
    .shape = softmax_shape,
    .forward = lower_softmax_forward,
    .backward = lower_softmax_backward,
};

const struct op op_log_softmax = {
    .kind = OP_LOG_SOFTMAX,
    .name = "log_softmax",
    .onnx = "LogSoftmax",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = softmax_fields,
    .shape = softmax_shape,
    .forward = lower_softmax_forward,
    .backward = lower_softmax_backward,
};
