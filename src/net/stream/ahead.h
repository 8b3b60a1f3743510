/* ahead.h: the pixels of the next tile are read by a thread while this tile is computed. The order
 * of the tiles is known when a pass begins. */
#ifndef NET_STREAM_AHEAD_H
#define NET_STREAM_AHEAD_H
#include "net/plan/plan.h"

struct ahead;

/* One part of the image: [channels, h, w] floats at (y, x). */
struct ahead_part {
    int64_t y, x, h, w;
};

/* most: floats of the largest part; two buffers of that are allocated, of which a pass over one
 * part touches one. */
bool ahead_new(const struct plan_source *source, int64_t channels, int64_t most, struct ahead **out,
               struct err *err);
void ahead_free(struct ahead *ahead);
size_t ahead_bytes(int64_t most, int64_t parts);
/* A pass over these parts in this order, which must stay until the next one. An unfinished pass is
 * abandoned. */
void ahead_begin(struct ahead *ahead, const struct ahead_part *parts, int64_t n);
/* The next part; valid until the call after. */
bool ahead_next(struct ahead *ahead, const float **pixels, struct err *err);
/* Passes over the next part, which need not be read; what ahead_next gave is no longer valid. */
void ahead_skip(struct ahead *ahead);
/* Time that ahead_next took, over all passes. */
double ahead_waited_s(const struct ahead *ahead);
#endif
