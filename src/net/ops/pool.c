/* pool.c: max and average pooling of images: sliding, global, adaptive. */
#include <stdlib.h>
#include "base/divide.h"
#include "net/plan/lower.h"
#include "net/kernels/pool.h"
#include "net/plan/step.h"
#include "net/ops/ops.h"

#define ATTR_STRUCT struct pool_attr
#define WINDOW_FIELDS                                                                              \
    FIELD(ATTR_INT, kernel, 2, 1, ATTR_LIMIT), FIELD(ATTR_INT, stride, 2, 1, ATTR_LIMIT),          \
        FIELD(ATTR_INT, pad, SIDES, 0, ATTR_LIMIT), FIELD(ATTR_INT, dilation, 2, 1, ATTR_LIMIT),   \
        FIELD(ATTR_BOOL, ceil_mode, 1, 0, 1)
static const struct attr_field max_fields[] = { WINDOW_FIELDS, { .name = NULL } };
static const struct attr_field average_fields[] = { WINDOW_FIELDS,
                                                    FIELD(ATTR_BOOL, count_include_pad, 1, 0, 1),
                                                    { .name = NULL } };
#undef ATTR_STRUCT

#define ATTR_STRUCT struct adaptive_attr
static const struct attr_field adaptive_fields[] = { FIELD(ATTR_INT, size, 2, 1, ATTR_LIMIT),
                                                     { .name = NULL } };
#undef ATTR_STRUCT

static void complete(union attr *attr)
{
    complete_ones(attr->pool.stride, 2);
    complete_ones(attr->pool.dilation, 2);
}

static bool window_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    (void)n_inputs;
    const struct pool_attr *a = &attr->pool;
    char text[SHAPE_TEXT];
    if (!shape_is_image(in[0], err))
        return false;
    *out = *in[0];
    for (int i = 0; i < 2; i++) {
        int64_t reach = a->dilation[i] * (a->kernel[i] - 1);
        if (a->pad[i] > reach || a->pad[2 + i] > reach)
            return err_set(err, ERR_FORMAT, "the padding leaves windows without any input");
        out->dim[2 + i] = window_extent(in[0]->dim[2 + i], a->kernel[i], a->stride[i], a->pad[i],
                                        a->pad[2 + i], a->dilation[i], a->ceil_mode);
        if (out->dim[2 + i] < 1)
            return err_set(err, ERR_FORMAT, "the input is %s; the window does not fit into it",
                           shape_text(in[0], text));
    }
    return true;
}

static bool global_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                         struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs;
    if (!shape_is_image(in[0], err))
        return false;
    *out = SHAPE(in[0]->dim[0], in[0]->dim[1], 1, 1);
    return true;
}

static bool adaptive_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                           struct shape *out, struct err *err)
{
    (void)n_inputs;
    if (!shape_is_image(in[0], err))
        return false;
    *out = SHAPE(in[0]->dim[0], in[0]->dim[1], attr->adaptive.size[0], attr->adaptive.size[1]);
    return true;
}

struct pooling {
    struct pool_window window;
    int32_t *tables;
};

static void pooling_free(void *at)
{
    struct pooling *p = at;
    free(p->tables);
    free(p);
}

/* Taps of sliding windows along one axis; false if a window sees nothing. */
static bool slide(struct pool_axis *axis, const struct pool_attr *a, int i)
{
    int64_t kernel = a->kernel[i], dilation = a->dilation[i];
    axis->step = dilation;
    axis->taps = kernel;
    for (int64_t o = 0; o < axis->out; o++) {
        int64_t start = o * a->stride[i] - a->pad[i];
        int64_t skip = start < 0 ? ceil_div(-start, dilation) : 0;
        int64_t reach = (axis->in - 1 - start) / dilation + 1;
        int64_t padded = (axis->in + a->pad[2 + i] - 1 - start) / dilation + 1;
        int64_t end = reach < kernel ? reach : kernel;
        axis->begin[o] = (int32_t)(start + skip * dilation);
        axis->tap[o] = (int32_t)skip;
        axis->count[o] = (int32_t)(end - skip);
        axis->divisor[o] =
            a->count_include_pad ? (int32_t)(padded < kernel ? padded : kernel) : axis->count[o];
        if (axis->count[o] < 1)
            return false;
    }
    return true;
}

