/* runner_texts.h: private to the trainer: what is particular to texts in runner_patches.c, which
 * runs them as it runs patches. */
#ifndef TRAIN_RUNNER_TEXTS_H
#define TRAIN_RUNNER_TEXTS_H
#include "train/text_windows.h"
#include "train/trainer.h"

/* Hooks of struct runner_kind. */
bool texts_look(struct trainer *trainer, struct err *err);
bool texts_describe(struct trainer *trainer, struct err *err);
/* outputs [batch, classes] of the samples of a batch: text_windows.h. */
bool texts_average(const struct trainer *trainer, const struct text_windows *how,
                   const struct batch *batch, float *outputs, struct err *err);
#endif
