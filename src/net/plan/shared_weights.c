/* shared_weights.c: see shared_weights.h. A linked list: a network has only tens of entries. */
#include "net/plan/shared_weights.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

struct plan_weights_entry {
    struct plan_weights_entry *next;
    struct buffer *source; /* shared, so that its address stays taken */
    uint64_t key;
    size_t bytes;
    void *at;
    int users;
    bool filled;
};

struct plan_weights {
    pthread_mutex_t mutex;
    struct plan_weights_entry *first;
    size_t bytes;
};

struct plan_weights *plan_weights_new(void)
{
    struct plan_weights *weights = calloc(1, sizeof *weights);
    if (weights && pthread_mutex_init(&weights->mutex, NULL) != 0) {
        free(weights);
        return NULL;
    }
    return weights;
}

void plan_weights_free(struct plan_weights *weights)
{
    if (!weights)
        return;
    pthread_mutex_destroy(&weights->mutex);
    free(weights);
}

void plan_weights_lock(struct plan_weights *weights)
{
    pthread_mutex_lock(&weights->mutex);
}

void plan_weights_unlock(struct plan_weights *weights)
{
    pthread_mutex_unlock(&weights->mutex);
}

size_t plan_weights_bytes(struct plan_weights *weights)
{
    plan_weights_lock(weights);
    size_t bytes = weights->bytes;
    plan_weights_unlock(weights);
    return bytes;
}

struct plan_weights_entry *plan_weights_take(struct plan_weights *weights, struct buffer *source,
                                             uint64_t key, size_t bytes)
{
    for (struct plan_weights_entry *e = weights->first; e; e = e->next)
        if (e->source == source && e->key == key && e->bytes == bytes) {
            e->users++;
            return e;
        }
    struct plan_weights_entry *entry = calloc(1, sizeof *entry);
    void *at = entry ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                     : MAP_FAILED;
    if (at == MAP_FAILED) {
        free(entry);
        return NULL;
    }
    madvise(at, bytes, MADV_HUGEPAGE); /* only a hint; nothing is lost if it is rejected */
    *entry = (struct plan_weights_entry){ weights->first, buffer_share(source), key, bytes, at, 1,
                                          false };
    weights->first = entry;
    weights->bytes += bytes;
    return entry;
}

void *plan_weights_at(const struct plan_weights_entry *entry)
{
    return entry->at;
}

bool plan_weights_filled(const struct plan_weights_entry *entry)
{
    return entry->filled;
}

void plan_weights_set_filled(struct plan_weights_entry *entry)
{
    entry->filled = true;
}

void plan_weights_return(struct plan_weights *weights, struct plan_weights_entry *entry)
{
    plan_weights_lock(weights);
    if (--entry->users == 0) {
        struct plan_weights_entry **link = &weights->first;
        while (*link != entry)
            link = &(*link)->next;
        *link = entry->next;
        weights->bytes -= entry->bytes;
        munmap(entry->at, entry->bytes);
        buffer_release(entry->source);
        free(entry);
    }
    plan_weights_unlock(weights);
}