/* Windows that cut an axis into `out` parts of nearly the same extent. */
static void divide(struct pool_axis *axis)
{
    axis->step = 1;
    for (int64_t o = 0; o < axis->out; o++) {
        int64_t begin = o * axis->in / axis->out;
        int64_t end = ceil_div((o + 1) * axis->in, axis->out);
        axis->begin[o] = (int32_t)begin;
        axis->tap[o] = 0;
        axis->count[o] = axis->divisor[o] = (int32_t)(end - begin);
        if (end - begin > axis->taps)
            axis->taps = end - begin;
    }
}

static bool pooling_of(const struct plan_node *pn, enum layout layout, struct pooling *p,
                       struct err *err)
{
    const struct shape *x = in_shape(pn, 0), *y = out_shape(pn);
    enum op_kind kind = pn->node->op->kind;
    bool sliding = kind == OP_MAX_POOL || kind == OP_AVERAGE_POOL, ok = true;
    int64_t extents[5];
    layout_extents(pn->tape, x, layout, extents);
    *p = (struct pooling){ .window = { .planes = extents[0] * extents[1],
                                       .inner = extents[4],
                                       .threads = pn->tape->options.threads } };
    p->tables = calloc((size_t)(y->dim[2] + y->dim[3]) * 4, sizeof *p->tables);
    if (!p->tables)
        return err_memory(err, "pooling");
    int32_t *at = p->tables;
    for (int i = 0; i < 2; i++) {
        struct pool_axis *axis = &p->window.axis[i];
        axis->in = x->dim[2 + i], axis->out = y->dim[2 + i];
        axis->begin = at, axis->count = at + axis->out;
        axis->divisor = at + 2 * axis->out, axis->tap = at + 3 * axis->out;
        at += 4 * axis->out;
        if (sliding)
            ok = slide(axis, &pn->node->attr.pool, i) && ok;
        else
            divide(axis);
    }
    bool is_max = kind == OP_MAX_POOL || kind == OP_GLOBAL_MAX_POOL;
    if (ok && is_max && p->window.axis[0].taps * p->window.axis[1].taps > UINT16_MAX)
        ok = err_set(err, ERR_FORMAT, "the window has more than %d pixels", UINT16_MAX);
    else if (!ok)
        err_set(err, ERR_FORMAT, "the dilation leaves windows without any input");
    if (!ok)
        free(p->tables);
    return ok;
}

static bool run_max(const struct step *step, struct err *err)
{
    (void)err;
    const struct pooling *p = step->state;
    pool_max(&p->window, simd_best(), step->at[0], step->at[1], step->at[2]);
    return true;
}

static bool run_mean(const struct step *step, struct err *err)
{
    (void)err;
    const struct pooling *p = step->state;
    pool_mean(&p->window, simd_best(), step->at[0], step->at[1]);
    return true;
}

static bool run_max_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct pooling *p = step->state;
    pool_max_back(&p->window, simd_best(), step->at[0], step->at[2], step->at[1]);
    return true;
}

static bool run_mean_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct pooling *p = step->state;
    pool_mean_back(&p->window, simd_best(), step->at[0], step->at[1]);
    return true;
}

/* The step `run` from slot `from` to slot `to`; `index` as a third slot unless NO_SLOT. */
static bool add_pooling(struct plan_node *pn, const char *name, enum layout layout,
                        bool (*run)(const struct step *, struct err *), int from, int to, int index,
                        enum access index_access, struct err *err)
{
    struct pooling p;
    if (!pooling_of(pn, layout, &p, err))
        return false;
    struct step_spec spec = { name, run, &p, sizeof p, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step) {
        free(p.tables);
        return false;
    }
    step->destroy = pooling_free;
    if (!step_use(step, from, ACCESS_READ, err) || !step_use(step, to, ACCESS_WRITE, err))
        return false;
    step_use_optional(step, index, index_access);
    return true;
}

