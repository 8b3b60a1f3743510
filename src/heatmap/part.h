/* part.h: the work on one slide, cut into tasks. A plan lists blocks of cells with tissue, in
 * groups of about equal cost; it is made once, depends on the slide and the options alone (never on
 * threads) and is kept as DIR/<slide>/plan.json. A group is one task: a pure function of the plan
 * to one file DIR/<slide>/parts/<group>.scores, written beside and renamed. Stitching turns all
 * parts into heatmap.npy and heatmap.json and removes them. Any number of groups in any order, on
 * any number of threads and machines, killed and restarted, gives the same bytes. */
#ifndef HEATMAP_PART_H
#define HEATMAP_PART_H
#include "base/ctx.h"
#include "heatmap/heatmap.h"

/* A rectangle of cells that is scored in one go. */
struct part_block {
    int64_t column, row, width, height; /* cells */
    int64_t cost;                       /* px that pass through the networks */
};

struct part_group {
    int64_t first, n; /* blocks */
    int64_t cost;
};

struct part_plan {
    struct heatmap_info info;  /* of the heatmap that comes of it; scored is 0 */
    struct part_block *blocks; /* from top to bottom; no two overlap */
    int64_t n_blocks;
    struct part_group *groups; /* [n_groups], in the order of blocks */
    int64_t n_groups;
    uint64_t hash; /* of all of the above: a part of another plan is not used */
};

/* Reads folder/plan.json. *out is the caller's; free with part_plan_free. */
bool part_plan_read(const char *folder, struct part_plan *out, struct err *err);
/* Groups the blocks at about `group_cost` px each, sets the hash and writes. */
bool part_plan_write(const char *folder, struct part_plan *plan, int64_t group_cost,
                     struct err *err);
void part_plan_free(struct part_plan *plan); /* also fine on a zeroed struct */

/* folder/parts/000012.scores, the caller's; NULL if no memory. */
char *part_path(const char *folder, int64_t group);
/* Does the part exist, and is it of this plan? */
bool part_exists(const char *folder, const struct part_plan *plan, int64_t group);
void part_remove(const char *folder, int64_t group);
/* scores[k] [height, width, classes] of block k of the group. */
bool part_write(const char *folder, const struct part_plan *plan, int64_t group,
                const float *const *scores, struct err *err);
/* Parts -> heatmap.npy and heatmap.json; then the parts are removed. Memory: `memory_bytes` and no
 * more, whatever the size of the slide. The error names a part that is missing or damaged. */
bool part_stitch(const char *folder, const struct part_plan *plan, int64_t memory_bytes,
                 const struct ctx *ctx, struct err *err);
/* Removes folder/parts, including what killed processes left there. */
void part_remove_all(const char *folder);
#endif
