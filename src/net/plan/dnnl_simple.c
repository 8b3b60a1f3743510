/* dnnl_simple.c: engine and stream; functions of one float that need exp, tanh or erf; softmax. */
#include <omp.h>
#include <stdlib.h>
#include "net/plan/dnnl_step.h"
#include "net/plan/lower.h"

bool lower_open(struct tape *tape, struct err *err)
{
    struct dnnl_context *context = calloc(1, sizeof *context);
    if (!context)
        return err_memory(err, "plan");
    tape->dnnl = context;
    tape->block = dnnl_get_effective_cpu_isa() >= dnnl_cpu_isa_avx512_core ? 16 : 8;
    return dnnl_ok(dnnl_engine_create(&context->engine, dnnl_cpu, 0), "engine", err) &&
           dnnl_ok(dnnl_stream_create(&context->stream, context->engine, dnnl_stream_default_flags),
                   "stream", err);
}

void lower_close(struct tape *tape)
{
    struct dnnl_context *context = tape->dnnl;
    if (!context)
        return;
    dnnl_stream_destroy(context->stream);
    dnnl_engine_destroy(context->engine);
    free(context);
    tape->dnnl = NULL;
}

void lower_forget(void *hint)
{
    dnnl_primitive_desc_destroy(hint);
}

/* What oneDNN calls it, and whether its backward reads the output instead of the input. */
struct function {
    dnnl_alg_kind_t forward, backward;
    bool from_output;
};

static struct function function_of(const struct node *node)
{
    switch (node->op->kind) {
    case OP_SIGMOID:
        return (struct function){ dnnl_eltwise_logistic, dnnl_eltwise_logistic_use_dst_for_bwd,
                                  true };
    case OP_TANH:
        return (struct function){ dnnl_eltwise_tanh, dnnl_eltwise_tanh_use_dst_for_bwd, true };
    default:
        return node->attr.gelu.tanh_form
                   ? (struct function){ dnnl_eltwise_gelu_tanh, dnnl_eltwise_gelu_tanh, false }
                   : (struct function){ dnnl_eltwise_gelu_erf, dnnl_eltwise_gelu_erf, false };
    }
}

/* The sigmoid of the zeros that fill up a block would not be 0. */
static enum layout activation_layout(const struct plan_node *pn)
{
    return pn->node->op->kind == OP_SIGMOID ? in_layout_whole(pn, 0) : in_layout(pn, 0);
}

static bool activation_pd(struct plan_node *pn, bool backward, const dnnl_memory_desc_t *data,
                          dnnl_primitive_desc_t *pd, struct err *err)
{
    struct function f = function_of(pn->node);
    dnnl_prop_kind_t prop =
        pn->tape->options.mode == PLAN_INFER ? dnnl_forward_inference : dnnl_forward_training;
    dnnl_alg_kind_t kind = pn->tape->options.mode == PLAN_INFER ? f.forward : f.backward;
    dnnl_eltwise_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status =
        backward ? dnnl_eltwise_backward_desc_init(&desc, f.backward, data, data, 0, 0)
                 : dnnl_eltwise_forward_desc_init(&desc, prop, kind, data, 0, 0);
    bool ok = attr_new(&attr, err) && dnnl_ok(status, pn->node->op->name, err) &&
              dnnl_ok(dnnl_primitive_desc_create(pd, &desc, attr, dnnl_of(pn->tape)->engine,
                                                 backward ? pn->state->hint : NULL),
                      pn->node->op->name, err);
    dnnl_primitive_attr_destroy(attr);
    return ok;
}

bool lower_activation_forward(struct plan_node *pn, struct err *err)
{
    enum layout layout = activation_layout(pn);
    dnnl_memory_desc_t data = desc_flat(layout_count(pn->tape, out_shape(pn), layout));
    dnnl_primitive_desc_t pd = NULL;
    if (!activation_pd(pn, false, &data, &pd, err))
        return false;
    pn->state->hint = pd;
    struct dnnl_arg args[] = {
        { DNNL_ARG_SRC, &data, in_slot(pn, 0, layout, err), ACCESS_READ },
        { DNNL_ARG_DST, &data, out_slot(pn, layout), ACCESS_WRITE },
    };
    struct step *step = dnnl_step(pn->tape, pn->node->op->name, pd, args, 2, 0, err);
    if (step)
        step_in_place(step, 0, -1, 1);
    return step != NULL;
}

