/* memory.c: which slots of a tape share memory, and where everything is placed. A slot lives
 * from the first step that touches it to the last. First, copies are dropped where the original can
 * serve as the copy; then steps that can work in place do so; then the remaining slots are placed
 * into one arena, largest first, each at the lowest offset that is free during its lifetime. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "net/plan/tape.h"

#define ALIGNMENT ((size_t)64)

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* `slot` becomes a part of `root` (both are roots). */
static void merge(struct tape *tape, int slot, int root, size_t offset)
{
    struct slot *part = &tape->slots[slot], *whole = &tape->slots[root];
    part->root = root, part->offset = offset;
    if (whole->first < 0 || part->first < whole->first)
        whole->first = part->first;
    if (part->last > whole->last)
        whole->last = part->last;
}

static void find_lifetimes(struct tape *tape)
{
    for (int i = 0; i < tape->n_steps; i++)
        for (int k = 0; k < tape->steps[i].n_slots; k++) {
            if (tape->steps[i].slot[k] == NO_SLOT)
                continue;
            struct slot *slot = &tape->slots[tape->steps[i].slot[k]];
            if (slot->first < 0)
                slot->first = i;
            slot->last = i;
        }
    for (int i = 0; i < tape->n_slots; i++) {
        struct slot *slot = &tape->slots[i];
        if (slot->home == SLOT_KEPT)
            slot->first = 0, slot->last = tape->n_steps;
        if (slot->root != i && slot->first >= 0)
            merge(tape, i, slot_root(tape, i), slot_offset(tape, i));
    }
}

/* A copy is dropped if its source can be placed where the copy would be: the source has its own
 * memory that nothing places elsewhere. Both contain the same floats from then on, so reading
 * either is fine. A copy of the same size is overwritten afterwards (residual sum): its source must
 * end. */
static void drop_copies(struct tape *tape)
{
    for (int i = 0; i < tape->n_steps; i++) {
        struct step *step = &tape->steps[i];
        if (step->sharing != SHARING_COPY)
            continue;
        int from_slot = step->slot[step->from], to_slot = step->slot[step->to];
        int from = slot_root(tape, from_slot), to = slot_root(tape, to_slot);
        const struct slot *source = &tape->slots[from];
        bool whole_source =
            slot_offset(tape, from_slot) == 0 && tape->slots[from_slot].bytes == source->bytes;
        if (from == to || !whole_source || source->home != SLOT_ARENA ||
            tape->slots[to].home == SLOT_OUTSIDE)
            continue;
        if (source->bytes == tape->slots[to_slot].bytes && source->last != i)
            continue;
        merge(tape, from, to, slot_offset(tape, to_slot) + step->copy_offset);
        step->dropped = true;
    }
}

static bool take_over(struct tape *tape, int i, int from_slot, int to_slot)
{
    int from = slot_root(tape, from_slot), to = slot_root(tape, to_slot);
    const struct slot *source = &tape->slots[from], *target = &tape->slots[to];
    bool part = slot_root(tape, to_slot) != to_slot || tape->slots[from_slot].root != from_slot;
    if (from == to || part || source->home != SLOT_ARENA || target->home == SLOT_OUTSIDE ||
        target->home == SLOT_WEIGHTS || source->last != i || target->bytes != source->bytes)
        return false;
    if (target->home == SLOT_ARENA && target->first != i)
        return false;
    merge(tape, from, to, 0);
    return true;
}

/* Whether the step reads memory that it may write over in another way than that allows for, as a
 * convolution that is added to its own input does. */
static bool reads_elsewhere(const struct tape *tape, const struct step *step, int from)
{
    int root = slot_root(tape, step->slot[from]);
    for (int k = 0; k < step->n_slots; k++)
        if (k != step->from && k != step->from_too && k != step->to && step->slot[k] != NO_SLOT &&
            slot_root(tape, step->slot[k]) == root)
            return true;
    return false;
}

static bool works_in_place(struct tape *tape, int i, int from)
{
    const struct step *step = &tape->steps[i];
    return from >= 0 && step->slot[from] != NO_SLOT && !reads_elsewhere(tape, step, from) &&
           take_over(tape, i, step->slot[from], step->slot[step->to]);
}

