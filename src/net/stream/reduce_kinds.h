/* reduce_kinds.h: what each kind of pooling keeps of the cells it has seen, and what it does with
 * them. Internal to reduce*.c. */
#ifndef NET_STREAM_REDUCE_KINDS_H
#define NET_STREAM_REDUCE_KINDS_H
#include "net/stream/reduce.h"

struct reduction_kind {
    /* Doubles kept: of every channel, and besides. */
    int64_t per_channel, besides;
    /* The state of a pooling that has seen no cell. */
    void (*begin)(struct reduction *r);
    void (*add)(struct reduction *r, const struct stream_region *region,
                const float *const *inputs);
    /* Adds the state of another one that has seen other cells. */
    void (*merge)(struct reduction *r, const double *other);
    void (*finish)(const struct reduction *r, float *out);
    void (*gradient)(const struct reduction *r, const struct stream_region *region,
                     const float *const *inputs, float *const *gradients);
    /* NULL: a region is still only if the gradient of the output is. */
    bool (*is_still)(const struct reduction *r, const struct stream_region *region);
};

struct reduction {
    const struct reduction_kind *kind;
    int threads;
    int64_t channels, height, width; /* of the whole map */
    float r;                         /* log-sum-exp: its attribute */
    double *state;                   /* [n_state] */
    int64_t n_state;
    float *out, *gradient; /* [channels]: the result, and the gradient of the loss by it */
};

/* reduce_soft.c */
extern const struct reduction_kind reduction_lse, reduction_attention;
#endif
