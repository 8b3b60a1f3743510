/* dnnl_conv.c: convolutions and transposed convolutions. Images are blocked if oneDNN has a
 * generated kernel for that; the first layer (few channels) reads plain images. */
#include "net/plan/dnnl_step.h"
#include "net/plan/lower.h"

/* One convolution as oneDNN sees it. */
struct problem {
    bool transposed;
    enum activation activation;
    bool sum, bias;
    dnnl_memory_desc_t weight; /* plain, [g, O, I, kh, kw] or [O, I, kh, kw] */
    dnnl_memory_desc_t bias_desc;
    dnnl_dims_t strides, dilates, pad_begin, pad_end;
    double flops;
};

/* [O, I, kh, kw] or [g, O, I, kh, kw] over the floats as PyTorch has them: [O, I/g, kh, kw], and
 * [I, O/g, kh, kw] for transposed convolutions. */
static dnnl_memory_desc_t weight_desc(const struct shape *w, int64_t groups, bool transposed)
{
    int64_t kernel = w->dim[2] * w->dim[3], outer = w->dim[0] / groups, inner = w->dim[1];
    int64_t outputs = transposed ? inner : outer, inputs = transposed ? outer : inner;
    int64_t output_stride = transposed ? kernel : inner * kernel;
    int64_t input_stride = transposed ? inner * kernel : kernel;
    dnnl_dims_t dims = { groups, outputs, inputs, w->dim[2], w->dim[3] };
    dnnl_dims_t strides = { outer * inner * kernel, output_stride, input_stride, w->dim[3], 1 };
    int skip = groups == 1 ? 1 : 0;
    dnnl_memory_desc_t desc;
    dnnl_memory_desc_init_by_strides(&desc, 5 - skip, dims + skip, dnnl_f32, strides + skip);
    return desc;
}

static struct problem problem_of(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct shape *w = in_shape(pn, 1), *y = out_shape(pn), *x = in_shape(pn, 0);
    struct problem p = { .transposed = pn->node->op->kind == OP_CONV_TRANSPOSE,
                         .activation = a->activation,
                         .sum = has_input(pn, 3),
                         .bias = has_input(pn, 2) };
    p.weight = weight_desc(w, a->groups, p.transposed);
    if (p.bias)
        p.bias_desc = desc_plain(in_shape(pn, 2));
    for (int i = 0; i < 2; i++) {
        p.strides[i] = a->stride[i];
        p.dilates[i] = a->dilation[i] - 1;
        p.pad_begin[i] = a->pad[i];
        p.pad_end[i] = a->pad[2 + i];
        int64_t reach = a->dilation[i] * (a->kernel[i] - 1) + 1;
        if (p.transposed) /* oneDNN wants the end that makes the sizes fit */
            p.pad_end[i] = (x->dim[2 + i] - 1) * a->stride[i] + reach - a->pad[i] - y->dim[2 + i];
        else
            p.pad_end[i] = (y->dim[2 + i] - 1) * a->stride[i] + reach - a->pad[i] - x->dim[2 + i];
    }
    p.flops = 2.0 * (double)shape_count(p.transposed ? x : y) * (double)shape_span(w, 1, 4);
    return p;
}

static bool post_ops(const struct problem *p, dnnl_primitive_attr_t attr, struct err *err)
{
    dnnl_post_ops_t post = NULL;
    bool ok = dnnl_ok(dnnl_post_ops_create(&post), "post-ops", err);
    if (ok && p->sum)
        ok = dnnl_ok(dnnl_post_ops_append_sum(post, 1), "sum", err);
    if (ok && p->activation != ACT_NONE) {
        dnnl_alg_kind_t kind = p->activation == ACT_RELU   ? dnnl_eltwise_relu
                               : p->activation == ACT_SILU ? dnnl_eltwise_swish
                                                           : dnnl_eltwise_gelu_erf;
        float alpha = p->activation == ACT_SILU ? 1 : 0;
        ok = dnnl_ok(dnnl_post_ops_append_eltwise(post, 1, kind, alpha, 0), "activation", err);
    }
    ok = ok && dnnl_ok(dnnl_primitive_attr_set_post_ops(attr, post), "post-ops", err);
    dnnl_post_ops_destroy(post);
    return ok;
}

