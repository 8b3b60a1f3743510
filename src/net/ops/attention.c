/* attention.c: attention between tokens, as one kernel: the scores of all pairs are never in memory
 * at once. For the scores themselves, transform_expand_attention. */
#include "net/kernels/attention.h"
#include <math.h>
#include "net/ops/ops.h"
#include "net/plan/step.h"

enum { IN_Q, IN_K, IN_V, IN_BIAS, IN_MASK, INPUTS };

#define ATTR_STRUCT struct attention_attr
static const struct attr_field fields[] = {
    FIELD(ATTR_INT, heads, 1, 1, ATTR_LIMIT),
    FIELD(ATTR_REAL, scale, 1, 0, 1e30),
    { .name = NULL },
};
#undef ATTR_STRUCT

static void complete(union attr *attr)
{
    complete_ones(&attr->attention.heads, 1);
}

static bool is_one_of(int64_t extent, int64_t a, int64_t b)
{
    return extent == a || extent == b;
}

static bool check_others(const union attr *attr, const struct shape *const *in, int n_inputs,
                         const struct shape *k, struct err *err)
{
    const struct shape *q = in[IN_Q];
    const struct shape *bias = n_inputs > IN_BIAS ? in[IN_BIAS] : NULL;
    const struct shape *mask = n_inputs > IN_MASK ? in[IN_MASK] : NULL;
    char text[SHAPE_TEXT];
    if (bias && (bias->rank != 4 || !is_one_of(bias->dim[0], 1, q->dim[0]) ||
                 !is_one_of(bias->dim[1], 1, attr->attention.heads) || bias->dim[2] != q->dim[1] ||
                 bias->dim[3] != k->dim[1]))
        return err_set(
            err, ERR_FORMAT, "the bias is %s; [1 or %lld, 1 or %lld, %lld, %lld] is needed",
            shape_text(bias, text), (long long)q->dim[0], (long long)attr->attention.heads,
            (long long)q->dim[1], (long long)k->dim[1]);
    if (mask && (mask->rank != 2 || mask->dim[0] != q->dim[0] || mask->dim[1] != k->dim[1]))
        return err_set(err, ERR_FORMAT, "the mask is %s; [%lld, %lld] is needed",
                       shape_text(mask, text), (long long)q->dim[0], (long long)k->dim[1]);
    return true;
}

static bool attention_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                            struct shape *out, struct err *err)
{
    const struct shape *q = in[IN_Q], *k = n_inputs > IN_K ? in[IN_K] : NULL;
    const struct shape *v = n_inputs > IN_V ? in[IN_V] : NULL;
    int64_t parts = k ? 1 : 3;
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    if (!k != !v)
        return err_set(err, ERR_FORMAT, "k and v are needed, or neither of them");
    if (q->rank != 3 || q->dim[2] % (parts * attr->attention.heads))
        return err_set(err, ERR_FORMAT, "the input is %s; [N, T, %s%lld d] is needed",
                       shape_text(q, text), k ? "" : "3 x ", (long long)attr->attention.heads);
    if (k && (k->rank != 3 || k->dim[0] != q->dim[0] || k->dim[2] != q->dim[2]))
        return err_set(err, ERR_FORMAT, "k is %s; it does not match q, %s", shape_text(k, text),
                       shape_text(q, other));
    if (k && !shape_equal(k, v))
        return err_set(err, ERR_FORMAT, "v is %s; it does not match k, %s", shape_text(v, text),
                       shape_text(k, other));
    *out = SHAPE(q->dim[0], q->dim[1], q->dim[2] / parts);
    return check_others(attr, in, n_inputs, k ? k : q, err);
}

static struct attention spec_of(const struct plan_node *pn)
{
    const struct shape *q = in_shape(pn, IN_Q), *y = out_shape(pn);
    bool packed = !has_input(pn, IN_K);
    const struct attention_attr *attr = &pn->node->attr.attention;
    struct attention a = { .level = simd_best(),
                           .threads = pn->tape->options.threads,
                           .samples = q->dim[0],
                           .heads = attr->heads,
                           .queries = q->dim[1],
                           .keys = in_shape(pn, packed ? IN_Q : IN_K)->dim[1],
                           .width = y->dim[2] / attr->heads,
                           .y_step = y->dim[2] };
    a.q_step = a.k_step = a.v_step = q->dim[2];
    a.scale = attr->scale != 0 ? attr->scale : (float)(1 / sqrt((double)a.width));
    if (has_input(pn, IN_BIAS)) {
        const struct shape *bias = in_shape(pn, IN_BIAS);
        int64_t scores = a.queries * a.keys;
        a.bias_head = bias->dim[1] > 1 ? scores : 0;
        a.bias_sample = bias->dim[0] > 1 ? bias->dim[1] * scores : 0;
    }
    return a;
}

/* Slots of a step: the inputs, y, sums, scratch and, backward, dy and the gradients of q, k, v and
 * bias. With one input for q, k and v, those of k and v are absent. */
enum { AT_Y = INPUTS, AT_SUMS, AT_SCRATCH, AT_DY, AT_DQ, AT_DK, AT_DV, AT_DBIAS };
_Static_assert(AT_DBIAS < STEP_SLOTS, "one slot for each");

/* Behind q come k and v. */
static const float *part_of(const struct step *step, const struct attention *a, int i)
{
    const float *packed = step->at[IN_Q];
    return step->at[i] ? step->at[i] : packed + (i - IN_Q) * a->heads * a->width;
}

