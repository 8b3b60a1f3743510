/* thread_peers.c: see thread_peers.h. What goes from one rank to another is a row of letters, which
 * are pointers to the sender's data, and a row of receives: the nth receive copies from the nth
 * letter, in any call of its rank. Collective functions meet at a barrier. */
#include "support/thread_peers.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"

struct letter {
    const void *data;
    size_t bytes;
};

struct awaited {
    void *data;
    size_t bytes;
};

/* From one rank to another. The first `received` of both are done. */
struct way {
    struct letter *letters;
    struct awaited *awaited;
    int64_t sent, asked, received, room_letters, room_awaited;
};

struct one {
    struct thread_peers *all;
    struct plan_peers peers;
    const void *shown; /* to the others, between two meetings */
    int64_t calls;
    void (*work)(void *arg, int rank);
    void *work_arg;
    pthread_t thread;
};

struct thread_peers {
    int size;
    bool lost; /* a rank has abandoned the others */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_barrier_t barrier;
    struct way *ways; /* [from][to] */
    struct one *ones; /* [size] */
};

static struct way *way_of(struct thread_peers *all, int from, int to)
{
    return &all->ways[from * all->size + to];
}

/* A handle: which of the messages of a way it is. */
static int64_t handle_of(const struct one *me, bool out, int peer, int64_t index)
{
    return (index * me->all->size + peer) * 2 + out;
}

/* Copies what has come for this rank. The lock is held. */
static bool deliver(struct one *me, struct err *err)
{
    struct thread_peers *all = me->all;
    for (int from = 0; from < all->size; from++) {
        struct way *way = way_of(all, from, me->peers.rank);
        while (!all->lost && way->received < way->sent && way->received < way->asked) {
            const struct letter *letter = &way->letters[way->received];
            const struct awaited *awaited = &way->awaited[way->received];
            if (letter->bytes != awaited->bytes)
                return err_set(err, ERR_FORMAT, "%zu bytes came, %zu were awaited", letter->bytes,
                               awaited->bytes);
            memcpy(awaited->data, letter->data, letter->bytes);
            way->received++;
            pthread_cond_broadcast(&all->changed);
        }
    }
    return !all->lost || err_set(err, ERR_IO, "another rank has left");
}

static bool start_send(struct one *me, int to, const void *data, size_t bytes, int64_t *handle,
                       struct err *err)
{
    struct thread_peers *all = me->all;
    pthread_mutex_lock(&all->lock);
    struct way *way = way_of(all, me->peers.rank, to);
    *handle = handle_of(me, true, to, way->sent);
    bool ok = array_grow(&way->letters, &way->room_letters, way->sent + 1, sizeof *way->letters,
                         "letters", err);
    if (ok)
        way->letters[way->sent++] = (struct letter){ data, bytes };
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    return ok;
}

static bool start_receive(struct one *me, int from, void *data, size_t bytes, int64_t *handle,
                          struct err *err)
{
    struct thread_peers *all = me->all;
    pthread_mutex_lock(&all->lock);
    struct way *way = way_of(all, from, me->peers.rank);
    *handle = handle_of(me, false, from, way->asked);
    bool ok = array_grow(&way->awaited, &way->room_awaited, way->asked + 1, sizeof *way->awaited,
                         "letters", err);
    if (ok)
        way->awaited[way->asked++] = (struct awaited){ data, bytes };
    pthread_mutex_unlock(&all->lock);
    return ok;
}

static bool progress(void *arg, struct err *err)
{
    struct one *me = arg;
    pthread_mutex_lock(&me->all->lock);
    bool ok = deliver(me, err);
    pthread_mutex_unlock(&me->all->lock);
    return ok;
}

static bool finish(struct one *me, int64_t handle, struct err *err)
{
    struct thread_peers *all = me->all;
    int peer = (int)(handle / 2 % all->size), own = me->peers.rank;
    const struct way *way = handle % 2 ? way_of(all, own, peer) : way_of(all, peer, own);
    int64_t index = handle / 2 / all->size;
    bool ok = true;
    pthread_mutex_lock(&all->lock);
    while (ok && way->received <= index) {
        ok = deliver(me, err);
        if (ok && way->received <= index)
            pthread_cond_wait(&all->changed, &all->lock);
    }
    pthread_mutex_unlock(&all->lock);
    return ok;
}

static void abandon(void *arg)
{
    struct one *me = arg;
    pthread_mutex_lock(&me->all->lock);
    me->all->lost = true;
    pthread_cond_broadcast(&me->all->changed);
    pthread_mutex_unlock(&me->all->lock);
}

/* --- the same, and calls of the plan are counted --- */

static struct one *counted(void *arg)
{
    struct one *me = arg;
    me->calls++;
    return me;
}

static bool peers_start_send(void *arg, int to, const void *data, size_t bytes, int64_t *handle,
                             struct err *err)
{
    return start_send(counted(arg), to, data, bytes, handle, err);
}

static bool peers_start_receive(void *arg, int from, void *data, size_t bytes, int64_t *handle,
                                struct err *err)
{
    return start_receive(counted(arg), from, data, bytes, handle, err);
}

