/* ranks.c: shared by all implementations (ranks.h). */
#include "dist/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dist/watch.h"

#define NAME_BYTES 64

/* Around what waits for other ranks. */
#define WAITING(ranks, what, call)                                                                 \
    do {                                                                                           \
        watch_wait((ranks)->watch, ranks, what);                                                   \
        bool waited = call;                                                                        \
        watch_done((ranks)->watch);                                                                \
        return waited;                                                                             \
    } while (0)

bool ranks_sum_floats(struct ranks *ranks, float *data, int64_t n, struct err *err)
{
    if (ranks->size == 1)
        return true;
    WAITING(ranks, "all-reduce", ranks->ops->sum_floats(ranks, data, n, err));
}

bool ranks_sum_reals(struct ranks *ranks, double *data, int64_t n, struct err *err)
{
    if (ranks->size == 1)
        return true;
    WAITING(ranks, "all-reduce", ranks->ops->sum_reals(ranks, data, n, err));
}

bool ranks_most(struct ranks *ranks, int64_t *values, int64_t n, struct err *err)
{
    if (ranks->size == 1)
        return true;
    WAITING(ranks, "all-reduce", ranks->ops->most(ranks, values, n, err));
}

bool ranks_start_sum(struct ranks *ranks, float *data, int64_t n, struct err *err)
{
    return ranks->size == 1 || ranks->ops->start_sum(ranks, data, n, err);
}

/* Any other rank of the group. */
static bool check_peer(const struct ranks *ranks, int peer, const char *doing, struct err *err)
{
    if (peer == ranks->rank)
        return err_set(err, ERR_USAGE, "rank %d of %d%s%s cannot %s itself", ranks->rank,
                       ranks->size, ranks->name ? " in " : "", ranks->name ? ranks->name : "",
                       doing);
    if (peer < 0 || peer >= ranks->size)
        return err_set(err, ERR_USAGE, "rank %d of %d%s%s cannot %s rank %d", ranks->rank,
                       ranks->size, ranks->name ? " in " : "", ranks->name ? ranks->name : "",
                       doing, peer);
    return true;
}

bool ranks_start_send(struct ranks *ranks, int to, const void *data, size_t bytes, int64_t *handle,
                      struct err *err)
{
    int64_t unused = 0;
    return check_peer(ranks, to, "send to", err) &&
           ranks->ops->start_send(ranks, to, data, bytes, handle ? handle : &unused, err);
}

bool ranks_start_receive(struct ranks *ranks, int from, void *data, size_t bytes, int64_t *handle,
                         struct err *err)
{
    int64_t unused = 0;
    return check_peer(ranks, from, "receive from", err) &&
           ranks->ops->start_receive(ranks, from, data, bytes, handle ? handle : &unused, err);
}

bool ranks_send(struct ranks *ranks, int to, const void *data, size_t bytes, struct err *err)
{
    int64_t handle = 0;
    return ranks_start_send(ranks, to, data, bytes, &handle, err) &&
           ranks_finish(ranks, handle, err);
}

bool ranks_receive(struct ranks *ranks, int from, void *data, size_t bytes, struct err *err)
{
    int64_t handle = 0;
    return ranks_start_receive(ranks, from, data, bytes, &handle, err) &&
           ranks_finish(ranks, handle, err);
}

bool ranks_exchange(struct ranks *ranks, const struct ranks_exchange *exchange, struct err *err)
{
    const struct ranks_exchange *e = exchange;
    int64_t sent = 0, received = 0;
    bool sends = e->to != RANKS_NONE, receives = e->from != RANKS_NONE;
    /* both are checked before either begins */
    return (!sends || check_peer(ranks, e->to, "send to", err)) &&
           (!receives ||
            ranks_start_receive(ranks, e->from, e->receive, e->receive_bytes, &received, err)) &&
           (!sends || ranks_start_send(ranks, e->to, e->send, e->send_bytes, &sent, err)) &&
           (!receives || ranks_finish(ranks, received, err)) &&
           (!sends || ranks_finish(ranks, sent, err));
}

bool ranks_progress(struct ranks *ranks, struct err *err)
{
    return ranks->size == 1 || ranks->ops->progress(ranks, err);
}

bool ranks_finish(struct ranks *ranks, int64_t handle, struct err *err)
{
    if (ranks->size == 1)
        return true;
    WAITING(ranks, "messages", ranks->ops->finish(ranks, handle, err));
}

void ranks_abandon(struct ranks *ranks)
{
    if (ranks->size > 1)
        ranks->ops->abandon(ranks);
}

bool ranks_broadcast(struct ranks *ranks, void *data, size_t bytes, int root, struct err *err)
{
    if (ranks->size == 1)
        return true;
    WAITING(ranks, "broadcast", ranks->ops->broadcast(ranks, data, bytes, root, err));
}

bool ranks_gather_parts(struct ranks *ranks, float *data, const int64_t *begin, struct err *err)
{
    if (ranks->size == 1)
        return true;
    WAITING(ranks, "gather", ranks->ops->gather_parts(ranks, data, begin, err));
}

bool ranks_gather_equal(struct ranks *ranks, const void *own, size_t bytes, void *all,
                        struct err *err)
{
    if (ranks->size > 1)
        WAITING(ranks, "gather", ranks->ops->gather_equal(ranks, own, bytes, all, err));
    memcpy(all, own, bytes);
    return true;
}

