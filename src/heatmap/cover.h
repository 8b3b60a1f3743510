/* cover.h: which cells of a heatmap are scored, and the blocks that contain them. Private to this
 * folder. */
#ifndef HEATMAP_COVER_H
#define HEATMAP_COVER_H
#include "heatmap/ensemble.h"
#include "heatmap/part.h"
#include "heatmap/source.h"

/* Blocks that cover all wanted cells of a grid of plan->info.width x height cells, from top to
 * bottom, shaped after the tissue. Sets plan->blocks and n_blocks. */
bool cover_make(const struct source *source, const struct ensemble *ensemble,
                struct part_plan *plan, struct err *err);

/* wanted [height, width] of one block. Thread-safe. */
void cover_wanted(const struct source *source, const struct ensemble *ensemble,
                  const struct part_block *block, bool *wanted);
#endif
