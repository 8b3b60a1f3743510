/* overlap.c: sums over peers in the backward pass run while gradients of weights are computed, on
 * which nothing depends: those that would have been computed between one sum and the next are put
 * off until the next one has started. Among themselves they keep their order, so the bits are the
 * same. */
#include <stdlib.h>
#include <string.h>
#include "net/plan/tape.h"

struct ordering {
    const struct tape *tape;
    struct step *ordered; /* the backward pass */
    int n;
    int *later; /* steps that are put off, in their order */
    int n_later, done;
};

static void put(struct ordering *o, int step)
{
    o->ordered[o->n++] = o->tape->steps[step];
}

/* Of the steps that are put off, those that have less than this part of the work in front. */
static void put_later(struct ordering *o, double part)
{
    double all = 0, before = 0;
    for (int i = 0; i < o->n_later; i++)
        all += o->tape->steps[o->later[i]].flops;
    for (int i = 0; i < o->n_later; i++) {
        if (i >= o->done && (part >= 1 || before < part * all))
            put(o, o->later[o->done++]);
        before += o->tape->steps[o->later[i]].flops;
    }
    if (o->done == o->n_later)
        o->done = o->n_later = 0;
}

static int last_start(const struct tape *tape)
{
    int i = tape->n_steps - 1;
    while (i >= tape->begin_backward && tape->steps[i].message != MESSAGE_START)
        i--;
    return i;
}

static void order(struct ordering *o)
{
    const struct tape *tape = o->tape;
    int last = last_start(tape);
    for (int i = tape->begin_backward; i < tape->n_steps; i++) {
        enum step_message message = tape->steps[i].message;
        if (tape->steps[i].only_weights && i < last) {
            o->later[o->n_later++] = i;
            continue;
        }
        put(o, i);
        if (message == MESSAGE_START || message == MESSAGE_TURN)
            put_later(o, tape->steps[i + 1].message == MESSAGE_TURN ? 0.5 : 1);
    }
}

bool tape_overlap(struct tape *tape, struct err *err)
{
    size_t n = (size_t)(tape->n_steps - tape->begin_backward);
    if (last_start(tape) < tape->begin_backward)
        return true;
    struct ordering o = { .tape = tape,
                          .ordered = malloc((n + 1) * sizeof *o.ordered),
                          .later = malloc((n + 1) * sizeof *o.later) };
    bool ok = ((o.ordered && o.later) || err_memory(err, "plan")) && tape_mark_weights(tape, err);
    if (ok) {
        order(&o);
        memcpy(tape->steps + tape->begin_backward, o.ordered, n * sizeof *o.ordered);
    }
    free(o.ordered), free(o.later);
    return ok;
}
