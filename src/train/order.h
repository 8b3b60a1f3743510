/* order.h: the order of the samples in an epoch. Groups of stores are put in a random order
 * and cut into windows that fit into memory; within a window all samples are shuffled. Samples that
 * are read individually form one window. Everything is keyed by (seed, epoch): no state.
 * Only groups and windows are held in memory; the items of a window are made when it is needed. */
#ifndef TRAIN_ORDER_H
#define TRAIN_ORDER_H
#include "train/dataset.h"

struct order_item {
    int64_t sample; /* id in the data set */
    int32_t copy;   /* with repeats a sample can come more than once: 0, 1, .. */
};

struct order_options {
    enum data_side side;
    bool shuffle;  /* else in the order of the data set (still cut into windows) */
    bool balanced; /* equally many samples of every class; those of rare classes are repeated */
    /* Fraction of the items that are synthetic, drawn among these anew in every epoch; of few, all
     * come several times. 0: each once, or as balancing has it. With both, the classes of either
     * kind are balanced by themselves. */
    double synthetic_share;
    uint64_t seed, epoch;
    int64_t window_bytes; /* a window holds at least one group */
};

struct order_window {
    int64_t first;       /* item, counted over all windows */
    int64_t first_chunk; /* in order->chunks */
};

struct order {
    const struct dataset *dataset; /* must outlive the order */
    struct order_options options;
    int64_t n; /* items */
    int32_t n_windows;
    struct order_window *windows; /* [n_windows + 1]: the last one is the end */
    int64_t *chunks;              /* [n_chunks], in order: first sample of those read together */
    int64_t n_chunks;
    struct class_repeats *repeats;   /* of order_balance.h; NULL: all come once */
    const struct order_item *listed; /* [n]: of order_listed; else NULL */
};

/* How many items an order has, without making it. Looks at every sample, as does order_new. */
int64_t order_count(const struct dataset *dataset, const struct order_options *options);
/* *out is the caller's; free with order_free. */
bool order_new(const struct dataset *dataset, const struct order_options *options,
               struct order *out, struct err *err);
/* Exactly these items in this order, cut into windows; only the groups that they need are counted.
 * Items must outlive the order. Of the options only window_bytes counts. */
bool order_listed(const struct dataset *dataset, const struct order_item *items, int64_t n,
                  int64_t window_bytes, struct order *out, struct err *err);
/* The items of a window, in order, to items [windows[window + 1].first - windows[window].first]. */
bool order_window(const struct order *order, int32_t window, struct order_item *items,
                  struct err *err);
void order_free(struct order *order); /* also fine on a zeroed struct */
#endif
