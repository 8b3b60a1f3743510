/* norm.c: normalisations. */
#include <stdlib.h>
#include "net/onnx/import.h"

bool onnx_batch_norm(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id inputs[5] = { onnx_value(im, node, 0, err) };
    if (inputs[0] == NO_VALUE)
        return false;
    const struct shape *x = onnx_shape(im, inputs[0]);
    if (onnx_int(node, "training_mode", 0) || (im->opset < 7 && !onnx_int(node, "is_test", 0)) ||
        onnx_wanted(im, node, 1))
        return err_set(err, ERR_FORMAT, "training mode is not supported; export for inference");
    if (im->opset < 9 && onnx_int(node, "spatial", 1) == 0)
        return err_set(err, ERR_FORMAT, "per-pixel statistics (spatial 0) are not supported");
    if (x->rank < 2)
        return err_set(err, ERR_FORMAT, "the input has no channels");
    for (size_t i = 1; i < 5; i++) {
        inputs[i] =
            onnx_parameter(im, node, i, SHAPE(onnx_shape(im, inputs[0])->dim[1]), i >= 3, err);
        if (inputs[i] == NO_VALUE)
            return false;
    }
    float momentum = onnx_float(node, "momentum", 0.9f); /* ONNX: the share of the old */
    union attr attr = { .norm = { .epsilon = onnx_float(node, "epsilon", 1e-5f),
                                  .momentum = 1 - momentum } };
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_BATCH_NORM, inputs, 5, &attr, err),
                     err);
}

bool onnx_instance_norm(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id inputs[3] = { onnx_value(im, node, 0, err) };
    if (inputs[0] == NO_VALUE)
        return false;
    if (onnx_shape(im, inputs[0])->rank < 2)
        return err_set(err, ERR_FORMAT, "the input has no channels");
    int64_t channels = onnx_shape(im, inputs[0])->dim[1];
    for (size_t i = 1; i < 3; i++) {
        inputs[i] = onnx_parameter(im, node, i, SHAPE(channels), false, err);
        if (inputs[i] == NO_VALUE)
            return false;
    }
    union attr attr = { .norm = { .epsilon = onnx_float(node, "epsilon", 1e-5f),
                                  .groups = channels } };
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_GROUP_NORM, inputs, 3, &attr, err),
                     err);
}

/* Scale or bias of a group norm, one for each channel; before opset 21 one for each group. */
static value_id per_channel(struct onnx_import *im, onnx_node *node, size_t i, int64_t channels,
                            int64_t groups, struct err *err)
{
    if (im->opset >= 21)
        return onnx_parameter(im, node, i, SHAPE(channels), false, err);
    const struct host *host = onnx_constant(im, node, i, "a weight", err);
    if (!host)
        return NO_VALUE;
    if (host->count != groups) {
        err_set(err, ERR_FORMAT, "there are %lld weights for %lld groups", (long long)host->count,
                (long long)groups);
        return NO_VALUE;
    }
    float *floats = malloc((size_t)channels * sizeof *floats);
    if (!floats) {
        err_memory(err, "a weight");
        return NO_VALUE;
    }
    for (int64_t c = 0; c < channels; c++)
        floats[c] = host_float(host, c / (channels / groups));
    value_id value = onnx_store(im, node->input[i], false, SHAPE(channels), floats, err);
    free(floats);
    return value;
}

bool onnx_group_norm(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id inputs[3] = { onnx_value(im, node, 0, err) };
    if (inputs[0] == NO_VALUE)
        return false;
    const struct shape *x = onnx_shape(im, inputs[0]);
    int64_t groups = onnx_int(node, "num_groups", 0);
    int64_t channels = x->rank < 2 ? 0 : x->dim[1];
    if (groups < 1 || channels < 1 || channels % groups)
        return err_set(err, ERR_FORMAT, "%lld channels cannot be split into %lld groups",
                       (long long)channels, (long long)groups);
    for (size_t i = 1; i < 3; i++) {
        inputs[i] = per_channel(im, node, i, channels, groups, err);
        if (inputs[i] == NO_VALUE)
            return false;
    }
    union attr attr = { .norm = { .epsilon = onnx_float(node, "epsilon", 1e-5f),
                                  .groups = groups } };
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_GROUP_NORM, inputs, 3, &attr, err),
                     err);
}

bool onnx_layer_norm(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id inputs[3] = { onnx_value(im, node, 0, err) };
    if (inputs[0] == NO_VALUE)
        return false;
    struct shape x = *onnx_shape(im, inputs[0]), extent = { 0, { 0 } };
    int axis = axis_of(onnx_int(node, "axis", -1), x.rank);
    if (onnx_wanted(im, node, 1) || onnx_wanted(im, node, 2))
        return err_set(err, ERR_FORMAT, "mean and deviation as outputs are not supported");
    if (axis < 0)
        return no_axis(onnx_int(node, "axis", -1), x.rank, err);
    for (int i = axis; i < x.rank; i++)
        extent.dim[extent.rank++] = x.dim[i];
    inputs[1] = onnx_parameter(im, node, 1, extent, false, err);
    if (inputs[1] == NO_VALUE)
        return false;
    if (onnx_has(node, 2)) {
        inputs[2] = onnx_parameter(im, node, 2, extent, false, err);
    } else {
        struct host *zeros = onnx_host_new(im, HOST_FLOAT, extent, err);
        inputs[2] =
            zeros ? onnx_store(im, node->output[0], true, extent, zeros->floats, err) : NO_VALUE;
        host_free(zeros);
    }
    if (inputs[2] == NO_VALUE)
        return false;
    union attr attr = { .norm = { .epsilon = onnx_float(node, "epsilon", 1e-5f),
                                  .axes = x.rank - axis } };
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_LAYER_NORM, inputs, 3, &attr, err),
                     err);
}

bool onnx_lrn(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    union attr attr = { .lrn = { .size = onnx_int(node, "size", 0),
                                 .alpha = onnx_float(node, "alpha", 1e-4f),
                                 .beta = onnx_float(node, "beta", 0.75f),
                                 .bias = onnx_float(node, "bias", 1) } };
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_LRN, &x, 1, &attr, err), err);
}
