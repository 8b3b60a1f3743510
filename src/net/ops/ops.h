/* ops.h: the entries of the op table, one file in this folder per family, and helpers of their
 * shape functions. */
#ifndef NET_OPS_OPS_H
#define NET_OPS_OPS_H
#include "net/graph/op.h"

/* conv.c */
extern const struct op op_conv, op_conv_transpose;
/* linear.c */
extern const struct op op_linear, op_matmul;
/* norm.c */
extern const struct op op_batch_norm, op_group_norm, op_layer_norm, op_rms_norm;
/* activation.c */
extern const struct op op_relu, op_leaky_relu, op_silu, op_gelu, op_sigmoid, op_tanh;
/* pool.c */
extern const struct op op_max_pool, op_average_pool, op_global_max_pool, op_global_average_pool,
    op_adaptive_average_pool;
/* lrn.c */
extern const struct op op_lrn;
/* arithmetic.c */
extern const struct op op_add, op_sub, op_mul, op_div, op_scale;
/* join.c */
extern const struct op op_concat, op_slice, op_pad, op_expand_batch;
/* view.c */
extern const struct op op_reshape, op_flatten, op_transpose;
/* reduce.c */
extern const struct op op_reduce_mean, op_reduce_max, op_softmax, op_log_softmax;
/* function.c */
extern const struct op op_function;
/* take.c */
extern const struct op op_take;
/* dropout.c */
extern const struct op op_dropout;
/* upsample.c */
extern const struct op op_upsample;
/* convert.c */
extern const struct op op_convert;
/* carry.c */
extern const struct op op_carry;
/* collective.c */
extern const struct op op_halo;
/* all_reduce.c */
extern const struct op op_all_reduce;
/* all_gather.c */
extern const struct op op_all_gather, op_reduce_scatter;
/* soft_pool.c */
extern const struct op op_global_lse_pool, op_attention_pool;
/* attention.c */
extern const struct op op_attention;
/* embedding.c */
extern const struct op op_embedding, op_relative_bias;
/* standardize.c */
extern const struct op op_standardize;

/* Up to this limit, products of extents, strides and kernels stay within 64 bits. */
#define ATTR_LIMIT ((double)(1 << 20))
#define FIELD(type_, member, count_, min_, max_)                                                   \
    {                                                                                              \
        .name = #member, .type = type_, .offset = offsetof(ATTR_STRUCT, member), .count = count_,  \
        .min = min_, .max = max_                                                                   \
    }

/* The output has the shape of input 0. */
bool shape_same(const union attr *attr, const struct shape *const *in, int n_inputs,
                struct shape *out, struct err *err);
/* The output is stored as input 0 is. */
struct storage storage_same(const union attr *attr, const struct storage *x);
/* Input 0 must be [N, C, H, W]. */
bool shape_is_image(const struct shape *shape, struct err *err);
/* Input i must have one float for each of `channels`. */
bool shape_is_vector(const struct shape *shape, int64_t channels, const char *what,
                     struct err *err);
/* The half-open range of a slice; returns its axis, or -1 if the axis is out of range. */
int slice_range(const struct slice_attr *attr, const struct shape *shape, int64_t *begin,
                int64_t *end);
void complete_ones(int64_t *values, int count);
#endif
