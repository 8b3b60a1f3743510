/* frontier.h: the cells that tiles hand over to each other. Tiles run row by row, from left to
 * right. For every carry there is a strip over the whole width (what the next row of tiles needs of
 * the rows before), one at the left (what the next tile of this row needs) and the corner between
 * them. What a tile takes of them is its record, from which it can be run again in the backward
 * pass; there the same memory has the gradients of strips, which go the other way, from later tiles
 * to earlier ones. All in the layout of the kernels. Internal to net/stream. */
#ifndef NET_STREAM_FRONTIER_H
#define NET_STREAM_FRONTIER_H
#include "net/stream/bands.h"

enum frontier_pass {
    FRONTIER_FIRST, /* forward: the record is written, strips are renewed */
    FRONTIER_AGAIN, /* forward: the record is read */
    FRONTIER_BACK,  /* backward: gradients of strips are renewed */
};

struct frontier_carry;

struct frontier {
    const struct tiles *tiles;
    const struct bands *bands;      /* above and below this one */
    struct frontier_carry *carries; /* [tiles->n_carries] */
    int threads;
    float *memory;
    size_t bytes;
    int64_t *offsets; /* [n_carries]: of each carry in the record of the current tile, floats */
    float *scratch;   /* gradients of the strips of one carry */
    enum frontier_pass pass;
    int64_t i, j; /* the current tile */
    float *record;
};

/* tape: of a plan of any tile; for layouts. */
bool frontier_new(const struct tiles *tiles, const struct tape *tape, int threads,
                  struct frontier *out, struct err *err);
void frontier_free(struct frontier *frontier);
/* Until then it has no memory: to plan. */
bool frontier_allocate(struct frontier *frontier, struct err *err);
/* The bytes of it, and of the record of a tile. */
size_t frontier_bytes(const struct frontier *frontier);
size_t frontier_record_bytes(const struct frontier *frontier, int64_t i, int64_t j);

/* The tile that runs next, and its record: written in FRONTIER_FIRST, read in FRONTIER_AGAIN. */
void frontier_set(struct frontier *frontier, enum frontier_pass pass, int64_t i, int64_t j,
                  float *record);
/* Before the first tile of a backward pass. */
void frontier_clear(struct frontier *frontier);
/* Backward, in place of running the tile: whether no later tile left a gradient for it or for those
 * before it; then nothing is left for those either. */
bool frontier_is_still(const struct frontier *frontier, int64_t i, int64_t j);
void frontier_skip(struct frontier *frontier, int64_t i, int64_t j);

/* Forward, in place of running the tile: its cells are 0 for the tiles after it. record: room for
 * that of the tile. */
void frontier_leave_out(struct frontier *frontier, int64_t i, int64_t j, float *record);

/* For struct plan_carry; arg is the frontier. */
void frontier_forward(void *arg, int index, const float *x, float *y);
void frontier_backward(void *arg, int index, const float *dy, float *dx);
#endif
