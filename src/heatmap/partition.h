/* partition.h: the work on one slide, cut into tasks. A partition lists blocks of cells with
 * tissue, in groups of about equal cost; it is made once, depends on the slide and the options
 * alone (never on threads) and is kept as DIR/<slide>/plan.json. A group is one task: a pure
 * function of the partition to one file DIR/<slide>/parts/<group>.scores, written beside and
 * renamed. Stitching turns all parts into heatmap.npy and heatmap.json and removes them. Any number
 * of groups in any order, on any number of threads and machines, killed and restarted, gives the
 * same bytes. */
#ifndef HEATMAP_PARTITION_H
#define HEATMAP_PARTITION_H
#include "base/ctx.h"
#include "heatmap/heatmap.h"

/* A rectangle of cells that is scored in one go. */
struct partition_block {
    int64_t column, row, width, height; /* cells */
    int64_t cost;                       /* px that pass through the networks */
    bool streamed;                      /* tile by tile, else at once */
};

struct partition_group {
    int64_t first, n; /* blocks */
    int64_t cost;
};

struct partition {
    struct heatmap_info info;       /* of the heatmap that comes of it; scored is 0 */
    struct partition_block *blocks; /* no two overlap */
    int64_t n_blocks;
    struct partition_group *groups; /* [n_groups], in the order of blocks */
    int64_t n_groups;
    uint64_t hash; /* of all of the above: a part of another partition is not used */
};

/* Reads folder/plan.json. *out is the caller's; free with partition_free. */
bool partition_read(const char *folder, struct partition *out, struct err *err);
/* Groups the blocks at about `group_cost` px each, sets the hash and writes. */
bool partition_write(const char *folder, struct partition *partition, int64_t group_cost,
                     struct err *err);
void partition_free(struct partition *partition); /* also fine on a zeroed struct */

/* folder/parts/000012.scores, the caller's; NULL if no memory. */
char *part_path(const char *folder, int64_t group);
/* Does the part exist, and is it of this partition? */
bool part_exists(const char *folder, const struct partition *partition, int64_t group);
void part_remove(const char *folder, int64_t group);
/* scores[k] [height, width, classes] of block k of the group. */
bool part_write(const char *folder, const struct partition *partition, int64_t group,
                const float *const *scores, struct err *err);
/* Parts -> heatmap.npy and heatmap.json; then the parts are removed. Memory: `memory_bytes` and no
 * more, whatever the size of the slide. The error names a part that is missing or damaged. */
bool part_stitch(const char *folder, const struct partition *partition, int64_t memory_bytes,
                 const struct ctx *ctx, struct err *err);
/* Removes folder/parts, including what killed processes left there. */
void part_remove_all(const char *folder);
#endif
