/* small_trainer.h: as much of a trainer as saving and resuming need: a network of some numbers, an
 * optimizer, a config; no data. */
#ifndef TESTS_FUZZ_SMALL_TRAINER_H
#define TESTS_FUZZ_SMALL_TRAINER_H
#include "train/trainer.h"

/* Made once, kept for the process; checkpoints go to folder, which is kept as it is given. Aborts
 * where it cannot be made. */
struct trainer *small_trainer(const char *folder);
#endif
