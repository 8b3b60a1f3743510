/* lower_winograd.c: 3 x 3 convolutions as steps of our own Winograd kernels, where these are
 * cheaper than a direct convolution by the model of winograd_conv.h: forward, and the gradient of
 * the input, which is a convolution of the gradient of the output with the weights rotated by 180
 * degrees. */
#include "net/plan/lower.h"
#include "net/kernels/winograd_gradient.h"

#define WORTH 0.9 /* of the direct cost: what the model does not know must not decide */

static bool is_suitable(const struct plan_node *pn, bool backward)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct tape *tape = pn->tape;
    int64_t block = tape->block;
    if (pn->node->op->kind != OP_CONV || tape->options.direct || a->groups != 1 ||
        !winograd_conv_available(lower_level(tape)) ||
        !graph_is_parameter(tape->graph, pn->node->inputs[1]))
        return false;
    if (backward && (a->pad[0] > 2 * a->dilation[0] || a->pad[1] > 2 * a->dilation[1]))
        return false;
    return a->kernel[0] == 3 && a->kernel[1] == 3 && a->stride[0] == 1 && a->stride[1] == 1 &&
           a->dilation[0] == a->dilation[1] &&
           (a->activation == ACT_NONE || a->activation == ACT_RELU) &&
           in_shape(pn, 0)->dim[1] >= block && (!backward || out_shape(pn)->dim[1] >= block);
}

static struct winograd_conv conv_of(const struct plan_node *pn, bool backward)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct shape *x = backward ? out_shape(pn) : in_shape(pn, 0);
    const struct shape *y = backward ? in_shape(pn, 0) : out_shape(pn);
    int64_t reach = 2 * a->dilation[0];
    return (struct winograd_conv){ .level = lower_level(pn->tape),
                                   .batch = x->dim[0],
                                   .in_channels = x->dim[1],
                                   .out_channels = y->dim[1],
                                   .height = x->dim[2],
                                   .width = x->dim[3],
                                   .out_height = y->dim[2],
                                   .out_width = y->dim[3],
                                   .pad_top = backward ? reach - a->pad[0] : a->pad[0],
                                   .pad_left = backward ? reach - a->pad[1] : a->pad[1],
                                   .dilation = a->dilation[0],
                                   .relu = !backward && a->activation == ACT_RELU,
                                   .learning = pn->tape->options.mode != PLAN_INFER,
                                   .fast = pn->tape->options.fast,
                                   .threads = pn->tape->options.threads };
}

bool lower_winograd_takes(const struct plan_node *pn, bool backward)
{
    if (!is_suitable(pn, backward))
        return false;
    const struct plan_options *options = &pn->tape->options;
    struct winograd_conv w = conv_of(pn, backward);
    double cost = winograd_conv_plan(&w, options->winograd_tile);
    size_t bytes = pn->tape->winograd_bytes + w.weight_floats * sizeof(float);
    if (options->mode == PLAN_INFER && options->weights_budget && bytes > options->weights_budget)
        return false;
    return options->winograd_tile || cost < WORTH * winograd_conv_direct_cost(&w);
}

static bool run_weights(const struct step *step, struct err *err)
{
    (void)err;
    winograd_conv_weights(step->state, step->at[0], false, step->at[2]);
    return true;
}

static bool run_turned_weights(const struct step *step, struct err *err)
{
    (void)err;
    winograd_conv_weights(step->state, step->at[0], true, step->at[2]);
    return true;
}

static bool run_conv(const struct step *step, struct err *err)
{
    (void)err;
    winograd_conv_run(step->state, step->at[1], step->at[0], step->at[2], step->at[3], step->at[4],
                      step->at[5]);
    return true;
}

static int add_weights(struct plan_node *pn, const struct winograd_conv *w, bool turned,
                       struct err *err)
{
    struct step_spec spec = { "weight winograd", turned ? run_turned_weights : run_weights, w,
                              sizeof *w, 0 };
    struct step_layout layout = { w->weight_floats * sizeof(float),
                                  (uint64_t)(w->tile * 64 + w->lanes) | (uint64_t)turned << 32,
                                  false };
    if (pn->tape->options.mode == PLAN_INFER)
        pn->tape->winograd_bytes += layout.bytes;
    return step_prepare(pn, &spec, &layout, err);
}

static const char *kernel_name(const struct winograd_conv *w, bool backward)
{
    static const char *const names[2][2][3] = {
        { { "conv 3x3 winograd 2x2 avx2", "conv 3x3 winograd 4x4 avx2",
            "conv 3x3 winograd 6x6 avx2" },
          { "conv 3x3 winograd 2x2 avx512", "conv 3x3 winograd 4x4 avx512",
            "conv 3x3 winograd 6x6 avx512" } },
        { { "conv data winograd 2x2 avx2", "conv data winograd 4x4 avx2",
            "conv data winograd 6x6 avx2" },
          { "conv data winograd 2x2 avx512", "conv data winograd 4x4 avx512",
            "conv data winograd 6x6 avx512" } },
    };
    return names[backward][w->level == SIMD_AVX512][w->tile / 2 - 1];
}

