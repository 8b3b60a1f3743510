/* split.c: the backward pass in two halves. Steps of a node that lead only to the gradients of its
 * parameters come behind all others, in the order they had; lifetimes follow from that. Every sum
 * is still added in the order it had, so the bits are the same. */
#include <stdlib.h>
#include <string.h>
#include "net/plan/tape.h"

/* How the steps behind the one that is looked at use the memory of a root. */
struct later_use {
    bool read_first, written_first; /* by a step that stays in the first half */
    bool read;                      /* by any */
    bool read_by_many;              /* by steps of different nodes */
    int32_t reader;                 /* the node of one that reads it */
};

/* Whether what the step writes into this memory is needed in the first half. */
static bool is_needed(const struct tape *tape, const struct step *step, int root,
                      const struct later_use *use)
{
    const struct slot *slot = &tape->slots[root];
    if (slot->home == SLOT_KEPT || use->read_first)
        return true;
    bool elsewhere = use->read && (use->read_by_many || use->reader != step->node);
    return elsewhere && slot->home != SLOT_OUTSIDE;
}

/* Whether the step must run before all that comes behind it in the first half. */
static bool stays(const struct tape *tape, const struct step *step, const struct later_use *uses)
{
    if (step->talks || step->phase == PHASE_PREPARE)
        return true;
    for (int k = 0; k < step->n_slots; k++) {
        if (step->slot[k] == NO_SLOT)
            continue;
        int root = slot_root(tape, step->slot[k]);
        bool writes = step->access[k] & ACCESS_WRITE;
        if (uses[root].written_first || (writes && is_needed(tape, step, root, &uses[root])))
            return true;
    }
    return false;
}

static void note_uses(const struct tape *tape, const struct step *step, struct later_use *uses)
{
    for (int k = 0; k < step->n_slots; k++) {
        if (step->slot[k] == NO_SLOT)
            continue;
        struct later_use *use = &uses[slot_root(tape, step->slot[k])];
        if (step->access[k] & ACCESS_READ) {
            use->read_by_many = use->read_by_many || (use->read && use->reader != step->node);
            use->read = true, use->reader = step->node;
            use->read_first = use->read_first || !step->only_weights;
        }
        if (step->access[k] & ACCESS_WRITE)
            use->written_first = use->written_first || !step->only_weights;
    }
}

bool tape_mark_weights(struct tape *tape, struct err *err)
{
    struct later_use *uses = calloc((size_t)tape->n_slots + 1, sizeof *uses);
    if (!uses)
        return err_memory(err, "plan");
    for (int i = tape->n_steps - 1; i >= tape->begin_backward; i--) {
        struct step *step = &tape->steps[i];
        step->only_weights = !stays(tape, step, uses);
        note_uses(tape, step, uses);
    }
    free(uses);
    return true;
}

static bool only_weights(const struct step *step)
{
    return step->only_weights;
}

static bool joins(const struct step *step)
{
    return step->phase == PHASE_JOIN;
}

/* Of the steps from begin_backward on, `last` ones come behind the others. */
static bool order(struct tape *tape, bool (*last)(const struct step *step), struct err *err)
{
    struct step *ordered = malloc(((size_t)tape->n_steps + 1) * sizeof *ordered);
    int n = 0;
    if (!ordered)
        return err_memory(err, "plan");
    for (int half = 0; half < 2; half++)
        for (int i = tape->begin_backward; i < tape->n_steps; i++)
            if (last(&tape->steps[i]) == (half == 1))
                ordered[n++] = tape->steps[i];
    if (n > 0)
        memcpy(tape->steps + tape->begin_backward, ordered, (size_t)n * sizeof *ordered);
    free(ordered);
    return true;
}

bool tape_split(struct tape *tape, struct err *err)
{
    return tape_mark_weights(tape, err) && order(tape, only_weights, err);
}

bool tape_join_last(struct tape *tape, struct err *err)
{
    return order(tape, joins, err);
}
