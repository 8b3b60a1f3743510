/* order_balance.c: see order_balance.h. Samples of a group are ranked by a draw, and the first of
 * them come once more. The draw that separates them is found without a list of all: a histogram of
 * the draws' high bits says in which bin it is, and only that bin is sorted. */
#include "train/order_balance.h"

#include <math.h>
#include <stdlib.h>
#include "base/rng.h"

#define MOST_BINS (INT64_C(1) << 20) /* of all groups together */

struct ranked {
    uint64_t draw;
    int64_t sample;
    int64_t group;
};

struct class_limit {
    int64_t more; /* samples of the group that come once more */
    int64_t bin;  /* where the first that does not is */
    int64_t rank; /* of it in the bin */
};

struct selection {
    const struct order *order;
    int64_t n_groups;
    struct class_limit *groups;
    int bits;      /* of the draw that choose a bin */
    int64_t *bins; /* [n_groups << bits]: samples */
    struct ranked *ranked;
    int64_t n_ranked; /* samples of the bins chosen */
};

/* -1: without a label, comes once. */
static int64_t group_of(const struct dataset *dataset, const struct order_options *options,
                        int64_t sample)
{
    int32_t label = dataset_label(dataset, sample);
    if (label == PATCH_UNLABELED)
        return -1;
    bool apart = options->synthetic_share > 0 && dataset_synthetic(dataset, sample);
    return label + (apart ? dataset->n_classes : 0);
}

static uint64_t draw_of(const struct order *order, int64_t sample)
{
    return order_draw(&order->options, rng_hash("balance"), sample);
}

int64_t order_copies(const struct order *order, int64_t sample)
{
    int64_t group = group_of(order->dataset, &order->options, sample);
    if (group < 0)
        return 1;
    const struct class_repeats *repeats = &order->repeats[group];
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
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->draw != y->draw)
        return x->draw < y->draw ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Calls fn for all samples whose group has some that come once more. */
static void for_drawn(struct selection *s, void (*fn)(struct selection *s, struct ranked drawn))
{
    struct sample_range range;
    for (int64_t at = 0; order_next_range(s->order, at, &range); at = range.end)
        for (int64_t i = range.first; i < range.end; i++) {
            int64_t group = group_of(s->order->dataset, &s->order->options, i);
            if (group >= 0 && s->groups[group].more > 0)
                fn(s, (struct ranked){ draw_of(s->order, i), i, group });
        }
}

static int64_t bin_of(const struct selection *s, struct ranked drawn)
{
    return (drawn.group << s->bits) + (int64_t)(drawn.draw >> (64 - s->bits));
}

static void count(struct selection *s, struct ranked drawn)
{
    s->bins[bin_of(s, drawn)]++;
}

static void gather(struct selection *s, struct ranked drawn)
{
    if (bin_of(s, drawn) == s->groups[drawn.group].bin)
        s->ranked[s->n_ranked++] = drawn;
}

