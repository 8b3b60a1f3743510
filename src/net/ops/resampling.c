/* resampling.c: the steps of pad and upsample. */
#include "net/ops/resampling.h"
#include <stdlib.h>

struct state {
    struct resample resample;
    int32_t *places;
    float *weights;
};

static void state_free(void *at)
{
    struct state *state = at;
    free(state->places);
    free(state->weights);
    free(state);
}

static bool run_forward(const struct step *step, struct err *err)
{
    (void)err;
    const struct state *state = step->state;
    resample_run(&state->resample, simd_best(), step->at[0], step->at[1]);
    return true;
}

static bool run_backward(const struct step *step, struct err *err)
{
    (void)err;
    const struct state *state = step->state;
    resample_back(&state->resample, simd_best(), step->at[0], step->at[1]);
    return true;
}

static bool state_of(const struct plan_node *pn, enum layout layout, resampling_fill fill,
                     struct state *state, struct err *err)
{
    const struct shape *x = in_shape(pn, 0), *y = out_shape(pn);
    size_t entries = (size_t)(y->dim[2] + y->dim[3]);
    int64_t extents[5];
    layout_extents(pn->tape, x, layout, extents);
    *state = (struct state){ .resample = { .planes = extents[0] * extents[1],
                                           .inner = extents[4],
                                           .threads = pn->tape->options.threads },
                             .places = calloc(entries * 2, sizeof(int32_t)),
                             .weights = calloc(entries, sizeof(float)) };
    if (!state->places || !state->weights) {
        free(state->places), free(state->weights);
        return err_memory(err, pn->node->name);
    }
    int64_t at = 0;
    for (int i = 0; i < 2; i++) {
        struct resample_axis *axis = &state->resample.axis[i];
        axis->in = x->dim[2 + i], axis->out = y->dim[2 + i];
        axis->near = state->places + 2 * at, axis->far = axis->near + axis->out;
        axis->weight = state->weights + at;
        at += axis->out;
    }
    fill(pn->node, &state->resample);
    return true;
}

static bool add(struct plan_node *pn, enum layout layout, resampling_fill fill,
                bool (*run)(const struct step *, struct err *), int from, int to, struct err *err)
{
    struct state state;
    if (!state_of(pn, layout, fill, &state, err))
        return false;
    struct step_spec spec = { pn->node->op->name, run, &state, sizeof state, 0 };
    struct step *step = step_add(pn->tape, &spec, err);
    if (!step) {
        free(state.places), free(state.weights);
        return false;
    }
    step->destroy = state_free;
    return step_use(step, from, ACCESS_READ, err) && step_use(step, to, ACCESS_WRITE, err);
}

bool resampling_forward(struct plan_node *pn, enum layout layout, resampling_fill fill,
                        struct err *err)
{
    int x = in_slot(pn, 0, layout, err), y = out_slot(pn, layout);
    return add(pn, layout, fill, run_forward, x, y, err);
}

bool resampling_backward(struct plan_node *pn, resampling_fill fill, struct err *err)
{
    if (!wants_gradient(pn, 0))
        return true;
    enum layout layout = out_layout(pn);
    int dy = out_gradient(pn, layout, err), dx = gradient_slot(pn, 0, layout);
    return add(pn, layout, fill, run_backward, dy, dx, err) && gradient_add(pn, 0, dx, layout, err);
}
