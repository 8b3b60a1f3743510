/* private_units.h: the units of a private training: what is sampled, clipped and protected as a
 * whole. A unit is a training patch, or a patient with all training patches. */
#ifndef TRAIN_PRIVATE_UNITS_H
#define TRAIN_PRIVATE_UNITS_H
#include "train/order.h"

struct private_units {
    enum privacy_unit kind;
    int64_t n;
    /* patches: runs of samples in a row; before [n_runs + 1]: units before each */
    int64_t *first, *before, n_runs;
    /* patients: their samples one after another; begin [n + 1] */
    int64_t *samples, *begin;
};

/* *out is the caller's; free with private_units_free. */
bool private_units_new(const struct dataset *dataset, enum privacy_unit kind,
                       struct private_units *out, struct err *err);
void private_units_free(struct private_units *units); /* also fine on a zeroed struct */

/* What is learnt from unit `unit` in a step, out [count]: copies of its patch, or as many of the
 * patient's patches, drawn without replacement by (seed, step, unit); if there are fewer, they come
 * again as further copies. */
void private_units_items(const struct private_units *units, int64_t unit, uint64_t seed,
                         uint64_t step, int64_t count, struct order_item *out);
#endif
