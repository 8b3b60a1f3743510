/* blocks.c: see blocks.h. */
#include "heatmap/blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"

bool blocks_open(struct blocks *blocks, const struct heatmap *heatmap, int64_t side,
                 int64_t memory_bytes, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(heatmap);
    *blocks = (struct blocks){ .heatmap = heatmap, .side = side, .n_classes = info->n_classes };
    blocks->across = ceil_div(info->width, side);
    blocks->down = ceil_div(info->height, side);
    blocks->rows_at_a_time = heatmap_rows_in(info, memory_bytes);
    size_t classes = (size_t)info->n_classes;
    blocks->rows = calloc((size_t)(blocks->rows_at_a_time * info->width), classes * sizeof(float));
    blocks->sums = calloc((size_t)blocks->across, classes * sizeof *blocks->sums);
    blocks->counts = calloc((size_t)blocks->across, sizeof *blocks->counts);
    if (blocks->rows && blocks->sums && blocks->counts)
        return true;
    blocks_close(blocks);
    return err_memory(err, "rows of a heatmap");
}

void blocks_close(struct blocks *blocks)
{
    free(blocks->rows);
    free(blocks->sums);
    free(blocks->counts);
    *blocks = (struct blocks){ 0 };
}

/* The scores of one row of cells, [width, classes]; valid until the next call. */
static bool cells_of(struct blocks *blocks, int64_t row, const float **out, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(blocks->heatmap);
    if (row < blocks->first_row || row >= blocks->first_row + blocks->n_rows) {
        int64_t n = blocks->rows_at_a_time;
        n = info->height - row < n ? info->height - row : n;
        blocks->n_rows = 0;
        if (!heatmap_read_rows(blocks->heatmap, row, n, blocks->rows, err))
            return false;
        blocks->first_row = row, blocks->n_rows = n;
    }
    *out = blocks->rows + (row - blocks->first_row) * info->width * info->n_classes;
    return true;
}

static void add_cells(struct blocks *blocks, const float *cells)
{
    int64_t width = heatmap_info(blocks->heatmap)->width, classes = blocks->n_classes;
    for (int64_t x = 0; x < width; x++, cells += classes) {
        if (isnan(cells[0]))
            continue;
        int64_t block = x / blocks->side;
        blocks->counts[block]++;
        for (int64_t c = 0; c < classes; c++)
            blocks->sums[block * classes + c] += (double)cells[c];
    }
}

bool blocks_read(struct blocks *blocks, int64_t row, float *out, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(blocks->heatmap);
    int64_t classes = blocks->n_classes;
    size_t n = (size_t)(blocks->across * classes);
    const float *cells;
    if (blocks->side == 1) {
        if (!cells_of(blocks, row, &cells, err))
            return false;
        memcpy(out, cells, n * sizeof *out);
        return true;
    }
    memset(blocks->sums, 0, n * sizeof *blocks->sums);
    memset(blocks->counts, 0, (size_t)blocks->across * sizeof *blocks->counts);
    int64_t end = (row + 1) * blocks->side;
    end = end < info->height ? end : info->height;
    for (int64_t y = row * blocks->side; y < end; y++) {
        if (!cells_of(blocks, y, &cells, err))
            return false;
        add_cells(blocks, cells);
    }
    for (int64_t x = 0; x < blocks->across; x++)
        for (int64_t c = 0; c < classes; c++)
            out[x * classes + c] =
                blocks->counts[x] > 0
                    ? (float)(blocks->sums[x * classes + c] / (double)blocks->counts[x])
                    : NAN;
    return true;
}

struct heatmap_cell blocks_place(const struct blocks *blocks, int64_t column, int64_t row)
{
    const struct heatmap_info *info = heatmap_info(blocks->heatmap);
    int64_t last_column = (column + 1) * blocks->side - 1, last_row = (row + 1) * blocks->side - 1;
    last_column = last_column < info->width ? last_column : info->width - 1;
    last_row = last_row < info->height ? last_row : info->height - 1;
    struct heatmap_cell first = heatmap_cell(info, column * blocks->side, row * blocks->side);
    struct heatmap_cell last = heatmap_cell(info, last_column, last_row);
    return (struct heatmap_cell){ first.x_l0, first.y_l0, last.x_l0 + last.width_l0 - first.x_l0,
                                  last.y_l0 + last.height_l0 - first.y_l0 };
}
