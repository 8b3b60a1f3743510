/* order.c: see order.h. */
#include "train/order.h"

#include <stdlib.h>
#include <string.h>
#include "base/rng.h"

/* Samples [first, first + n) of a side that are read together. */
struct chunk {
    int64_t first, n; /* in the list of the side's samples */
    int64_t bytes;
    uint64_t draw;
};

struct shuffled {
    struct order_item item;
    uint64_t draw;
};

static int by_chunk_draw(const void *a, const void *b)
{
    const struct chunk *x = a, *y = b;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int by_item_draw(const void *a, const void *b)
{
    const struct shuffled *x = a, *y = b;
    if (x->item.window != y->item.window)
        return x->item.window < y->item.window ? -1 : 1;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    if (x->item.sample != y->item.sample)
        return x->item.sample < y->item.sample ? -1 : 1;
    return x->item.copy - y->item.copy;
}

static uint64_t draw(const struct order_options *options, const char *what, int64_t index)
{
    struct rng rng = rng_new(options->seed, rng_hash(what) ^ options->epoch, (uint64_t)index);
    return rng_u64(&rng);
}

static bool counts_of(const struct dataset *dataset, enum data_side side, int64_t **counts,
                      int64_t *most, struct err *err)
{
    *counts = calloc((size_t)dataset->n_classes + 1, sizeof **counts);
    if (!*counts)
        return err_memory(err, "the order of samples");
    dataset_count(dataset, side, *counts);
    *most = 0;
    for (int64_t c = 0; c < dataset->n_classes; c++)
        *most = (*counts)[c] > *most ? (*counts)[c] : *most;
    return true;
}

int64_t order_count(const struct dataset *dataset, const struct order_options *options)
{
    int64_t *counts = NULL, most = 0, n = 0;
    if (!counts_of(dataset, options->side, &counts, &most, NULL))
        return 0;
    for (int64_t c = 0; c < dataset->n_classes; c++)
        n += options->balanced && counts[c] > 0 ? most : counts[c];
    free(counts);
    return n;
}

/* The side's samples, and the chunks they fall into. */
static bool find_chunks(const struct dataset *dataset, const struct order_options *options,
                        int64_t *samples, struct chunk *chunks, int64_t *n_chunks)
{
    int64_t n = 0;
    const struct sample *before = NULL;
    *n_chunks = 0;
    for (int64_t i = 0; i < dataset->n_samples; i++) {
        const struct sample *sample = &dataset->samples[i];
        if (sample->side != options->side)
            continue;
        if (!before || before->source != sample->source || before->group != sample->group) {
            int64_t bytes = dataset_in_group(dataset, i) ? dataset_group_bytes(dataset, i) : 0;
            chunks[(*n_chunks)++] =
                (struct chunk){ .first = n, .bytes = bytes, .draw = draw(options, "groups", i) };
        }
        chunks[*n_chunks - 1].n++;
        samples[n++] = i;
        before = sample;
    }
    return n > 0;
}

static void cut_windows(const struct order_options *options, const struct chunk *chunks,
                        int64_t n_chunks, const int64_t *samples, struct shuffled *out,
                        int32_t *n_windows)
{
    int64_t held = 0;
    int32_t window = 0;
    for (int64_t i = 0; i < n_chunks; i++) {
        if (held > 0 && held + chunks[i].bytes > options->window_bytes) {
            window++;
            held = 0;
        }
        held += chunks[i].bytes;
        for (int64_t j = chunks[i].first; j < chunks[i].first + chunks[i].n; j++)
            *out++ =
                (struct shuffled){ .item = { .sample = samples[j], .window = window },
                                   .draw = options->shuffle ? draw(options, "samples", samples[j])
                                                            : 0 };
    }
    *n_windows = window + 1;
}

struct ranked {
    int64_t at; /* in the list of items */
    uint64_t draw;
};

static int by_ranked_draw(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Adds copies until class c has `most` items: whole rounds, then a random part of the class. */
static bool repeat_class(const struct dataset *dataset, const struct order_options *options,
                         int32_t class_number, int64_t n_first, int64_t count, int64_t most,
                         struct shuffled *items, int64_t *n, struct err *err)
{
    struct ranked *ranked = calloc((size_t)count, sizeof *ranked);
    if (!ranked)
        return err_memory(err, "the order of samples");
    int64_t found = 0;
    for (int64_t i = 0; i < n_first; i++) {
        int64_t id = items[i].item.sample;
        if (dataset->samples[id].label == class_number)
            ranked[found++] = (struct ranked){ .at = i, .draw = draw(options, "balance", id) };
    }
    qsort(ranked, (size_t)count, sizeof *ranked, by_ranked_draw);
    for (int64_t i = count; i < most; i++) {
        struct shuffled copy = items[ranked[i % count].at];
        copy.item.copy = (int32_t)(i / count);
        copy.draw = draw(options, "copies",
                         copy.item.sample + (int64_t)copy.item.copy * dataset->n_samples);
        items[(*n)++] = copy;
    }
    free(ranked);
    return true;
}

static bool balance(const struct dataset *dataset, const struct order_options *options,
                    struct shuffled *items, int64_t *n, struct err *err)
{
    int64_t *counts = NULL, most = 0, n_first = *n;
    if (!counts_of(dataset, options->side, &counts, &most, err))
        return false;
    bool ok = true;
    for (int32_t c = 0; ok && c < dataset->n_classes; c++)
        if (counts[c] > 0)
            ok = repeat_class(dataset, options, c, n_first, counts[c], most, items, n, err);
    free(counts);
    return ok;
}

bool order_new(const struct dataset *dataset, const struct order_options *options,
               struct order *out, struct err *err)
{
    *out = (struct order){ 0 };
    int64_t n = order_count(dataset, options), n_chunks = 0;
    size_t room = (size_t)n + 1;
    int64_t *samples = calloc(room, sizeof *samples);
    struct chunk *chunks = calloc(room, sizeof *chunks);
    struct shuffled *items = calloc(room, sizeof *items);
    out->items = calloc(room, sizeof *out->items);
    bool ok = (samples && chunks && items && out->items) || err_memory(err, "the order of samples");
    if (ok && find_chunks(dataset, options, samples, chunks, &n_chunks)) {
        if (options->shuffle)
            qsort(chunks, (size_t)n_chunks, sizeof *chunks, by_chunk_draw);
        cut_windows(options, chunks, n_chunks, samples, items, &out->n_windows);
        for (int64_t i = 0; i < n_chunks; i++)
            out->n += chunks[i].n;
        if (options->balanced)
            ok = balance(dataset, options, items, &out->n, err);
        qsort(items, (size_t)out->n, sizeof *items, by_item_draw);
        for (int64_t i = 0; i < out->n; i++)
            out->items[i] = items[i].item;
    }
    free(samples);
    free(chunks);
    free(items);
    if (!ok)
        order_free(out);
    return ok;
}

void order_free(struct order *order)
{
    free(order->items);
    *order = (struct order){ 0 };
}
