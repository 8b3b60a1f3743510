/* variant.h: how a network differs from the one that the zoo has under its name: what a config
 * says of it, and what config.json remembers, so that the weights find the same network again. */
#ifndef NET_MODEL_VARIANT_H
#define NET_MODEL_VARIANT_H
#include "net/graph/transform.h"

/* All zero: as it is. */
struct network_variant {
    enum head_kind head;
    enum norm_rule norm;
    enum padding padding;
};

/* *graph, whose parameters have no floats yet, is replaced by its variant; unchanged on failure. */
bool variant_apply(struct graph **graph, const struct network_variant *variant, struct err *err);
/* Weights that are standardised (norm_rule NORM_WS) become what they are standardised to, under
 * their names: a network that can be run, but not trained any further. *graph is replaced. */
bool variant_settle(struct graph **graph, struct err *err);
#endif
