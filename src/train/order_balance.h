/* order_balance.h: private to order.c: how often each sample comes in a balanced epoch. */
#ifndef TRAIN_ORDER_BALANCE_H
#define TRAIN_ORDER_BALANCE_H
#include "train/order.h"

/* Samples of a class are repeated alike; with a share of synthetic ones, those of a class and kind.
 * Every sample of such a group comes `each` times, those whose (draw, id) is below the limit once
 * more. */
struct class_repeats {
    int64_t each;
    uint64_t limit_draw;
    int64_t limit_sample;
};

/* Whether samples can come more than once, or not at all. */
static inline bool order_repeats(const struct order_options *options)
{
    return options->balanced || options->synthetic_share > 0;
}

/* The repeats [2, n_classes] of real and of synthetic samples that give every group its number of
 * items; the caller's. */
bool order_balance(const struct order *order, struct class_repeats **out, struct err *err);
/* How often a sample comes. */
int64_t order_copies(const struct order *order, int64_t sample);

/* From order.c: the number that decides about `index`; what: a hash that says for what. */
uint64_t order_draw(const struct order_options *options, uint64_t what, int64_t index);
/* The next samples of the side, in the order of the data set, from sample `from` on. */
bool order_next_range(const struct order *order, int64_t from, struct sample_range *out);
#endif
