/* plan_weave.c: see plan_weave.h. */
#include "net/plan/weave.h"
#include <stdlib.h>
#include <string.h>
#include "base/array.h"

static void find_uses(struct weave *w)
{
    const struct plan *plan = w->plan;
    for (int i = 0; i < w->n_slots; i++)
        w->uses[i] = (struct slot_use){ -1, -1, -1, -1 };
    for (int i = 0; i < plan->n_steps; i++)
        for (int k = 0; k < plan->steps[i].n_slots; k++) {
            if (plan->steps[i].slot[k] == NO_SLOT)
                continue;
            struct slot_use *use = &w->uses[slot_root(plan, plan->steps[i].slot[k])];
            if (plan->steps[i].access[k] & ACCESS_WRITE) {
                use->first_write = use->first_write < 0 ? i : use->first_write;
                use->last_write = i;
            }
            if (i < plan->begin_backward)
                use->last_forward = i;
            else if (use->first_backward < 0)
                use->first_backward = i;
        }
}

bool weave_begin(struct weave *w, struct plan *plan, struct err *err)
{
    size_t n = (size_t)plan->n_slots + 1;
    *w = (struct weave){ .plan = plan,
                         .uses = malloc(n * sizeof *w->uses),
                         .other = malloc(n * sizeof *w->other),
                         .n_slots = plan->n_slots,
                         .n_steps = plan->n_steps };
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
    int root = slot_root(w->plan, slot);
    if (w->other[root] == NO_SLOT)
        w->other[root] = slot_new(w->plan, w->plan->slots[root].bytes);
    return w->other[root];
}

/* What a step uses in place of an old slot. */
static int stand_in_of(struct weave *w, int slot)
{
    if (slot == NO_SLOT || slot >= w->n_slots)
        return slot;
    int root = slot_root(w->plan, slot);
    if (w->other[root] == NO_SLOT)
        return slot;
    if (w->other[slot] == NO_SLOT)
        w->other[slot] = slot_view(w->plan, w->other[root], slot_offset(w->plan, slot),
                                   w->plan->slots[slot].bytes);
    return w->other[slot];
}

bool weave_copy(struct weave *w, int i, int before, struct err *err)
{
    struct plan *plan = w->plan;
    struct step_spec spec = { plan->steps[i].kernel, plan->steps[i].run, NULL, 0,
                              plan->steps[i].flops };
    struct step *step = step_add(plan, &spec, err);
    if (!step)
        return false;
    const struct step *old = &plan->steps[i];
    free(step->state);
    step->state = old->state, step->borrowed = true;
    if (old->copy && !old->copy(old, step, err))
        return false;
    step->node = old->node;
    step->phase = PHASE_BACKWARD;
    step->bind = old->bind;
    step->sharing = old->sharing, step->copy_offset = old->copy_offset;
    step->from = old->from, step->from_too = old->from_too, step->to = old->to;
    for (int k = 0; k < old->n_slots; k++) {
        int slot = old->slot[k];
        bool writes = slot != NO_SLOT && (old->access[k] & ACCESS_WRITE);
        if (writes && plan->slots[slot_root(plan, slot)].home == SLOT_OUTSIDE)
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
    struct plan *plan = w->plan;
    for (int i = plan->begin_backward; i < w->n_steps; i++)
        for (int k = 0; k < plan->steps[i].n_slots; k++) {
            int old = plan->steps[i].slot[k], used = stand_in_of(w, old);
            if (old != NO_SLOT && used == NO_SLOT)
                return err_memory(err, "plan");
            plan->steps[i].slot[k] = used;
        }
    return true;
}

/* Merges the new steps, which are behind the old ones in plan->steps, in among them. */
static bool put_in_order(struct weave *w, struct err *err)
{
    struct plan *plan = w->plan;
    struct step *ordered = malloc((size_t)plan->n_steps * sizeof *ordered);
    int *moved = malloc(((size_t)w->n_steps + 1) * sizeof *moved); /* old index -> new index */
    bool ok = ordered && moved;
    int n = 0;
    for (int i = 0; ok && i <= w->n_steps; i++) {
        for (int k = 0; k < w->n_new; k++)
            if (w->behind[k] == i)
                ordered[n++] = plan->steps[w->n_steps + k];
        moved[i] = n;
        if (i < w->n_steps)
            ordered[n++] = plan->steps[i];
    }
    for (int32_t i = 0; ok && i < plan->graph->n_values; i++)
        if (plan->values[i].ready > 0)
            plan->values[i].ready = moved[plan->values[i].ready - 1] + 1;
    if (ok) {
        int before_backward = 0;
        for (int k = 0; k < w->n_new; k++)
            before_backward += plan->steps[w->n_steps + k].phase == PHASE_FORWARD;
        plan->begin_backward += before_backward;
        memcpy(plan->steps, ordered, (size_t)plan->n_steps * sizeof *ordered);
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