static bool split(struct ranks *ranks, int colour, int key, struct ranks *out, struct err *err)
{
    WAITING(ranks, "split", ranks->ops->split(ranks, colour, key, out, err));
}

bool ranks_split(struct ranks *ranks, int colour, int key, const char *name, struct ranks *out,
                 struct err *err)
{
    *out = (struct ranks){ 0 };
    bool ok = colour >= 0 || err_set(err, ERR_USAGE, "%s: no group has number %d", name, colour);
    if (!ranks_agree(ranks, ok, NULL, err))
        return false;
    if (ranks->ops && !split(ranks, colour, key, out, err))
        return false;
    if (!ranks->ops) {
        *out = ranks_one();
        out->processors = ranks->processors;
    }
    out->name = name;
    out->parent = ranks;
    out->world_rank = ranks->world_rank;
    out->watch = ranks->watch;
    return true;
}

void ranks_free(struct ranks *group)
{
    if (group->ops && group->parent)
        group->ops->free(group);
    *group = (struct ranks){ 0 };
}

void ranks_set_failed(struct ranks *ranks)
{
    ranks->failed = true;
    if (ranks->parent && ranks->parent->size == ranks->size)
        ranks_set_failed(ranks->parent);
}

void ranks_end(struct ranks *ranks, bool ok)
{
    if (ranks->size > 1 && (ok || ranks->failed))
        ranks->ops->end(ranks);
}

int ranks_started(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        long size = text ? strtol(text, NULL, 10) : 0;
        if (size > 0 && size < 1 << 24)
            return (int)size;
    }
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS"); /* srun with PMIx */
    long size = tasks && getenv("PMIX_RANK") ? strtol(tasks, NULL, 10) : 1;
    return size > 0 && size < 1 << 24 ? (int)size : 1;
}

bool ranks_gather(struct ranks *ranks, const void *mine, size_t bytes, char **out, size_t *at,
                  struct err *err)
{
    int64_t *sizes = calloc((size_t)ranks->size, sizeof *sizes);
    bool ok = sizes != NULL;
    *out = NULL;
    if (ok)
        sizes[ranks->rank] = (int64_t)bytes;
    if (!ranks_agree(ranks, ok || err_memory(err, "messages between ranks"), NULL, err) ||
        !ranks_most(ranks, sizes, ranks->size, err)) {
        free(sizes);
        return false;
    }
    at[0] = 0;
    for (int r = 0; r < ranks->size; r++)
        at[r + 1] = at[r] + (size_t)sizes[r];
    free(sizes);
    char *all = calloc(at[ranks->size] + 1, 1);
    if (!ranks_agree(ranks, all || err_memory(err, "messages between ranks"), NULL, err)) {
        free(all);
        return false;
    }
    if (bytes > 0)
        memcpy(all + at[ranks->rank], mine, bytes);
    for (int r = 0; ok && r < ranks->size; r++)
        ok = ranks_broadcast(ranks, all + at[r], at[r + 1] - at[r], r, err);
    *out = all;
    return ok;
}

/* Whether a message already says which rank it is from: "rank 3: ..". */
static bool agreed_before(const char *text)
{
    int rank = 0, end = 0;
    return sscanf(text, "rank %d:%n", &rank, &end) == 1 && end > 0;
}

bool ranks_agree(struct ranks *ranks, bool ok, bool *stop, struct err *err)
{
    struct err problem = { 0 };
    if (ranks->size == 1)
        return ok;
    int64_t told[] = { ok ? 0 : ranks->size - ranks->rank, stop && *stop };
    if (!ranks_most(ranks, told, 2, err))
        return false;
    if (stop)
        *stop = told[1] > 0;
    if (told[0] == 0)
        return true;
    int root = ranks->size - (int)told[0];
    ranks_set_failed(ranks);
    if (root == ranks->rank && err && agreed_before(err->text))
        problem = *err;
    else if (root == ranks->rank)
        err_set(&problem, err ? err->kind : ERR_NONE, "rank %d: %.1000s", ranks->world_rank,
                err ? err->text : "");
    if (!ranks_broadcast(ranks, &problem, sizeof problem, root, err))
        return false;
    return err_set(err, problem.kind, "%s", problem.text);
}

bool ranks_same(struct ranks *ranks, uint64_t number, const char *what, struct err *err)
{
    struct {
        uint64_t number;
        int world_rank;
        char host[NAME_BYTES];
    } mine = { .number = number, .world_rank = ranks->world_rank }, *theirs = NULL;
    if (ranks->size == 1)
        return true;
    size_t *at = calloc((size_t)ranks->size + 1, sizeof *at);
    char *all = NULL;
    gethostname(mine.host, sizeof mine.host - 1);
    bool ok = ranks_agree(ranks, at || err_memory(err, "the ranks"), NULL, err) &&
              ranks_gather(ranks, &mine, sizeof mine, &all, at, err);
    theirs = (void *)all;
    for (int r = 1; ok && r < ranks->size; r++)
        if (theirs[r].number != theirs[0].number) {
            ranks_set_failed(ranks);
            ok = err_set(err, ERR_USAGE,
                         "rank %d (%s) has different %s from rank %d (%s); they must be the same "
                         "on all ranks",
                         theirs[r].world_rank, theirs[r].host, what, theirs[0].world_rank,
                         theirs[0].host);
        }
    free(all);
    free(at);
    return ok;
}
