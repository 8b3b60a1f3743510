/* ring.h: the rows of tiles that are in memory, within a range of tile columns. Row r of the grid
 * is in slot r modulo the number of slots: going down, new rows replace old ones. */
#ifndef SLIDE_RING_H
#define SLIDE_RING_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct ring_tile {
    int64_t column, row; /* in the grid of the whole level */
};

struct ring {
    int64_t tile_width, tile_height;
    int64_t width, height; /* of the whole level or raster, pixels */
    int64_t first_column, columns, slots;
    int64_t stride;          /* bytes from a pixel row to the next */
    uint8_t *px;             /* [slots, tile_height, columns * tile_width, 3] */
    int64_t *held;           /* [slots, columns]: the grid row that is in the slot, or -1 */
    struct ring_tile *queue; /* [slots * columns]: the tiles being loaded */
    int64_t n_queued;
};

/* How many tiles a span of `px` pixels touches at most, wherever it begins. */
static inline int64_t ring_tiles_under(int64_t px, int64_t tile_px)
{
    return px < 1 ? 1 : (px + tile_px - 2) / tile_px + 1;
}

/* For pixel columns [x0, x1) and up to max_rows pixel rows at a time. Sizes of tile and level are
 * set by the caller beforehand. Free with ring_free. */
bool ring_init(struct ring *ring, int64_t x0, int64_t x1, int64_t max_rows, struct err *err);
void ring_free(struct ring *ring);
int64_t ring_bytes(const struct ring *ring, int64_t strip_width, int64_t max_rows);

/* Queues the tiles of grid row `row` under pixel columns [x0, x1) that are not held yet. They count
 * as held from now on. */
void ring_queue(struct ring *ring, int64_t row, int64_t x0, int64_t x1);
/* The load failed: queued tiles no longer count as held. */
void ring_forget_queued(struct ring *ring);

/* Address of a tile's first pixel. */
uint8_t *ring_tile_px(const struct ring *ring, struct ring_tile tile);

/* Pixel (x, y) of the level; the row continues to the end of the ring's columns. */
static inline const uint8_t *ring_at(const struct ring *ring, int64_t x, int64_t y)
{
    int64_t row = y / ring->tile_height;
    int64_t slot_y = row % ring->slots * ring->tile_height + y % ring->tile_height;
    return ring->px + slot_y * ring->stride + 3 * (x - ring->first_column * ring->tile_width);
}
#endif
