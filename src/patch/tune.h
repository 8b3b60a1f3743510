/* tune.h: how fast a file system reads patches, by the size of the groups they are stored in: a
 * whole group at once or patch by patch. */
#ifndef PATCH_TUNE_H
#define PATCH_TUNE_H
#include "patch/extract.h"

struct tune_row {
    int64_t group;          /* patches per group */
    double group_mb;        /* memory of a group */
    double whole_mb_per_s;  /* a group at a time */
    double single_mb_per_s; /* a patch at a time */
};

struct tune_request {
    const struct slide_entry *slide;
    const char *folder;   /* on the file system to measure; a store is made there and removed */
    int64_t patches;      /* that are stored and read */
    int64_t patch;        /* px */
    const int64_t *sizes; /* [n_sizes] of groups */
    int64_t n_sizes;
    int64_t seed;
};

/* rows [n_sizes]. Before each reading, the system is asked to drop the file from its cache. */
bool tune_groups(const struct tune_request *request, const struct ctx *ctx, struct tune_row *rows,
                 struct err *err);

/* The smallest group that is read at 95 % of the best speed or more. rows by ascending size. */
int64_t tune_suggest(const struct tune_row *rows, int64_t n);
#endif
