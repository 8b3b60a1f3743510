/* heads.h: private to the trainer: a Transformer whose attention heads and MLP columns are divided
 * over ranks (parallel.heads), on this rank. trainer_heads.c makes it and does what all ranks do
 * together; a plan of the part runs like any other (runner_patches.c). */
#ifndef TRAIN_HEADS_H
#define TRAIN_HEADS_H
#include "train/trainer_state.h"

struct heads {
    struct graph *whole; /* the network, without floats until trainer_heads_collect */
    int64_t *outer;      /* [values of whole]: see transform_heads */
    bool *summed;        /* [values of the part]: see transform_tokens; NULL: tokens are whole */
    float *sums;         /* [n_sums]: gradients of those parameters, one after another */
    int64_t n_sums;
    struct ranks *ranks; /* with the other heads, and as peers */
    struct plan_peers peers;
    int64_t *arena_bytes; /* [ranks]: activations; NULL: not told yet */
};

/* trainer_arrays_gather; and trainer_share_arrays with trainer_arrays_take in one. On the first
 * rank arrays are those of the whole network, elsewhere there are none. Collective. */
bool heads_gather(const struct trainer *trainer, struct trainer_arrays *arrays, struct err *err);
bool heads_take(const struct trainer *trainer, const struct trainer_arrays *arrays,
                struct err *err);
#endif
