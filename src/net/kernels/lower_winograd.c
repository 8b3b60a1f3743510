/* lower_winograd.c: 3 x 3 convolutions of an inference plan as steps of our own Winograd kernels,
 * where these are cheaper than a direct convolution by the model of winograd_conv.h. */
#include "net/kernels/lower.h"
#include "net/kernels/winograd_conv.h"

#define WORTH 0.9 /* of the direct cost: what the model does not know must not decide */

static enum simd level_of(const struct plan *plan)
{
    return plan->block == 16 ? SIMD_AVX512 : SIMD_AVX2;
}

static bool is_suitable(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct plan *plan = pn->plan;
    return pn->node->op->kind == OP_CONV && plan->options.mode == PLAN_INFER &&
           !plan->options.direct && winograd_conv_available(level_of(plan)) && a->groups == 1 &&
           a->kernel[0] == 3 && a->kernel[1] == 3 && a->stride[0] == 1 && a->stride[1] == 1 &&
           a->dilation[0] == a->dilation[1] &&
           (a->activation == ACT_NONE || a->activation == ACT_RELU) &&
           in_shape(pn, 0)->dim[1] >= plan->block &&
           graph_is_parameter(plan->graph, pn->node->inputs[1]);
}

static struct winograd_conv conv_of(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct shape *x = in_shape(pn, 0), *y = out_shape(pn);
    return (struct winograd_conv){ .level = level_of(pn->plan),
                                   .batch = x->dim[0],
                                   .in_channels = x->dim[1],
                                   .out_channels = y->dim[1],
                                   .height = x->dim[2],
                                   .width = x->dim[3],
                                   .out_height = y->dim[2],
                                   .out_width = y->dim[3],
                                   .pad_top = a->pad[0],
                                   .pad_left = a->pad[1],
                                   .dilation = a->dilation[0],
                                   .relu = a->activation == ACT_RELU,
                                   .threads = pn->plan->options.threads };
}

bool lower_winograd_takes(const struct plan_node *pn)
{
    if (!is_suitable(pn))
        return false;
    struct winograd_conv w = conv_of(pn);
    return winograd_conv_plan(&w, 0) < WORTH * winograd_conv_direct_cost(&w);
}

static bool run_weights(const struct step *step)
{
    winograd_conv_weights(step->state, step->at[0], false, step->at[1]);
    return true;
}

static bool run_conv(const struct step *step)
{
    winograd_conv_run(step->state, step->at[1], step->at[0], step->at[2], step->at[3], step->at[4],
                      step->at[5]);
    return true;
}

/* A slot with the transformed weights, filled once. */
static int add_weights(struct plan_node *pn, const struct winograd_conv *w, struct err *err)
{
    struct plan *plan = pn->plan;
    int from = in_slot(pn, 1, LAYOUT_PLAIN, err);
    int to = slot_new(plan, w->weight_floats * sizeof(float));
    struct step_spec spec = { "weight winograd", run_weights, w, sizeof *w, 0 };
    if (from == NO_SLOT || to == NO_SLOT)
        return NO_SLOT;
    plan->slots[to].home = SLOT_WEIGHTS;
    enum step_phase phase = plan->phase;
    plan->phase = PHASE_PREPARE;
    struct step *step = step_add(plan, &spec, err);
    plan->phase = phase;
    bool ok =
        step && step_use(step, from, ACCESS_READ, err) && step_use(step, to, ACCESS_WRITE, err);
    return ok ? to : NO_SLOT;
}

static const char *kernel_name(const struct winograd_conv *w)
{
    if (w->level == SIMD_AVX512)
        return w->tile == 4 ? "conv 3x3 winograd 4x4 avx512" : "conv 3x3 winograd 2x2 avx512";
    return w->tile == 4 ? "conv 3x3 winograd 4x4 avx2" : "conv 3x3 winograd 2x2 avx2";
}

bool lower_winograd_forward(struct plan_node *pn, struct err *err)
{
    struct plan *plan = pn->plan;
    struct winograd_conv w = conv_of(pn);
    winograd_conv_plan(&w, 0);
    int x = in_slot(pn, 0, LAYOUT_BLOCKED, err), weights = add_weights(pn, &w, err);
    int bias = has_input(pn, 2) ? in_slot(pn, 2, LAYOUT_PLAIN, err) : NO_SLOT;
    int residual = has_input(pn, 3) ? in_slot(pn, 3, LAYOUT_BLOCKED, err) : NO_SLOT;
    int y = out_slot(pn, LAYOUT_BLOCKED);
    int scratch = slot_new(plan, w.scratch_floats * sizeof(float));
    double flops = 2 * 9.0 * (double)(shape_count(out_shape(pn)) * w.in_channels);
    if ((has_input(pn, 2) && bias == NO_SLOT) || (has_input(pn, 3) && residual == NO_SLOT))
        return err_memory(err, "conv");
    struct step_spec spec = { kernel_name(&w), run_conv, &w, sizeof w, flops };
    struct step *step = step_add(plan, &spec, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) || !step_use(step, weights, ACCESS_READ, err))
        return false;
    step_use_optional(step, bias, ACCESS_READ);
    step_use_optional(step, residual, ACCESS_READ);
    if (!step_use(step, y, ACCESS_WRITE, err) || !step_use(step, scratch, ACCESS_WRITE, err))
        return false;
    if (residual != NO_SLOT)
        step_in_place(step, 3, -1, 4);
    return true;
}
