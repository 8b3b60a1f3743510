/* ahead.c: see ahead.h. Part k is read into buffer k % 2 when the caller is done with part k - 2.
 */
#include "net/stream/ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include "base/clock.h"

#define BUFFERS 2
#define ALIGNMENT 64

struct ahead {
    struct plan_source source;
    int64_t channels, most;
    float *buffers[BUFFERS];
    const struct ahead_part *parts;
    int64_t n;
    int64_t read, given; /* parts: the next one of each */
    int64_t done;        /* parts that the caller no longer uses */
    int64_t failed;      /* the part that could not be read; -1: none */
    bool busy, closing;
    double waited_s;
    struct err err;
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* The lock is held. */
static bool can_read(const struct ahead *ahead)
{
    return ahead->read < ahead->n && ahead->failed < 0 && ahead->read < ahead->done + BUFFERS;
}

/* Parts that the caller does not need are not read, nor does it matter if one could not be. */
static void pass_skipped(struct ahead *ahead)
{
    ahead->read = ahead->read > ahead->given ? ahead->read : ahead->given;
    ahead->failed = ahead->failed >= ahead->given ? ahead->failed : -1;
}

/* Reads the next part; the lock is held on entry and on return. */
static void read_part(struct ahead *ahead)
{
    struct ahead_part part = ahead->parts[ahead->read];
    float *buffer = ahead->buffers[ahead->read % BUFFERS];
    struct err err = { 0 };
    ahead->busy = true;
    pthread_mutex_unlock(&ahead->lock);
    bool ok =
        ahead->channels * part.h * part.w <= ahead->most
            ? ahead->source.read(ahead->source.arg, part.y, part.x, part.h, part.w, buffer, &err)
            : err_set(&err, ERR_USAGE, "a part of %lld x %lld px exceeds the largest tile",
                      (long long)part.w, (long long)part.h);
    pthread_mutex_lock(&ahead->lock);
    ahead->busy = false;
    if (!ok && ahead->read >= ahead->given) {
        ahead->failed = ahead->read;
        ahead->err = err;
    }
    ahead->read++;
    pass_skipped(ahead);
    pthread_cond_broadcast(&ahead->changed);
}

static void *read_main(void *argument)
{
    struct ahead *ahead = argument;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->closing) {
        if (can_read(ahead))
            read_part(ahead);
        else
            pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

static size_t buffer_bytes(int64_t most)
{
    size_t bytes = (size_t)(most > 0 ? most : 1) * sizeof(float);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t ahead_bytes(int64_t most, int64_t parts)
{
    return (size_t)(parts < BUFFERS ? parts : BUFFERS) * buffer_bytes(most);
}

bool ahead_new(const struct plan_source *source, int64_t channels, int64_t most, struct ahead **out,
               struct err *err)
{
    struct ahead *ahead = calloc(1, sizeof *ahead);
    if (!ahead)
        return err_memory(err, "the pixels of tiles");
    ahead->source = *source, ahead->channels = channels, ahead->most = most;
    ahead->failed = -1;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    bool ok = true;
    for (int i = 0; ok && i < BUFFERS; i++)
        ok = (ahead->buffers[i] = aligned_alloc(ALIGNMENT, buffer_bytes(most)));
    if (!ok)
        err_memory(err, "the pixels of tiles");
    ahead->has_thread = ok && pthread_create(&ahead->thread, NULL, read_main, ahead) == 0;
    if (ok && !ahead->has_thread)
        err_memory(err, "the thread that reads tiles");
    if (!ahead->has_thread) {
        ahead_free(ahead);
        return false;
    }
    *out = ahead;
    return true;
}

void ahead_free(struct ahead *ahead)
{
    if (!ahead)
        return;
    if (ahead->has_thread) {
        pthread_mutex_lock(&ahead->lock);
        ahead->closing = true;
        pthread_cond_broadcast(&ahead->changed);
        pthread_mutex_unlock(&ahead->lock);
        pthread_join(ahead->thread, NULL);
    }
    for (int i = 0; i < BUFFERS; i++)
        free(ahead->buffers[i]);
    pthread_mutex_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->changed);
    free(ahead);
}

void ahead_begin(struct ahead *ahead, const struct ahead_part *parts, int64_t n)
{
    pthread_mutex_lock(&ahead->lock);
    ahead->n = 0; /* nothing more of the former pass */
    while (ahead->busy)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    ahead->parts = parts;
    ahead->n = n;
    ahead->read = ahead->given = ahead->done = 0;
    ahead->failed = -1;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

bool ahead_next(struct ahead *ahead, const float **pixels, struct err *err)
{
    double began_s = clock_monotonic_s();
    pthread_mutex_lock(&ahead->lock);
    ahead->done = ahead->given;
    pthread_cond_broadcast(&ahead->changed);
    while (ahead->read <= ahead->given)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    bool ok = ahead->failed != ahead->given;
    if (ok)
        *pixels = ahead->buffers[ahead->given++ % BUFFERS];
    else if (err)
        *err = ahead->err;
    ahead->waited_s += clock_monotonic_s() - began_s;
    pthread_mutex_unlock(&ahead->lock);
    return ok;
}

void ahead_skip(struct ahead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    ahead->done = ++ahead->given;
    if (!ahead->busy)
        pass_skipped(ahead);
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

double ahead_waited_s(const struct ahead *ahead)
{
    return ahead->waited_s;
}
