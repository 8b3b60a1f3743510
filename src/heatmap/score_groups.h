/* score_groups.h: scores groups of blocks; a dedicated thread reads ahead while workers compute.
 * Private to this folder. */
#ifndef HEATMAP_SCORE_GROUPS_H
#define HEATMAP_SCORE_GROUPS_H
#include "heatmap/ensemble.h"
#include "heatmap/predict.h"
#include "heatmap/specimen.h"

struct score_groups {
    const struct ensemble *ensemble;
    struct specimen *specimen;
    const struct partition *partition;
    const char *folder;    /* of the slide */
    const int64_t *groups; /* [n_groups], ascending */
    int64_t n_groups;
    int workers; /* that memory allows */
};

/* Each group's part is written as soon as its last block is scored; what is written stays after a
 * stop or an error. Adds to *times. */
bool score_groups(const struct score_groups *run, const struct ctx *ctx,
                  struct predict_times *times, struct err *err);
#endif
