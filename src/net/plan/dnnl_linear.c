/* dnnl_linear.c: linear layers: x [rows, C], weight [O, C] -> [rows, O]. */
#include "net/plan/dnnl_step.h"
#include "net/plan/lower.h"

struct problem {
    dnnl_memory_desc_t x, y, weight, any, bias;
    bool has_bias;
    double flops;
};

static struct problem problem_of(const struct plan_node *pn)
{
    const struct shape *x = in_shape(pn, 0), *w = in_shape(pn, 1);
    int64_t rows = shape_span(x, 0, x->rank - 1);
    struct problem p = { .has_bias = has_input(pn, 2) };
    p.x = desc_plain(&SHAPE(rows, w->dim[1]));
    p.y = desc_plain(&SHAPE(rows, w->dim[0]));
    p.weight = desc_plain(w);
    p.any = desc_any(&p.weight);
    p.bias = desc_plain(&SHAPE(w->dim[0]));
    p.flops = 2.0 * (double)rows * (double)shape_count(w);
    return p;
}

static bool activation_attr(enum activation activation, dnnl_primitive_attr_t *attr,
                            struct err *err)
{
    if (!attr_new(attr, err))
        return false;
    if (activation == ACT_NONE)
        return true;
    dnnl_post_ops_t post = NULL;
    dnnl_alg_kind_t kind = activation == ACT_RELU   ? dnnl_eltwise_relu
                           : activation == ACT_SILU ? dnnl_eltwise_swish
                                                    : dnnl_eltwise_gelu_erf;
    bool ok = dnnl_ok(dnnl_post_ops_create(&post), "post-ops", err) &&
              dnnl_ok(dnnl_post_ops_append_eltwise(post, 1, kind, activation == ACT_SILU, 0),
                      "activation", err) &&
              dnnl_ok(dnnl_primitive_attr_set_post_ops(*attr, post), "post-ops", err);
    dnnl_post_ops_destroy(post);
    return ok;
}

bool lower_linear_forward(struct plan_node *pn, struct err *err)
{
    struct problem p = problem_of(pn);
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_inner_product_desc_t desc;
    dnnl_prop_kind_t prop =
        pn->tape->options.mode == PLAN_INFER ? dnnl_forward_inference : dnnl_forward_training;
    bool ok = activation_attr(pn->node->attr.linear.activation, &attr, err) &&
              dnnl_ok(dnnl_inner_product_forward_desc_init(&desc, prop, &p.x, &p.any,
                                                           p.has_bias ? &p.bias : NULL, &p.y),
                      "linear", err) &&
              dnnl_ok(dnnl_primitive_desc_create(&pd, &desc, attr, dnnl_of(pn->tape)->engine, NULL),
                      "linear", err);
    dnnl_primitive_attr_destroy(attr);
    pn->state->hint = pd;
    if (!ok)
        return false;
    const dnnl_memory_desc_t *weight = pd_desc(pd, dnnl_query_weights_md);
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err), w = dnnl_weight(pn, 1, &p.weight, weight, err);
    int b = p.has_bias ? in_slot(pn, 2, LAYOUT_PLAIN, err) : NO_SLOT;
    struct dnnl_arg args[] = {
        { DNNL_ARG_SRC, &p.x, x, ACCESS_READ },
        { DNNL_ARG_WEIGHTS, weight, w, ACCESS_READ },
        { DNNL_ARG_BIAS, p.has_bias ? &p.bias : NULL, b, ACCESS_READ },
        { DNNL_ARG_DST, &p.y, out_slot(pn, LAYOUT_PLAIN), ACCESS_WRITE },
    };
    return dnnl_step(pn->tape, "linear", pd, args, 4, p.flops, err) != NULL;
}

static bool backward_weights(struct plan_node *pn, const struct problem *p, int dy, struct err *err)
{
    bool bias = p->has_bias && wants_gradient(pn, 2), ok;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_inner_product_desc_t desc;
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

static bool backward_data(struct plan_node *pn, const struct problem *p, int dy, struct err *err)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_inner_product_desc_t desc;
    bool ok = attr_new(&attr, err) &&
              dnnl_ok(dnnl_inner_product_backward_data_desc_init(&desc, &p->x, &p->any, &p->y),
                      "linear data", err) &&
              dnnl_ok(dnnl_primitive_desc_create(&pd, &desc, attr, dnnl_of(pn->tape)->engine,
                                                 pn->state->hint),
                      "linear data", err);
    dnnl_primitive_attr_destroy(attr);
    if (!ok)
        return false;
    const dnnl_memory_desc_t *weight = pd_desc(pd, dnnl_query_weights_md);
    int dx = gradient_slot(pn, 0, LAYOUT_PLAIN);
    struct dnnl_arg args[] = {
        { DNNL_ARG_DIFF_DST, &p->y, dy, ACCESS_READ },
        { DNNL_ARG_WEIGHTS, weight, dnnl_weight(pn, 1, &p->weight, weight, err), ACCESS_READ },
        { DNNL_ARG_DIFF_SRC, &p->x, dx, ACCESS_WRITE },
    };
    ok = dnnl_step(pn->tape, "linear data", pd, args, 3, p->flops, err) != NULL;
    dnnl_primitive_desc_destroy(pd);
    return ok && gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
}

bool lower_linear_backward(struct plan_node *pn, struct err *err)
{
    struct problem p = problem_of(pn);
    if (pn->node->attr.linear.activation != ACT_NONE)
        return err_set(err, ERR_USAGE,
                       "a fused layer cannot be trained; use the graph before "
                       "transform_for_inference");
    int dy = out_gradient(pn, LAYOUT_PLAIN, err);
    if ((wants_gradient(pn, 1) || wants_gradient(pn, 2)) && !backward_weights(pn, &p, dy, err))
        return false;
    return !wants_gradient(pn, 0) || backward_data(pn, &p, dy, err);
}