bool lower_take_max_pool(struct plan_node *pn, struct pool_window *window, int32_t **tables, int *x)
{
    struct tape *tape = pn->tape;
    value_id value = pn->node->inputs[0];
    struct step *last = tape->n_steps > 0 ? &tape->steps[tape->n_steps - 1] : NULL;
    if (!last || last->run != run_max || last->phase != PHASE_FORWARD || tape->options.no_sharing ||
        tape->values[value].keep ||
        last->slot[1] != tape->values[value].slot[LAYOUT_BLOCKED][DTYPE_FLOAT32] ||
        graph_only_user(tape->graph, value) != pn->node)
        return false;
    struct pooling *p = last->state;
    if (p->window.axis[0].step > 1) /* blocks of pixels would need too many rows */
        return false;
    *window = p->window, *tables = p->tables, *x = last->slot[0];
    free(p);
    tape->n_steps--;
    return true;
}

static bool max_forward(struct plan_node *pn, struct err *err)
{
    enum layout layout = in_layout(pn, 0);
    bool train = pn->tape->options.mode != PLAN_INFER;
    if (lower_stem_joins(pn)) {
        struct pooling p;
        return pooling_of(pn, layout, &p, err) && lower_stem_pool(pn, &p.window, p.tables, err);
    }
    int x = in_slot(pn, 0, layout, err), y = out_slot(pn, layout);
    size_t count = (size_t)layout_count(pn->tape, out_shape(pn), layout);
    pn->state->slot[0] = train ? slot_new(pn->tape, count * sizeof(uint16_t)) : NO_SLOT;
    return add_pooling(pn, "max pool", layout, run_max, x, y, pn->state->slot[0], ACCESS_WRITE,
                       err);
}

static bool max_backward(struct plan_node *pn, struct err *err)
{
    enum layout layout = out_layout(pn);
    if (!wants_gradient(pn, 0))
        return true;
    int dy = out_gradient(pn, layout, err), dx = gradient_slot(pn, 0, layout);
    return add_pooling(pn, "max pool back", layout, run_max_back, dy, dx, pn->state->slot[0],
                       ACCESS_READ, err) &&
           gradient_add(pn, 0, dx, layout, err);
}

static bool mean_forward(struct plan_node *pn, struct err *err)
{
    enum layout layout = in_layout(pn, 0);
    int x = in_slot(pn, 0, layout, err), y = out_slot(pn, layout);
    return add_pooling(pn, "mean pool", layout, run_mean, x, y, NO_SLOT, ACCESS_READ, err);
}

static bool mean_backward(struct plan_node *pn, struct err *err)
{
    enum layout layout = out_layout(pn);
    if (!wants_gradient(pn, 0))
        return true;
    int dy = out_gradient(pn, layout, err), dx = gradient_slot(pn, 0, layout);
    return add_pooling(pn, "mean pool back", layout, run_mean_back, dy, dx, NO_SLOT, ACCESS_READ,
                       err) &&
           gradient_add(pn, 0, dx, layout, err);
}

const struct op op_max_pool = {
    .kind = OP_MAX_POOL,
    .name = "max_pool",
    .onnx = "MaxPool",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = max_fields,
    .complete = complete,
    .shape = window_shape,
    .forward = max_forward,
    .backward = max_backward,
};

const struct op op_average_pool = {
    .kind = OP_AVERAGE_POOL,
    .name = "average_pool",
    .onnx = "AveragePool",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = average_fields,
    .complete = complete,
    .shape = window_shape,
    .forward = mean_forward,
    .backward = mean_backward,
};

const struct op op_global_max_pool = {
    .kind = OP_GLOBAL_MAX_POOL,
    .name = "global_max_pool",
    .onnx = "GlobalMaxPool",
    .min_inputs = 1,
    .max_inputs = 1,
    .shape = global_shape,
    .forward = max_forward,
    .backward = max_backward,
};

const struct op op_global_average_pool = {
    .kind = OP_GLOBAL_AVERAGE_POOL,
    .name = "global_average_pool",
    .onnx = "GlobalAveragePool",
    .min_inputs = 1,
    .max_inputs = 1,
    .shape = global_shape,
    .forward = mean_forward,
    .backward = mean_backward,
};

const struct op op_adaptive_average_pool = {
    .kind = OP_ADAPTIVE_AVERAGE_POOL,
    .name = "adaptive_average_pool",
    .onnx = NULL,
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = adaptive_fields,
    .shape = adaptive_shape,
    .forward = mean_forward,
    .backward = mean_backward,
};
