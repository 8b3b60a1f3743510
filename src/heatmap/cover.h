/* cover.h: which cells of a heatmap are scored, and the blocks that contain them. Private to this
 * folder. */
#ifndef HEATMAP_COVER_H
#define HEATMAP_COVER_H
#include "heatmap/ensemble.h"
#include "heatmap/partition.h"
#include "heatmap/specimen.h"

/* Blocks that cover all wanted cells of a grid of partition->info.width x height cells, from top to
 * bottom, shaped after the tissue. Sets partition->blocks and n_blocks. */
bool cover_make(const struct specimen *specimen, const struct ensemble *ensemble,
                struct partition *partition, struct err *err);

/* wanted [height, width] of one block. Thread-safe. */
void cover_wanted(const struct specimen *specimen, const struct ensemble *ensemble,
                  const struct partition_block *block, bool *wanted);
#endif
