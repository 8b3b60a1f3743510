/* view.c: the same elements under another shape or order. */
#include <stdlib.h>
#include "net/onnx/import.h"

bool onnx_reshape(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct shape target = { 0, { 0 } };
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    target.rank = im->opset >= 5 ? onnx_ints(im, node, 1, "the shape", target.dim, SHAPE_DIMS, err)
                                 : onnx_int_list(node, "shape", target.dim, SHAPE_DIMS, err);
    if (target.rank < 0)
        return false;
    if (onnx_int(node, "allowzero", 0))
        for (int i = 0; i < target.rank; i++)
            if (target.dim[i] == 0)
                return err_set(err, ERR_FORMAT, "tensors without elements are not supported");
    return onnx_bind(im, node, 0, onnx_add_reshape(im, node, NULL, x, target, err), err);
}

bool onnx_flatten(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    union attr attr = { .axis = { onnx_int(node, "axis", 1) } };
    if (x == NO_VALUE)
        return false;
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_FLATTEN, &x, 1, &attr, err), err);
}

bool onnx_transpose(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    int rank = onnx_shape(im, x)->rank;
    union attr attr = { .transpose = { .rank = rank } };
    int n = onnx_int_list(node, "perm", attr.transpose.order, SHAPE_DIMS, err);
    if (n < 0)
        return false;
    if (n && n != rank)
        return err_set(err, ERR_FORMAT, "perm has %d entries for %d axes", n, rank);
    for (int i = 0; i < rank && n == 0; i++)
        attr.transpose.order[i] = rank - 1 - i;
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_TRANSPOSE, &x, 1, &attr, err), err);
}

bool onnx_squeeze(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    uint32_t axes;
    bool given;
    if (x == NO_VALUE)
        return false;
    struct shape shape = *onnx_shape(im, x), target = { 0, { 0 } };
    if (!onnx_axes(im, node, 13, shape.rank, &axes, &given, err))
        return false;
    for (int i = 0; i < shape.rank; i++) {
        bool gone = given ? axes >> i & 1 : shape.dim[i] == 1;
        if (gone && shape.dim[i] != 1)
            return err_set(err, ERR_FORMAT, "axis %d has extent %lld, not 1", i,
                           (long long)shape.dim[i]);
        if (!gone)
            target.dim[target.rank++] = shape.dim[i];
    }
    return onnx_bind(im, node, 0, onnx_add_reshape(im, node, NULL, x, target, err), err);
}

/* The number of axes that Unsqueeze adds; -1 with an error. */
static int added_axes(struct onnx_import *im, onnx_node *node, struct err *err)
{
    int64_t axes[SHAPE_DIMS];
    return im->opset >= 13 ? onnx_ints(im, node, 1, "the list of axes", axes, SHAPE_DIMS, err)
                           : onnx_int_list(node, "axes", axes, SHAPE_DIMS, err);
}

bool onnx_unsqueeze(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    uint32_t axes;
    bool given;
    int added = x == NO_VALUE ? -1 : added_axes(im, node, err);
    if (added < 0)
        return false;
    struct shape shape = *onnx_shape(im, x), target = { shape.rank + added, { 0 } };
    if (target.rank > SHAPE_DIMS)
        return err_set(err, ERR_FORMAT, "the output has %d axes; at most %d are supported",
                       target.rank, SHAPE_DIMS);
    if (!onnx_axes(im, node, 13, target.rank, &axes, &given, err))
        return false;
    int from = 0;
    for (int i = 0; i < target.rank; i++) {
        bool here = axes >> i & 1;
        if (!here && from == shape.rank)
            return err_set(err, ERR_FORMAT, "an axis is named twice");
        target.dim[i] = here ? 1 : shape.dim[from++];
    }
    return onnx_bind(im, node, 0, onnx_add_reshape(im, node, NULL, x, target, err), err);
}

/* A constant [1, ..] next to activations of a batch is repeated for every image. */
static value_id for_every_image(struct onnx_import *im, onnx_node *node, value_id x, value_id like,
                                struct err *err)
{
    if (like == NO_VALUE || !graph_is_parameter(im->graph, x) || onnx_shape(im, x)->rank < 2 ||
        onnx_shape(im, x)->dim[0] != 1)
        return x;
    return onnx_add(im, node, ".repeated", OP_EXPAND_BATCH, (value_id[]){ x, like }, 2, NULL, err);
}

