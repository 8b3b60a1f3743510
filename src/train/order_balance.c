/* order_balance.c: see order_balance.h. Samples of a class are ranked by a draw, and the first of
 * them come once more. The draw that separates them is found without a list of all: a histogram of
 * the draws' high bits says in which bin it is, and only that bin is sorted. */
#include "train/order_balance.h"

#include <stdlib.h>
#include "base/rng.h"

#define MOST_BINS (INT64_C(1) << 20) /* of all classes together */

struct ranked {
    uint64_t draw;
    int64_t sample;
    int32_t label;
};

struct class_limit {
    int64_t more; /* samples of the class that come once more */
    int64_t bin;  /* where the first that does not is */
    int64_t rank; /* of it in the bin */
};

struct selection {
    const struct order *order;
    int64_t n_classes;
    struct class_limit *classes;
    int bits;      /* of the draw that choose a bin */
    int64_t *bins; /* [n_classes << bits]: samples */
    struct ranked *ranked;
    int64_t n_ranked; /* samples of the bins chosen */
};

static uint64_t draw_of(const struct order *order, int64_t sample)
{
    return order_draw(&order->options, rng_hash("balance"), sample);
}

int64_t order_copies(const struct order *order, int64_t sample)
{
    int32_t label = dataset_label(order->dataset, sample);
    if (label == PATCH_UNLABELED)
        return 1;
    const struct class_repeats *repeats = &order->repeats[label];
    if (repeats->limit_draw == 0 && repeats->limit_sample == 0)
        return repeats->each;
    uint64_t draw = draw_of(order, sample);
    bool more = draw < repeats->limit_draw ||
                (draw == repeats->limit_draw && sample < repeats->limit_sample);
    return repeats->each + more;
}

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Calls fn for all samples whose class has some that come once more. */
static void for_drawn(struct selection *s, void (*fn)(struct selection *s, struct ranked drawn))
{
    struct sample_range range;
    for (int64_t at = 0; order_next_range(s->order, at, &range); at = range.end)
        for (int64_t i = range.first; i < range.end; i++) {
            int32_t label = dataset_label(s->order->dataset, i);
            if (label != PATCH_UNLABELED && s->classes[label].more > 0)
                fn(s, (struct ranked){ draw_of(s->order, i), i, label });
        }
}

static int64_t bin_of(const struct selection *s, struct ranked drawn)
{
    return ((int64_t)drawn.label << s->bits) + (int64_t)(drawn.draw >> (64 - s->bits));
}

static void count(struct selection *s, struct ranked drawn)
{
    s->bins[bin_of(s, drawn)]++;
}

static void gather(struct selection *s, struct ranked drawn)
{
    if (bin_of(s, drawn) == s->classes[drawn.label].bin)
        s->ranked[s->n_ranked++] = drawn;
}

/* Finds the bin of each class; returns how many samples those bins have. */
static int64_t choose_bins(struct selection *s)
{
    int64_t n = 0;
    for (int64_t c = 0; c < s->n_classes; c++) {
        struct class_limit *limit = &s->classes[c];
        if (limit->more == 0)
            continue;
        limit->bin = c << s->bits;
        limit->rank = limit->more;
        while (limit->rank >= s->bins[limit->bin])
            limit->rank -= s->bins[limit->bin++];
        n += s->bins[limit->bin];
    }
    return n;
}

static bool find_limits(struct selection *s, struct class_repeats *repeats, struct err *err)
{
    for (s->bits = 1; s->bits < 12 && s->n_classes << s->bits < MOST_BINS;)
        s->bits++;
    s->bins = calloc((size_t)s->n_classes << s->bits, sizeof *s->bins);
    if (!s->bins)
        return err_memory(err, "the order of samples");
    for_drawn(s, count);
    s->ranked = malloc((size_t)(choose_bins(s) + 1) * sizeof *s->ranked);
    if (!s->ranked)
        return err_memory(err, "the order of samples");
    for_drawn(s, gather);
    qsort(s->ranked, (size_t)s->n_ranked, sizeof *s->ranked, by_rank);
    const struct ranked *own = s->ranked; /* of the class */
    for (int64_t c = 0; c < s->n_classes; c++) {
        const struct class_limit *limit = &s->classes[c];
        if (limit->more == 0)
            continue;
        repeats[c].limit_draw = own[limit->rank].draw;
        repeats[c].limit_sample = own[limit->rank].sample;
        own += s->bins[limit->bin];
    }
    return true;
}

bool order_balance(const struct order *order, struct class_repeats **out, struct err *err)
{
    int64_t n = order->dataset->n_classes, most = 0;
    int64_t *counts = calloc((size_t)n + 1, sizeof *counts);
    struct class_repeats *repeats = calloc((size_t)n + 1, sizeof *repeats);
    struct selection s = { .order = order,
                           .n_classes = n,
                           .classes = calloc((size_t)n + 1, sizeof *s.classes) };
    bool ok = (counts && repeats && s.classes) || err_memory(err, "the order of samples");
    if (ok)
        dataset_count(order->dataset, order->options.side, counts);
    for (int64_t c = 0; ok && c < n; c++)
        most = counts[c] > most ? counts[c] : most;
    for (int64_t c = 0; ok && c < n; c++) {
        repeats[c].each = counts[c] > 0 ? most / counts[c] : 0;
        s.classes[c].more = counts[c] > 0 ? most % counts[c] : 0;
    }
    ok = ok && find_limits(&s, repeats, err);
    free(counts);
    free(s.classes);
    free(s.bins);
    free(s.ranked);
    if (ok)
        *out = repeats;
    else
        free(repeats);
    return ok;
}
