/* runner_recordings.h: private to the trainer: what is particular to recordings in
 * runner_patches.c, which runs them as it runs patches. */
#ifndef TRAIN_RUNNER_RECORDINGS_H
#define TRAIN_RUNNER_RECORDINGS_H
#include "train/trainer.h"

/* Hooks of struct runner_kind. */
bool recordings_look(struct trainer *trainer, struct err *err);
bool recordings_describe(struct trainer *trainer, struct err *err);
#endif
