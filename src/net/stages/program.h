/* program.h: the order in which the ranks of a pipeline work: a schedule. A schedule is one line in
 * the table of program.c and one function. The same program is run (pipeline.h) and simulated
 * (simulate.h).
 *
 * A step of training is a number of micro-batches, each of which goes forward through all stages
 * and back. Rank r of the pipeline has stage r. In two-way schedules (mast, master) the network is
 * there twice: odd micro-batches go through the second copy, of which rank r has stage S - 1 - r.
 *
 *   basic    one micro-batch after another, one rank works at a time (GEMS-Basic)
 *   mast     two micro-batches in opposite directions, the second in the memory that the first
 *            frees (GEMS-MAST)
 *   master   the same `times` times, then one sum and one step (GEMS-MASTER)
 *   gpipe    all forward, then all backward: keeps all micro-batches
 *   1f1b     as soon as a micro-batch has come through, forward and backward take turns: rank r
 *            keeps S - r micro-batches, or with recomputation their inputs
 *   zb-h1    the same, with gradients of weights computed later, where a rank would wait (Qi et al.
 *            2024): every rank keeps S micro-batches, as many as the first rank of 1f1b. With
 *            recomputation rank r has r + 1 sets: what is computed again stays until the weights'
 *            turn */
#ifndef NET_STAGES_PROGRAM_H
#define NET_STAGES_PROGRAM_H
#include <stdint.h>
#include "base/err.h"
#include "net/stages/stages.h"

enum work_kind {
    WORK_FORWARD,
    WORK_BACKWARD, /* with split programs, to the inputs only */
    WORK_WEIGHTS,  /* gradients of weights: split programs only */
};

struct work {
    enum work_kind kind;
    int stage, micro;
};

struct program {
    const char *schedule; /* its name */
    int stages, micros;
    bool two_way; /* rank r has stages r and S - 1 - r (one, if they are the same) */
    bool split;   /* WORK_WEIGHTS exists */
    struct work *work[STAGES_MOST];
    int n_work[STAGES_MOST];
};

enum program_kind {
    PROGRAM_BASIC,
    PROGRAM_MAST,
    PROGRAM_MASTER,
    PROGRAM_GPIPE,
    PROGRAM_1F1B,
    PROGRAM_ZB_H1,
    PROGRAMS
};
extern const char *const program_names[]; /* in this order; ends with NULL */

/* Refused with the reason: mast with another number of micro-batches than 2, master with an odd
 * one, .. *out is the caller's; free with program_free. */
bool program_new(enum program_kind schedule, int stages, int micros, struct program *out,
                 struct err *err);
void program_free(struct program *program); /* also fine on a zeroed struct */

/* The rank of the pipeline that has this stage for this micro-batch. */
int program_rank(const struct program *program, int stage, int micro);
/* The stages of a rank, ascending; returns how many, 1 or 2. */
int program_held(const struct program *program, int rank, int held[2]);
/* The most micro-batches of which a rank has something to keep at once, per stage: those that went
 * forward and have not yet come back (to the end of WORK_WEIGHTS, if split). */
int program_most_kept(const struct program *program, int rank, int stage);
/* With recomputation: whether work i of a rank, a backward pass, must first run forward again. It
 * need not where it directly follows the forward pass of its micro-batch, whose activations are
 * still there: on the last rank of 1f1b, and everywhere in basic, mast and master. */
bool program_recomputes(const struct program *program, int rank, int i);
#endif
