/* blocks.h: a heatmap read in square blocks of cells, a row of blocks at a time; all
 * exporters use it. The score of a block is the mean over its cells that have one; a block
 * without any is NaN. Blocks of one cell are the heatmap itself. */
#ifndef HEATMAP_BLOCKS_H
#define HEATMAP_BLOCKS_H
#include "heatmap/heatmap.h"

struct blocks {
    const struct heatmap *heatmap;
    int64_t side;         /* cells */
    int64_t across, down; /* blocks */
    int64_t n_classes;
    int64_t rows_at_a_time;    /* rows of cells that are read at once */
    float *rows;               /* [rows_at_a_time, width, classes] */
    int64_t first_row, n_rows; /* which of them are in memory */
    double *sums;              /* [across, classes] */
    int64_t *counts;           /* [across] */
};

/* memory_bytes: for the rows that are read at once; at least one row is. Free with blocks_close.
 * The heatmap must outlive it. Not thread-safe. */
bool blocks_open(struct blocks *blocks, const struct heatmap *heatmap, int64_t side,
                 int64_t memory_bytes, struct err *err);
void blocks_close(struct blocks *blocks);

/* Row `row` of blocks to out [across, classes]. */
bool blocks_read(struct blocks *blocks, int64_t row, float *out, struct err *err);

/* The position of a block in level-0 px, clipped to the slide. */
struct heatmap_cell blocks_place(const struct blocks *blocks, int64_t column, int64_t row);
#endif
