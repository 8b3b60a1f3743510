/* recompute.c: activations computed twice to save memory. The forward pass is cut into
 * segments; values that are computed in a segment and not read by a later one are not kept for the
 * backward pass but recomputed, from the inputs of the segment, right before the backward pass
 * needs them. The same kernels run on the same floats, so the gradients are the same bits: dropout
 * is keyed by counters, and steps that only write outside the tape (running statistics) are not
 * repeated. */
#include <stdlib.h>
#include "net/plan/weave.h"

/* Slots below this part of the mean of what is saved are kept: statistics, masks, small maps. */
#define SMALL_PART 16

struct recompute {
    struct weave weave;
    int *segment; /* [forward steps]: the segment of a step */
    bool *again;  /* [forward steps]: to be run again */
    bool *told;   /* [slots]: written by a step that talks to peers, and therefore kept */
    int n_segments;
    size_t small; /* bytes below which a slot is kept */
};

static void find_told(struct recompute *r)
{
    const struct tape *tape = r->weave.tape;
    for (int i = 0; i < tape->begin_backward; i++)
        for (int k = 0; tape->steps[i].talks && k < tape->steps[i].n_slots; k++)
            if (tape->steps[i].slot[k] != NO_SLOT && (tape->steps[i].access[k] & ACCESS_WRITE))
                r->told[slot_root(tape, tape->steps[i].slot[k])] = true;
}

/* Whether a forward step at or behind `boundary` touches memory that is written in front of it. */
static size_t crossing_bytes(const struct recompute *r, int boundary)
{
    size_t bytes = 0;
    for (int i = 0; i < r->weave.n_slots; i++) {
        const struct slot_use *use = &r->weave.uses[i];
        if (use->first_write >= 0 && use->first_write < boundary && use->last_forward >= boundary)
            bytes += r->weave.tape->slots[i].bytes;
    }
    return bytes;
}

/* A slot must be written within one segment: in-between states cannot be had again. */
static bool can_cut(const struct recompute *r, int boundary)
{
    for (int i = 0; i < r->weave.n_slots; i++) {
        const struct slot_use *use = &r->weave.uses[i];
        int last_write = use->last_write < use->last_forward ? use->last_write : use->last_forward;
        if (r->weave.tape->slots[i].home != SLOT_OUTSIDE && use->first_write >= 0 &&
            use->first_write < boundary && last_write >= boundary)
            return false;
    }
    return true;
}

static bool is_saved(const struct recompute *r, int slot)
{
    const struct slot_use *use = &r->weave.uses[slot];
    const struct slot *s = &r->weave.tape->slots[slot];
    return s->home == SLOT_ARENA && s->bytes >= r->small && !r->told[slot] &&
           use->first_write >= 0 && use->first_write < r->weave.tape->begin_backward &&
           use->first_backward >= 0;
}

/* What cutting costs: for every place in front of a step (and behind the last), */
struct places {
    double *begun;    /* bytes for the backward pass that steps before it begin */
    double *crossing; /* bytes that are kept if a cut is here; < 0: no cut is possible */
    double *cost;     /* the least cost of all up to a cut here */
    int *previous;    /* the cut before, for this cost */
};

static bool places_new(const struct recompute *r, int steps, struct places *p)
{
    size_t n = (size_t)steps + 1;
    *p = (struct places){ calloc(n, sizeof *p->begun), calloc(n, sizeof *p->crossing),
                          calloc(n, sizeof *p->cost), calloc(n, sizeof *p->previous) };
    if (!p->begun || !p->crossing || !p->cost || !p->previous)
        return false;
    for (int i = 0; i < r->weave.n_slots; i++)
        if (is_saved(r, i))
            p->begun[r->weave.uses[i].first_write + 1] += (double)r->weave.tape->slots[i].bytes;
    for (int at = 1; at <= steps; at++) {
        p->begun[at] += p->begun[at - 1];
        p->crossing[at] = can_cut(r, at) ? (double)crossing_bytes(r, at) : -1;
    }
    return true;
}

static void places_free(struct places *p)
{
    free(p->begun), free(p->crossing), free(p->cost), free(p->previous);
}

/* The cuts for which what crosses them, and what segments hold beyond their share of the bytes, is
 * least in sum: found from the front to the back, for every place the best cut before it. */
static bool cut(struct recompute *r, struct err *err)
{
    int steps = r->weave.tape->begin_backward, n_cuts = 0;
    struct places p;
    bool ok = places_new(r, steps, &p);
    double share = ok ? p.begun[steps] / r->n_segments : 0;
    for (int at = 1; ok && at <= steps; at++) {
        p.cost[at] = -1;
        for (int from = 0; p.crossing[at] >= 0 && from < at; from++) {
            if (from > 0 && p.crossing[from] < 0)
                continue;
            double inner = p.begun[at] - p.begun[from] - p.crossing[at];
            double cost = p.cost[from] + p.crossing[at] + (inner > share ? inner - share : 0);
            if (p.cost[at] < 0 || cost < p.cost[at])
                p.cost[at] = cost, p.previous[at] = from;
        }
    }
    for (int at = ok ? p.previous[steps] : 0; at > 0; at = p.previous[at], n_cuts++)
        for (int step = at; step < steps; step++)
            r->segment[step]++;
    r->n_segments = n_cuts + 1;
    places_free(&p);
    return ok || err_memory(err, "plan");
}

