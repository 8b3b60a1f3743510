/* peers.c: see peers.h. */
#include "train/peers.h"

#include "net/graph/attr.h"

_Static_assert((int)GRID_AXES == (int)PEER_GROUPS && (int)GRID_DATA == (int)PEERS_DATA &&
                   (int)GRID_STAGE == (int)PEERS_STAGE && (int)GRID_SPACE == (int)PEERS_SPACE &&
                   (int)GRID_BANDS == (int)PEERS_BANDS && (int)GRID_HEADS == (int)PEERS_HEADS,
               "the axes of the grid are the groups of peers");
_Static_assert(RANKS_NONE == PEER_NONE, "nobody");

static bool sum(void *arg, double *values, int64_t n, struct err *err)
{
    return ranks_sum_reals(arg, values, n, err);
}

static bool sum_floats(void *arg, float *values, int64_t n, struct err *err)
{
    return ranks_sum_floats(arg, values, n, err);
}

static bool send(void *arg, int to, const void *data, size_t bytes, struct err *err)
{
    return ranks_send(arg, to, data, bytes, err);
}

static bool receive(void *arg, int from, void *data, size_t bytes, struct err *err)
{
    return ranks_receive(arg, from, data, bytes, err);
}

static bool exchange(void *arg, const struct peers_exchange *asked, struct err *err)
{
    struct ranks_exchange both = { .to = asked->to,
                                   .from = asked->from,
                                   .send = asked->out,
                                   .send_bytes = asked->out_bytes,
                                   .receive = asked->in,
                                   .receive_bytes = asked->in_bytes };
    return ranks_exchange(arg, &both, err);
}

static bool gather(void *arg, const void *own, size_t bytes, void *all, struct err *err)
{
    return ranks_gather_equal(arg, own, bytes, all, err);
}

static bool start_send(void *arg, int to, const void *data, size_t bytes, int64_t *handle,
                       struct err *err)
{
    return ranks_start_send(arg, to, data, bytes, handle, err);
}

static bool start_receive(void *arg, int from, void *data, size_t bytes, int64_t *handle,
                          struct err *err)
{
    return ranks_start_receive(arg, from, data, bytes, handle, err);
}

static bool progress(void *arg, struct err *err)
{
    return ranks_progress(arg, err);
}

static bool finish(void *arg, int64_t handle, struct err *err)
{
    return ranks_finish(arg, handle, err);
}

static void abandon(void *arg)
{
    ranks_abandon(arg);
}

struct plan_peers peers_of_ranks(struct ranks *ranks)
{
    return (struct plan_peers){ .arg = ranks,
                                .rank = ranks->rank,
                                .size = ranks->size,
                                .sum = sum,
                                .sum_floats = sum_floats,
                                .send = send,
                                .receive = receive,
                                .exchange = exchange,
                                .gather = gather,
                                .start_send = start_send,
                                .start_receive = start_receive,
                                .progress = progress,
                                .finish = finish,
                                .abandon = abandon };
}

void peers_of_grid(struct rank_grid *grid, struct plan_peers out[GRID_AXES])
{
    for (int a = 0; a < GRID_AXES; a++)
        out[a] = peers_of_ranks(&grid->group[a]);
}
