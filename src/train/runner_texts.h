/* runner_texts.h: private to the trainer: what is particular to texts in runner_patches.c, which
 * runs them as it runs patches. */
#ifndef TRAIN_RUNNER_TEXTS_H
#define TRAIN_RUNNER_TEXTS_H
#include "train/trainer.h"

/* Hooks of struct runner_kind. */
bool texts_look(struct trainer *trainer, struct err *err);
bool texts_describe(struct trainer *trainer, struct err *err);
#endif
