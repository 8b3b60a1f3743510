/* peer_parts.c: see peer_parts.h. The room has the handles of all messages, then what goes out
 * where parts are not in one piece, then what comes. */
#include "net/plan/peer_parts.h"
#include <string.h>

#define ALIGNMENT ((size_t)64)

int64_t peer_part_begin(int64_t extent, int peers, int peer)
{
    return extent * peer / peers;
}

/* [begin, end) of the extent. */
struct range {
    int64_t begin, end;
};

static struct range range_of(const struct peer_parts *p, int peer)
{
    return (struct range){ peer_part_begin(p->extent, p->peers->size, peer),
                           peer_part_begin(p->extent, p->peers->size, peer + 1) };
}

static int64_t floats_of(const struct peer_parts *p, int peer)
{
    struct range r = range_of(p, peer);
    return p->outer * (r.end - r.begin) * p->inner;
}

int64_t peer_part_own(const struct peer_parts *p)
{
    return floats_of(p, p->peers->rank);
}

int64_t peer_part_whole(const struct peer_parts *p)
{
    return p->outer * p->extent * p->inner;
}

static size_t handle_bytes(const struct peer_parts *p)
{
    size_t bytes = 2 * (size_t)p->peers->size * sizeof(int64_t);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* What comes in a scatter: as many floats from each peer. */
static int64_t coming(const struct peer_parts *p)
{
    return (p->peers->size - 1) * peer_part_own(p);
}

size_t peer_parts_room(const struct peer_parts *p)
{
    int64_t copied = p->outer > 1 ? peer_part_whole(p) : 0;
    return handle_bytes(p) + (size_t)(copied + coming(p)) * sizeof(float);
}

static int64_t *handle_at(void *room, int peer, bool out)
{
    return (int64_t *)room + 2 * peer + out;
}

/* Parts in one piece each, one after another. */
static float *packed_at(const struct peer_parts *p, void *room, int peer)
{
    float *begin = (float *)(void *)((char *)room + handle_bytes(p));
    return begin + p->outer * range_of(p, peer).begin * p->inner;
}

/* What comes from a peer in a scatter. */
static float *coming_at(const struct peer_parts *p, void *room, int peer)
{
    float *begin = (float *)(void *)((char *)room + handle_bytes(p));
    int before = peer < p->peers->rank ? peer : peer - 1;
    return begin + (p->outer > 1 ? peer_part_whole(p) : 0) + before * peer_part_own(p);
}

/* A part in one piece: where it is in the whole, or packed. */
static float *piece_at(const struct peer_parts *p, const float *whole, void *room, int peer)
{
    return p->outer > 1 ? packed_at(p, room, peer)
                        : (float *)whole + range_of(p, peer).begin * p->inner;
}

/* A part of the whole to or from one piece. */
static void move_part(const struct peer_parts *p, float *whole, int peer, float *piece, bool back)
{
    struct range r = range_of(p, peer);
    int64_t row = (r.end - r.begin) * p->inner;
    for (int64_t o = 0; o < p->outer; o++, piece += row) {
        float *place = whole + (o * p->extent + r.begin) * p->inner;
        if (place != piece)
            memcpy(back ? place : piece, back ? piece : place, (size_t)row * sizeof *place);
    }
}

/* Every peer's message to and from this one; nothing is sent where there is nothing. */
static bool start(const struct peer_parts *p, int peer, const float *out, int64_t n_out, float *in,
                  int64_t n_in, void *room, struct err *err)
{
    const struct plan_peers *peers = p->peers;
    return (n_out == 0 || peers->start_send(peers->arg, peer, out, (size_t)n_out * sizeof *out,
                                            handle_at(room, peer, true), err)) &&
           (n_in == 0 || peers->start_receive(peers->arg, peer, in, (size_t)n_in * sizeof *in,
                                              handle_at(room, peer, false), err));
}

static bool finish(const struct peer_parts *p, int peer, int64_t n_out, int64_t n_in, void *room,
                   struct err *err)
{
    const struct plan_peers *peers = p->peers;
    return (n_in == 0 || peers->finish(peers->arg, *handle_at(room, peer, false), err)) &&
           (n_out == 0 || peers->finish(peers->arg, *handle_at(room, peer, true), err));
}

bool peer_scatter_start(const struct peer_parts *p, const float *whole, void *room, struct err *err)
{
    int64_t own = peer_part_own(p);
    for (int peer = 0; peer < p->peers->size; peer++) {
        if (peer == p->peers->rank)
            continue;
        float *piece = piece_at(p, whole, room, peer);
        if (p->outer > 1)
            move_part(p, (float *)whole, peer, piece, false);
        if (!start(p, peer, piece, floats_of(p, peer), coming_at(p, room, peer), own, room, err))
            return false;
    }
    return true;
}

static void add(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* Those of the peers before this one are added up first, then its own, then those behind it. */
bool peer_scatter_end(const struct peer_parts *p, const float *whole, float *own, void *room,
                      struct err *err)
{
    int64_t n = peer_part_own(p);
    int rank = p->peers->rank;
    move_part(p, (float *)whole, rank, own, false);
    for (int peer = 0; peer < p->peers->size; peer++) {
        if (peer != rank && !finish(p, peer, floats_of(p, peer), n, room, err))
            return false;
        if (peer == rank && rank > 0)
            add(own, coming_at(p, room, 0), n);
        else if (peer > 0 && peer < rank)
            add(coming_at(p, room, 0), coming_at(p, room, peer), n);
        else if (peer > rank)
            add(own, coming_at(p, room, peer), n);
    }
    return true;
}

bool peer_gather_start(const struct peer_parts *p, const float *own, float *whole, void *room,
                       struct err *err)
{
    int64_t n = peer_part_own(p);
    for (int peer = 0; peer < p->peers->size; peer++)
        if (peer != p->peers->rank &&
            !start(p, peer, own, n, piece_at(p, whole, room, peer), floats_of(p, peer), room, err))
            return false;
    return true;
}

bool peer_gather_end(const struct peer_parts *p, const float *own, float *whole, void *room,
                     struct err *err)
{
    int64_t n = peer_part_own(p);
    move_part(p, whole, p->peers->rank, (float *)own, true);
    for (int peer = 0; peer < p->peers->size; peer++) {
        if (peer == p->peers->rank)
            continue;
        if (!finish(p, peer, n, floats_of(p, peer), room, err))
            return false;
        if (p->outer > 1)
            move_part(p, whole, peer, packed_at(p, room, peer), true);
    }
    return true;
}
