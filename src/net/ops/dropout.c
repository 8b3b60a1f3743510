/* dropout.c: in training, elements are set to 0 at random and the others scaled up. */
#include "base/rng.h"
#include "net/plan/step.h"
#include "net/ops/ops.h"

#define ATTR_STRUCT struct dropout_attr
static const struct attr_field fields[] = {
    FIELD(ATTR_REAL, rate, 1, 0, 0.999),
    { .name = NULL },
};
#undef ATTR_STRUCT

struct dropout {
    const struct plan_random *random;
    uint64_t stream;
    int64_t batch, rows, row; /* floats of one image: rows of so many */
    int64_t before, behind;   /* floats of a row that other processes have */
    float rate;
    int threads;
};

/* The same floats fall out forward and backward: they follow from the key, nothing is kept. */
static bool run_dropout(const struct step *step, struct err *err)
{
    (void)err;
    const struct dropout *d = step->state;
    const float *x = step->at[0];
    float *y = step->at[1], scale = 1 / (1 - d->rate);
    uint32_t limit = (uint32_t)((double)d->rate * 4294967296.0);
#pragma omp parallel for num_threads(d->threads) schedule(static) if (d->threads > 1)
    for (int64_t n = 0; n < d->batch; n++) {
        struct rng rng = rng_new(d->random->seed, d->stream, d->random->first_sample + (uint64_t)n);
        for (int64_t r = n * d->rows; r < (n + 1) * d->rows; r++) {
            rng_skip(&rng, (uint64_t)d->before);
            for (int64_t i = r * d->row; i < (r + 1) * d->row; i++)
                y[i] = rng_u32(&rng) < limit ? 0 : x[i] * scale;
            rng_skip(&rng, (uint64_t)d->behind);
        }
    }
    return true;
}

static bool add_dropout(struct plan_node *pn, int from, int to, struct err *err)
{
    const struct shape *x = in_shape(pn, 0);
    const struct dropout_attr *a = &pn->node->attr.dropout;
    struct dropout d = { .random = &pn->tape->random,
                         .stream = rng_hash(pn->node->name),
                         .batch = x->rank ? x->dim[0] : 1,
                         .rows = 1,
                         .row = shape_span(x, 1, x->rank),
                         .before = a->before,
                         .rate = a->rate,
                         .threads = pn->tape->options.threads };
    if (a->parts > 1) {
        d.rows = shape_span(x, 1, x->rank - 1);
        d.row = x->dim[x->rank - 1];
        d.before = a->part * d.row;
        d.behind = (a->parts - 1 - a->part) * d.row;
    }
    struct step_spec spec = { "dropout", run_dropout, &d, sizeof d, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, from, ACCESS_READ, err) || !step_use(step, to, ACCESS_WRITE, err))
        return false;
    step_in_place(step, 0, -1, 1);
    return true;
}

static bool is_idle(const struct plan_node *pn)
{
    return pn->tape->options.mode != PLAN_TRAIN || pn->node->attr.dropout.rate <= 0;
}

static bool dropout_forward(struct plan_node *pn, struct err *err)
{
    if (!is_idle(pn) && !plan_units_joined(pn, err)) /* samples of a batch are numbered on */
        return false;
    if (is_idle(pn)) {
        out_is(pn, in_slot(pn, 0, in_layout(pn, 0), err), FLOATS(in_layout(pn, 0)));
        return true;
    }
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err);
    return add_dropout(pn, x, out_slot(pn, LAYOUT_PLAIN), err);
}

static bool dropout_backward(struct plan_node *pn, struct err *err)
{
    if (!wants_gradient(pn, 0))
        return true;
    enum layout layout = out_layout(pn);
    int dy = out_gradient(pn, layout, err);
    if (is_idle(pn))
        return gradient_add(pn, 0, dy, layout, err);
    int dx = gradient_slot(pn, 0, LAYOUT_PLAIN);
    return add_dropout(pn, dy, dx, err) && gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
}

const struct op op_dropout = {
    .kind = OP_DROPOUT,
    .name = "dropout",
    .onnx = "Dropout",
    .min_inputs = 1,
    .max_inputs = 1,
    .fields = fields,
    .shape = shape_same,
    .forward = dropout_forward,
    .backward = dropout_backward,
};
