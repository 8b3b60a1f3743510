/* plan_memory.c: which slots of a plan share memory, and where everything is placed. A slot lives
 * from the first step that touches it to the last. First, copies are dropped where the original can
 * serve as the copy; then steps that can work in place do so; then the remaining slots are placed
 * into one arena, largest first, each at the lowest offset that is free during its lifetime. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "net/plan/step.h"

#define ALIGNMENT ((size_t)64)

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* `slot` becomes a part of `root` (both are roots). */
static void merge(struct plan *plan, int slot, int root, size_t offset)
{
    struct slot *part = &plan->slots[slot], *whole = &plan->slots[root];
    part->root = root, part->offset = offset;
    if (whole->first < 0 || part->first < whole->first)
        whole->first = part->first;
    if (part->last > whole->last)
        whole->last = part->last;
}

static void find_lifetimes(struct plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++)
        for (int k = 0; k < plan->steps[i].n_slots; k++) {
            if (plan->steps[i].slot[k] == NO_SLOT)
                continue;
            struct slot *slot = &plan->slots[plan->steps[i].slot[k]];
            if (slot->first < 0)
                slot->first = i;
            slot->last = i;
        }
    for (int i = 0; i < plan->n_slots; i++) {
        struct slot *slot = &plan->slots[i];
        if (slot->home == SLOT_KEPT)
            slot->first = 0, slot->last = plan->n_steps;
        if (slot->root != i && slot->first >= 0)
            merge(plan, i, slot_root(plan, i), slot_offset(plan, i));
    }
}

/* A copy is dropped if its source can be placed where the copy would be: the source has its own
 * memory that nothing places elsewhere. Both contain the same floats from then on, so reading
 * either is fine. A copy of the same size is overwritten afterwards (residual sum): its source must
 * end. */
static void drop_copies(struct plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];
        if (step->sharing != SHARING_COPY)
            continue;
        int from_slot = step->slot[step->from], to_slot = step->slot[step->to];
        int from = slot_root(plan, from_slot), to = slot_root(plan, to_slot);
        const struct slot *source = &plan->slots[from];
        bool whole_source =
            slot_offset(plan, from_slot) == 0 && plan->slots[from_slot].bytes == source->bytes;
        if (from == to || !whole_source || source->home != SLOT_ARENA ||
            plan->slots[to].home == SLOT_OUTSIDE)
            continue;
        if (source->bytes == plan->slots[to_slot].bytes && source->last != i)
            continue;
        merge(plan, from, to, slot_offset(plan, to_slot) + step->copy_offset);
        step->dropped = true;
    }
}

static bool take_over(struct plan *plan, int i, int from_slot, int to_slot)
{
    int from = slot_root(plan, from_slot), to = slot_root(plan, to_slot);
    const struct slot *source = &plan->slots[from], *target = &plan->slots[to];
    bool part = slot_root(plan, to_slot) != to_slot || plan->slots[from_slot].root != from_slot;
    if (from == to || part || source->home != SLOT_ARENA || target->home == SLOT_OUTSIDE ||
        target->home == SLOT_WEIGHTS || source->last != i || target->bytes != source->bytes)
        return false;
    if (target->home == SLOT_ARENA && target->first != i)
        return false;
    merge(plan, from, to, 0);
    return true;
}

/* Whether the step reads memory that it may write over in another way than that allows for, as a
 * convolution that is added to its own input does. */
static bool reads_elsewhere(const struct plan *plan, const struct step *step, int from)
{
    int root = slot_root(plan, step->slot[from]);
    for (int k = 0; k < step->n_slots; k++)
        if (k != step->from && k != step->from_too && k != step->to && step->slot[k] != NO_SLOT &&
            slot_root(plan, step->slot[k]) == root)
            return true;
    return false;
}

