/* shared_weights.h: weights in a kernel's own layout, shared by several plans: those of several
 * threads, and of several image sizes. Used through plan_options.weights; thread-safe. */
#ifndef NET_PLAN_SHARED_WEIGHTS_H
#define NET_PLAN_SHARED_WEIGHTS_H
#include "net/graph/tensor.h"

struct plan_weights;

/* NULL if no memory. It must outlive the plans; free with plan_weights_free. */
struct plan_weights *plan_weights_new(void);
void plan_weights_free(struct plan_weights *weights); /* NULL-safe */
/* Currently in use by all plans together. */
size_t plan_weights_bytes(struct plan_weights *weights);

/* --- for plans --- */

/* One set of weights. */
struct plan_weights_entry;

/* Between these two calls a plan takes entries and fills those that are not filled. */
void plan_weights_lock(struct plan_weights *weights);
void plan_weights_unlock(struct plan_weights *weights);
/* The weights made from `source` in the layout identified by `key`; initially zeroed. NULL if no
 * memory. */
struct plan_weights_entry *plan_weights_take(struct plan_weights *weights, struct buffer *source,
                                             uint64_t key, size_t bytes);
void *plan_weights_at(const struct plan_weights_entry *entry);
bool plan_weights_filled(const struct plan_weights_entry *entry);
void plan_weights_set_filled(struct plan_weights_entry *entry);
/* One user less; freed with the last. Not between lock and unlock. */
void plan_weights_return(struct plan_weights *weights, struct plan_weights_entry *entry);
#endif