bool onnx_concat(struct onnx_import *im, onnx_node *node, struct err *err)
{
    enum { MOST = 1024 };
    value_id inputs[MOST], like = NO_VALUE;
    size_t n = node->n_input;
    if (n < 1 || n > MOST)
        return err_set(err, ERR_FORMAT, "there are %zu inputs; 1 to %d are supported", n, MOST);
    int64_t axis = onnx_int(node, "axis", 1);
    for (size_t i = 0; i < n; i++) {
        inputs[i] = onnx_value(im, node, i, err);
        if (inputs[i] == NO_VALUE)
            return false;
        if (!graph_is_parameter(im->graph, inputs[i]))
            like = inputs[i];
    }
    bool along_batch = axis_of(axis, onnx_shape(im, inputs[0])->rank) == 0;
    for (size_t i = 0; i < n && !along_batch; i++) {
        inputs[i] = for_every_image(im, node, inputs[i], like, err);
        if (inputs[i] == NO_VALUE)
            return false;
    }
    union attr attr = { .axis = { axis } };
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_CONCAT, inputs, (int)n, &attr, err),
                     err);
}

bool onnx_from_images(const struct onnx_import *im, value_id value)
{
    const struct graph *graph = im->graph;
    bool *known = calloc((size_t)graph->n_values + 1, sizeof *known);
    for (int i = 0; known && i < graph->n_inputs; i++)
        known[graph->inputs[i].value] = true;
    for (int32_t i = 0; known && i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            if (graph->nodes[i].inputs[k] != NO_VALUE && known[graph->nodes[i].inputs[k]])
                known[graph->nodes[i].output] = true;
    bool found = known && known[value];
    free(known);
    return found;
}

/* A shape that comes from that of an activation, and repeats a constant along the batch only. */
bool onnx_expand(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct shape wanted = { 0, { 0 } }, full;
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    struct shape shape = *onnx_shape(im, x);
    wanted.rank = onnx_ints(im, node, 1, "the shape", wanted.dim, SHAPE_DIMS, err);
    if (wanted.rank < 0)
        return false;
    const struct host *source = onnx_known(im, node, 1, NULL);
    if (!shape_check(&wanted, "the shape", err) || !shape_broadcast(&shape, &wanted, &full))
        return err_set(err, ERR_FORMAT, "the input cannot be expanded to the requested shape");
    struct shape repeated = shape;
    if (repeated.rank)
        repeated.dim[0] = full.dim[0];
    value_id like = im->graph->n_inputs ? im->graph->inputs[0].value : NO_VALUE;
    if (shape_equal(&shape, &full) && onnx_from_images(im, x))
        return onnx_bind(im, node, 0, x, err);
    if (source->from_shape && shape.rank && shape.dim[0] == 1 && shape_equal(&repeated, &full) &&
        like != NO_VALUE && onnx_shape(im, like)->rank &&
        onnx_shape(im, like)->dim[0] == full.dim[0])
        return onnx_bind(
            im, node, 0,
            onnx_add(im, node, NULL, OP_EXPAND_BATCH, (value_id[]){ x, like }, 2, NULL, err), err);
    if (shape_equal(&shape, &full))
        return onnx_bind(im, node, 0, x, err);
    struct shape grown = full; /* 1 where x stays as it is, so that it may have another batch */
    for (int i = 0; i < full.rank; i++)
        if (i >= full.rank - shape.rank && shape.dim[i - (full.rank - shape.rank)] == full.dim[i])
            grown.dim[i] = 1;
    struct host *ones = onnx_host_new(im, HOST_FLOAT, grown, err);
    if (!ones)
        return false;
    for (int64_t i = 0; i < ones->count; i++)
        ones->floats[i] = 1;
    value_id factor = onnx_store(im, node->output[0], true, grown, ones->floats, err);
    host_free(ones);
    if (factor == NO_VALUE)
        return false;
    value_id y = onnx_add(im, node, NULL, OP_MUL, (value_id[]){ x, factor }, 2, NULL, err);
    return onnx_bind(im, node, 0, y, err);
}