static bool peers_finish(void *arg, int64_t handle, struct err *err)
{
    return finish(counted(arg), handle, err);
}

static bool send_to(void *arg, int to, const void *data, size_t bytes, struct err *err)
{
    int64_t handle;
    return start_send(counted(arg), to, data, bytes, &handle, err) && finish(arg, handle, err);
}

static bool receive_from(void *arg, int from, void *data, size_t bytes, struct err *err)
{
    int64_t handle;
    return start_receive(counted(arg), from, data, bytes, &handle, err) && finish(arg, handle, err);
}

static bool exchange(void *arg, const struct peers_exchange *x, struct err *err)
{
    struct one *me = counted(arg);
    int64_t out = 0, in = 0;
    return (x->to == PEER_NONE || start_send(me, x->to, x->out, x->out_bytes, &out, err)) &&
           (x->from == PEER_NONE || start_receive(me, x->from, x->in, x->in_bytes, &in, err)) &&
           (x->from == PEER_NONE || finish(me, in, err)) &&
           (x->to == PEER_NONE || finish(me, out, err));
}

static bool gather(void *arg, const void *own, size_t bytes, void *all_bytes, struct err *err)
{
    struct one *me = arg;
    (void)err;
    me->calls++;
    me->shown = own;
    pthread_barrier_wait(&me->all->barrier);
    for (int r = 0; r < me->all->size; r++)
        memcpy((char *)all_bytes + (size_t)r * bytes, me->all->ones[r].shown, bytes);
    pthread_barrier_wait(&me->all->barrier);
    return true;
}

/* Everybody's `values`, one peer after another, the caller's; NULL if no memory. */
static void *gather_new(void *arg, const void *values, size_t bytes, struct err *err)
{
    const struct one *me = arg;
    void *all = malloc((size_t)me->all->size * bytes + 1);
    if (all)
        gather(arg, values, bytes, all, err);
    return all;
}

/* In the order of the peers. */
#define SUM(name, type)                                                                            \
    static bool name(void *arg, type *values, int64_t n, struct err *err)                          \
    {                                                                                              \
        const struct one *me = arg;                                                                \
        type *all = gather_new(arg, values, (size_t)n * sizeof *values, err);                      \
        for (int64_t i = 0; all && i < n; i++) {                                                   \
            values[i] = 0;                                                                         \
            for (int r = 0; r < me->all->size; r++)                                                \
                values[i] += all[r * n + i];                                                       \
        }                                                                                          \
        free(all);                                                                                 \
        return all != NULL;                                                                        \
    }
SUM(sum, double)
SUM(sum_floats, float)

struct thread_peers *thread_peers_new(int size)
{
    struct thread_peers *all = calloc(1, sizeof *all);
    if (!all)
        return NULL;
    all->size = size;
    all->ways = calloc((size_t)(size * size), sizeof *all->ways);
    all->ones = calloc((size_t)size, sizeof *all->ones);
    if (!all->ways || !all->ones) {
        free(all->ways), free(all->ones), free(all);
        return NULL;
    }
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->changed, NULL);
    pthread_barrier_init(&all->barrier, NULL, (unsigned)size);
    for (int r = 0; r < size; r++) {
        all->ones[r].all = all;
        all->ones[r].peers = (struct plan_peers){ .arg = &all->ones[r],
                                                  .rank = r,
                                                  .size = size,
                                                  .sum = sum,
                                                  .sum_floats = sum_floats,
                                                  .send = send_to,
                                                  .receive = receive_from,
                                                  .exchange = exchange,
                                                  .gather = gather,
                                                  .start_send = peers_start_send,
                                                  .start_receive = peers_start_receive,
                                                  .progress = progress,
                                                  .finish = peers_finish,
                                                  .abandon = abandon };
    }
    return all;
}

void thread_peers_free(struct thread_peers *all)
{
    if (!all)
        return;
    pthread_mutex_destroy(&all->lock);
    pthread_cond_destroy(&all->changed);
    pthread_barrier_destroy(&all->barrier);
    for (int i = 0; i < all->size * all->size; i++)
        free(all->ways[i].letters), free(all->ways[i].awaited);
    free(all->ways), free(all->ones), free(all);
}

const struct plan_peers *thread_peers_of(struct thread_peers *all, int rank)
{
    return &all->ones[rank].peers;
}

int64_t thread_peers_calls(const struct thread_peers *all, int rank)
{
    return all->ones[rank].calls;
}

static void *run_one(void *arg)
{
    struct one *one = arg;
    one->work(one->work_arg, one->peers.rank);
    return NULL;
}

void thread_peers_run(struct thread_peers *all, void (*work)(void *arg, int rank), void *arg)
{
    for (int r = 0; r < all->size; r++) {
        all->ones[r].work = work, all->ones[r].work_arg = arg;
        pthread_create(&all->ones[r].thread, NULL, run_one, &all->ones[r]);
    }
    for (int r = 0; r < all->size; r++)
        pthread_join(all->ones[r].thread, NULL);
}