static bool works_in_place(struct plan *plan, int i, int from)
{
    const struct step *step = &plan->steps[i];
    return from >= 0 && step->slot[from] != NO_SLOT && !reads_elsewhere(plan, step, from) &&
           take_over(plan, i, step->slot[from], step->slot[step->to]);
}

static void work_in_place(struct plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];
        if (step->sharing != SHARING_IN_PLACE || step->slot[step->to] == NO_SLOT)
            continue;
        if (!works_in_place(plan, i, step->from))
            works_in_place(plan, i, step->from_too);
    }
}

struct piece {
    int slot;
    size_t bytes;
};

static int larger_first(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->slot - y->slot;
}

/* Places one slot among those placed before it, which are sorted by offset. */
static size_t lowest_gap(const struct plan *plan, const struct slot *slot, const int *placed, int n)
{
    size_t offset = 0;
    for (int i = 0; i < n; i++) {
        const struct slot *other = &plan->slots[placed[i]];
        if (other->last < slot->first || other->first > slot->last)
            continue;
        if (other->arena_offset >= offset + aligned(slot->bytes))
            break;
        size_t end = other->arena_offset + aligned(other->bytes);
        if (end > offset)
            offset = end;
    }
    return offset;
}

static bool place_slots(struct plan *plan, struct err *err)
{
    struct piece *pieces = calloc((size_t)plan->n_slots + 1, sizeof *pieces);
    int *placed = calloc((size_t)plan->n_slots + 1, sizeof *placed);
    int n = 0;
    bool ok = pieces && placed;
    for (int i = 0; ok && i < plan->n_slots; i++) {
        struct slot *slot = &plan->slots[i];
        bool in_arena = slot->home == SLOT_ARENA || slot->home == SLOT_KEPT;
        if (in_arena && slot->root == i && slot->first >= 0)
            pieces[n++] = (struct piece){ i, slot->bytes };
        if (slot->home == SLOT_WEIGHTS && !slot->entry) {
            slot->arena_offset = plan->weights_bytes;
            plan->weights_bytes += aligned(slot->bytes);
        }
    }
    if (ok)
        qsort(pieces, (size_t)n, sizeof *pieces, larger_first);
    for (int i = 0; ok && i < n; i++) {
        struct slot *slot = &plan->slots[pieces[i].slot];
        size_t offset =
            plan->options.no_sharing ? plan->unshared_bytes : lowest_gap(plan, slot, placed, i);
        slot->arena_offset = offset;
        plan->unshared_bytes += aligned(slot->bytes);
        if (offset + aligned(slot->bytes) > plan->arena_bytes)
            plan->arena_bytes = offset + aligned(slot->bytes);
        int k = i;
        for (; k > 0 && plan->slots[placed[k - 1]].arena_offset > offset; k--)
            placed[k] = placed[k - 1];
        placed[k] = pieces[i].slot;
    }
    free(pieces), free(placed);
    return ok || err_memory(err, "plan");
}

/* Zeroed memory, on large pages where the system has them; NULL if there is none. */
static char *reserve(size_t bytes)
{
    void *at = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes + 1, MADV_HUGEPAGE); /* only a hint; nothing is lost if it is rejected */
    return at;
}

/* Weights that other plans have filled already are taken as they are. */
static bool take_shared(struct plan *plan, struct err *err)
{
    struct plan_weights *weights = plan->options.weights;
    for (int i = 0; i < plan->n_slots && weights; i++) {
        struct slot *slot = &plan->slots[i];
        if (slot->home != SLOT_WEIGHTS || !slot->source)
            continue;
        slot->entry = plan_weights_take(weights, slot->source, slot->key, slot->bytes);
        if (!slot->entry)
            return err_memory(err, "weights");
        slot->at = plan_weights_at(slot->entry);
        plan->shared_bytes += slot->bytes;
    }
    for (int i = 0; i < plan->n_steps && weights; i++) {
        struct step *step = &plan->steps[i];
        for (int k = 0; k < step->n_slots && step->phase == PHASE_PREPARE; k++) {
            int slot = step->access[k] == ACCESS_WRITE ? step->slot[k] : NO_SLOT;
            const struct plan_weights_entry *entry =
                slot == NO_SLOT ? NULL : plan->slots[slot].entry;
            step->dropped = step->dropped || (entry && plan_weights_filled(entry));
        }
    }
    return true;
}

