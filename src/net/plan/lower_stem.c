/* lower_stem.c: the first convolution of a network as a step of our own kernel: 7 x 7 of stride 2
 * on plain images of three channels. */
#include <stdlib.h>
#include "net/plan/lower.h"
#include "net/kernels/stem_conv.h"

/* The slots of the step. */
enum { STEM_IMAGE, STEM_WEIGHTS, STEM_OUTPUT, STEM_SCRATCH };

struct stem_state {
    struct stem_conv conv;
    struct pool_window pool; /* conv.pool points here when it is used */
    int32_t *tables;         /* of the window; NULL: no pooling */
};

static void stem_state_free(void *at)
{
    struct stem_state *state = at;
    free(state->tables);
    free(state);
}

bool lower_stem_takes(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct tape *tape = pn->tape;
    if (pn->node->op->kind != OP_CONV || tape->options.direct || a->groups != 1 ||
        in_shape(pn, 0)->dim[1] != STEM_CHANNELS || in_layout(pn, 0) != LAYOUT_PLAIN ||
        !stem_conv_available(lower_level(tape)))
        return false;
    for (int i = 0; i < 2; i++)
        if (a->kernel[i] != STEM_KERNEL || a->stride[i] != STEM_STRIDE || a->dilation[i] != 1)
            return false;
    bool fixed = graph_is_parameter(tape->graph, pn->node->inputs[1]) &&
                 (!has_input(pn, 2) || graph_is_parameter(tape->graph, pn->node->inputs[2]));
    return fixed && !has_input(pn, 3) && (a->activation == ACT_NONE || a->activation == ACT_RELU);
}

static struct stem_conv conv_of(const struct plan_node *pn)
{
    const struct conv_attr *a = &pn->node->attr.conv;
    const struct shape *x = in_shape(pn, 0), *y = out_shape(pn);
    struct stem_conv c = { .level = lower_level(pn->tape),
                           .batch = x->dim[0],
                           .out_channels = y->dim[1],
                           .height = x->dim[2],
                           .width = x->dim[3],
                           .out_height = y->dim[2],
                           .out_width = y->dim[3],
                           .pad_top = a->pad[0],
                           .pad_left = a->pad[1],
                           .relu = a->activation == ACT_RELU,
                           .threads = pn->tape->options.threads };
    stem_conv_plan(&c);
    return c;
}

static bool run_weights(const struct step *step, struct err *err)
{
    (void)err;
    stem_conv_weights(step->state, step->at[0], step->at[1], step->at[2]);
    return true;
}

static bool run_conv(const struct step *step, struct err *err)
{
    (void)err;
    const struct stem_state *state = step->state;
    stem_conv_run(&state->conv, step->at[STEM_WEIGHTS], step->at[STEM_IMAGE], step->at[STEM_OUTPUT],
                  step->at[STEM_SCRATCH]);
    return true;
}

bool lower_stem_forward(struct plan_node *pn, struct err *err)
{
    struct tape *tape = pn->tape;
    struct stem_conv c = conv_of(pn);
    struct step_spec prepare = { "weight winograd", run_weights, &c, sizeof c, 0 };
    int x = in_slot(pn, 0, LAYOUT_PLAIN, err);
    struct step_layout layout = { c.weight_floats * sizeof(float),
                                  (uint64_t)(2 << 16 | c.level), /* not those of other kernels */
                                  true };
    int weights = step_prepare(pn, &prepare, &layout, err);
    int y = out_slot(pn, LAYOUT_BLOCKED);
    int scratch = slot_new(tape, c.scratch_floats * sizeof(float));
    double outputs = (double)(c.batch * c.out_channels * c.out_height * c.out_width);
    struct stem_state state = { .conv = c };
    struct step_spec spec = { c.level == SIMD_AVX512 ? "conv 7x7 s2 winograd 3 avx512"
                                                     : "conv 7x7 s2 winograd 3 avx2",
                              run_conv, &state, sizeof state,
                              2 * outputs * STEM_CHANNELS * STEM_KERNEL * STEM_KERNEL };
    struct step *step = step_add(tape, &spec, err);
    if (!step)
        return false;
    step->destroy = stem_state_free;
    return step_use(step, x, ACCESS_READ, err) && step_use(step, weights, ACCESS_READ, err) &&
           step_use(step, y, ACCESS_WRITE, err) && step_use(step, scratch, ACCESS_WRITE, err);
}

/* The step of the stem that makes this node's input, which nothing else needs; NULL: none. Windows
 * with dilation do not start one after another at the border. */
static struct step *stem_of(const struct plan_node *pn)
{
    struct tape *tape = pn->tape;
    value_id value = pn->node->inputs[0];
    struct step *last = tape->n_steps > 0 ? &tape->steps[tape->n_steps - 1] : NULL;
    if (!last || last->run != run_conv || tape->options.mode != PLAN_INFER ||
        tape->options.no_sharing || tape->values[value].keep ||
        last->slot[STEM_OUTPUT] != tape->values[value].slot[LAYOUT_BLOCKED][DTYPE_FLOAT32] ||
        graph_only_user(tape->graph, value) != pn->node || pn->node->attr.pool.dilation[0] != 1)
        return NULL;
    return last;
}

bool lower_stem_joins(const struct plan_node *pn)
{
    return stem_of(pn) != NULL;
}

bool lower_stem_pool(struct plan_node *pn, const struct pool_window *window, int32_t *tables,
                     struct err *err)
{
    struct tape *tape = pn->tape;
    struct step *step = stem_of(pn);
    struct stem_state *state = step->state;
    state->pool = *window, state->tables = tables;
    state->conv.pool = &state->pool;
    stem_conv_plan(&state->conv);
    int y = out_slot(pn, LAYOUT_BLOCKED);
    int scratch = slot_new(tape, state->conv.scratch_floats * sizeof(float));
    if (y == NO_SLOT || scratch == NO_SLOT)
        return err_memory(err, "max pool");
    step->slot[STEM_OUTPUT] = y, step->slot[STEM_SCRATCH] = scratch;
    step->kernel = state->conv.level == SIMD_AVX512 ? "conv 7x7 s2 winograd 3 + max pool avx512"
                                                    : "conv 7x7 s2 winograd 3 + max pool avx2";
    return true;
}
