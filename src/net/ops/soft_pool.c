/* soft_pool.c: poolings of a whole map by exponentials: log-sum-exp, between mean and maximum, and
 * attention, a mean with the softmax of scores as weights. */
#include "net/kernels/soft_pool.h"
#include "net/plan/step.h"
#include "net/ops/ops.h"

#define ATTR_STRUCT struct lse_attr
static const struct attr_field lse_fields[] = {
    FIELD(ATTR_REAL, r, 1, 1e-3, 1e3),
    { .name = NULL },
};
#undef ATTR_STRUCT

static void lse_complete(union attr *attr)
{
    if (attr->lse.r == 0)
        attr->lse.r = LSE_DEFAULT_R;
}

static bool lse_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                      struct shape *out, struct err *err)
{
    (void)attr, (void)n_inputs;
    if (!shape_is_image(in[0], err))
        return false;
    *out = SHAPE(in[0]->dim[0], in[0]->dim[1], 1, 1);
    return true;
}

static bool attention_shape(const union attr *attr, const struct shape *const *in, int n_inputs,
                            struct shape *out, struct err *err)
{
    char text[SHAPE_TEXT], needed[SHAPE_TEXT];
    if (!lse_shape(attr, in, n_inputs, out, err))
        return false;
    struct shape scores = SHAPE(in[0]->dim[0], 1, in[0]->dim[2], in[0]->dim[3]);
    return shape_equal(in[1], &scores) ||
           err_set(err, ERR_FORMAT, "the scores are %s; %s is needed", shape_text(in[1], text),
                   shape_text(&scores, needed));
}

struct state {
    struct soft_pool pool;
    float r;
};

static struct state state_of(const struct plan_node *pn)
{
    const struct shape *x = in_shape(pn, 0);
    return (
        struct state){ { x->dim[0], x->dim[1], x->dim[2] * x->dim[3], pn->tape->options.threads },
                       pn->node->attr.lse.r };
}

static bool run_lse(const struct step *step, struct err *err)
{
    (void)err;
    const struct state *s = step->state;
    lse_pool(&s->pool, s->r, step->at[0], step->at[1]);
    return true;
}

static bool run_lse_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct state *s = step->state;
    lse_pool_back(&s->pool, s->r, step->at[0], step->at[1], step->at[2]);
    return true;
}

static bool run_attention(const struct step *step, struct err *err)
{
    (void)err;
    const struct state *s = step->state;
    attention_pool(&s->pool, step->at[0], step->at[1], step->at[2], step->at[3]);
    return true;
}

static bool run_attention_back(const struct step *step, struct err *err)
{
    (void)err;
    const struct state *s = step->state;
    attention_pool_back(&s->pool, step->at[0], step->at[1], step->at[2], step->at[5], step->at[3],
                        step->at[4]);
    return true;
}

static bool lse_forward(struct plan_node *pn, struct err *err)
{
    struct state s = state_of(pn);
    struct step_spec spec = { "lse pool", run_lse, &s, sizeof s, 0 };
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err), y = out_slot(pn, LAYOUT_PLAIN);
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, x, ACCESS_READ, err) && step_use(step, y, ACCESS_WRITE, err);
}

static bool lse_backward(struct plan_node *pn, struct err *err)
{
    struct state s = state_of(pn);
    struct step_spec spec = { "lse pool back", run_lse_back, &s, sizeof s, 0 };
    if (!wants_gradient(pn, 0))
        return true;
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err), dy = out_gradient(pn, LAYOUT_PLAIN, err);
    int dx = gradient_slot(pn, 0, LAYOUT_PLAIN);
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, x, ACCESS_READ, err) && step_use(step, dy, ACCESS_READ, err) &&
           step_use(step, dx, ACCESS_WRITE, err) && gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
}

static int sums_slot(struct plan_node *pn)
{
    return slot_new(pn->tape, (size_t)in_shape(pn, 0)->dim[1] * sizeof(double));
}

static bool attention_forward(struct plan_node *pn, struct err *err)
{
    struct state s = state_of(pn);
    struct step_spec spec = { "attention pool", run_attention, &s, sizeof s, 0 };
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err), scores = in_slot(pn, 1, LAYOUT_PLAIN, err);
    int sums = sums_slot(pn), y = out_slot(pn, LAYOUT_PLAIN);
    struct step *step = step_add(pn->tape, &spec, err);
    return step && step_use(step, x, ACCESS_READ, err) &&
           step_use(step, scores, ACCESS_READ, err) && step_use(step, sums, ACCESS_WRITE, err) &&
           step_use(step, y, ACCESS_WRITE, err);
}

static bool attention_backward(struct plan_node *pn, struct err *err)
{
    struct state s = state_of(pn);
    struct step_spec spec = { "attention pool back", run_attention_back, &s, sizeof s, 0 };
    return step_pair_back(pn, &spec, sums_slot(pn), err);
}

const struct op op_global_lse_pool = {
    .kind = OP_GLOBAL_LSE_POOL,
    .name = "global_lse_pool",
    .onnx = NULL,
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = lse_fields,
    .complete = lse_complete,
    .shape = lse_shape,
    .forward = lse_forward,
    .backward = lse_backward,
};

const struct op op_attention_pool = {
    .kind = OP_ATTENTION_POOL,
    .name = "attention_pool",
    .onnx = NULL,
    .min_inputs = 2,
    .max_inputs = 2,
    .shape = attention_shape,
    .forward = attention_forward,
    .backward = attention_backward,
};
