/* predictions.h: what a network predicted for many samples, with the truth: what an objective
 * judges, and what a checkpoint keeps of an unfinished epoch. */
#ifndef TRAIN_PREDICTIONS_H
#define TRAIN_PREDICTIONS_H
#include "dist/ranks.h"

struct predictions {
    float *values;    /* [n, outputs]: probabilities of classes, or numbers in their unit */
    float *truths;    /* [n]: a class, or a number */
    int64_t *samples; /* ids; not kept in checkpoints */
    int64_t n, room, outputs;
    double loss_sum; /* over samples */
};

void predictions_free(struct predictions *predictions); /* also fine on a zeroed struct */

/* Room for n more, whose values, truths and samples the caller writes at [predictions->n ..] before
 * it adds n. */
bool predictions_grow(struct predictions *predictions, int64_t n, struct err *err);

/* Collective: all ranks' predictions on every rank, by sample; *all is the caller's. loss_sum is
 * that of `mine`. */
bool predictions_gather(struct ranks *ranks, const struct predictions *mine,
                        struct predictions *all, struct err *err);
#endif
