/* table.c: the table of operations that op.h declares. A graph knows ops only by it, so that what
 * plans them may know graphs. */
#include "net/ops/ops.h"

static const struct op *const table[OP_KINDS] = {
    [OP_CONV] = &op_conv,
    [OP_CONV_TRANSPOSE] = &op_conv_transpose,
    [OP_LINEAR] = &op_linear,
    [OP_MATMUL] = &op_matmul,
    [OP_BATCH_NORM] = &op_batch_norm,
    [OP_GROUP_NORM] = &op_group_norm,
    [OP_LAYER_NORM] = &op_layer_norm,
    [OP_RELU] = &op_relu,
    [OP_LEAKY_RELU] = &op_leaky_relu,
    [OP_SILU] = &op_silu,
    [OP_GELU] = &op_gelu,
    [OP_SIGMOID] = &op_sigmoid,
    [OP_TANH] = &op_tanh,
    [OP_MAX_POOL] = &op_max_pool,
    [OP_AVERAGE_POOL] = &op_average_pool,
    [OP_GLOBAL_MAX_POOL] = &op_global_max_pool,
    [OP_GLOBAL_AVERAGE_POOL] = &op_global_average_pool,
    [OP_ADAPTIVE_AVERAGE_POOL] = &op_adaptive_average_pool,
    [OP_LRN] = &op_lrn,
    [OP_ADD] = &op_add,
    [OP_SUB] = &op_sub,
    [OP_MUL] = &op_mul,
    [OP_DIV] = &op_div,
    [OP_SCALE] = &op_scale,
    [OP_CONCAT] = &op_concat,
    [OP_SLICE] = &op_slice,
    [OP_PAD] = &op_pad,
    [OP_RESHAPE] = &op_reshape,
    [OP_FLATTEN] = &op_flatten,
    [OP_TRANSPOSE] = &op_transpose,
    [OP_EXPAND_BATCH] = &op_expand_batch,
    [OP_REDUCE_MEAN] = &op_reduce_mean,
    [OP_SOFTMAX] = &op_softmax,
    [OP_LOG_SOFTMAX] = &op_log_softmax,
    [OP_DROPOUT] = &op_dropout,
    [OP_UPSAMPLE] = &op_upsample,
    [OP_CONVERT] = &op_convert,
    [OP_HALO] = &op_halo,
    [OP_ALL_REDUCE] = &op_all_reduce,
    [OP_ALL_GATHER] = &op_all_gather,
    [OP_GLOBAL_LSE_POOL] = &op_global_lse_pool,
    [OP_ATTENTION_POOL] = &op_attention_pool,
    [OP_STANDARDIZE] = &op_standardize,
    [OP_CARRY] = &op_carry,
    [OP_ATTENTION] = &op_attention,
    [OP_RMS_NORM] = &op_rms_norm,
    [OP_EMBEDDING] = &op_embedding,
    [OP_RELATIVE_BIAS] = &op_relative_bias,
};

const struct op *op_get(enum op_kind kind)
{
    return table[kind];
}
