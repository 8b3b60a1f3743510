/* kept.h: a set of places 0, 1, .. (patches of a store, entries of a tar) of which some are kept,
 * in little more than one bit a place: the k-th that is kept, and how many are kept before a place.
 */
#ifndef TRAIN_KEPT_H
#define TRAIN_KEPT_H
#include <stdint.h>
#include "base/err.h"

struct kept {
    uint64_t *words;  /* one bit a place */
    uint32_t *before; /* how many are kept before each block of words */
    int64_t room_words, room_blocks;
    int64_t n_blocks, n; /* n: how many are kept */
};

/* Keeps a place, which must lie after all that are kept. */
bool kept_add(struct kept *kept, int64_t place, struct err *err);
/* The k-th place that is kept, 0 <= k < n. */
int64_t kept_place(const struct kept *kept, int64_t k);
/* How many places before this one are kept. */
int64_t kept_before(const struct kept *kept, int64_t place);
/* Gives back memory that was only for more to come. */
void kept_trim(struct kept *kept);
void kept_free(struct kept *kept); /* also fine on a zeroed struct */
#endif
