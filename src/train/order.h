/* order.h: the order of the samples in an epoch. Groups of stores are put in a random order
 * and cut into windows that fit into memory; within a window all samples are shuffled. Samples that
 * are read individually form one window. Everything is keyed by (seed, epoch): no state.
 * Only groups and windows are held in memory; the items of a window are made when it is needed. */
#ifndef TRAIN_ORDER_H
#define TRAIN_ORDER_H
#include "train/dataset.h"

struct order_item {
    int64_t sample; /* id in the data set */
    int32_t copy;   /* with balancing a sample can come more than once: 0, 1, .. */
};

struct order_options {
    enum data_side side;
    bool shuffle;  /* else in the order of the data set (still cut into windows) */
    bool balanced; /* equally many samples of every class; those of rare classes are repeated */
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
    struct class_repeats *repeats; /* [n_classes]; NULL if not balanced */
};

/* How many items an order has, without making it. Looks at every sample, as does order_new. */
int64_t order_count(const struct dataset *dataset, const struct order_options *options);
/* *out is the caller's; free with order_free. */
bool order_new(const struct dataset *dataset, const struct order_options *options,
               struct order *out, struct err *err);
/* The items of a window, in order, to items [windows[window + 1].first - windows[window].first]. */
bool order_window(const struct order *order, int32_t window, struct order_item *items,
                  struct err *err);
void order_free(struct order *order); /* also fine on a zeroed struct */
#endif
