/* order_balance.h: private to order.c: how often each sample comes in a balanced epoch. */
#ifndef TRAIN_ORDER_BALANCE_H
#define TRAIN_ORDER_BALANCE_H
#include "train/order.h"

/* Every sample of the class comes `each` times, those whose (draw, id) is below the limit once
 * more. */
struct class_repeats {
    int64_t each;
    uint64_t limit_draw;
    int64_t limit_sample;
};

/* The repeats [n_classes] that give every class as many items as the largest; the caller's. */
bool order_balance(const struct order *order, struct class_repeats **out, struct err *err);
/* How often a sample comes. */
int64_t order_copies(const struct order *order, int64_t sample);

/* From order.c: the number that decides about `index`; what: a hash that says for what. */
uint64_t order_draw(const struct order_options *options, uint64_t what, int64_t index);
/* The next samples of the side, in the order of the data set, from sample `from` on. */
bool order_next_range(const struct order *order, int64_t from, struct sample_range *out);
#endif
