/* weave.c: see weave.h. */
#include "net/plan/weave.h"
#include <stdlib.h>
#include <string.h>
#include "base/array.h"

static void find_uses(struct weave *w)
{
    const struct tape *tape = w->tape;
    for (int i = 0; i < w->n_slots; i++)
        w->uses[i] = (struct slot_use){ -1, -1, -1, -1 };
    for (int i = 0; i < tape->n_steps; i++)
        for (int k = 0; k < tape->steps[i].n_slots; k++) {
            if (tape->steps[i].slot[k] == NO_SLOT)
                continue;
            struct slot_use *use = &w->uses[slot_root(tape, tape->steps[i].slot[k])];
            if (tape->steps[i].access[k] & ACCESS_WRITE) {
                use->first_write = use->first_write < 0 ? i : use->first_write;
                use->last_write = i;
            }
            if (i < tape->begin_backward)
                use->last_forward = i;
            else if (use->first_backward < 0)
                use->first_backward = i;
        }
}

bool weave_begin(struct weave *w, struct tape *tape, struct err *err)
{
    size_t n = (size_t)tape->n_slots + 1;
    *w = (struct weave){ .tape = tape,
                         .uses = malloc(n * sizeof *w->uses),
                         .other = malloc(n * sizeof *w->other),
                         .n_slots = tape->n_slots,
                         .n_steps = tape->n_steps };
    if (!w->uses || !w->other)
        return err_memory(err, "plan");
    for (size_t i = 0; i < n; i++)
        w->other[i] = NO_SLOT;
    find_uses(w);
    return true;
}

bool weave_place(struct weave *w, int before, struct err *err)
{
    if (!array_grow(&w->behind, &w->room, w->n_new + 1, sizeof *w->behind, "plan", err))
        return false;
    w->behind[w->n_new++] = before;
    return true;
}

int weave_stand_in(struct weave *w, int slot)
{
    int root = slot_root(w->tape, slot);
    if (w->other[root] == NO_SLOT)
        w->other[root] = slot_new(w->tape, w->tape->slots[root].bytes);
    return w->other[root];
}

/* What a step uses in place of an old slot. */
static int stand_in_of(struct weave *w, int slot)
{
    if (slot == NO_SLOT || slot >= w->n_slots)
        return slot;
    int root = slot_root(w->tape, slot);
    if (w->other[root] == NO_SLOT)
        return slot;
    if (w->other[slot] == NO_SLOT)
        w->other[slot] = slot_view(w->tape, w->other[root], slot_offset(w->tape, slot),
                                   w->tape->slots[slot].bytes);
    return w->other[slot];
}

bool weave_copy(struct weave *w, int i, int before, struct err *err)
{
    struct tape *tape = w->tape;
    struct step_spec spec = { tape->steps[i].kernel, tape->steps[i].run, NULL, 0,
                              tape->steps[i].flops };
    struct step *step = step_add(tape, &spec, err);
    if (!step)
        return false;
    const struct step *old = &tape->steps[i];
    if (old->talks)
        return err_set(err, ERR_USAGE, "%s cannot be run twice", old->kernel);
    free(step->state);
    step->state = old->state, step->borrowed = true;
    if (!tape->sketch && old->copy && !old->copy(old, step, err))
        return false;
    step->node = old->node;
    step->phase = PHASE_BACKWARD;
    step->bind = old->bind;
    step->sharing = old->sharing, step->copy_offset = old->copy_offset;
    step->from = old->from, step->from_too = old->from_too, step->to = old->to;
    for (int k = 0; k < old->n_slots; k++) {
        int slot = old->slot[k];
        bool writes = slot != NO_SLOT && (old->access[k] & ACCESS_WRITE);
        if (writes && tape->slots[slot_root(tape, slot)].home == SLOT_OUTSIDE)
            return err_set(err, ERR_USAGE, "%s cannot be run twice", old->kernel);
        if (writes && weave_stand_in(w, slot) == NO_SLOT)
            return err_memory(err, "plan");
        int used = stand_in_of(w, slot);
        if (slot != NO_SLOT && used == NO_SLOT)
            return err_memory(err, "plan");
        step_use_optional(step, used, old->access[k]);
    }
    /* A source that lived before must not drag the copy's memory along through the forward pass. */
    if (step->sharing == SHARING_COPY && step->slot[step->from] < w->n_slots)
        step->sharing = SHARING_NONE;
    return weave_place(w, before, err);
}

static bool use_stand_ins(struct weave *w, struct err *err)
{
    struct tape *tape = w->tape;
    for (int i = tape->begin_backward; i < w->n_steps; i++)
        for (int k = 0; k < tape->steps[i].n_slots; k++) {
            int old = tape->steps[i].slot[k], used = stand_in_of(w, old);
            if (old != NO_SLOT && used == NO_SLOT)
                return err_memory(err, "plan");
            tape->steps[i].slot[k] = used;
        }
    return true;
}

/* Merges the new steps, which are behind the old ones in tape->steps, in among them. */
static bool put_in_order(struct weave *w, struct err *err)
{
    struct tape *tape = w->tape;
    struct step *ordered = malloc((size_t)tape->n_steps * sizeof *ordered);
    int *moved = malloc(((size_t)w->n_steps + 1) * sizeof *moved); /* old index -> new index */
    bool ok = ordered && moved;
    int n = 0;
    for (int i = 0; ok && i <= w->n_steps; i++) {
        for (int k = 0; k < w->n_new; k++)
            if (w->behind[k] == i)
                ordered[n++] = tape->steps[w->n_steps + k];
        moved[i] = n;
        if (i < w->n_steps)
            ordered[n++] = tape->steps[i];
    }
    for (int32_t i = 0; ok && i < tape->graph->n_values; i++)
        if (tape->values[i].ready > 0)
            tape->values[i].ready = moved[tape->values[i].ready - 1] + 1;
    if (ok) {
        int before_backward = 0;
        for (int k = 0; k < w->n_new; k++)
            before_backward += tape->steps[w->n_steps + k].phase == PHASE_FORWARD;
        tape->begin_backward += before_backward;
        memcpy(tape->steps, ordered, (size_t)tape->n_steps * sizeof *ordered);
    }
    free(ordered), free(moved);
    return ok || err_memory(err, "plan");
}

bool weave_end(struct weave *w, bool ok, struct err *err)
{
    ok = ok && use_stand_ins(w, err) && put_in_order(w, err);
    free(w->uses), free(w->other), free(w->behind);
    return ok;
}