bool lower_activation_backward(struct plan_node *pn, struct err *err)
{
    bool from_output = function_of(pn->node).from_output;
    enum layout layout = out_layout(pn);
    dnnl_memory_desc_t data = desc_flat(layout_count(pn->tape, out_shape(pn), layout));
    dnnl_primitive_desc_t pd = NULL;
    if (!wants_gradient(pn, 0))
        return true;
    if (!activation_pd(pn, true, &data, &pd, err))
        return false;
    int dx = gradient_slot(pn, 0, layout);
    struct dnnl_arg args[] = {
        { DNNL_ARG_DIFF_DST, &data, out_gradient(pn, layout, err), ACCESS_READ },
        { DNNL_ARG_DIFF_SRC, &data, dx, ACCESS_WRITE },
        { from_output ? DNNL_ARG_DST : DNNL_ARG_SRC, &data,
          from_output ? out_value(pn, layout, err) : in_slot(pn, 0, layout, err), ACCESS_READ },
    };
    struct step *step = dnnl_step(pn->tape, pn->node->op->name, pd, args, 3, 0, err);
    dnnl_primitive_desc_destroy(pd);
    if (!step)
        return false;
    step_in_place(step, 0, -1, 1);
    return gradient_add(pn, 0, dx, layout, err);
}

/* Softmax runs over the middle of [outer, axis, inner]. */
static bool is_log(const struct plan_node *pn)
{
    return pn->node->op->kind == OP_LOG_SOFTMAX;
}

static dnnl_memory_desc_t softmax_desc(const struct plan_node *pn)
{
    const struct shape *x = in_shape(pn, 0);
    int axis = axis_of(pn->node->attr.axis.axis, x->rank);
    struct shape three =
        SHAPE(shape_span(x, 0, axis), x->dim[axis], shape_span(x, axis + 1, x->rank));
    return desc_plain(&three);
}

bool lower_softmax_forward(struct plan_node *pn, struct err *err)
{
    dnnl_memory_desc_t data = softmax_desc(pn);
    dnnl_prop_kind_t prop =
        pn->tape->options.mode == PLAN_INFER ? dnnl_forward_inference : dnnl_forward_training;
    dnnl_softmax_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    bool ok = attr_new(&attr, err) &&
              dnnl_ok(is_log(pn) ? dnnl_logsoftmax_forward_desc_init(&desc, prop, &data, 1)
                                 : dnnl_softmax_forward_desc_init(&desc, prop, &data, 1),
                      "softmax", err) &&
              dnnl_ok(dnnl_primitive_desc_create(&pd, &desc, attr, dnnl_of(pn->tape)->engine, NULL),
                      "softmax", err);
    dnnl_primitive_attr_destroy(attr);
    pn->state->hint = pd;
    if (!ok)
        return false;
    struct dnnl_arg args[] = {
        { DNNL_ARG_SRC, &data, in_slot(pn, 0, LAYOUT_PLAIN, err), ACCESS_READ },
        { DNNL_ARG_DST, &data, out_slot(pn, LAYOUT_PLAIN), ACCESS_WRITE },
    };
    struct step *step = dnnl_step(pn->tape, pn->node->op->name, pd, args, 2, 0, err);
    if (step)
        step_in_place(step, 0, -1, 1);
    return step != NULL;
}

bool lower_softmax_backward(struct plan_node *pn, struct err *err)
{
    dnnl_memory_desc_t data = softmax_desc(pn);
    dnnl_softmax_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    if (!wants_gradient(pn, 0))
        return true;
    bool ok = attr_new(&attr, err) &&
              dnnl_ok(is_log(pn) ? dnnl_logsoftmax_backward_desc_init(&desc, &data, &data, 1)
                                 : dnnl_softmax_backward_desc_init(&desc, &data, &data, 1),
                      "softmax", err) &&
              dnnl_ok(dnnl_primitive_desc_create(&pd, &desc, attr, dnnl_of(pn->tape)->engine,
                                                 pn->state->hint),
                      "softmax", err);
    dnnl_primitive_attr_destroy(attr);
    if (!ok)
        return false;
    int dx = gradient_slot(pn, 0, LAYOUT_PLAIN);
    struct dnnl_arg args[] = {
        { DNNL_ARG_DIFF_DST, &data, out_gradient(pn, LAYOUT_PLAIN, err), ACCESS_READ },
        { DNNL_ARG_DIFF_SRC, &data, dx, ACCESS_WRITE },
        { DNNL_ARG_DST, &data, out_value(pn, LAYOUT_PLAIN, err), ACCESS_READ },
    };
    struct step *step = dnnl_step(pn->tape, "softmax back", pd, args, 3, 0, err);
    dnnl_primitive_desc_destroy(pd);
    return step && gradient_add(pn, 0, dx, LAYOUT_PLAIN, err);
}
