/* mine.h: hard negatives: patches of normal tissue that a model misclassifies, listed so that a
 * training can add them.
 *
 * The list is a CSV with the columns store, patch (its number in the store) and score (1 - the
 * probability of the first class), the worst first. */
#ifndef TRAIN_MINE_H
#define TRAIN_MINE_H
#include "base/ctx.h"
#include "train/config.h"

#define MINE_FILE "hard_negatives.csv"

struct mine_result {
    int64_t scored, found, kept;
};

/* Scores config->mine.stores with `model` and writes the false positives to `path`. Patches
 * labelled with a class other than the first are skipped. The same for any number of threads, up to
 * the last digits of a score. Uses HDF5: see patch/store.h. */
bool mine_run(const struct train_config *config, const char *model, const char *path,
              const struct ctx *ctx, struct mine_result *out, struct err *err);

/* Sets data.hard_negatives to the list in the folder of a training. */
bool mine_name(struct train_config *config, const char *folder, struct err *err);

/* What to do if that list exists. */
enum mine_existing { MINE_REFUSE, MINE_KEEP, MINE_REPLACE };
/* Mines, as mine_run, to data.hard_negatives, and reports how much was found. */
bool mine_add(const struct train_config *config, const char *model, enum mine_existing existing,
              const struct ctx *ctx, struct err *err);
#endif
