/* lower_direct.c: convolutions as steps of our own direct kernels, for inference: where oneDNN's
 * are measured to be slower. */
#include "net/kernels/direct_conv.h"
#include "net/kernels/lower.h"

static enum simd level_of(const struct plan *plan)
{
    return plan->block == 16 ? SIMD_AVX512 : SIMD_AVX2;
}

/* Where it was measured to be faster than oneDNN's, which reaches 85 % of the peak for wide 1 x 1
 * convolutions: with AVX-512, and there up to four blocks of outputs or an odd number of them; 3 x
 * 3 of stride 2 on large maps. Small maps of several images would read the weights once for each.
 */
static bool is_faster(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct shape *y = out_shape(pn);
    int64_t pixels = y->dim[2] * y->dim[3], block = pn->plan->block;
    int64_t blocks = (y->dim[1] + block - 1) / block;
    if (level_of(pn->plan) != SIMD_AVX512)
        return false;
    if (a->kernel[0] == 3 && a->kernel[1] == 3)
        return a->stride[0] == 2 && a->stride[1] == 2 && pixels >= 28 * 28;
    return a->kernel[0] == 1 && a->kernel[1] == 1 && a->stride[0] == 1 && a->stride[1] == 1 &&
           blocks > 1 && (blocks <= 4 || blocks % 2 == 1) && (y->dim[0] == 1 || pixels >= 14 * 14);
}

bool lower_direct_takes(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct plan *plan = pn->plan;
    if (pn->node->op->kind != OP_CONV || plan->options.mode != PLAN_INFER || plan->options.direct ||
        a->groups != 1 || !direct_conv_available(level_of(plan)) ||
        !graph_is_parameter(plan->graph, pn->node->inputs[1]) ||
        (has_input(pn, 2) && !graph_is_parameter(plan->graph, pn->node->inputs[2])))
        return false;
    return (a->activation == ACT_NONE || a->activation == ACT_RELU) &&
           in_shape(pn, 0)->dim[1] >= plan->block && is_faster(pn);
}

static struct direct_conv conv_of(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct shape *x = in_shape(pn, 0), *y = out_shape(pn);
    struct direct_conv c = { .level = level_of(pn->plan),
                             .batch = x->dim[0],
                             .in_channels = x->dim[1],
                             .out_channels = y->dim[1],
                             .height = x->dim[2],
                             .width = x->dim[3],
                             .out_height = y->dim[2],
                             .out_width = y->dim[3],
                             .relu = a->activation == ACT_RELU,
                             .threads = pn->plan->options.threads };
    for (int i = 0; i < 2; i++) {
        c.kernel[i] = a->kernel[i], c.stride[i] = a->stride[i];
        c.dilation[i] = a->dilation[i], c.pad[i] = a->pad[i];
    }
    direct_conv_plan(&c);
    return c;
}

static bool run_weights(const struct step *step)
{
    direct_conv_weights(step->state, step->at[0], step->at[1], step->at[2]);
    return true;
}

static bool run_conv(const struct step *step)
{
    direct_conv_run(step->state, step->at[1], step->at[0], step->at[2], step->at[3], step->at[4]);
    return true;
}

/* A slot with weights and bias as the kernel wants them: filled once. */
static int add_weights(struct plan_node *pn, const struct direct_conv *c, struct err *err)
{
    struct plan *plan = pn->plan;
    int from = in_slot(pn, 1, LAYOUT_PLAIN, err),
        to = slot_new(plan, c->weight_floats * sizeof(float));
    int bias = has_input(pn, 2) ? in_slot(pn, 2, LAYOUT_PLAIN, err) : NO_SLOT;
    struct step_spec spec = { "weight direct", run_weights, c, sizeof *c, 0 };
    if (from == NO_SLOT || to == NO_SLOT || (has_input(pn, 2) && bias == NO_SLOT))
        return NO_SLOT;
    enum step_phase phase = plan->phase;
    plan->slots[to].home = SLOT_WEIGHTS;
    plan->phase = PHASE_PREPARE;
    struct step *step = step_add(plan, &spec, err);
    plan->phase = phase;
    if (!step || !step_use(step, from, ACCESS_READ, err))
        return NO_SLOT;
    step_use_optional(step, bias, ACCESS_READ);
    return step_use(step, to, ACCESS_WRITE, err) ? to : NO_SLOT;
}

static const char *kernel_name(const struct direct_conv *c)
{
    static const char *const names[2][2] = {
        { "conv 3x3 s2 direct avx2", "conv 3x3 s2 direct avx512" },
        { "conv 1x1 direct avx2", "conv 1x1 direct avx512" },
    };
    return names[c->kernel[0] == 1 && c->kernel[1] == 1][c->level == SIMD_AVX512];
}

bool lower_direct_forward(struct plan_node *pn, struct err *err)
{
    struct plan *plan = pn->plan;
    struct direct_conv c = conv_of(pn);
    int x = in_slot(pn, 0, LAYOUT_BLOCKED, err);
    int residual = has_input(pn, 3) ? in_slot(pn, 3, LAYOUT_BLOCKED, err) : NO_SLOT;
    int y = out_slot(pn, LAYOUT_BLOCKED), weights = add_weights(pn, &c, err);
    int scratch = slot_new(plan, c.scratch_floats * sizeof(float));
    double outputs = (double)(c.batch * c.out_channels * c.out_height * c.out_width);
    struct step_spec spec = { kernel_name(&c), run_conv, &c, sizeof c,
                              2 * outputs * (double)(c.in_channels * c.kernel[0] * c.kernel[1]) };
    if (has_input(pn, 3) && residual == NO_SLOT)
        return err_memory(err, "conv");
    struct step *step = step_add(plan, &spec, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) || !step_use(step, weights, ACCESS_READ, err))
        return false;
    step_use_optional(step, residual, ACCESS_READ);
    if (!step_use(step, y, ACCESS_WRITE, err) || !step_use(step, scratch, ACCESS_WRITE, err))
        return false;
    if (residual != NO_SLOT)
        step_in_place(step, 2, -1, 3);
    return true;
}
