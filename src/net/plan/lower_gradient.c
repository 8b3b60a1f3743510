/* lower_gradient.c: the gradients of the weights and biases of convolutions and linear layers as
 * steps of our own kernels, whose result does not depend on the number of threads. */
#include "net/kernels/direct_gradient.h"
#include "net/kernels/linear_gradient.h"
#include "net/plan/lower.h"

/* What is wanted can be added where it belongs. */
static bool has_places(const struct plan_node *pn)
{
    for (int i = 1; i <= 2; i++)
        if (has_input(pn, i) && wants_gradient(pn, i) && parameter_gradient_slot(pn, i) == NO_SLOT)
            return false;
    return true;
}

bool lower_gradient_takes_conv(const struct plan_node *pn, enum layout in, enum layout out)
{
    bool few = in_shape(pn, 0)->dim[1] < pn->tape->block;
    return direct_gradient_available(lower_level(pn->tape)) && has_places(pn) &&
           pn->node->op->kind == OP_CONV && pn->node->attr.conv.groups == 1 &&
           out == LAYOUT_BLOCKED && (in == LAYOUT_BLOCKED || few);
}

bool lower_gradient_takes_linear(const struct plan_node *pn)
{
    return has_places(pn);
}

static bool run_conv(const struct step *step, struct err *err)
{
    (void)err;
    direct_gradient_run(step->state, step->at[0], step->at[1], step->at[2], step->at[3],
                        step->at[4]);
    return true;
}

static bool run_linear(const struct step *step, struct err *err)
{
    (void)err;
    linear_gradient_run(step->state, step->at[0], step->at[1], step->at[2], step->at[3],
                        step->at[4]);
    return true;
}

/* what: which gradients; of rows of one unit, or of all. */
static bool add_gradient(struct plan_node *pn, const struct step_spec *spec, size_t scratch_floats,
                         int x, const struct lower_gradient *what, struct err *err)
{
    int scratch = slot_new(pn->tape, scratch_floats * sizeof(float));
    int places[2] = { NO_SLOT, NO_SLOT };
    for (int i = 0; i < 2; i++)
        if (has_input(pn, 1 + i) && wants_gradient(pn, 1 + i) && (i ? what->bias : what->weight))
            places[i] = parameter_gradient_slot(pn, 1 + i);
    struct step *step = step_add(pn->tape, spec, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) ||
        !step_use(step, what->dy, ACCESS_READ, err))
        return false;
    step_use_optional(step, places[0], ACCESS_BOTH);
    step_use_optional(step, places[1], ACCESS_BOTH);
    if (!step_use(step, scratch, ACCESS_WRITE, err))
        return false;
    if (what->images < in_shape(pn, 0)->dim[0])
        step_each_unit(pn->tape, step, 1u << 0 | 1u << 1);
    return true;
}

bool lower_gradient_conv(struct plan_node *pn, enum layout in, const struct lower_gradient *what,
                         struct err *err)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct shape *x = in_shape(pn, 0), *y = out_shape(pn), *w = in_shape(pn, 1);
    struct direct_gradient g = { .level = lower_level(pn->tape),
                                 .source = in == LAYOUT_PLAIN ? DIRECT_PLAIN : DIRECT_BLOCKED,
                                 .threads = pn->tape->options.threads,
                                 .batch = what->images,
                                 .in_channels = x->dim[1],
                                 .out_channels = y->dim[1],
                                 .height = x->dim[2],
                                 .width = x->dim[3],
                                 .out_height = y->dim[2],
                                 .out_width = y->dim[3] };
    for (int i = 0; i < 2; i++) {
        g.kernel[i] = a->kernel[i], g.stride[i] = a->stride[i];
        g.dilation[i] = a->dilation[i], g.pad[i] = a->pad[i];
    }
    direct_gradient_plan(&g);
    struct step_spec spec = {
        g.level == SIMD_AVX512 ? "conv weights direct avx512" : "conv weights direct avx2",
        run_conv, &g, sizeof g,
        what->weight ? 2.0 * (double)shape_count(y) * (double)shape_span(w, 1, 4) : 0
    };
    return add_gradient(pn, &spec, g.scratch_floats, in_slot(pn, 0, in, err), what, err);
}

bool lower_gradient_linear(struct plan_node *pn, int dy, struct err *err)
{
    static const char *const names[SIMD_LEVELS] = {
        [SIMD_PORTABLE] = "linear weights packed",
        [SIMD_AVX2] = "linear weights packed avx2",
        [SIMD_AVX512] = "linear weights packed avx512",
    };
    const struct shape *x = in_shape(pn, 0), *w = in_shape(pn, 1);
    enum simd level = lower_level(pn->tape);
    struct linear_gradient g = { .level = simd_best() >= level ? level : SIMD_PORTABLE,
                                 .threads = pn->tape->options.threads,
                                 .rows = unit_rows(pn, shape_span(x, 0, x->rank - 1)),
                                 .inputs = w->dim[1],
                                 .outputs = w->dim[0] };
    struct step_spec spec = { names[g.level], run_linear, &g, sizeof g,
                              2.0 * (double)shape_span(x, 0, x->rank - 1) *
                                  (double)shape_count(w) };
    struct lower_gradient what = { dy, unit_rows(pn, x->dim[0]), true, true };
    return add_gradient(pn, &spec, linear_gradient_scratch_floats(&g),
                        in_slot(pn, 0, LAYOUT_PLAIN, err), &what, err);
}
