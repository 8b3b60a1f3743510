/* lower_joined.c: convolutions whose gradients are not made for every unit (plan_options.join):
 * their squared norms are found from pairs of places (pair_norm.h), and once the factors of the
 * units are known (plan_join_units) the weighted sum of the gradients is made by the kernels of a
 * batch, whose products are larger, from gradients of the outputs that are multiplied by them. */
#include <string.h>
#include "net/kernels/pair_norm.h"
#include "net/plan/lower.h"

#define WORTH 0.5 /* of the operations of the gradient, which is made once more for the sum */

static struct pair_norm norm_of(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct shape *x = in_shape(pn, 0), *y = out_shape(pn);
    return (struct pair_norm){ .level = lower_level(pn->tape),
                               .in_channels = x->dim[1],
                               .out_channels = y->dim[1],
                               .height = x->dim[2],
                               .width = x->dim[3],
                               .out_height = y->dim[2],
                               .out_width = y->dim[3],
                               .kernel = { a->kernel[0], a->kernel[1] },
                               .dilation = { a->dilation[0], a->dilation[1] },
                               .pad = { a->pad[0], a->pad[1] } };
}

bool lower_joined_takes(const struct plan_node *pn, enum layout in, enum layout out)
{
    const struct tape *tape = pn->tape;
    const struct conv_attr *a = &pn->node->attr.conv;
    if (!tape->options.join || tape->units == 1 || in_shape(pn, 0)->dim[0] != tape->units ||
        in != LAYOUT_BLOCKED || !lower_gradient_takes_conv(pn, in, out) || !wants_gradient(pn, 1) ||
        graph_only_user(tape->graph, pn->node->inputs[1]) != pn->node || a->stride[0] != 1 ||
        a->stride[1] != 1)
        return false;
    struct pair_norm norm = norm_of(pn);
    return pair_norm_cost(&norm) < WORTH * pair_norm_gradient_cost(&norm);
}

static bool run_norm(const struct step *step, struct err *err)
{
    (void)err;
    double *square = step->at[2];
    *square += pair_norm_run(step->state, step->at[0], step->at[1], step->at[3]);
    return true;
}

static bool add_norm(struct plan_node *pn, int x, int dy, struct err *err)
{
    struct tape *tape = pn->tape;
    struct pair_norm norm = norm_of(pn);
    struct step_spec spec = { "conv weights pairs", run_norm, &norm, sizeof norm,
                              2 * (double)tape->units * pair_norm_cost(&norm) };
    int squares = slot_outside(tape, tape->squares, (size_t)tape->units * sizeof *tape->squares);
    int scratch = slot_new(tape, pair_norm_scratch_floats(&norm) * sizeof(float));
    struct step *step = step_add(tape, &spec, err);
    if (!step || !step_use(step, x, ACCESS_READ, err) || !step_use(step, dy, ACCESS_READ, err) ||
        !step_use(step, squares, ACCESS_BOTH, err) || !step_use(step, scratch, ACCESS_WRITE, err))
        return false;
    step_each_unit(tape, step, 1u << 0 | 1u << 1 | 1u << 2);
    return true;
}

struct weigh {
    size_t units, x_floats, y_floats; /* of a unit */
};

/* What is left out must not enter products: it may not be finite. */
static bool run_weigh(const struct step *step, struct err *err)
{
    (void)err;
    const struct weigh *w = step->state;
    const float *dy = step->at[1];
    const double *factors = step->at[3];
    float *x = step->at[0], *to = step->at[2];
    for (size_t u = 0; u < w->units; u++, x += w->x_floats, dy += w->y_floats, to += w->y_floats) {
        const float factor = (float)factors[u];
        for (size_t i = 0; i < w->y_floats && factor > 0; i++)
            to[i] = factor * dy[i];
        if (factor > 0)
            continue;
        memset(x, 0, w->x_floats * sizeof *x);
        memset(to, 0, w->y_floats * sizeof *to);
    }
    return true;
}

/* The gradients of the output, each unit's multiplied by its factor. */
static int weighed(struct plan_node *pn, int x, int dy, struct err *err)
{
    struct tape *tape = pn->tape;
    if (x == NO_SLOT || dy == NO_SLOT)
        return NO_SLOT;
    size_t units = (size_t)tape->units;
    struct weigh w = { units, tape->slots[x].bytes / units / sizeof(float),
                       tape->slots[dy].bytes / units / sizeof(float) };
    int to = slot_new(tape, tape->slots[dy].bytes);
    int factors = slot_outside(tape, tape->factors, units * sizeof *tape->factors);
    struct step_spec spec = { "units weighed", run_weigh, &w, sizeof w, 0 };
    struct step *step = step_add(tape, &spec, err);
    bool ok = step && step_use(step, x, ACCESS_BOTH, err) && step_use(step, dy, ACCESS_READ, err) &&
              step_use(step, to, ACCESS_WRITE, err) && step_use(step, factors, ACCESS_READ, err);
    return ok ? to : NO_SLOT;
}

bool lower_joined_conv(struct plan_node *pn, enum layout in, struct err *err)
{
    struct tape *tape = pn->tape;
    int x = in_slot(pn, 0, in, err), dy = out_gradient(pn, LAYOUT_BLOCKED, err);
    struct lower_gradient bias = { dy, unit_rows(pn, in_shape(pn, 0)->dim[0]), false, true };
    if (!add_norm(pn, x, dy, err) ||
        (has_input(pn, 2) && wants_gradient(pn, 2) && !lower_gradient_conv(pn, in, &bias, err)))
        return false;
    enum step_phase phase = tape->phase;
    tape->phase = PHASE_JOIN;
    int to = weighed(pn, x, dy, err);
    struct lower_gradient all = { to, in_shape(pn, 0)->dim[0], true, false };
    bool ok = to != NO_SLOT &&
              (lower_winograd_weights_takes(pn, &all) ? lower_winograd_weights(pn, &all, err)
                                                      : lower_gradient_conv(pn, in, &all, err));
    tape->phase = phase;
    tape->values[pn->node->inputs[1]].joined = true;
    return ok;
}