/* Whether the slot is made in this segment, is not read behind it, and would be kept for the
 * backward pass or is gone by then. */
static bool is_inner(const struct recompute *r, int root, int segment)
{
    const struct slot_use *use = &r->weave.uses[root];
    const struct tape *tape = r->weave.tape;
    if (tape->slots[root].home != SLOT_ARENA || use->first_write < 0 ||
        use->first_write >= tape->begin_backward)
        return false;
    return r->segment[use->first_write] == segment && r->segment[use->last_forward] == segment;
}

/* Inner slots that live to the backward pass because they are small are there already. Those that
 * peers told of are kept even if only a step that runs again needs them. */
static bool must_be_made(const struct recompute *r, int root, int segment)
{
    bool kept =
        r->weave.uses[root].first_backward >= 0 && r->weave.tape->slots[root].bytes < r->small;
    return is_inner(r, root, segment) && !kept && !r->told[root];
}

static void mark_writers(struct recompute *r, int root, int begin, int end)
{
    const struct tape *tape = r->weave.tape;
    for (int i = begin; i < end; i++)
        for (int k = 0; k < tape->steps[i].n_slots; k++)
            if (tape->steps[i].slot[k] != NO_SLOT && (tape->steps[i].access[k] & ACCESS_WRITE) &&
                slot_root(tape, tape->steps[i].slot[k]) == root)
                r->again[i] = true;
}

/* From the last step of the segment to its first: whoever runs again needs its inputs. */
static void mark_segment(struct recompute *r, int segment, int begin, int end, int *needed_at)
{
    const struct tape *tape = r->weave.tape;
    *needed_at = -1;
    for (int i = 0; i < r->weave.n_slots; i++) {
        const struct slot_use *use = &r->weave.uses[i];
        if (!is_saved(r, i) || !must_be_made(r, i, segment))
            continue;
        mark_writers(r, i, begin, end);
        if (*needed_at < 0 || use->first_backward < *needed_at)
            *needed_at = use->first_backward;
    }
    for (int i = end - 1; i >= begin; i--)
        for (int k = 0; r->again[i] && k < tape->steps[i].n_slots; k++) {
            int slot = tape->steps[i].slot[k];
            if (slot == NO_SLOT || !(tape->steps[i].access[k] & ACCESS_READ))
                continue;
            int root = slot_root(tape, slot);
            bool adds = tape->steps[i].access[k] == ACCESS_BOTH; /* to what others wrote */
            if (adds || must_be_made(r, root, segment))
                mark_writers(r, root, begin, i);
        }
}

/* A stand-in that only takes what nobody needs: the original is there, and is read. */
static void forget_extra(struct recompute *r, int segment, int begin, int end)
{
    const struct tape *tape = r->weave.tape;
    for (int i = begin; i < end; i++)
        for (int k = 0; r->again[i] && k < tape->steps[i].n_slots; k++) {
            int slot = tape->steps[i].slot[k];
            if (slot != NO_SLOT && !must_be_made(r, slot_root(tape, slot), segment))
                r->weave.other[slot] = r->weave.other[slot_root(tape, slot)] = NO_SLOT;
        }
}

static bool repeat_segment(struct recompute *r, int segment, struct err *err)
{
    const struct tape *tape = r->weave.tape;
    int begin = 0, end = 0, needed_at;
    while (r->segment[begin] != segment)
        begin++;
    for (end = begin; end < tape->begin_backward && r->segment[end] == segment;)
        end++;
    mark_segment(r, segment, begin, end, &needed_at);
    for (int i = begin; i < end && needed_at >= 0; i++)
        if (r->again[i] && !weave_copy(&r->weave, i, needed_at, err))
            return false;
    forget_extra(r, segment, begin, end);
    return true;
}

bool tape_recompute(struct tape *tape, int segments, struct err *err)
{
    struct recompute r = { .n_segments = segments };
    size_t steps = (size_t)tape->begin_backward + 1, saved = 0, n_saved = 0;
    bool ok = weave_begin(&r.weave, tape, err);
    r.segment = calloc(steps, sizeof *r.segment);
    r.again = calloc(steps, sizeof *r.again);
    r.told = calloc((size_t)tape->n_slots + 1, sizeof *r.told);
    if (ok && (!r.segment || !r.again || !r.told))
        ok = err_memory(err, "plan");
    if (ok)
        find_told(&r);
    for (int i = 0; ok && i < r.weave.n_slots; i++)
        if (is_saved(&r, i))
            saved += tape->slots[i].bytes, n_saved++;
    r.small = saved / (n_saved * SMALL_PART + 1);
    ok = ok && cut(&r, err);
    for (int s = 0; ok && s + 1 < r.n_segments; s++) /* the last one is needed at once */
        ok = repeat_segment(&r, s, err);
    ok = weave_end(&r.weave, ok, err);
    free(r.segment), free(r.again), free(r.told);
    return ok;
}