/* *pd NULL and true if oneDNN has nothing for these layouts. */
static bool forward_pd(struct plan_node *pn, const struct problem *p, enum layout in,
                       enum layout out, dnnl_primitive_desc_t *pd, struct err *err)
{
    dnnl_memory_desc_t src = desc_layout(pn->tape, in_shape(pn, 0), in);
    dnnl_memory_desc_t dst = desc_layout(pn->tape, out_shape(pn), out);
    dnnl_memory_desc_t weight = desc_any(&p->weight);
    dnnl_prop_kind_t prop =
        pn->tape->options.mode == PLAN_INFER ? dnnl_forward_inference : dnnl_forward_training;
    dnnl_primitive_attr_t attr = NULL;
    bool ok = attr_new(&attr, err) && post_ops(p, attr, err);
    *pd = NULL;
    if (ok) {
        const dnnl_memory_desc_t *bias = p->bias ? &p->bias_desc : NULL;
        dnnl_convolution_desc_t desc;
        dnnl_status_t status =
            p->transposed
                ? dnnl_dilated_deconvolution_forward_desc_init(
                      &desc, prop, dnnl_deconvolution_direct, &src, &weight, bias, &dst, p->strides,
                      p->dilates, p->pad_begin, p->pad_end)
                : dnnl_dilated_convolution_forward_desc_init(&desc, prop, dnnl_convolution_direct,
                                                             &src, &weight, bias, &dst, p->strides,
                                                             p->dilates, p->pad_begin, p->pad_end);
        ok = dnnl_ok(status, "conv", err);
        if (ok && dnnl_primitive_desc_create(pd, &desc, attr, dnnl_of(pn->tape)->engine, NULL) !=
                      dnnl_success)
            *pd = NULL;
    }
    dnnl_primitive_attr_destroy(attr);
    return ok;
}

/* Makes a description for one way; *pd NULL if oneDNN has none. */
typedef bool (*make_pd)(struct plan_node *pn, const struct problem *p, enum layout in,
                        enum layout out, dnnl_primitive_desc_t *pd, struct err *err);

/* Layouts of input and output to try, one pair after another. */
#define WAYS 3

/* The first way with a generated kernel, else a gemm, else anything. */
static bool choose(struct plan_node *pn, const struct problem *p, enum layout ways[WAYS][2],
                   make_pd make, enum layout *in, enum layout *out, dnnl_primitive_desc_t *best,
                   struct err *err)
{
    int best_rank = -1;
    *best = NULL;
    for (int i = 0; i < WAYS && best_rank < 2; i++) {
        dnnl_primitive_desc_t pd;
        if (!make(pn, p, ways[i][0], ways[i][1], &pd, err)) {
            dnnl_primitive_desc_destroy(*best);
            return false;
        }
        int rank = pd ? pd_rank(pd) : -1;
        if (rank > best_rank) {
            dnnl_primitive_desc_destroy(*best);
            *best = pd, best_rank = rank;
            *in = ways[i][0], *out = ways[i][1];
        } else {
            dnnl_primitive_desc_destroy(pd);
        }
    }
    return *best || err_set(err, ERR_FORMAT, "not implemented by oneDNN");
}

static bool choose_forward(struct plan_node *pn, const struct problem *p, enum layout *in,
                           enum layout *out, dnnl_primitive_desc_t *best, struct err *err)
{
    bool few = in_shape(pn, 0)->dim[1] < 4 && in_layout(pn, 0) == LAYOUT_PLAIN;
    enum layout ways[WAYS][2] = { { few ? LAYOUT_PLAIN : LAYOUT_BLOCKED, LAYOUT_BLOCKED },
                                  { few ? LAYOUT_BLOCKED : LAYOUT_PLAIN, LAYOUT_BLOCKED },
                                  { LAYOUT_PLAIN, LAYOUT_PLAIN } };
    return choose(pn, p, ways, forward_pd, in, out, best, err);
}