static struct attention_arrays arrays_of(const struct step *step)
{
    return (struct attention_arrays){
        .q = step->at[IN_Q],
        .k = part_of(step, step->state, IN_K),
        .v = part_of(step, step->state, IN_V),
        .bias = step->at[IN_BIAS],
        .mask = step->at[IN_MASK],
        .y = step->at[AT_Y],
        .sums = step->at[AT_SUMS],
        .scratch = step->at[AT_SCRATCH],
    };
}

static bool run(const struct step *step, struct err *err)
{
    (void)err;
    struct attention_arrays arrays = arrays_of(step);
    attention_forward_pass(step->state, &arrays);
    return true;
}

static bool run_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct attention *a = step->state;
    struct attention_arrays arrays = arrays_of(step);
    float *dq = step->at[AT_DQ];
    bool packed = !step->at[IN_K] && dq;
    arrays.dy = step->at[AT_DY];
    arrays.dq = dq;
    arrays.dk = packed ? dq + a->heads * a->width : step->at[AT_DK];
    arrays.dv = packed ? dq + 2 * a->heads * a->width : step->at[AT_DV];
    arrays.dbias = step->at[AT_DBIAS];
    attention_backward_pass(a, &arrays);
    return true;
}

static bool find_inputs(struct plan_node *pn, int slots[INPUTS], struct err *err)
{
    for (int i = 0; i < INPUTS; i++) {
        slots[i] = has_input(pn, i) ? in_slot(pn, i, LAYOUT_PLAIN, err) : NO_SLOT;
        if (has_input(pn, i) && slots[i] == NO_SLOT)
            return false;
    }
    return true;
}

static int scratch_slot(struct plan_node *pn, const struct attention *a)
{
    return slot_new(pn->tape, attention_scratch_floats(a) * sizeof(float));
}

/* Of both products, forward. */
static double flops_of(const struct attention *a)
{
    return 4.0 * (double)(a->samples * a->heads) * (double)a->queries * (double)a->keys *
           (double)a->width;
}

static bool attention_forward(struct plan_node *pn, struct err *err)
{
    struct attention a = spec_of(pn);
    struct step_spec spec = { "attention", run, &a, sizeof a, flops_of(&a) };
    bool train = pn->tape->options.mode != PLAN_INFER;
    size_t rows = (size_t)(a.samples * a.heads * a.queries);
    int slots[INPUTS], scratch = scratch_slot(pn, &a);
    if (!find_inputs(pn, slots, err))
        return false;
    int y = out_slot(pn, LAYOUT_PLAIN);
    pn->state->slot[0] = train ? slot_new(pn->tape, rows * sizeof(float)) : NO_SLOT;
    struct step *step = step_add(pn->tape, &spec, err);
    for (int i = 0; step && i < INPUTS; i++)
        step_use_optional(step, slots[i], ACCESS_READ);
    if (!step || !step_use(step, y, ACCESS_WRITE, err))
        return false;
    step_use_optional(step, pn->state->slot[0], ACCESS_WRITE);
    return step_use(step, scratch, ACCESS_WRITE, err);
}

/* Gradients of q, k, v and bias; the mask has none. */
static bool attention_backward(struct plan_node *pn, struct err *err)
{
    struct attention a = spec_of(pn);
    struct step_spec spec = { "attention back", run_back, &a, sizeof a, 2.5 * flops_of(&a) };
    int slots[INPUTS], d[IN_BIAS + 1], scratch = scratch_slot(pn, &a);
    bool any = false;
    for (int i = 0; i <= IN_BIAS; i++) {
        bool wanted = has_input(pn, i) && wants_gradient(pn, i);
        d[i] = wanted ? gradient_slot(pn, i, LAYOUT_PLAIN) : NO_SLOT;
        any = any || wanted;
    }
    if (!any)
        return true;
    if (!find_inputs(pn, slots, err))
        return false;
    int y = out_value(pn, LAYOUT_PLAIN, err), dy = out_gradient(pn, LAYOUT_PLAIN, err);
    struct step *step = step_add(pn->tape, &spec, err);
    for (int i = 0; step && i < INPUTS; i++)
        step_use_optional(step, slots[i], ACCESS_READ);
    if (!step || !step_use(step, y, ACCESS_READ, err) ||
        !step_use(step, pn->state->slot[0], ACCESS_READ, err) ||
        !step_use(step, scratch, ACCESS_WRITE, err) || !step_use(step, dy, ACCESS_READ, err))
        return false;
    for (int i = 0; i <= IN_BIAS; i++)
        step_use_optional(step, d[i], ACCESS_WRITE);
    for (int i = 0; i <= IN_BIAS; i++)
        if (d[i] != NO_SLOT && !gradient_add(pn, i, d[i], LAYOUT_PLAIN, err))
            return false;
    return true;
}

const struct op op_attention = {
    .kind = OP_ATTENTION,
    .name = "attention",
    .onnx = NULL,
    .min_inputs = 1,
    .max_inputs = INPUTS,
    .optional = 1u << IN_K | 1u << IN_V | 1u << IN_BIAS | 1u << IN_MASK,
    .fields = fields,
    .complete = complete,
    .shape = attention_shape,
    .forward = attention_forward,
    .backward = attention_backward,
};