void plan_fill_shared(struct plan *plan)
{
    for (int i = 0; i < plan->n_slots; i++)
        if (plan->slots[i].entry)
            plan_weights_set_filled(plan->slots[i].entry);
}

void plan_release(struct plan *plan)
{
    for (int i = 0; i < plan->n_slots; i++)
        if (plan->slots[i].entry)
            plan_weights_return(plan->options.weights, plan->slots[i].entry);
    if (plan->arena && !plan->arena_lent)
        munmap(plan->arena, plan->arena_bytes + 1);
    if (plan->weights)
        munmap(plan->weights, plan->weights_bytes + 1);
    plan->arena = plan->weights = NULL;
}

static void bind_step(struct plan *plan, struct step *step)
{
    for (int k = 0; k < step->n_slots; k++)
        step->at[k] = step->slot[k] == NO_SLOT ? NULL : plan->slots[step->slot[k]].at;
    if (step->bind)
        step->bind(step);
}

static void give_addresses(struct plan *plan)
{
    for (int i = 0; i < plan->n_slots; i++) {
        struct slot *slot = &plan->slots[i];
        if (slot->home == SLOT_OUTSIDE || slot->entry)
            continue;
        const struct slot *root = &plan->slots[slot_root(plan, i)];
        char *base = root->home == SLOT_WEIGHTS ? plan->weights : plan->arena;
        slot->at = base + root->arena_offset + slot_offset(plan, i);
    }
    for (int i = 0; i < plan->n_steps; i++)
        bind_step(plan, &plan->steps[i]);
}

/* The memory that `slot` is a part of lies elsewhere, so that the slot begins at `at`. */
static void move(struct plan *plan, int slot, char *at)
{
    int root = slot_root(plan, slot);
    char *base = at - slot_offset(plan, slot);
    for (int i = 0; i < plan->n_slots; i++)
        if (slot_root(plan, i) == root)
            plan->slots[i].at = base + slot_offset(plan, i);
    for (int i = 0; i < plan->n_steps; i++) {
        bool touches = false;
        for (int k = 0; k < plan->steps[i].n_slots; k++) {
            int used = plan->steps[i].slot[k];
            touches = touches || (used != NO_SLOT && slot_root(plan, used) == root);
        }
        if (touches)
            bind_step(plan, &plan->steps[i]);
    }
}

void plan_move_input(struct plan *plan, void *at)
{
    const struct value_state *state = &plan->values[plan->graph->inputs[0].value];
    move(plan, state->slot[state->native], at);
}

void plan_move_output(struct plan *plan, void *at)
{
    const struct value_state *state = &plan->values[plan->graph->outputs[0].value];
    move(plan, state->slot[state->native], at);
}

bool plan_place(struct plan *plan, struct err *err)
{
    find_lifetimes(plan);
    if (!plan->options.no_sharing) {
        drop_copies(plan);
        work_in_place(plan);
    }
    if (!take_shared(plan, err) || !place_slots(plan, err))
        return false;
    plan->arena_lent = plan->options.arena && plan->options.arena_room >= plan->arena_bytes;
    plan->arena = plan->arena_lent ? plan->options.arena : reserve(plan->arena_bytes);
    plan->weights = reserve(plan->weights_bytes);
    if (!plan->arena || !plan->weights)
        return err_set(err, ERR_MEMORY, "out of memory: the plan needs %zu MB",
                       (plan->arena_bytes + plan->weights_bytes) >> 20);
    give_addresses(plan);
    return true;
}
