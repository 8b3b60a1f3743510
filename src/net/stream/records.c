/* records.c: see records.h. Records [0, spilled) are in the file, group after group, each of them
 * on a page boundary; the others are in one block of memory. A group passes through one of two
 * buffers: while the caller fills or reads one, the thread writes or reads the other. */
#include "net/stream/records.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "net/kernels/stored.h"
#include "net/stream/spill_file.h"

#define LINE 64 /* records start on a line of the cache */
#define GROUP_BYTES ((int64_t)16 << 20)
#define BUFFERS 2

/* Records [first, end) at an offset of the file. */
struct group {
    int64_t first, end;
    int64_t offset, bytes;
};

/* What a buffer has, and what the thread has to do with it: first write it, then read. */
struct buffer {
    char *data;
    int64_t group;  /* of which it has the records, or will when it was read; -1: none */
    bool unwritten; /* the group is complete, but not in the file yet */
    int64_t wanted; /* a group to be read into it; -1: none */
    bool busy;      /* in a transfer */
    bool reading;   /* into it */
};

struct records {
    int64_t n, spilled;
    bool bf16;
    size_t *bytes; /* [n]: of the caller's floats */
    size_t *at;    /* [n + 1]: in the file's groups (of the group), or in `kept` */
    int64_t *group_of;
    struct group *groups;
    int64_t n_groups;
    char *kept;
    void *floats; /* bf16: the record that the caller has */
    struct spill_file *file;
    bool reserved; /* the space of the file */
    struct buffer buffers[BUFFERS];
    int64_t filling; /* the record that the caller fills; -1: none */
    struct records_stats stats;
    struct err err; /* the first failure of this pass */
    bool has_thread, closing;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* --- where records go --- */

static size_t rounded(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Never 0. */
static size_t kept_bytes(const struct records_options *options, int64_t i)
{
    return rounded(1 + (options->bf16 ? options->bytes[i] / 2 : options->bytes[i]), LINE);
}

static size_t floats_bytes(const struct records_options *options)
{
    size_t most = 0;
    for (int64_t i = 0; options->bf16 && i < options->n; i++)
        most = options->bytes[i] > most ? options->bytes[i] : most;
    return rounded(most, LINE);
}

/* Walks along the records: how large the buffers must be if so many are in the file. */
struct walk {
    size_t group; /* bytes of the group so far */
    size_t most;  /* of the largest group, in whole pages */
};

/* Adds a record. True: it begins a group. */
static bool walk_on(struct walk *walk, size_t bytes, size_t limit)
{
    bool begins = walk->group == 0 || walk->group + bytes > limit;
    walk->group = begins ? bytes : walk->group + bytes;
    size_t pages = rounded(walk->group, SPILL_PAGE);
    walk->most = pages > walk->most ? pages : walk->most;
    return begins;
}

/* The fewest records in the file with which all fits into the memory; -1: it never does, and
 * *least is what would. */
static int64_t records_to_spill(const struct records_options *options, size_t group_bytes,
                                size_t *least)
{
    size_t rest = floats_bytes(options);
    for (int64_t i = 0; i < options->n; i++)
        rest += kept_bytes(options, i);
    struct walk walk = { 0 };
    *least = rest;
    for (int64_t spilled = 0;; spilled++) {
        size_t need = rest + BUFFERS * walk.most;
        *least = need < *least ? need : *least;
        if (options->memory == 0 || need <= options->memory)
            return spilled;
        if (spilled == options->n || !options->folder)
            return -1;
        size_t bytes = kept_bytes(options, spilled);
        rest -= bytes;
        walk_on(&walk, bytes, group_bytes);
    }
}

size_t records_least(const struct records_options *options)
{
    struct records_options tight = *options;
    tight.memory = 1;
    size_t least;
    records_to_spill(&tight, 1, &least);
    return least;
}

/* The default is less in little memory, where the buffers would take the place of records. */
static size_t default_group(const struct records_options *options)
{
    if (options->group_bytes > 0)
        return (size_t)options->group_bytes;
    size_t share = options->memory / 16;
    return share < (size_t)GROUP_BYTES ? share : (size_t)GROUP_BYTES;
}

static bool too_little(const struct records_options *options, struct err *err)
{
    double mb = 1 << 20;
    return err_set(err, ERR_MEMORY,
                   "the strips of all tiles need at least %.1f MB%s, but only %.1f MB are left for "
                   "them; raise the memory limit%s",
                   (double)records_least(options) / mb, options->folder ? "" : " in memory",
                   (double)options->memory / mb,
                   options->folder ? "" : " or choose a folder for them (train.spill, --spill)");
}

static void place_records(struct records *records, const struct records_options *options,
                          size_t group_bytes)
{
    struct walk walk = { 0 };
    struct group *group = NULL;
    int64_t offset = 0;
    for (int64_t i = 0; i < records->spilled; i++) {
        size_t bytes = kept_bytes(options, i);
        if (walk_on(&walk, bytes, group_bytes)) {
            offset += group ? group->bytes : 0;
            group = &records->groups[records->n_groups++];
            *group = (struct group){ .first = i, .offset = offset };
        }
        records->group_of[i] = records->n_groups - 1;
        records->at[i] = walk.group - bytes;
        group->end = i + 1;
        group->bytes = (int64_t)rounded(walk.group, SPILL_PAGE);
        records->stats.bytes += bytes;
        records->stats.spilled += bytes;
    }
    size_t at = 0;
    for (int64_t i = records->spilled; i < records->n; at += kept_bytes(options, i), i++)
        records->at[i] = at, records->group_of[i] = -1;
    records->stats.bytes += at;
    records->stats.groups = records->n_groups;
    records->stats.memory = at + BUFFERS * walk.most + floats_bytes(options);
}

/* --- transfers --- */

/* What has to be done next with which buffer: writes first, then the group that is used first. The
 * lock is held. */
static struct buffer *next_transfer(struct records *records)
{
    struct buffer *next = NULL;
    for (int i = 0; i < BUFFERS; i++) {
        struct buffer *buffer = &records->buffers[i];
        if (buffer->unwritten)
            return buffer;
        if (buffer->wanted >= 0 && (!next || buffer->wanted > next->wanted))
            next = buffer;
    }
    return next;
}

/* The lock is held on entry and on return. */
static void transfer(struct records *records, struct buffer *buffer)
{
    bool writing = buffer->unwritten;
    if (!writing) {
        buffer->group = buffer->wanted;
        buffer->wanted = -1;
        buffer->reading = true;
    }
    const struct group *group = &records->groups[buffer->group];
    struct err err = { 0 };
    buffer->busy = true;
    pthread_mutex_unlock(&records->lock);
    double began_s = clock_monotonic_s();
    bool ok = writing
                  ? spill_file_write(records->file, buffer->data, group->bytes, group->offset, &err)
                  : spill_file_read(records->file, buffer->data, group->bytes, group->offset, &err);
    double took_s = clock_monotonic_s() - began_s;
    pthread_mutex_lock(&records->lock);
    *(writing ? &records->stats.written_s : &records->stats.read_s) += took_s;
    if (!ok && records->err.kind == ERR_NONE)
        records->err = err;
    buffer->busy = buffer->reading = false;
    if (writing)
        buffer->unwritten = false;
    pthread_cond_broadcast(&records->changed);
}

static void *transfer_main(void *argument)
{
    struct records *records = argument;
    pthread_mutex_lock(&records->lock);
    while (!records->closing) {
        struct buffer *buffer = next_transfer(records);
        if (buffer)
            transfer(records, buffer);
        else
            pthread_cond_wait(&records->changed, &records->lock);
    }
    pthread_mutex_unlock(&records->lock);
    return NULL;
}

static bool has_work(const struct buffer *buffer)
{
    return buffer->unwritten || buffer->reading || buffer->wanted >= 0;
}

/* Until the buffer is written and read, or a transfer failed. The lock is held. */
static bool settle(struct records *records, struct buffer *buffer, struct err *err)
{
    double began_s = clock_monotonic_s();
    while (records->err.kind == ERR_NONE && has_work(buffer)) {
        if (records->has_thread)
            pthread_cond_wait(&records->changed, &records->lock);
        else
            transfer(records, buffer);
    }
    records->stats.waited_s += clock_monotonic_s() - began_s;
    if (records->err.kind == ERR_NONE)
        return true;
    if (err)
        *err = records->err;
    return false;
}

/* Hands a buffer with new work to the thread; without one the work is done now. */
static bool hand_over(struct records *records, struct buffer *buffer, struct err *err)
{
    pthread_cond_broadcast(&records->changed);
    return records->has_thread ? true : settle(records, buffer, err);
}

/* --- making and freeing --- */

static bool allocate(struct records *records, const struct records_options *options,
                     struct err *err)
{
    size_t floats = floats_bytes(options), kept = records->stats.memory - floats, most = 0;
    for (int64_t i = 0; i < records->n_groups; i++)
        most = (size_t)records->groups[i].bytes > most ? (size_t)records->groups[i].bytes : most;
    kept -= BUFFERS * most;
    bool ok = (kept == 0 || (records->kept = aligned_alloc(LINE, kept))) &&
              (floats == 0 || (records->floats = aligned_alloc(LINE, floats)));
    for (int i = 0; ok && most > 0 && i < BUFFERS; i++) {
        ok = (records->buffers[i].data = aligned_alloc(SPILL_PAGE, most));
        if (ok) /* what fills the last page of a group is written too */
            memset(records->buffers[i].data, 0, most);
    }
    return ok ? true : err_memory(err, "the strips of all tiles");
}

static bool open_file(struct records *records, const struct records_options *options,
                      struct err *err)
{
    if (options->folder && !spill_file_new(options->folder, &records->file, err))
        return false;
    if (records->n_groups == 0 || options->wait)
        return true;
    records->has_thread = pthread_create(&records->thread, NULL, transfer_main, records) == 0;
    return records->has_thread ? true : err_memory(err, "the thread that writes strips");
}

static void forget(struct records *records)
{
    for (int i = 0; i < BUFFERS; i++)
        records->buffers[i].group = records->buffers[i].wanted = -1;
    records->filling = -1;
    records->err.kind = ERR_NONE;
}

bool records_new(const struct records_options *options, struct records **out, struct err *err)
{
    size_t group_bytes = default_group(options), least;
    int64_t spilled = records_to_spill(options, group_bytes, &least);
    if (spilled < 0) {
        group_bytes = 1;
        spilled = records_to_spill(options, group_bytes, &least);
    }
    if (spilled < 0)
        return too_little(options, err);
    struct records *records = calloc(1, sizeof *records);
    if (!records)
        return err_memory(err, "the strips of all tiles");
    size_t room = (size_t)options->n + 1;
    records->n = options->n, records->spilled = spilled, records->bf16 = options->bf16;
    pthread_mutex_init(&records->lock, NULL);
    pthread_cond_init(&records->changed, NULL);
    records->bytes = calloc(room, sizeof *records->bytes);
    records->at = calloc(room, sizeof *records->at);
    records->group_of = calloc(room, sizeof *records->group_of);
    records->groups = calloc(room, sizeof *records->groups);
    forget(records);
    bool ok = records->bytes && records->at && records->group_of && records->groups;
    if (ok) {
        memcpy(records->bytes, options->bytes, (size_t)options->n * sizeof *options->bytes);
        place_records(records, options, group_bytes);
        ok = allocate(records, options, err) && open_file(records, options, err);
    } else {
        err_memory(err, "the strips of all tiles");
    }
    if (!ok) {
        records_free(records);
        return false;
    }
    *out = records;
    return true;
}

void records_free(struct records *records)
{
    if (!records)
        return;
    if (records->has_thread) {
        pthread_mutex_lock(&records->lock);
        records->closing = true;
        pthread_cond_broadcast(&records->changed);
        pthread_mutex_unlock(&records->lock);
        pthread_join(records->thread, NULL);
    }
    spill_file_free(records->file);
    for (int i = 0; i < BUFFERS; i++)
        free(records->buffers[i].data);
    pthread_mutex_destroy(&records->lock);
    pthread_cond_destroy(&records->changed);
    free(records->bytes), free(records->at), free(records->group_of), free(records->groups);
    free(records->kept), free(records->floats);
    free(records);
}

/* --- passes --- */

/* Work that nobody has begun is dropped, what the thread is at is waited for. The lock is held. */
static void abandon(struct records *records)
{
    for (int i = 0; i < BUFFERS; i++) {
        struct buffer *buffer = &records->buffers[i];
        while (buffer->busy)
            pthread_cond_wait(&records->changed, &records->lock);
        buffer->unwritten = false;
        buffer->wanted = -1;
    }
    forget(records);
}

/* Does the buffer have this group, or will it? */
static bool is_for(const struct buffer *buffer, int64_t group)
{
    return (buffer->wanted >= 0 ? buffer->wanted : buffer->group) == group;
}

static struct buffer *buffer_of(struct records *records, int64_t group)
{
    for (int i = 0; i < BUFFERS; i++)
        if (is_for(&records->buffers[i], group))
            return &records->buffers[i];
    return NULL;
}

static char *place_of(struct records *records, int64_t i)
{
    if (i >= records->spilled)
        return records->kept + records->at[i];
    return buffer_of(records, records->group_of[i])->data + records->at[i];
}

/* The record that the caller has filled is complete; so may be its group. The lock is held. */
static bool complete(struct records *records, struct err *err)
{
    int64_t i = records->filling;
    records->filling = -1;
    if (i < 0)
        return true;
    if (records->bf16)
        stored_run(STORED_TO_BFLOAT16, (int64_t)(records->bytes[i] / 4), records->floats,
                   place_of(records, i), (struct stored_scale){ 0 }, 1);
    if (i >= records->spilled || records->groups[records->group_of[i]].end != i + 1)
        return true;
    struct buffer *buffer = buffer_of(records, records->group_of[i]);
    buffer->unwritten = true;
    return hand_over(records, buffer, err);
}

/* Before the first transfer. */
static bool reserve(struct records *records, struct err *err)
{
    if (records->n_groups == 0 || records->reserved)
        return true;
    const struct group *last = &records->groups[records->n_groups - 1];
    records->reserved = spill_file_reserve(records->file, last->offset + last->bytes, err);
    return records->reserved;
}

bool records_put(struct records *records, int64_t i, void **at, struct err *err)
{
    pthread_mutex_lock(&records->lock);
    if (i == 0)
        abandon(records);
    bool ok = reserve(records, err) && complete(records, err);
    if (ok && i < records->spilled && records->groups[records->group_of[i]].first == i) {
        struct buffer *buffer = &records->buffers[records->group_of[i] % BUFFERS];
        ok = settle(records, buffer, err);
        buffer->group = records->group_of[i];
    }
    if (ok) {
        records->filling = i;
        *at = records->bf16 ? records->floats : place_of(records, i);
    }
    pthread_mutex_unlock(&records->lock);
    return ok;
}

bool records_turn(struct records *records, struct err *err)
{
    pthread_mutex_lock(&records->lock);
    bool ok = complete(records, err);
    pthread_mutex_unlock(&records->lock);
    return ok;
}

/* Has a group read, unless it is there or will be, into a buffer that is not that of another. */
static void want(struct records *records, int64_t group, int64_t other)
{
    if (group < 0 || buffer_of(records, group))
        return;
    struct buffer *buffer = &records->buffers[is_for(&records->buffers[0], other) ? 1 : 0];
    buffer->wanted = group;
    pthread_cond_broadcast(&records->changed);
}

/* The group is in a buffer, and if there is a thread, the one before it soon will be. The lock is
 * held. */
static bool fetch(struct records *records, int64_t group, struct err *err)
{
    want(records, group, group - 1);
    if (records->has_thread)
        want(records, group - 1, group);
    struct buffer *buffer = buffer_of(records, group);
    bool written = buffer->unwritten && buffer->wanted < 0; /* its records are there */
    return written ? true : settle(records, buffer, err);
}

bool records_get(struct records *records, int64_t i, const void **at, struct err *err)
{
    pthread_mutex_lock(&records->lock);
    bool ok = i >= records->spilled || fetch(records, records->group_of[i], err);
    if (ok && records->bf16)
        stored_run(STORED_FROM_BFLOAT16, (int64_t)(records->bytes[i] / 4), place_of(records, i),
                   records->floats, (struct stored_scale){ 0 }, 1);
    if (ok)
        *at = records->bf16 ? records->floats : place_of(records, i);
    pthread_mutex_unlock(&records->lock);
    return ok;
}

struct records_stats records_stats(const struct records *records)
{
    struct records *inner = (struct records *)records;
    pthread_mutex_lock(&inner->lock);
    struct records_stats stats = inner->stats;
    stats.direct = inner->file && spill_file_is_direct(inner->file);
    pthread_mutex_unlock(&inner->lock);
    return stats;
}
