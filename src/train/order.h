/* order.h: the order of the samples in an epoch. Groups of stores are put in a random order
 * and cut into windows that fit into memory; within a window all samples are shuffled. Samples that
 * are read individually form one window. Everything is keyed by (seed, epoch): no state. */
#ifndef TRAIN_ORDER_H
#define TRAIN_ORDER_H
#include "train/dataset.h"

struct order_item {
    int64_t sample; /* id in the data set */
    int32_t copy;   /* with balancing a sample can come more than once: 0, 1, .. */
    int32_t window;
};

struct order_options {
    enum data_side side;
    bool shuffle;  /* else in the order of the data set (still cut into windows) */
    bool balanced; /* equally many samples of every class; those of rare classes are repeated */
    uint64_t seed, epoch;
    int64_t window_bytes; /* a window holds at least one group */
};

struct order {
    struct order_item *items; /* by window */
    int64_t n;
    int32_t n_windows;
};

/* How many items an order has, without making it. */
int64_t order_count(const struct dataset *dataset, const struct order_options *options);
/* *out is the caller's; free with order_free. */
bool order_new(const struct dataset *dataset, const struct order_options *options,
               struct order *out, struct err *err);
void order_free(struct order *order); /* also fine on a zeroed struct */
#endif
