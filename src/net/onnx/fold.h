/* fold.h: operators computed at import. All inputs are known; the result is the caller's. */
#ifndef NET_ONNX_FOLD_H
#define NET_ONNX_FOLD_H
#include "net/onnx/import.h"

#define FOLD_INPUTS 64

struct fold_args {
    struct onnx_import *im;
    onnx_node *node;
    const struct host *in[FOLD_INPUTS]; /* NULL where an optional one is absent */
    int n;
    struct err *err;
};

typedef struct host *(*fold_fn)(const struct fold_args *args);

/* fold_math.c: numbers */
struct host *fold_add(const struct fold_args *args);
struct host *fold_sub(const struct fold_args *args);
struct host *fold_mul(const struct fold_args *args);
struct host *fold_div(const struct fold_args *args);
struct host *fold_min(const struct fold_args *args);
struct host *fold_max(const struct fold_args *args);
struct host *fold_pow(const struct fold_args *args);
struct host *fold_mod(const struct fold_args *args);
struct host *fold_equal(const struct fold_args *args);
struct host *fold_neg(const struct fold_args *args);
struct host *fold_sqrt(const struct fold_args *args);
struct host *fold_exp(const struct fold_args *args);
struct host *fold_log(const struct fold_args *args);
struct host *fold_sin(const struct fold_args *args);
struct host *fold_cos(const struct fold_args *args);
struct host *fold_erf(const struct fold_args *args);
struct host *fold_reciprocal(const struct fold_args *args);
struct host *fold_floor(const struct fold_args *args);
struct host *fold_ceil(const struct fold_args *args);
struct host *fold_where(const struct fold_args *args);
struct host *fold_cast(const struct fold_args *args);
struct host *fold_range(const struct fold_args *args);
struct host *fold_abs(const struct fold_args *args);
struct host *fold_tanh(const struct fold_args *args);
struct host *fold_sigmoid(const struct fold_args *args);
struct host *fold_relu(const struct fold_args *args);
struct host *fold_round(const struct fold_args *args);
/* fold_logic.c */
struct host *fold_not(const struct fold_args *args);
struct host *fold_is_nan(const struct fold_args *args);
struct host *fold_less(const struct fold_args *args);
struct host *fold_at_most(const struct fold_args *args);
struct host *fold_greater(const struct fold_args *args);
struct host *fold_at_least(const struct fold_args *args);
struct host *fold_and(const struct fold_args *args);
struct host *fold_or(const struct fold_args *args);
struct host *fold_xor(const struct fold_args *args);
struct host *fold_clip(const struct fold_args *args);
struct host *fold_cum_sum(const struct fold_args *args);
struct host *fold_reduce_mean(const struct fold_args *args);
struct host *fold_reduce_sum(const struct fold_args *args);
struct host *fold_reduce_sum_square(const struct fold_args *args);
struct host *fold_reduce_l2(const struct fold_args *args);
struct host *fold_reduce_max(const struct fold_args *args);
struct host *fold_reduce_min(const struct fold_args *args);
struct host *fold_reduce_prod(const struct fold_args *args);
struct host *fold_batch_norm(const struct fold_args *args);
/* fold_place.c */
struct host *fold_scatter_nd(const struct fold_args *args);
struct host *fold_gather_nd(const struct fold_args *args);
struct host *fold_gather_elements(const struct fold_args *args);
struct host *fold_pad(const struct fold_args *args);
struct host *fold_one_hot(const struct fold_args *args);
struct host *fold_trilu(const struct fold_args *args);
struct host *fold_non_zero(const struct fold_args *args);
/* resize.c */
struct host *fold_resize(const struct fold_args *args);
/* quantize.c */
struct host *fold_dequantize(const struct fold_args *args);

/* fold_move.c: elements that only change their place */
struct host *fold_identity(const struct fold_args *args);
struct host *fold_reshape(const struct fold_args *args);
struct host *fold_flatten(const struct fold_args *args);
/* All outputs at once, and whether they depend on the shape of an activation. */
bool fold_split(const struct fold_args *args, bool from_shape);
struct host *fold_squeeze(const struct fold_args *args);
struct host *fold_unsqueeze(const struct fold_args *args);
struct host *fold_transpose(const struct fold_args *args);
struct host *fold_concat(const struct fold_args *args);
struct host *fold_slice(const struct fold_args *args);
struct host *fold_gather(const struct fold_args *args);
struct host *fold_expand(const struct fold_args *args);
struct host *fold_tile(const struct fold_args *args);

/* Element `from` of source into element `to` of target (same type). */
static inline void host_copy(struct host *target, int64_t to, const struct host *source,
                             int64_t from)
{
    if (target->type == HOST_FLOAT)
        target->floats[to] = source->floats[from];
    else
        target->ints[to] = source->ints[from];
}

/* The element of `from` that stands at element `index` of the shape it is broadcast to. */
int64_t fold_broadcast(const struct shape *to, int64_t index, const struct shape *from);

/* NULL with an error. */
struct host *fold_fail(const struct fold_args *args, const char *fact);
#endif
