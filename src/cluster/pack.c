/* pack.c: see pack.h. */
#include "cluster/pack.h"

#include <stdlib.h>

struct item {
    int64_t id, job;
    double cost;
    bool alone;
};

struct bin {
    double load;
    int64_t job;
};

static int by_cost(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_load(const void *a, const void *b)
{
    const struct bin *x = a, *y = b;
    if (x->load != y->load)
        return x->load < y->load ? 1 : -1;
    return (x->job > y->job) - (x->job < y->job);
}

static int by_job(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool lighter(const struct bin *a, const struct bin *b)
{
    return a->load != b->load ? a->load < b->load : a->job < b->job;
}

/* The top of the heap has become heavier. */
static void sink(struct bin *heap, int64_t n)
{
    for (int64_t at = 0;;) {
        int64_t least = at;
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
            if (lighter(&heap[child], &heap[least]))
                least = child;
        if (least == at)
            return;
        struct bin moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

/* items by falling cost; bins [n_jobs], the first n_shared are a heap, the rest are for tasks that
 * go alone. */
static void fill_bins(struct item *items, int64_t n, struct bin *bins, int64_t n_shared)
{
    int64_t own = n_shared;
    for (int64_t i = 0; i < n; i++) {
        struct bin *bin = items[i].alone ? &bins[own++] : &bins[0];
        items[i].job = bin->job;
        bin->load += items[i].cost;
        if (!items[i].alone)
            sink(bins, n_shared);
    }
}

/* Renumbers jobs by decreasing load and lays out the ids job after job. */
static void lay_out(struct item *items, int64_t n, struct bin *bins, int64_t *rank,
                    struct packed *out)
{
    qsort(bins, (size_t)out->n_jobs, sizeof *bins, by_load);
    for (int64_t j = 0; j < out->n_jobs; j++)
        rank[bins[j].job] = j;
    for (int64_t i = 0; i < n; i++)
        items[i].job = rank[items[i].job];
    qsort(items, (size_t)n, sizeof *items, by_job);
    for (int64_t i = 0; i < n; i++) {
        out->ids[i] = items[i].id;
        out->first[items[i].job + 1] = i + 1;
    }
}

bool pack_tasks(const struct task_list *list, const int64_t *ids, int64_t n, const bool *alone,
                int64_t wanted, struct packed *out, struct err *err)
{
    int64_t n_alone = 0;
    for (int64_t i = 0; i < n; i++)
        n_alone += alone && alone[i];
    int64_t n_shared = n - n_alone;
    if (wanted > 0 && wanted < n_shared)
        n_shared = wanted;
    *out = (struct packed){ .n_jobs = n_shared + n_alone };
    size_t jobs = (size_t)out->n_jobs;
    struct item *items = calloc((size_t)n + 1, sizeof *items);
    struct bin *bins = calloc(jobs + 1, sizeof *bins);
    int64_t *rank = calloc(jobs + 1, sizeof *rank);
    out->ids = calloc((size_t)n + 1, sizeof *out->ids);
    out->first = calloc(jobs + 1, sizeof *out->first);
    bool ok = items && bins && rank && out->ids && out->first;
    if (ok) {
        for (int64_t i = 0; i < n; i++)
            items[i] = (struct item){ .id = ids[i],
                                      .cost = list->items[ids[i] - 1].cost,
                                      .alone = alone && alone[i] };
        for (int64_t j = 0; j < out->n_jobs; j++)
            bins[j].job = j;
        qsort(items, (size_t)n, sizeof *items, by_cost);
        fill_bins(items, n, bins, n_shared);
        lay_out(items, n, bins, rank, out);
    } else {
        err_memory(err, "the task list");
    }
    free(items);
    free(bins);
    free(rank);
    if (!ok)
        packed_free(out);
    return ok;
}

void packed_free(struct packed *packed)
{
    free(packed->ids);
    free(packed->first);
    *packed = (struct packed){ 0 };
}