/* "conv 3x3", "conv 7x7 s2", "conv 3x3 d2" */
static void describe(const struct plan_node *pn, char *text, size_t room)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    int used = snprintf(text, room, "%s %dx%d",
                        pn->node->op->kind == OP_CONV_TRANSPOSE ? "deconv" : "conv",
                        (int)a->kernel[0], (int)a->kernel[1]);
    if (a->stride[0] > 1 || a->stride[1] > 1)
        used += snprintf(text + used, room - (size_t)used, " s%d", (int)a->stride[0]);
    if ((a->dilation[0] > 1 || a->dilation[1] > 1) && (size_t)used < room)
        snprintf(text + used, room - (size_t)used, " d%d", (int)a->dilation[0]);
}

bool lower_conv_forward(struct plan_node *pn, struct err *err)
{
    struct tape *tape = pn->tape;
    if (pn->state->fused)
        return true;
    bool own = lower_winograd_takes(pn, false), stem = lower_stem_takes(pn);
    if (own && tape->options.mode == PLAN_INFER)
        return lower_winograd_forward(pn, err);
    if (stem && tape->options.mode == PLAN_INFER)
        return lower_stem_forward(pn, err);
    if (lower_direct_takes(pn))
        return lower_direct_forward(pn, err);
    struct problem p = problem_of(pn);
    enum layout in = LAYOUT_PLAIN, out = LAYOUT_PLAIN;
    dnnl_primitive_desc_t pd;
    if (!choose_forward(pn, &p, &in, &out, &pd, err))
        return false;
    pn->state->hint = pd;
    pn->state->slot[0] = (int)in, pn->state->slot[1] = (int)out;
    if (own && in == LAYOUT_BLOCKED && out == LAYOUT_BLOCKED)
        return lower_winograd_forward(pn, err); /* pd is for the gradient by the weights */
    if (stem && in == LAYOUT_PLAIN && out == LAYOUT_BLOCKED)
        return lower_stem_forward(pn, err);
    const dnnl_memory_desc_t *weight = pd_desc(pd, dnnl_query_weights_md);
    int src = in_slot(pn, 0, in, err);
    int w = dnnl_weight(pn, 1, &p.weight, weight, err);
    int b = p.bias ? in_slot(pn, 2, LAYOUT_PLAIN, err) : NO_SLOT;
    int residual = p.sum ? in_slot(pn, 3, out, err) : NO_SLOT;
    int dst = out_slot(pn, out);
    if (src == NO_SLOT || w == NO_SLOT || dst == NO_SLOT)
        return err_memory(err, "conv");
    if (p.sum && !step_copy(tape, residual, dst, 0, tape->slots[dst].bytes, err))
        return false;
    struct dnnl_arg args[] = {
        { DNNL_ARG_SRC, pd_desc(pd, dnnl_query_src_md), src, ACCESS_READ },
        { DNNL_ARG_WEIGHTS, weight, w, ACCESS_READ },
        { DNNL_ARG_BIAS, p.bias ? &p.bias_desc : NULL, b, ACCESS_READ },
        { DNNL_ARG_DST, pd_desc(pd, dnnl_query_dst_md), dst, p.sum ? ACCESS_BOTH : ACCESS_WRITE },
    };
    char what[32];
    describe(pn, what, sizeof what);
    return dnnl_step(tape, what, pd, args, 4, p.flops, err) != NULL;
}

