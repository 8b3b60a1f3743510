/* thread_peers.c: see thread_peers.h. A letter from one rank to another is a pointer that the
 * receiver copies from; collective functions meet at a barrier. */
#include "support/thread_peers.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FLIGHTS 64

struct letter {
    const void *data;
    size_t bytes;
    bool there;
};

/* A started message. */
struct flight {
    bool out;
    int peer;
    void *data;
    size_t bytes;
};

struct one {
    struct thread_peers *all;
    struct plan_peers peers;
    const void *shown; /* to the others, between two meetings */
    int64_t calls;
    struct flight flights[FLIGHTS];
    int64_t n_flights;
    void (*work)(void *arg, int rank);
    void *work_arg;
    pthread_t thread;
};

struct thread_peers {
    int size;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_barrier_t barrier;
    struct letter *letters; /* [from][to] */
    struct one *ones;       /* [size] */
};

static struct letter *letter_of(struct thread_peers *all, int from, int to)
{
    return &all->letters[from * all->size + to];
}

/* One letter at a time on every way: waits until the one before was received. */
static void put(struct one *me, int to, const void *data, size_t bytes)
{
    struct thread_peers *all = me->all;
    struct letter *letter = letter_of(all, me->peers.rank, to);
    pthread_mutex_lock(&all->lock);
    while (letter->there)
        pthread_cond_wait(&all->changed, &all->lock);
    *letter = (struct letter){ data, bytes, true };
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

static void wait_until_received(struct one *me, int to)
{
    struct thread_peers *all = me->all;
    pthread_mutex_lock(&all->lock);
    while (letter_of(all, me->peers.rank, to)->there)
        pthread_cond_wait(&all->changed, &all->lock);
    pthread_mutex_unlock(&all->lock);
}

static bool get(struct one *me, int from, void *data, size_t bytes, struct err *err)
{
    struct thread_peers *all = me->all;
    struct letter *letter = letter_of(all, from, me->peers.rank);
    pthread_mutex_lock(&all->lock);
    while (!letter->there)
        pthread_cond_wait(&all->changed, &all->lock);
    size_t sent = letter->bytes;
    if (sent == bytes)
        memcpy(data, letter->data, bytes);
    letter->there = false;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    return sent == bytes ||
           err_set(err, ERR_FORMAT, "%zu bytes came, %zu were awaited", sent, bytes);
}

static bool send_to(void *arg, int to, const void *data, size_t bytes, struct err *err)
{
    struct one *me = arg;
    (void)err;
    me->calls++;
    put(me, to, data, bytes);
    wait_until_received(me, to);
    return true;
}

static bool receive_from(void *arg, int from, void *data, size_t bytes, struct err *err)
{
    struct one *me = arg;
    me->calls++;
    return get(me, from, data, bytes, err);
}

static bool exchange(void *arg, const struct peers_exchange *x, struct err *err)
{
    struct one *me = arg;
    bool ok = true;
    me->calls++;
    if (x->to != PEER_NONE)
        put(me, x->to, x->out, x->out_bytes);
    if (x->from != PEER_NONE)
        ok = get(me, x->from, x->in, x->in_bytes, err);
    if (x->to != PEER_NONE)
        wait_until_received(me, x->to);
    return ok;
}

/* A place for one more; all are free again when nobody is waited for. */
static int64_t take_off(struct one *me, struct flight flight)
{
    me->calls++;
    if (me->n_flights == FLIGHTS)
        me->n_flights = 0;
    me->flights[me->n_flights] = flight;
    return me->n_flights++;
}

static bool start_send(void *arg, int to, const void *data, size_t bytes, int64_t *handle,
                       struct err *err)
{
    struct one *me = arg;
    (void)err;
    *handle = take_off(me, (struct flight){ .out = true, .peer = to });
    put(me, to, data, bytes);
    return true;
}

static bool start_receive(void *arg, int from, void *data, size_t bytes, int64_t *handle,
                          struct err *err)
{
    (void)err;
    *handle = take_off(arg, (struct flight){ .peer = from, .data = data, .bytes = bytes });
    return true;
}

static bool progress(void *arg, struct err *err)
{
    (void)arg, (void)err;
    return true;
}

static bool finish(void *arg, int64_t handle, struct err *err)
{
    struct one *me = arg;
    const struct flight *flight = &me->flights[handle];
    me->calls++;
    if (!flight->out)
        return get(me, flight->peer, flight->data, flight->bytes, err);
    wait_until_received(me, flight->peer);
    return true;
}

static void abandon(void *arg)
{
    (void)arg;
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
    all->letters = calloc((size_t)(size * size), sizeof *all->letters);
    all->ones = calloc((size_t)size, sizeof *all->ones);
    if (!all->letters || !all->ones) {
        free(all->letters), free(all->ones), free(all);
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
                                                  .start_send = start_send,
                                                  .start_receive = start_receive,
                                                  .progress = progress,
                                                  .finish = finish,
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
    free(all->letters), free(all->ones), free(all);
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
