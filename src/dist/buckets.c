/* buckets.c: see buckets.h. Buckets start strictly in their order, so all ranks start the same. */
#include "dist/buckets.h"

#include <stdlib.h>
#include <string.h>
#include "base/clock.h"

struct bucket {
    int64_t begin, end; /* in the vector */
    int64_t first, n;   /* parameters */
    int64_t left;       /* parameters that are not complete */
};

struct buckets {
    int64_t *at; /* [n_parameters + 1] */
    int64_t n_parameters;
    struct bucket *items; /* from the end of the vector to its beginning */
    int64_t n, started;
    int32_t *bucket_of; /* [n_parameters] */
    float *data;
    bool failed;
    struct err err;
    struct buckets_times times;
    int64_t *waits_ns; /* of steps that are not in exposed_s yet */
    int64_t n_waits, room;
};

static void cut(struct buckets *b, int64_t bucket_bytes)
{
    const int64_t small = BUCKETS_LAST_BYTES / (int64_t)sizeof(float);
    for (int64_t p = b->n_parameters - 1; p >= 0; p--) {
        struct bucket *last = b->n ? &b->items[b->n - 1] : NULL;
        bool first_of_last = last && b->at[p + 1] <= small && last->end > small;
        if (!last || first_of_last ||
            (last->end - b->at[p]) * (int64_t)sizeof(float) > bucket_bytes) {
            last = &b->items[b->n++];
            *last = (struct bucket){ .end = b->at[p + 1] };
        }
        last->begin = b->at[p];
        last->first = p;
        last->n++;
        b->bucket_of[p] = (int32_t)(b->n - 1);
    }
}

bool buckets_new(const int64_t *at, int64_t n, int64_t bucket_bytes, struct buckets **out,
                 struct err *err)
{
    struct buckets *b = calloc(1, sizeof *b);
    if (b) {
        b->n_parameters = n;
        b->at = malloc(((size_t)n + 1) * sizeof *b->at);
        b->items = calloc((size_t)n + 1, sizeof *b->items);
        b->bucket_of = calloc((size_t)n + 1, sizeof *b->bucket_of);
    }
    if (!b || !b->at || !b->items || !b->bucket_of) {
        buckets_free(b);
        return err_memory(err, "gradient buckets");
    }
    memcpy(b->at, at, ((size_t)n + 1) * sizeof *at);
    cut(b, bucket_bytes);
    *out = b;
    return true;
}

void buckets_free(struct buckets *buckets)
{
    if (!buckets)
        return;
    free(buckets->at);
    free(buckets->items);
    free(buckets->bucket_of);
    free(buckets->waits_ns);
    free(buckets);
}

void buckets_begin(struct buckets *buckets, float *data)
{
    buckets->data = data;
    buckets->started = 0;
    buckets->failed = false;
    for (int64_t i = 0; i < buckets->n; i++)
        buckets->items[i].left = buckets->items[i].n;
}

static void start(struct buckets *b, struct ranks *ranks)
{
    const struct bucket *next = &b->items[b->started++];
    if (!ranks_start_sum(ranks, b->data + next->begin, next->end - next->begin, &b->err))
        b->failed = true;
}

static int by_place(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* What is complete starts in order; what runs moves. */
static void go_on(struct buckets *b, struct ranks *ranks)
{
    while (!b->failed && b->started < b->n && b->items[b->started].left == 0)
        start(b, ranks);
    if (!b->failed && b->started > 0 && !ranks_progress(ranks, &b->err))
        b->failed = true;
}

void buckets_ready(struct buckets *buckets, struct ranks *ranks, int64_t at)
{
    struct buckets *b = buckets;
    const int64_t *found = bsearch(&at, b->at, (size_t)b->n_parameters, sizeof *b->at, by_place);
    if (found)
        b->items[b->bucket_of[found - b->at]].left--;
    go_on(b, ranks);
}

void buckets_ready_range(struct buckets *buckets, struct ranks *ranks, int64_t begin, int64_t end)
{
    struct buckets *b = buckets;
    for (int64_t p = 0; begin < end && p < b->n_parameters; p++)
        if (b->at[p] >= begin && b->at[p] < end)
            b->items[b->bucket_of[p]].left--;
    go_on(b, ranks);
}

/* What was summed before the step's own end; sums end in the order in which they began. */
static void count_hidden(struct buckets *b, const struct ranks *ranks)
{
    int64_t pending = ranks->started - ranks->ended, hidden = b->started - pending;
    for (int64_t i = 0; i < hidden; i++)
        b->times.hidden_bytes += (b->items[i].end - b->items[i].begin) * (int64_t)sizeof(float);
    b->times.hidden_buckets += hidden > 0 ? hidden : 0;
    b->times.buckets += b->n;
    b->times.bytes += b->at[b->n_parameters] * (int64_t)sizeof(float);
}

/* A step whose waiting finds no memory is not counted. */
static void keep_wait(struct buckets *b, double waited_s)
{
    b->times.waited_s += waited_s;
    if (b->n_waits == b->room) {
        int64_t room = 2 * b->room + 64;
        int64_t *more = realloc(b->waits_ns, (size_t)room * sizeof *more);
        if (!more)
            return;
        b->waits_ns = more, b->room = room;
    }
    b->waits_ns[b->n_waits++] = (int64_t)(1e9 * waited_s);
}

bool buckets_finish(struct buckets *buckets, struct ranks *ranks, struct err *err)
{
    struct buckets *b = buckets;
    double began_s = clock_monotonic_s();
    count_hidden(b, ranks);
    while (!b->failed && b->started < b->n)
        start(b, ranks);
    if (!b->failed && !ranks_finish(ranks, RANKS_ALL, &b->err))
        b->failed = true;
    keep_wait(b, clock_monotonic_s() - began_s);
    if (b->failed && err)
        *err = b->err;
    return !b->failed;
}

bool buckets_count_waiting(struct buckets *buckets, struct ranks *ranks, struct err *err)
{
    struct buckets *b = buckets;
    int64_t fewest = -b->n_waits;
    if (!ranks_most(ranks, &fewest, 1, err))
        return false;
    for (int64_t i = 0; i < -fewest; i++)
        b->waits_ns[i] = -b->waits_ns[i];
    if (!ranks_most(ranks, b->waits_ns, -fewest, err))
        return false;
    for (int64_t i = 0; i < -fewest; i++)
        b->times.exposed_s -= 1e-9 * (double)b->waits_ns[i];
    b->n_waits = 0;
    return true;
}

struct buckets_times buckets_times(const struct buckets *buckets)
{
    return buckets->times;
}
