/* staged.h: private to the trainer: a network in stages (parallel.stages) on this rank: which of
 * them it has and whom it sends to. trainer_stages.c makes it and does what all ranks do together,
 * runner_stages.c trains. */
#ifndef TRAIN_STAGED_H
#define TRAIN_STAGED_H
#include "net/stages/pipeline.h"
#include "train/trainer_state.h"

struct staged {
    struct program program;
    struct stages stages;
    int32_t begin[STAGES_MOST + 1]; /* where stages begin in the network; those of a divided one
                                       begin elsewhere in it (stages.begin) */
    struct graph *part;             /* what is cut, where patches are divided; NULL: the network */
    int rank;                       /* of its pipeline */
    int held[2], n_held;
    int64_t at[3];       /* their gradients in trainer->gradients: held[i] has [at[i], at[i + 1]) */
    struct ranks copies; /* all that hold the same stages: trainer->weight_ranks */
    struct ranks samples; /* all that have the same part of divided patches: trainer->sample_ranks
                             then; else not made */
    struct ranks groups[2][CHANNELS]; /* the pipeline, once for each copy and direction */
    struct plan_peers peers[2][CHANNELS];
};

/* For trainer_arrays: the optimizer's state and the average of all stages, from the ranks that have
 * them, with all weights (collective); what this rank needs of them. */
bool staged_gather(const struct trainer *trainer, struct trainer_arrays *arrays, struct err *err);
bool staged_take(const struct trainer *trainer, const struct trainer_arrays *arrays,
                 struct err *err);
#endif
