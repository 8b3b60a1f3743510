/* weave.h: inserts steps into a tape that has been made but not yet placed in memory, to trade
 * time for memory. Internal to src/net. */
#ifndef NET_PLAN_WEAVE_H
#define NET_PLAN_WEAVE_H
#include "net/plan/tape.h"

/* How the memory of a slot (with all its views; the entry is at their root) is used. Indices of
 * steps; -1: never. */
struct slot_use {
    int first_write, last_write;
    int last_forward;   /* the last forward step that touches it */
    int first_backward; /* the first backward step that touches it */
};

struct weave {
    struct tape *tape;
    struct slot_use *uses; /* [slots at the start]; for roots only */
    int *other;            /* [slots at the start]: the stand-in for a slot; NO_SLOT: none */
    int n_slots;           /* at the beginning */
    int n_steps;           /* of the old list */
    int *behind;           /* [room]: the old index before which each new step is inserted */
    int n_new;
    int64_t room;
};

/* Starts; finish with weave_end, also after a failure. New steps are made by weave_copy or
 * step_add, each followed by weave_place. */
bool weave_begin(struct weave *w, struct tape *tape, struct err *err);
/* The step added last runs before the old step `before`. */
bool weave_place(struct weave *w, int before, struct err *err);
/* A copy of the old step i, with its own kernel and state, before the old step `before`. The slots
 * that it writes get stand-ins, and it reads stand-ins where they exist. */
bool weave_copy(struct weave *w, int i, int before, struct err *err);
/* A stand-in for the root of a slot: memory of the same size. */
int weave_stand_in(struct weave *w, int slot);
/* Makes old backward steps use the stand-ins and puts all steps in order, unless something failed
 * (ok false). Returns whether all went well. */
bool weave_end(struct weave *w, bool ok, struct err *err);
#endif