/* The step itself; bias and residual may be NO_SLOT. */
static bool add_conv(struct plan_node *pn, const struct winograd_conv *w, bool backward, int x,
                     int bias, int residual, int y, struct err *err)
{
    struct tape *tape = pn->tape;
    int weights = add_weights(pn, w, backward, err);
    int scratch = slot_new(tape, w->scratch_floats * sizeof(float));
    double outputs = (double)(w->batch * w->out_channels * w->out_height * w->out_width);
    struct step_spec spec = { kernel_name(w, backward), run_conv, w, sizeof *w,
                              2 * 9 * outputs * (double)w->in_channels };
    struct step *step = step_add(tape, &spec, err);
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

bool lower_winograd_forward(struct plan_node *pn, struct err *err)
{
    struct winograd_conv w = conv_of(pn, false);
    winograd_conv_plan(&w, pn->tape->options.winograd_tile);
    int x = in_slot(pn, 0, LAYOUT_BLOCKED, err);
    int bias = has_input(pn, 2) ? in_slot(pn, 2, LAYOUT_PLAIN, err) : NO_SLOT;
    int residual = has_input(pn, 3) ? in_slot(pn, 3, LAYOUT_BLOCKED, err) : NO_SLOT;
    int y = out_slot(pn, LAYOUT_BLOCKED);
    if ((has_input(pn, 2) && bias == NO_SLOT) || (has_input(pn, 3) && residual == NO_SLOT))
        return err_memory(err, "conv");
    return add_conv(pn, &w, false, x, bias, residual, y, err);
}

bool lower_winograd_data(struct plan_node *pn, struct err *err)
{
    struct winograd_conv w = conv_of(pn, true);
    winograd_conv_plan(&w, pn->tape->options.winograd_tile);
    int dy = out_gradient(pn, LAYOUT_BLOCKED, err), dx = gradient_slot(pn, 0, LAYOUT_BLOCKED);
    return add_conv(pn, &w, true, dy, NO_SLOT, NO_SLOT, dx, err) &&
           gradient_add(pn, 0, dx, LAYOUT_BLOCKED, err);
}

static struct winograd_gradient gradient_of(const struct plan_node *pn,
                                            const struct lower_gradient *what)
{
    struct winograd_gradient g = { .conv = conv_of(pn, false) };
    g.conv.batch = what->images;
    return g;
}

bool lower_winograd_weights_takes(const struct plan_node *pn, const struct lower_gradient *what)
{
    bool bias = what->bias && has_input(pn, 2) && wants_gradient(pn, 2);
    if (!is_suitable(pn, false) || out_shape(pn)->dim[1] < pn->tape->block ||
        parameter_gradient_slot(pn, 1) == NO_SLOT ||
        (bias && parameter_gradient_slot(pn, 2) == NO_SLOT))
        return false;
    struct winograd_gradient g = gradient_of(pn, what);
    return winograd_gradient_plan(&g) < WORTH * winograd_gradient_direct_cost(&g);
}

static bool run_weight_gradient(const struct step *step, struct err *err)
{
    (void)err;
    winograd_gradient_run(step->state, step->at[0], step->at[1], step->at[2], step->at[3],
                          step->at[4]);
    return true;
}

bool lower_winograd_weights(struct plan_node *pn, const struct lower_gradient *what,
                            struct err *err)
{
    struct winograd_gradient g = gradient_of(pn, what);
    const struct winograd_conv *w = &g.conv;
    winograd_gradient_plan(&g);
    int x = in_slot(pn, 0, LAYOUT_BLOCKED, err);
    bool bias = what->bias && has_input(pn, 2) && wants_gradient(pn, 2);
    int scratch = slot_new(pn->tape, g.scratch_floats * sizeof(float));
    struct step_spec spec = { w->level == SIMD_AVX512 ? "conv weights winograd 4x4 avx512"
                                                      : "conv weights winograd 4x4 avx2",
                              run_weight_gradient, &g, sizeof g,
                              2 * 9 *
                                  (double)(in_shape(pn, 0)->dim[0] * w->out_height * w->out_width) *
                                  (double)(w->in_channels * w->out_channels) };
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) ||
        !step_use(step, what->dy, ACCESS_READ, err) ||
        !step_use(step, parameter_gradient_slot(pn, 1), ACCESS_BOTH, err))
        return false;
    step_use_optional(step, bias ? parameter_gradient_slot(pn, 2) : NO_SLOT, ACCESS_BOTH);
    if (!step_use(step, scratch, ACCESS_WRITE, err))
        return false;
    if (what->images < in_shape(pn, 0)->dim[0])
        step_each_unit(pn->tape, step, 1u << 0 | 1u << 1);
    return true;
}
