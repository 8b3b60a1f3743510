/* dnnl_linear.c: linear layers: x [rows, C], weight [O, C] -> [rows, O]. With few rows in training,
 * and where gradients of weights cannot be added in place, by oneDNN. */
#include "net/plan/dnnl_step.h"
#include "net/plan/lower.h"

struct problem {
    dnnl_memory_desc_t x, y, weight, any, bias;
    bool has_bias;
    double flops;
};

static int64_t rows_of(const struct plan_node *pn)
{
    const struct shape *x = in_shape(pn, 0);
    return shape_span(x, 0, x->rank - 1);
}

static struct problem problem_of(const struct plan_node *pn, int64_t rows)
{
    const struct shape *w = in_shape(pn, 1);
    struct problem p = { .has_bias = has_input(pn, 2) };
    p.x = desc_plain(&SHAPE(rows, w->dim[1]));
    p.y = desc_plain(&SHAPE(rows, w->dim[0]));
    p.weight = desc_plain(w);
    p.any = desc_any(&p.weight);
    p.bias = desc_plain(&SHAPE(w->dim[0]));
    p.flops = 2.0 * (double)rows_of(pn) * (double)shape_count(w);
    return p;
}

/* weight: its layout. */
static bool forward_pd(struct plan_node *pn, const struct problem *p,
                       const dnnl_memory_desc_t *weight, dnnl_primitive_desc_t *pd, struct err *err)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_inner_product_desc_t desc;
    bool ok =
        attr_new(&attr, err) &&
        dnnl_ok(dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_training, &p->x, weight,
                                                     p->has_bias ? &p->bias : NULL, &p->y),
                "linear", err) &&
        dnnl_ok(dnnl_primitive_desc_create(pd, &desc, attr, dnnl_of(pn->tape)->engine, NULL),
                "linear", err);
    dnnl_primitive_attr_destroy(attr);
    return ok;
}

static bool data_pd(struct plan_node *pn, const struct problem *p, const dnnl_memory_desc_t *weight,
                    dnnl_primitive_desc_t *pd, struct err *err)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_inner_product_desc_t desc;
    bool ok = attr_new(&attr, err) &&
              dnnl_ok(dnnl_inner_product_backward_data_desc_init(&desc, &p->x, weight, &p->y),
                      "linear data", err) &&
              dnnl_ok(dnnl_primitive_desc_create(pd, &desc, attr, dnnl_of(pn->tape)->engine,
                                                 pn->state->hint),
                      "linear data", err);
    dnnl_primitive_attr_destroy(attr);
    return ok;
}

/* For training: rows in pieces. from, to: what is read and written in every row. */
static bool add_rows(struct plan_node *pn, bool forward, int from, int to, struct err *err)
{
    int64_t n = rows_of(pn), piece = dnnl_rows_of_piece(n), rest = n % piece ? n % piece : piece;
    struct problem p[2] = { problem_of(pn, piece), problem_of(pn, rest) };
    struct dnnl_rows rows = {
        .what = forward ? "linear" : "linear data", .rows = n, .piece = piece, .flops = p[0].flops
    };
    int threads = dnnl_alone();
    bool ok = forward ? forward_pd(pn, &p[0], &p[0].any, &rows.pd[0], err)
                      : data_pd(pn, &p[0], &p[0].any, &rows.pd[0], err);
    const dnnl_memory_desc_t *weight = ok ? pd_desc(rows.pd[0], dnnl_query_weights_md) : NULL;
    ok = ok && (forward ? forward_pd(pn, &p[1], weight, &rows.pd[1], err)
                        : data_pd(pn, &p[1], weight, &rows.pd[1], err));
    dnnl_together(threads);
    if (ok) {
        bool bias = forward && p[0].has_bias;
        struct dnnl_rows_arg args[] = {
            { forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST,
              { forward ? &p[0].x : &p[0].y, forward ? &p[1].x : &p[1].y },
              from,
              ACCESS_READ,
              true },
            { DNNL_ARG_WEIGHTS,
              { weight, weight },
              dnnl_weight(pn, 1, &p[0].weight, weight, err),
              ACCESS_READ,
              false },
            { forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC,
              { forward ? &p[0].y : &p[0].x, forward ? &p[1].y : &p[1].x },
              to,
              ACCESS_WRITE,
              true },
            { DNNL_ARG_BIAS,
              { &p[0].bias, &p[0].bias },
              bias ? in_slot(pn, 2, LAYOUT_PLAIN, err) : NO_SLOT,
              ACCESS_READ,
              false },
        };
        ok = dnnl_rows_step(pn->tape, &rows, args, bias ? 4 : 3, err);
    }
    if (forward)
        pn->state->hint = rows.pd[0];
    else
        dnnl_primitive_desc_destroy(rows.pd[0]);
    dnnl_primitive_desc_destroy(rows.pd[1]);
    return ok;
}

