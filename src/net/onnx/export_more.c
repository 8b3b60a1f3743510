/* export_more.c: pooling by attention, functions of one element and places along an axis as nodes
 * of ONNX. */
#include "net/onnx/export_parts.h"

/* Input i as [N, channels, cells]. */
static const char *cells(struct onnx_builder *b, const struct node *node, int i)
{
    const char *y = part(b, node, i ? "Scores" : "Cells");
    const char *shape = onnx_const_ints(b, onnx_text(b, "%s.shape", y), (int64_t[]){ 0, 0, -1 }, 3);
    emit2(b, "Reshape", y, in(b, node, i), shape, y);
    return y;
}

/* The cells [C, cells] times the softmax of the scores [cells, 1]. */
void onnx_export_attention_pool(struct onnx_builder *b, const struct node *node)
{
    const char *weights = part(b, node, "Softmax"), *turned = part(b, node, "Transpose");
    const char *sum = part(b, node, "MatMul");
    Onnx__NodeProto *proto = emit1(b, "Softmax", weights, cells(b, node, 1), weights);
    onnx_set_int(b, proto, "axis", -1);
    proto = emit1(b, "Transpose", turned, weights, turned);
    onnx_set_ints(b, proto, "perm", (int64_t[]){ 0, 2, 1 }, 3);
    emit2(b, "MatMul", sum, cells(b, node, 0), turned, sum);
    const char *shape = onnx_const_ints(b, part(b, node, "shape"), (int64_t[]){ 0, 0, 1, 1 }, 4);
    emit2(b, "Reshape", node->name, sum, shape, out(b, node));
}

/* x, or a number where it is NaN. */
static void from_nan(struct onnx_builder *b, const struct node *node)
{
    const char *found = part(b, node, "IsNaN");
    const char *number =
        onnx_const_number(b, part(b, node, "number"), node->attr.function.exponent);
    emit1(b, "IsNaN", found, in(b, node, 0), found);
    onnx_emit(b, "Where", node->name, (const char *[]){ found, number, in(b, node, 0) }, 3,
              out(b, node));
}

void onnx_export_function(struct onnx_builder *b, const struct node *node)
{
    static const char *const types[] = {
        [FUNCTION_EXP] = "Exp",   [FUNCTION_LOG] = "Log",
        [FUNCTION_SQRT] = "Sqrt", [FUNCTION_RECIPROCAL] = "Reciprocal",
        [FUNCTION_ABS] = "Abs",   [FUNCTION_ERF] = "Erf",
        [FUNCTION_SIN] = "Sin",   [FUNCTION_COS] = "Cos",
    };
    const struct function_attr *a = &node->attr.function;
    if (a->function == FUNCTION_FROM_NAN)
        from_nan(b, node);
    else if (a->function == FUNCTION_POWER)
        emit2(b, "Pow", node->name, in(b, node, 0),
              onnx_const_number(b, part(b, node, "exponent"), a->exponent), out(b, node));
    else
        emit1(b, types[a->function], node->name, in(b, node, 0), out(b, node));
}

/* The places as whole numbers. */
void onnx_export_take(struct onnx_builder *b, const struct node *node)
{
    const float *places = graph_data(b->graph, node->inputs[1]);
    int64_t n = in_shape(b, node, 1)->dim[0];
    int64_t *list = onnx_keep(b, (size_t)n * sizeof *list);
    if (!places)
        err_set(&b->err, ERR_USAGE, "%s: only places that are known can be written to ONNX",
                node->name);
    for (int64_t i = 0; places && list && i < n; i++)
        list[i] = (int64_t)places[i];
    if (!places || !list)
        return;
    Onnx__NodeProto *proto =
        emit2(b, "Gather", node->name, in(b, node, 0),
              onnx_const_ints(b, part(b, node, "places"), list, (size_t)n), out(b, node));
    onnx_set_int(b, proto, "axis", node->attr.axis.axis);
}
