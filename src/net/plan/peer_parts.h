/* peer_parts.h: a tensor [outer, extent, inner] of which every peer has, or is to have, a part of
 * the extent: peer p of P from p extent / P to (p + 1) extent / P, rounded down. Two exchanges,
 * each in two halves, between which others may compute:
 *
 *   scatter: every peer has a whole tensor; each gets its part of their sum.
 *   gather: every peer has its part; each gets the whole.
 *
 * One after the other they are a sum that all have. Terms are added in the order of the peers, so
 * the bits are the same on every peer, and however the tensor is cut into pieces that are summed
 * one by one. Each sends (P - 1) / P of the tensor. Collective, as all in peers.h. */
#ifndef NET_PLAN_PEER_PARTS_H
#define NET_PLAN_PEER_PARTS_H
#include "net/plan/peers.h"

struct peer_parts {
    const struct plan_peers *peers;
    int64_t outer, extent, inner;
};

/* Where the part of a peer begins in the extent; that of peer P: its end. */
int64_t peer_part_begin(int64_t extent, int peers, int peer);
/* Floats of the own part, and of the whole. */
int64_t peer_part_own(const struct peer_parts *parts);
int64_t peer_part_whole(const struct peer_parts *parts);
/* Bytes of the room that an exchange needs, aligned to 64 bytes, from its start to its end. */
size_t peer_parts_room(const struct peer_parts *parts);

/* whole stays as it is until the end, and may have `own` at its place if outer is 1. */
bool peer_scatter_start(const struct peer_parts *parts, const float *whole, void *room,
                        struct err *err);
bool peer_scatter_end(const struct peer_parts *parts, const float *whole, float *own, void *room,
                      struct err *err);
/* own stays as it is until the end, and may be at its place in whole if outer is 1. */
bool peer_gather_start(const struct peer_parts *parts, const float *own, float *whole, void *room,
                       struct err *err);
bool peer_gather_end(const struct peer_parts *parts, const float *own, float *whole, void *room,
                     struct err *err);
#endif