static bool data_pd(struct plan_node *pn, const struct problem *p, enum layout in, enum layout out,
                    dnnl_primitive_desc_t *pd, struct err *err)
{
    dnnl_memory_desc_t src = desc_layout(pn->tape, in_shape(pn, 0), in);
    dnnl_memory_desc_t dst = desc_layout(pn->tape, out_shape(pn), out);
    dnnl_memory_desc_t weight = desc_any(&p->weight);
    dnnl_convolution_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = p->transposed
                               ? dnnl_dilated_deconvolution_backward_data_desc_init(
                                     &desc, dnnl_deconvolution_direct, &src, &weight, &dst,
                                     p->strides, p->dilates, p->pad_begin, p->pad_end)
                               : dnnl_dilated_convolution_backward_data_desc_init(
                                     &desc, dnnl_convolution_direct, &src, &weight, &dst,
                                     p->strides, p->dilates, p->pad_begin, p->pad_end);
    *pd = NULL;
    bool ok = dnnl_ok(status, "conv backward", err) && attr_new(&attr, err);
    if (ok && dnnl_primitive_desc_create(pd, &desc, attr, dnnl_of(pn->tape)->engine,
                                         pn->state->hint) != dnnl_success)
        *pd = NULL;
    dnnl_primitive_attr_destroy(attr);
    return ok;
}

/* As forward did; with the other layout of the input; all plain (large kernels with large strides).
 */
static bool choose_backward(struct plan_node *pn, const struct problem *p, enum layout *in,
                            enum layout *out, make_pd make, dnnl_primitive_desc_t *best,
                            struct err *err)
{
    enum layout ways[WAYS][2] = { { *in, *out },
                                  { *in == LAYOUT_PLAIN ? LAYOUT_BLOCKED : LAYOUT_PLAIN, *out },
                                  { LAYOUT_PLAIN, LAYOUT_PLAIN } };
    return choose(pn, p, ways, make, in, out, best, err) || err_prefix(err, "its backward");
}

static bool backward_data(struct plan_node *pn, const struct problem *p, enum layout in,
                          enum layout out, struct err *err)
{
    dnnl_primitive_desc_t pd;
    if (lower_winograd_takes(pn, true))
        return lower_winograd_data(pn, err);
    if (!choose_backward(pn, p, &in, &out, data_pd, &pd, err))
        return false;
    const dnnl_memory_desc_t *weight = pd_desc(pd, dnnl_query_weights_md);
    int dx = gradient_slot(pn, 0, in);
    struct dnnl_arg args[] = {
        { DNNL_ARG_DIFF_DST, pd_desc(pd, dnnl_query_diff_dst_md), out_gradient(pn, out, err),
          ACCESS_READ },
        { DNNL_ARG_WEIGHTS, weight, dnnl_weight(pn, 1, &p->weight, weight, err), ACCESS_READ },
        { DNNL_ARG_DIFF_SRC, pd_desc(pd, dnnl_query_diff_src_md), dx, ACCESS_WRITE },
    };
    bool ok = dnnl_step(pn->tape, p->transposed ? "deconv data" : "conv data", pd, args, 3,
                        p->flops, err) != NULL;
    dnnl_primitive_desc_destroy(pd);
    return ok && gradient_add(pn, 0, dx, in, err);
}

static bool weights_pd(struct plan_node *pn, const struct problem *p, enum layout in,
                       enum layout out, dnnl_primitive_desc_t *pd, struct err *err)
{
    dnnl_memory_desc_t src = desc_layout(pn->tape, in_shape(pn, 0), in);
    dnnl_memory_desc_t dst = desc_layout(pn->tape, out_shape(pn), out);
    dnnl_memory_desc_t weight = desc_any(&p->weight);
    const dnnl_memory_desc_t *bias_desc = p->bias && wants_gradient(pn, 2) ? &p->bias_desc : NULL;
    dnnl_convolution_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = p->transposed
                               ? dnnl_dilated_deconvolution_backward_weights_desc_init(
                                     &desc, dnnl_deconvolution_direct, &src, &weight, bias_desc,
                                     &dst, p->strides, p->dilates, p->pad_begin, p->pad_end)
                               : dnnl_dilated_convolution_backward_weights_desc_init(
                                     &desc, dnnl_convolution_direct, &src, &weight, bias_desc, &dst,
                                     p->strides, p->dilates, p->pad_begin, p->pad_end);
    *pd = NULL;
    bool ok = dnnl_ok(status, "conv backward", err) && attr_new(&attr, err);
    if (ok && dnnl_primitive_desc_create(pd, &desc, attr, dnnl_of(pn->tape)->engine,
                                         pn->state->hint) != dnnl_success)
        *pd = NULL;
    dnnl_primitive_attr_destroy(attr);
    return ok;
}

