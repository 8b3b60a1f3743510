/* outline.h: how a training would be divided over ranks, without training: for --dry-run. */
#ifndef TRAIN_OUTLINE_H
#define TRAIN_OUTLINE_H
#include <stdio.h>
#include "train/start.h"

/* Reads the config and writes to `stream`: the grid of `ranks` ranks on this machine, the threads
 * of each, its place in the grid, and the NUMA node that it would be bound to. Nothing else is
 * touched. Fails as the training would before it opens its data. */
bool train_outline(const struct train_start *start, int ranks, int threads, FILE *stream,
                   struct err *err);
#endif
