/* half.c: activations in the form bfloat16 between the passes. Once the forward pass has read the
 * floats of an activation for the last time they are converted, in the layout they have; the
 * backward pass converts them back when it first needs them. This applies only to the values of the
 * graph, not to data that kernels keep (indices, masks, statistics), nor to values that must stay
 * readable, nor to values that the graph itself has stored in fewer bits, nor to inputs of joined
 * parameters (plan_join_units), which are written once more. */
#include <stdlib.h>
#include "net/plan/weave.h"

static const struct storage bfloat16 = { .dtype = DTYPE_BFLOAT16 };

static bool add_step(struct weave *w, bool back, int from, int to, int before, struct err *err)
{
    struct step *step = step_convert(w->tape, &bfloat16, back, from, to, err);
    if (!step)
        return false;
    step->phase = back ? PHASE_BACKWARD : PHASE_FORWARD;
    return weave_place(w, before, err);
}

/* Marks the memory of activations that lives from one pass into the other. */
static void find_saved(const struct weave *w, bool *saved)
{
    const struct tape *tape = w->tape;
    for (int32_t i = 0; i < tape->graph->n_values; i++)
        for (int k = 0; tape->graph->values[i].kind == VALUE_NODE && k < LAYOUTS; k++) {
            int slot = tape->values[i].slot[k][DTYPE_FLOAT32];
            if (slot == NO_SLOT || slot >= w->n_slots)
                continue;
            int root = slot_root(tape, slot);
            const struct slot_use *use = &w->uses[root];
            saved[root] = tape->slots[root].home == SLOT_ARENA && use->first_write >= 0 &&
                          use->last_write < tape->begin_backward && use->first_backward >= 0;
        }
}

bool tape_half(struct tape *tape, struct err *err)
{
    struct weave w;
    bool ok = weave_begin(&w, tape, err);
    bool *saved = calloc((size_t)tape->n_slots + 1, sizeof *saved);
    int *half = calloc((size_t)tape->n_slots + 1, sizeof *half);
    if (ok && (!saved || !half))
        ok = err_memory(err, "plan");
    if (ok)
        find_saved(&w, saved);
    for (int i = 0; ok && i < w.n_slots; i++)
        if (saved[i]) {
            half[i] =
                slot_new(tape, tape->slots[i].bytes / sizeof(float) * dtype_bytes(DTYPE_BFLOAT16));
            ok = add_step(&w, false, i, half[i], w.uses[i].last_forward + 1, err);
        }
    for (int i = 0; ok && i < w.n_slots; i++)
        if (saved[i])
            ok = add_step(&w, true, half[i], weave_stand_in(&w, i), w.uses[i].first_backward, err);
    free(saved), free(half);
    return weave_end(&w, ok, err);
}
