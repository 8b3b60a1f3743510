/* attention.c: Attention of opset 23: softmax(scale q kt + mask) v of every head. Queries, keys and
 * values are [N, heads, T, d], or [N, T, heads d]. */
#include <math.h>
#include <string.h>
#include "net/onnx/fold.h"

/* Input i as [N, heads, T, d]. */
static value_id heads_of(struct onnx_import *im, onnx_node *node, size_t i, int64_t heads,
                         struct err *err)
{
    value_id x = onnx_value(im, node, i, err);
    if (x == NO_VALUE || onnx_shape(im, x)->rank == 4)
        return x;
    struct shape shape = *onnx_shape(im, x);
    if (shape.rank != 3 || heads < 1 || shape.dim[2] % heads) {
        err_set(err, ERR_FORMAT, "input %zu cannot be split into %lld heads", i, (long long)heads);
        return NO_VALUE;
    }
    x = onnx_add_reshape(im, node, ".split", x,
                         SHAPE(shape.dim[0], shape.dim[1], heads, shape.dim[2] / heads), err);
    union attr order = { .transpose = { 4, { 0, 2, 1, 3 } } };
    return x == NO_VALUE ? x : onnx_add(im, node, ".heads", OP_TRANSPOSE, &x, 1, &order, err);
}

/* What is added to the scores [T, S]: a constant of truths, or of causality, as 0 and -infinity. */
static value_id added_mask(struct onnx_import *im, onnx_node *node, const struct host *truths,
                           struct shape shape, struct err *err)
{
    struct host *mask = onnx_host_new(im, HOST_FLOAT, shape, err);
    if (!mask)
        return NO_VALUE;
    int64_t keys = shape.dim[shape.rank - 1];
    for (int64_t i = 0; i < mask->count; i++) {
        bool seen = truths ? truths->ints[i] != 0 : i % keys <= i / keys;
        mask->floats[i] = seen ? 0 : -INFINITY;
    }
    value_id value = onnx_store(im, node->output[0], true, shape, mask->floats, err);
    host_free(mask);
    return value;
}

static value_id masked(struct onnx_import *im, onnx_node *node, value_id scores, struct err *err)
{
    struct shape shape = *onnx_shape(im, scores);
    if (onnx_int(node, "is_causal", 0)) {
        value_id mask = added_mask(im, node, NULL, SHAPE(shape.dim[2], shape.dim[3]), err);
        if (mask == NO_VALUE)
            return NO_VALUE;
        scores = onnx_add(im, node, ".causal", OP_ADD, (value_id[]){ scores, mask }, 2, NULL, err);
    }
    if (scores == NO_VALUE || !onnx_has(node, 3))
        return scores;
    const struct host *known = onnx_known(im, node, 3, NULL);
    bool truths = known && known->type == HOST_INT && known->shape.rank >= 1;
    if (truths && !shape_check(&known->shape, "the mask", err))
        return NO_VALUE;
    value_id mask =
        truths ? added_mask(im, node, known, known->shape, err) : onnx_value(im, node, 3, err);
    if (mask == NO_VALUE)
        return NO_VALUE;
    return onnx_add(im, node, ".masked", OP_ADD, (value_id[]){ scores, mask }, 2, NULL, err);
}

/* Attributes of later opsets (windows) change the result: only those of opset 23. */
static bool has_other_attributes(onnx_node *node)
{
    static const char *const names[] = { "is_causal",        "kv_num_heads",
                                         "q_num_heads",      "scale",
                                         "softcap",          "qk_matmul_output_mode",
                                         "softmax_precision" };
    for (size_t i = 0; i < node->n_attribute; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            known = known ||
                    (node->attribute[i]->name && strcmp(names[k], node->attribute[i]->name) == 0);
        if (!known)
            return true;
    }
    return node->n_input > 6;
}

bool onnx_attention(struct onnx_import *im, onnx_node *node, struct err *err)
{
    int64_t heads = onnx_int(node, "q_num_heads", 0), of_keys = onnx_int(node, "kv_num_heads", 0);
    if (onnx_has(node, 4) || onnx_has(node, 5) || onnx_wanted(im, node, 1) ||
        onnx_wanted(im, node, 2) || onnx_wanted(im, node, 3) || onnx_float(node, "softcap", 0) != 0)
        return err_set(err, ERR_FORMAT,
                       "keys of the past, scores as an output and softcap are not supported");
    if (has_other_attributes(node))
        return err_set(err, ERR_FORMAT, "only inputs and attributes of opset 23 are supported");
    value_id q = heads_of(im, node, 0, heads, err);
    value_id k = q == NO_VALUE ? q : heads_of(im, node, 1, of_keys, err);
    value_id v = k == NO_VALUE ? k : heads_of(im, node, 2, of_keys, err);
    if (v == NO_VALUE)
        return false;
    struct shape shape = *onnx_shape(im, q);
    if (onnx_shape(im, k)->dim[1] != shape.dim[1])
        return err_set(err, ERR_FORMAT, "several heads with the same keys are not supported");
    double scale = (double)onnx_float(node, "scale", 0);
    union attr product = {
        .matmul = { .transpose_b = true,
                    .scale = (float)(scale != 0 ? scale : 1 / sqrt((double)shape.dim[3])) }
    };
    value_id y = onnx_add(im, node, ".scores", OP_MATMUL, (value_id[]){ q, k }, 2, &product, err);
    y = y == NO_VALUE ? y : masked(im, node, y, err);
    if (y == NO_VALUE)
        return false;
    union attr last = { .axis = { -1 } }, order = { .transpose = { 4, { 0, 2, 1, 3 } } };
    y = onnx_add(im, node, ".softmax", OP_SOFTMAX, &y, 1, &last, err);
    if (onnx_has(node, 3)) /* a query that sees nothing gives 0 */
        y = onnx_add_function(im, node, ".seen", y, FUNCTION_FROM_NAN, err);
    if (y == NO_VALUE)
        return false;
    bool joined = heads > 0 && onnx_shape(im, onnx_value(im, node, 0, err))->rank == 3;
    y = onnx_add(im, node, joined ? ".values" : NULL, OP_MATMUL, (value_id[]){ y, v }, 2, NULL,
                 err);
    if (y == NO_VALUE || !joined)
        return onnx_bind(im, node, 0, y, err);
    y = onnx_add(im, node, ".tokens", OP_TRANSPOSE, &y, 1, &order, err);
    if (y == NO_VALUE)
        return false;
    struct shape four = *onnx_shape(im, y);
    return onnx_bind(im, node, 0,
                     onnx_add_reshape(im, node, NULL, y,
                                      SHAPE(four.dim[0], four.dim[1], four.dim[2] * four.dim[3]),
                                      err),
                     err);
}

bool onnx_rms_norm(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id inputs[2] = { onnx_value(im, node, 0, err) };
    if (inputs[0] == NO_VALUE)
        return false;
    struct shape x = *onnx_shape(im, inputs[0]), extent = { 0, { 0 } };
    int axis = axis_of(onnx_int(node, "axis", -1), x.rank);
    if (axis < 0)
        return no_axis(onnx_int(node, "axis", -1), x.rank, err);
    for (int i = axis; i < x.rank; i++)
        extent.dim[extent.rank++] = x.dim[i];
    inputs[1] = onnx_parameter(im, node, 1, extent, false, err);
    if (inputs[1] == NO_VALUE)
        return false;
    union attr attr = { .norm = { .epsilon = onnx_float(node, "epsilon", 1e-5f),
                                  .axes = x.rank - axis } };
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_RMS_NORM, inputs, 2, &attr, err),
                     err);
}
