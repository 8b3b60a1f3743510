/* cover.h: which cells of a heatmap are scored, and the blocks that contain them. Private to this
 * folder. */
#ifndef HEATMAP_COVER_H
#define HEATMAP_COVER_H
#include "heatmap/ensemble.h"
#include "heatmap/partition.h"
#include "heatmap/specimen.h"

struct cover_list {
    struct partition_block *blocks; /* the caller's */
    int64_t n, room;
    double price; /* of all of them: time, in that of a px of a block that is scored at once */
};
bool cover_add(struct cover_list *list, const struct partition_block *block, struct err *err);

/* Blocks that cover all wanted cells of a grid of partition->info.width x height cells, shaped
 * after the tissue. Sets partition->blocks and n_blocks, which are the caller's, also after an
 * error. */
bool cover_make(const struct specimen *specimen, const struct ensemble *ensemble,
                struct partition *partition, struct err *err);

/* The same for an area of the grid, which begins at a multiple of cover_step, with blocks that are
 * scored at once. Adds to *out. */
bool cover_area(const struct specimen *specimen, const struct ensemble *ensemble,
                const struct partition_block *area, struct cover_list *out, struct err *err);
/* The same for the whole grid, with blocks that are streamed where that is less work. */
bool cover_streamed(const struct specimen *specimen, const struct ensemble *ensemble,
                    const struct partition_block *grid, struct cover_list *out, struct err *err);
/* Cells that are wanted or not together, in each direction: blocks begin at multiples of it. */
int64_t cover_step(const struct specimen *specimen, const struct ensemble *ensemble);

/* wanted [height, width] of one block. Thread-safe. */
void cover_wanted(const struct specimen *specimen, const struct ensemble *ensemble,
                  const struct partition_block *block, bool *wanted);
#endif
