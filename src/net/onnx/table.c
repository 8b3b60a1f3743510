/* table.c: the operators that can be imported. A new one needs a line here and a handler in the
 * file of its family; operators computed from constants are in fold.c. */
#include <string.h>
#include "net/onnx/import.h"

static const struct onnx_operator operators[] = {
    { "Conv", 1, onnx_conv },
    { "ConvTranspose", 1, onnx_conv_transpose },
    { "MaxPool", 1, onnx_max_pool },
    { "AveragePool", 1, onnx_average_pool },
    { "GlobalAveragePool", 1, onnx_global_average_pool },
    { "GlobalMaxPool", 1, onnx_global_max_pool },
    { "Gemm", 6, onnx_gemm },
    { "MatMul", 1, onnx_matmul },
    { "BatchNormalization", 6, onnx_batch_norm },
    { "InstanceNormalization", 6, onnx_instance_norm },
    { "GroupNormalization", 18, onnx_group_norm },
    { "LayerNormalization", 17, onnx_layer_norm },
    { "LRN", 1, onnx_lrn },
    { "Relu", 1, onnx_relu },
    { "LeakyRelu", 1, onnx_leaky_relu },
    { "Sigmoid", 1, onnx_sigmoid },
    { "Tanh", 1, onnx_tanh },
    { "Gelu", 20, onnx_gelu },
    { "Clip", 6, onnx_clip },
    { "HardSigmoid", 6, onnx_hard_sigmoid },
    { "HardSwish", 14, onnx_hard_swish },
    { "PRelu", 6, onnx_prelu },
    { "Softmax", 1, onnx_softmax },
    { "LogSoftmax", 1, onnx_log_softmax },
    { "Dropout", 1, onnx_dropout },
    { "Identity", 1, onnx_identity },
    { "Cast", 6, onnx_cast },
    { "QuantizeLinear", 10, onnx_quantize },
    { "DequantizeLinear", 10, onnx_dequantize },
    { "Add", 6, onnx_add_op },
    { "Sub", 6, onnx_sub_op },
    { "Mul", 6, onnx_mul_op },
    { "Div", 6, onnx_div_op },
    { "Pow", 7, onnx_pow },
    { "Neg", 6, onnx_neg },
    { "Sum", 6, onnx_sum },
    { "ReduceMean", 1, onnx_reduce_mean },
    { "ReduceSum", 1, onnx_reduce_sum },
    { "ReduceLogSumExp", 1, onnx_reduce_log_sum_exp },
    { "Reshape", 1, onnx_reshape },
    { "Flatten", 1, onnx_flatten },
    { "Transpose", 1, onnx_transpose },
    { "Squeeze", 1, onnx_squeeze },
    { "Unsqueeze", 1, onnx_unsqueeze },
    { "Concat", 4, onnx_concat },
    { "Slice", 1, onnx_slice },
    { "Split", 2, onnx_split },
    { "Gather", 1, onnx_gather },
    { "Expand", 8, onnx_expand },
    { "Pad", 1, onnx_pad },
    { "Resize", 10, onnx_resize },
    { "Upsample", 7, onnx_upsample },
};

const struct onnx_operator *onnx_operator_find(const char *type)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(operators[i].type, type) == 0)
            return &operators[i];
    return NULL;
}