/* Finds the bin of each group; returns how many samples those bins have. */
static int64_t choose_bins(struct selection *s)
{
    int64_t n = 0;
    for (int64_t c = 0; c < s->n_groups; c++) {
        struct class_limit *limit = &s->groups[c];
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
    for (s->bits = 1; s->bits < 12 && s->n_groups << s->bits < MOST_BINS;)
        s->bits++;
    s->bins = calloc((size_t)s->n_groups << s->bits, sizeof *s->bins);
    if (!s->bins)
        return err_memory(err, "the order of samples");
    for_drawn(s, count);
    s->ranked = malloc((size_t)(choose_bins(s) + 1) * sizeof *s->ranked);
    if (!s->ranked)
        return err_memory(err, "the order of samples");
    for_drawn(s, gather);
    qsort(s->ranked, (size_t)s->n_ranked, sizeof *s->ranked, by_rank);
    const struct ranked *own = s->ranked; /* of the group */
    for (int64_t c = 0; c < s->n_groups; c++) {
        const struct class_limit *limit = &s->groups[c];
        if (limit->more == 0)
            continue;
        repeats[c].limit_draw = own[limit->rank].draw;
        repeats[c].limit_sample = own[limit->rank].sample;
        own += s->bins[limit->bin];
    }
    return true;
}

/* --- how many items of every group --- */

/* Samples of every group [2, n_classes] on the side; returns those without a label. */
static int64_t count_groups(const struct dataset *dataset, const struct order_options *options,
                            int64_t *counts)
{
    struct order order = { .dataset = dataset, .options = *options };
    struct sample_range range;
    int64_t none = 0;
    for (int64_t at = 0; order_next_range(&order, at, &range); at = range.end)
        for (int64_t i = range.first; i < range.end; i++) {
            int64_t group = group_of(dataset, options, i);
            none += group < 0;
            if (group >= 0)
                counts[group]++;
        }
    return none;
}

/* Synthetic items in all; of every class in proportion, or balanced equally many. */
static void want_synthetic(const int64_t *counts, int64_t n_classes, bool balanced, int64_t items,
                           int64_t *wanted)
{
    int64_t all = 0, before = 0, given = 0;
    for (int64_t c = 0; c < n_classes; c++)
        all += balanced ? counts[c] > 0 : counts[c];
    for (int64_t c = 0; c < n_classes && all > 0; c++) {
        before += balanced ? counts[c] > 0 : counts[c];
        wanted[c] = (int64_t)((double)items * (double)before / (double)all) - given;
        given += wanted[c];
    }
}

/* counts, wanted [2, n_classes]; none: samples without a label. */
static void want(const struct order_options *options, int64_t n_classes, int64_t none,
                 const int64_t *counts, int64_t *wanted)
{
    int64_t most = 0, real = none;
    double share = options->synthetic_share;
    for (int64_t c = 0; c < n_classes; c++)
        most = counts[c] > most ? counts[c] : most;
    for (int64_t c = 0; c < n_classes; c++) {
        wanted[c] = options->balanced && counts[c] > 0 ? most : counts[c];
        real += wanted[c];
    }
    if (share > 0)
        want_synthetic(counts + n_classes, n_classes, options->balanced,
                       llround((double)real * share / (1 - share)), wanted + n_classes);
}

int64_t order_count(const struct dataset *dataset, const struct order_options *options)
{
    size_t groups = 2 * (size_t)dataset->n_classes;
    if (!order_repeats(options))
        return dataset_count(dataset, options->side, NULL);
    int64_t *counts = calloc(2 * groups + 1, sizeof *counts), *wanted = counts + groups, n = 0;
    if (!counts)
        return 0;
    n = count_groups(dataset, options, counts);
    want(options, dataset->n_classes, n, counts, wanted);
    for (size_t i = 0; i < groups; i++)
        n += wanted[i];
    free(counts);
    return n;
}

bool order_balance(const struct order *order, struct class_repeats **out, struct err *err)
{
    int64_t n = 2 * order->dataset->n_classes;
    int64_t *counts = calloc(2 * (size_t)n + 1, sizeof *counts), *wanted = counts + n;
    struct class_repeats *repeats = calloc((size_t)n + 1, sizeof *repeats);
    struct selection s = { .order = order,
                           .n_groups = n,
                           .groups = calloc((size_t)n + 1, sizeof *s.groups) };
    bool ok = (counts && repeats && s.groups) || err_memory(err, "the order of samples");
    if (ok) {
        int64_t none = count_groups(order->dataset, &order->options, counts);
        want(&order->options, order->dataset->n_classes, none, counts, wanted);
    }
    for (int64_t c = 0; ok && c < n; c++) {
        repeats[c].each = counts[c] > 0 ? wanted[c] / counts[c] : 0;
        s.groups[c].more = counts[c] > 0 ? wanted[c] % counts[c] : 0;
    }
    ok = ok && find_limits(&s, repeats, err);
    free(counts);
    free(s.groups);
    free(s.bins);
    free(s.ranked);
    if (ok)
        *out = repeats;
    else
        free(repeats);
    return ok;
}