bool lower_linear_forward(struct plan_node *pn, struct err *err)
{
    if (lower_packed_takes(pn))
        return lower_packed_forward(pn, err);
    return add_rows(pn, true, in_slot(pn, 0, LAYOUT_PLAIN, err), out_slot(pn, LAYOUT_PLAIN), err);
}

/* On one thread, whose number the sums would depend on. */
static bool weights_alone(struct plan_node *pn, const struct problem *p, int dy, struct err *err)
{
    bool bias = p->has_bias && wants_gradient(pn, 2), ok;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_inner_product_desc_t desc;
    if (!pn->state->hint) {
        if (!forward_pd(pn, p, &p->any, &pd, err))
            return false;
        pn->state->hint = pd, pd = NULL;
    }
    ok = attr_new(&attr, err) &&
         dnnl_ok(dnnl_inner_product_backward_weights_desc_init(&desc, &p->x, &p->any,
                                                               bias ? &p->bias : NULL, &p->y),
                 "linear weights", err) &&
         dnnl_ok(dnnl_primitive_desc_create(&pd, &desc, attr, dnnl_of(pn->tape)->engine,
                                            pn->state->hint),
                 "linear weights", err);
    dnnl_primitive_attr_destroy(attr);
    if (!ok)
        return false;
    const dnnl_memory_desc_t *weight = pd_desc(pd, dnnl_query_diff_weights_md);
    int dw = slot_new(pn->tape, dnnl_memory_desc_get_size(weight));
    int db = bias ? gradient_slot(pn, 2, LAYOUT_PLAIN) : NO_SLOT;
    struct dnnl_arg args[] = {
        { DNNL_ARG_SRC, &p->x, in_slot(pn, 0, LAYOUT_PLAIN, err), ACCESS_READ },
        { DNNL_ARG_DIFF_DST, &p->y, dy, ACCESS_READ },
        { DNNL_ARG_DIFF_WEIGHTS, weight, dw, ACCESS_WRITE },
        { DNNL_ARG_DIFF_BIAS, bias ? &p->bias : NULL, db, ACCESS_WRITE },
    };
    ok = dnnl_step(pn->tape, "linear weights", pd, args, 4, p->flops, err) &&
         dnnl_weight_gradient(pn, 1, weight, dw, &p->weight, err);
    if (ok && bias)
        ok = gradient_add(pn, 2, db, LAYOUT_PLAIN, err);
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

static bool backward_weights(struct plan_node *pn, int dy, struct err *err)
{
    if (lower_gradient_takes_linear(pn))
        return lower_gradient_linear(pn, dy, err);
    struct problem p = problem_of(pn, rows_of(pn));
    int threads = dnnl_alone();
    bool ok = weights_alone(pn, &p, dy, err);
    dnnl_together(threads);
    return ok;
}

bool lower_linear_backward(struct plan_node *pn, struct err *err)
{
    if (pn->node->attr.linear.activation != ACT_NONE || has_input(pn, 3))
        return err_set(err, ERR_USAGE,
                       "a fused layer cannot be trained; use the graph before "
                       "transform_for_inference");
    int dy = out_gradient(pn, LAYOUT_PLAIN, err);
    if ((wants_gradient(pn, 1) || wants_gradient(pn, 2)) && !backward_weights(pn, dy, err))
        return false;
    if (!wants_gradient(pn, 0))
        return true;
    int dx = gradient_slot(pn, 0, LAYOUT_PLAIN);
    bool ok = lower_packed_takes(pn) ? lower_packed_data(pn, dy, dx, err)
                                     : add_rows(pn, false, dy, dx, err);
    return ok && gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
}