static bool weights_step(struct plan_node *pn, const struct problem *p, enum layout in,
                         enum layout out, dnnl_primitive_desc_t pd, struct err *err)
{
    struct tape *tape = pn->tape;
    bool bias = p->bias && wants_gradient(pn, 2);
    const dnnl_memory_desc_t *weight = pd_desc(pd, dnnl_query_diff_weights_md);
    int dw = slot_new(tape, dnnl_memory_desc_get_size(weight));
    int db = bias ? gradient_slot(pn, 2, LAYOUT_PLAIN) : NO_SLOT;
    struct dnnl_arg args[] = {
        { DNNL_ARG_SRC, pd_desc(pd, dnnl_query_src_md), in_slot(pn, 0, in, err), ACCESS_READ },
        { DNNL_ARG_DIFF_DST, pd_desc(pd, dnnl_query_diff_dst_md), out_gradient(pn, out, err),
          ACCESS_READ },
        { DNNL_ARG_DIFF_WEIGHTS, weight, dw, ACCESS_WRITE },
        { DNNL_ARG_DIFF_BIAS, bias ? &p->bias_desc : NULL, db, ACCESS_WRITE },
    };
    bool ok = dnnl_step(tape, p->transposed ? "deconv weights" : "conv weights", pd, args, 4,
                        p->flops, err) != NULL;
    ok = ok && dnnl_weight_gradient(pn, 1, weight, dw, &p->weight, err);
    if (ok && bias)
        ok = gradient_add(pn, 2, db, LAYOUT_PLAIN, err);
    return ok;
}

static bool backward_weights(struct plan_node *pn, const struct problem *p, enum layout in,
                             enum layout out, struct err *err)
{
    dnnl_primitive_desc_t pd = NULL;
    struct lower_gradient what = { NO_SLOT, unit_rows(pn, in_shape(pn, 0)->dim[0]), true, true };
    if (lower_joined_takes(pn, in, out))
        return lower_joined_conv(pn, in, err);
    bool winograd = lower_winograd_weights_takes(pn, &what);
    if (winograd || lower_gradient_takes_conv(pn, in, out)) {
        what.dy = out_gradient(pn, LAYOUT_BLOCKED, err);
        return winograd ? lower_winograd_weights(pn, &what, err)
                        : lower_gradient_conv(pn, in, &what, err);
    }
    int threads = dnnl_alone(); /* oneDNN would split the sums by the number of threads */
    bool ok = choose_backward(pn, p, &in, &out, weights_pd, &pd, err) &&
              weights_step(pn, p, in, out, pd, err);
    dnnl_together(threads);
    dnnl_primitive_desc_destroy(pd);
    return ok;
}

bool lower_conv_backward(struct plan_node *pn, struct err *err)
{
    struct problem p = problem_of(pn);
    enum layout in = (enum layout)pn->state->slot[0], out = (enum layout)pn->state->slot[1];
    if (p.activation != ACT_NONE || p.sum)
        return err_set(err, ERR_USAGE,
                       "a fused convolution cannot be trained; use the graph "
                       "before transform_for_inference");
    if ((wants_gradient(pn, 1) || wants_gradient(pn, 2)) && !backward_weights(pn, &p, in, out, err))
        return false;
    return !wants_gradient(pn, 0) || backward_data(pn, &p, in, out, err);
}