static void work_in_place(struct tape *tape)
{
    for (int i = 0; i < tape->n_steps; i++) {
        struct step *step = &tape->steps[i];
        if (step->sharing != SHARING_IN_PLACE || step->slot[step->to] == NO_SLOT)
            continue;
        if (!works_in_place(tape, i, step->from))
            works_in_place(tape, i, step->from_too);
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
static size_t lowest_gap(const struct tape *tape, const struct slot *slot, const int *placed, int n)
{
    size_t offset = 0;
    for (int i = 0; i < n; i++) {
        const struct slot *other = &tape->slots[placed[i]];
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

static bool place_slots(struct tape *tape, struct err *err)
{
    struct piece *pieces = calloc((size_t)tape->n_slots + 1, sizeof *pieces);
    int *placed = calloc((size_t)tape->n_slots + 1, sizeof *placed);
    int n = 0;
    bool ok = pieces && placed;
    for (int i = 0; ok && i < tape->n_slots; i++) {
        struct slot *slot = &tape->slots[i];
        bool in_arena = slot->home == SLOT_ARENA || slot->home == SLOT_KEPT;
        if (in_arena && slot->root == i && slot->first >= 0)
            pieces[n++] = (struct piece){ i, slot->bytes };
        if (slot->home == SLOT_WEIGHTS && !slot->entry) {
            slot->arena_offset = tape->weights_bytes;
            tape->weights_bytes += aligned(slot->bytes);
        }
    }
    if (ok)
        qsort(pieces, (size_t)n, sizeof *pieces, larger_first);
    for (int i = 0; ok && i < n; i++) {
        struct slot *slot = &tape->slots[pieces[i].slot];
        size_t offset =
            tape->options.no_sharing ? tape->unshared_bytes : lowest_gap(tape, slot, placed, i);
        slot->arena_offset = offset;
        tape->unshared_bytes += aligned(slot->bytes);
        if (offset + aligned(slot->bytes) > tape->arena_bytes)
            tape->arena_bytes = offset + aligned(slot->bytes);
        int k = i;
        for (; k > 0 && tape->slots[placed[k - 1]].arena_offset > offset; k--)
            placed[k] = placed[k - 1];
        placed[k] = pieces[i].slot;
    }
    free(pieces), free(placed);
    return ok || err_memory(err, "plan");
}

char *memory_reserve(size_t bytes)
{
    void *at = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, bytes + 1, MADV_HUGEPAGE); /* only a hint; nothing is lost if it is rejected */
    return at;
}

void memory_return(char *at, size_t bytes)
{
    if (at)
        munmap(at, bytes + 1);
}

/* Weights that other plans have filled already are taken as they are. */
static bool take_shared(struct tape *tape, struct err *err)
{
    struct plan_weights *weights = tape->options.weights;
    for (int i = 0; i < tape->n_slots && weights; i++) {
        struct slot *slot = &tape->slots[i];
        if (slot->home != SLOT_WEIGHTS || !slot->source)
            continue;
        slot->entry = plan_weights_take(weights, slot->source, slot->key, slot->bytes);
        if (!slot->entry)
            return err_memory(err, "weights");
        slot->at = plan_weights_at(slot->entry);
        tape->shared_bytes += slot->bytes;
    }
    for (int i = 0; i < tape->n_steps && weights; i++) {
        struct step *step = &tape->steps[i];
        for (int k = 0; k < step->n_slots && step->phase == PHASE_PREPARE; k++) {
            int slot = step->access[k] == ACCESS_WRITE ? step->slot[k] : NO_SLOT;
            const struct plan_weights_entry *entry =
                slot == NO_SLOT ? NULL : tape->slots[slot].entry;
            step->dropped = step->dropped || (entry && plan_weights_filled(entry));
        }
    }
    return true;
}

void tape_fill_shared(struct tape *tape)
{
    for (int i = 0; i < tape->n_slots; i++)
        if (tape->slots[i].entry)
            plan_weights_set_filled(tape->slots[i].entry);
}

void tape_release(struct tape *tape)
{
    for (int i = 0; i < tape->n_slots; i++)
        if (tape->slots[i].entry)
            plan_weights_return(tape->options.weights, tape->slots[i].entry);
    if (!tape->arena_lent)
        memory_return(tape->arena, tape->arena_bytes);
    memory_return(tape->weights, tape->weights_bytes);
    tape->arena = tape->weights = NULL;
}

static void bind_step(struct tape *tape, struct step *step)
{
    for (int k = 0; k < step->n_slots; k++)
        step->at[k] = step->slot[k] == NO_SLOT ? NULL : tape->slots[step->slot[k]].at;
    if (step->bind)
        step->bind(step);
}

static void give_addresses(struct tape *tape)
{
    for (int i = 0; i < tape->n_slots; i++) {
        struct slot *slot = &tape->slots[i];
        if (slot->home == SLOT_OUTSIDE || slot->entry)
            continue;
        const struct slot *root = &tape->slots[slot_root(tape, i)];
        char *base = root->home == SLOT_WEIGHTS ? tape->weights : tape->arena;
        slot->at = base + root->arena_offset + slot_offset(tape, i);
    }
    for (int i = 0; i < tape->n_steps; i++)
        bind_step(tape, &tape->steps[i]);
}

void tape_move(struct tape *tape, int slot, void *at)
{
    int root = slot_root(tape, slot);
    char *base = (char *)at - slot_offset(tape, slot);
    for (int i = 0; i < tape->n_slots; i++)
        if (slot_root(tape, i) == root)
            tape->slots[i].at = base + slot_offset(tape, i);
    for (int i = 0; i < tape->n_steps; i++) {
        bool touches = false;
        for (int k = 0; k < tape->steps[i].n_slots; k++) {
            int used = tape->steps[i].slot[k];
            touches = touches || (used != NO_SLOT && slot_root(tape, used) == root);
        }
        if (touches)
            bind_step(tape, &tape->steps[i]);
    }
}

bool tape_arrange(struct tape *tape, struct err *err)
{
    find_lifetimes(tape);
    if (!tape->options.no_sharing) {
        drop_copies(tape);
        work_in_place(tape);
    }
    return place_slots(tape, err);
}

bool tape_place(struct tape *tape, struct err *err)
{
    if (!take_shared(tape, err) || !tape_arrange(tape, err))
        return false;
    tape->arena_lent = tape->options.arena && tape->options.arena_room >= tape->arena_bytes;
    tape->arena = tape->arena_lent ? tape->options.arena : memory_reserve(tape->arena_bytes);
    tape->weights = memory_reserve(tape->weights_bytes);
    if (!tape->arena || !tape->weights)
        return err_set(err, ERR_MEMORY, "out of memory: the plan needs %zu MB",
                       (tape->arena_bytes + tape->weights_bytes) >> 20);
    give_addresses(tape);
    return true;
}
