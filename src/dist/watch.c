/* watch.c: see watch.h. The rank writes down what it waits for; the thread looks once a second
 * whether it is still the same. */
#include "dist/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct watch {
    struct ranks *ranks;
    int64_t seconds;
    const char *key;
    watch_lost *lost;
    void *arg;
    pthread_t thread;
    pthread_mutex_t lock; /* for `ending` */
    pthread_cond_t change;
    bool ending;
    int depth; /* of waits within waits; the rank's thread only */
    /* odd: waiting. What for is written before it becomes odd and stays while it is. */
    atomic_ulong waits;
    _Atomic(const char *) what, group;
};

void watch_wait(struct watch *watch, const struct ranks *group, const char *what)
{
    if (!watch || watch->depth++ > 0)
        return;
    atomic_store(&watch->what, what);
    atomic_store(&watch->group, group->name);
    atomic_fetch_add(&watch->waits, 1);
}

void watch_done(struct watch *watch)
{
    if (watch && --watch->depth == 0)
        atomic_fetch_add(&watch->waits, 1);
}

static void tell(struct watch *watch)
{
    char text[600], host[64] = "";
    const char *group = atomic_load(&watch->group);
    gethostname(host, sizeof host - 1);
    snprintf(text, sizeof text,
             "rank %d (%s) has waited %lld s for other ranks (%s%s%s): one hangs, or a connection "
             "is lost; continue from the last checkpoint with --resume, or allow more time (%s)",
             watch->ranks->world_rank, host, (long long)watch->seconds, atomic_load(&watch->what),
             group ? " in " : "", group ? group : "", watch->key);
    watch->lost(watch->arg, text);
}

/* Waits a second; true when it is to end. */
static bool is_ending(struct watch *watch)
{
    struct timespec until;
    int code = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_mutex_lock(&watch->lock);
    while (!watch->ending && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&watch->change, &watch->lock, &until);
    bool ending = watch->ending;
    pthread_mutex_unlock(&watch->lock);
    return ending;
}

static void *look(void *arg)
{
    struct watch *watch = arg;
    unsigned long last = 0;
    int64_t waited_s = 0;
    while (!is_ending(watch)) {
        unsigned long now = atomic_load(&watch->waits);
        waited_s = now == last && now % 2 == 1 ? waited_s + 1 : 0;
        last = now;
        if (waited_s >= watch->seconds) {
            tell(watch);
            break;
        }
    }
    return NULL;
}

bool watch_begin(struct ranks *ranks, int64_t seconds, const char *key, watch_lost *lost, void *arg,
                 struct watch **out, struct err *err)
{
    *out = NULL;
    if (ranks->size == 1 || seconds <= 0)
        return true;
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return err_memory(err, "watching ranks");
    watch->ranks = ranks;
    watch->seconds = seconds;
    watch->key = key;
    watch->lost = lost;
    watch->arg = arg;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->change, NULL);
    if (pthread_create(&watch->thread, NULL, look, watch) != 0) {
        pthread_cond_destroy(&watch->change);
        pthread_mutex_destroy(&watch->lock);
        free(watch);
        return err_set(err, ERR_MEMORY, "cannot start a thread that watches ranks");
    }
    ranks->watch = watch;
    *out = watch;
    return true;
}

void watch_end(struct watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->ending = true;
    pthread_cond_signal(&watch->change);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    watch->ranks->watch = NULL;
    pthread_cond_destroy(&watch->change);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}
