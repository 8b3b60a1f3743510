/* trainer_state.h: what saving and resuming share (trainer_save.c, trainer_resume.c). */
#ifndef TRAIN_TRAINER_STATE_H
#define TRAIN_TRAINER_STATE_H
#include "train/trainer.h"

/* The arrays of a trainer, in place. */
struct trainer_arrays {
    struct state_array *items; /* own their names */
    size_t n, room;
    float *whole[2]; /* the optimizer's state of all ranks, where each has its part; see below */
    int n_whole;
    float *average; /* of the weights of all stages, where each rank has its own */
    float *weights; /* where each rank has a part of the heads: of the whole network, as `whole` and
                       `average`, on the first rank; NULL on the others */
    bool failed;    /* no memory */
};
struct trainer_arrays trainer_arrays(const struct trainer *trainer);
void trainer_arrays_free(struct trainer_arrays *arrays);
/* Fills `whole` and `average` from the ranks' parts, and brings all weights here (collective);
 * gives this rank's part to the optimizer and its average. */
bool trainer_arrays_gather(const struct trainer *trainer, struct trainer_arrays *arrays,
                           struct err *err);
bool trainer_arrays_take(const struct trainer *trainer, const struct trainer_arrays *arrays,
                         struct err *err);

/* Broadcasts what the first rank has (trainer_ranks.c). A text may be NULL; *out is the caller's.
 */
bool trainer_share_text(const struct trainer *trainer, const char *mine, char **out,
                        struct err *err);
bool trainer_share_arrays(const struct trainer *trainer, const struct trainer_arrays *arrays,
                          struct err *err);

#define TRAINER_HASH_TEXT 32
void trainer_data_text(const struct trainer *trainer, char out[TRAINER_HASH_TEXT]);

/* File names, the caller's; NULL if no memory. */
char *trainer_step_path(const struct trainer *trainer, int64_t step);
char *trainer_best_path(const struct trainer *trainer, int64_t epoch);
/* The numbers of the files "<kind>-<number>.safetensors", ascending; the caller's. */
int64_t *trainer_list(const struct trainer *trainer, const char *kind, size_t *n);
#endif
