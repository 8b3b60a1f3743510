/* ring.c: see ring.h. */
#include "slide/ring.h"

#include <stdlib.h>
#include "base/divide.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static int64_t grid_columns(const struct ring *ring)
{
    return ceil_div(ring->width, ring->tile_width);
}

static int64_t slots_for(const struct ring *ring, int64_t max_rows)
{
    int64_t all = ceil_div(ring->height, ring->tile_height);
    return clamp(ring_tiles_under(max_rows, ring->tile_height), 1, all);
}

int64_t ring_bytes(const struct ring *ring, int64_t strip_width, int64_t max_rows)
{
    int64_t columns = clamp(ring_tiles_under(strip_width, ring->tile_width), 1, grid_columns(ring));
    int64_t tiles = columns * slots_for(ring, max_rows);
    return tiles * (ring->tile_width * ring->tile_height * 3 + (int64_t)sizeof *ring->held +
                    (int64_t)sizeof *ring->queue);
}

bool ring_init(struct ring *ring, int64_t x0, int64_t x1, int64_t max_rows, struct err *err)
{
    int64_t all = grid_columns(ring);
    x0 = clamp(x0, 0, ring->width - 1);
    x1 = clamp(x1, x0 + 1, ring->width);
    ring->first_column = x0 / ring->tile_width;
    ring->columns = clamp((x1 - 1) / ring->tile_width + 1, 1, all) - ring->first_column;
    ring->slots = slots_for(ring, max_rows);
    ring->stride = 3 * ring->columns * ring->tile_width;
    size_t tiles = (size_t)(ring->columns * ring->slots), bytes = 0;
    if (__builtin_mul_overflow(tiles, (size_t)(3 * ring->tile_width * ring->tile_height), &bytes))
        return err_memory(err, "a band of tiles");
    ring->px = malloc(bytes);
    ring->held = malloc(tiles * sizeof *ring->held);
    ring->queue = malloc(tiles * sizeof *ring->queue);
    if (!ring->px || !ring->held || !ring->queue)
        return err_memory(err, "a band of tiles");
    for (size_t i = 0; i < tiles; i++)
        ring->held[i] = -1;
    return true;
}

void ring_free(struct ring *ring)
{
    free(ring->px);
    free(ring->held);
    free(ring->queue);
    *ring = (struct ring){ 0 };
}

static int64_t *held_at(const struct ring *ring, int64_t column, int64_t row)
{
    return &ring->held[row % ring->slots * ring->columns + column - ring->first_column];
}

void ring_queue(struct ring *ring, int64_t row, int64_t x0, int64_t x1)
{
    int64_t end = ring->first_column + ring->columns;
    int64_t first = clamp(x0 / ring->tile_width, ring->first_column, end);
    int64_t last = clamp((x1 - 1) / ring->tile_width, first - 1, end - 1);
    for (int64_t column = first; column <= last; column++) {
        int64_t *held = held_at(ring, column, row);
        if (*held == row)
            continue;
        *held = row;
        ring->queue[ring->n_queued++] = (struct ring_tile){ column, row };
    }
}

void ring_forget_queued(struct ring *ring)
{
    for (int64_t i = 0; i < ring->n_queued; i++)
        *held_at(ring, ring->queue[i].column, ring->queue[i].row) = -1;
    ring->n_queued = 0;
}

uint8_t *ring_tile_px(const struct ring *ring, struct ring_tile tile)
{
    int64_t slot = tile.row % ring->slots;
    return ring->px + slot * ring->tile_height * ring->stride +
           3 * (tile.column - ring->first_column) * ring->tile_width;
}
