/* half.c: activations as bfloat16 between the passes. Once the forward pass has read an
 * activation for the last time it is rounded to the upper half of its bits; the backward pass gets
 * it back as floats when it first needs it. This applies only to the values of the graph, not to
 * data that kernels keep (indices, masks, statistics), nor to values that must stay readable. */
#include <stdlib.h>
#include "net/kernels/stored.h"
#include "net/plan/weave.h"

struct halving {
    int64_t count;
    int threads;
};

static bool run_round(const struct step *step, struct err *err)
{
    (void)err;
    const struct halving *h = step->state;
    stored_run(STORED_TO_BFLOAT16, h->count, step->at[0], step->at[1], (struct stored_scale){ 0 },
               h->threads);
    return true;
}

static bool run_restore(const struct step *step, struct err *err)
{
    (void)err;
    const struct halving *h = step->state;
    stored_run(STORED_FROM_BFLOAT16, h->count, step->at[0], step->at[1], (struct stored_scale){ 0 },
               h->threads);
    return true;
}

static bool add_step(struct weave *w, bool back, int from, int to, int before, struct err *err)
{
    struct tape *tape = w->tape;
    size_t bytes = tape->slots[back ? to : from].bytes;
    struct halving h = { (int64_t)(bytes / sizeof(float)), tape->options.threads };
    struct step_spec spec = { back ? "from bfloat16" : "to bfloat16",
                              back ? run_restore : run_round, &h, sizeof h, 0 };
    struct step *step = step_add(tape, &spec, err);
    if (!step || !step_use(step, from, ACCESS_READ, err) || !step_use(step, to, ACCESS_WRITE, err))
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
            int slot = tape->values[i].slot[k];
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
            half[i] = slot_new(tape, (tape->slots[i].bytes + 1) / 2);
            ok = add_step(&w, false, i, half[i], w.uses[i].last_forward + 1, err);
        }
    for (int i = 0; ok && i < w.n_slots; i++)
        if (saved[i])
            ok = add_step(&w, true, half[i], weave_stand_in(&w, i), w.uses[i].first_backward, err);
    free(saved), free(half);
    return weave_end(&w, ok, err);
}
