/* reduce.c: means, sums, norms and maxima over axes. */
#include <math.h>
#include "net/onnx/import.h"

/* What a reduction is of: its input and axes. */
struct reduction {
    value_id x;
    struct shape shape;
    uint32_t axes;
    bool keep, nothing; /* no axis at all */
    double count;       /* of elements that become one */
};

/* input_since: the opset in which the axes became an input. */
static bool read_reduction(struct onnx_import *im, onnx_node *node, int64_t input_since,
                           struct reduction *r, struct err *err)
{
    bool given;
    r->x = onnx_value(im, node, 0, err);
    if (r->x == NO_VALUE)
        return false;
    r->shape = *onnx_shape(im, r->x);
    r->keep = onnx_int(node, "keepdims", 1) != 0;
    if (!onnx_axes(im, node, input_since, r->shape.rank, &r->axes, &given, err))
        return false;
    r->nothing = r->shape.rank == 0 || (!given && onnx_int(node, "noop_with_empty_axes", 0));
    if (!given)
        r->axes = (1u << r->shape.rank) - 1;
    r->count = 1;
    for (int i = 0; i < r->shape.rank; i++)
        r->count *= r->axes >> i & 1 ? (double)r->shape.dim[i] : 1;
    return true;
}

static value_id reduced(struct onnx_import *im, onnx_node *node, const char *suffix,
                        enum op_kind kind, value_id x, const struct reduction *r, struct err *err)
{
    union attr attr = { .reduce = { r->axes, r->keep } };
    return x == NO_VALUE ? NO_VALUE : onnx_add(im, node, suffix, kind, &x, 1, &attr, err);
}

bool onnx_reduce_mean(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct reduction r;
    if (!read_reduction(im, node, 18, &r, err))
        return false;
    if (r.nothing)
        return onnx_bind(im, node, 0, r.x, err);
    bool pool = r.shape.rank == 4 && r.axes == 12;
    if (!pool)
        return onnx_bind(im, node, 0, reduced(im, node, NULL, OP_REDUCE_MEAN, r.x, &r, err), err);
    value_id y =
        onnx_add(im, node, r.keep ? NULL : ".pool", OP_GLOBAL_AVERAGE_POOL, &r.x, 1, NULL, err);
    if (y != NO_VALUE && !r.keep)
        y = onnx_add(im, node, NULL, OP_FLATTEN, &y, 1, &(union attr){ .axis = { 1 } }, err);
    return onnx_bind(im, node, 0, y, err);
}

/* y [images, ..] -> [1, ..]: a product with a row of ones, which holds for this number of images
 * only, whereas a mean times a number would be another sum for another batch. */
static value_id over_images(struct onnx_import *im, onnx_node *node, value_id y, struct err *err)
{
    struct shape shape = *onnx_shape(im, y), row = SHAPE(1, shape.dim[0]);
    struct host *ones = onnx_host_new(im, HOST_FLOAT, row, err);
    for (int64_t i = 0; ones && i < ones->count; i++)
        ones->floats[i] = 1;
    value_id factors[2] = { ones ? onnx_store(im, node->output[0], true, row, ones->floats, err)
                                 : NO_VALUE,
                            onnx_add_reshape(im, node, ".rows", y, SHAPE(shape.dim[0], -1), err) };
    host_free(ones);
    if (factors[0] == NO_VALUE || factors[1] == NO_VALUE)
        return NO_VALUE;
    y = onnx_add(im, node, ".images", OP_MATMUL, factors, 2, NULL, err);
    shape.dim[0] = 1;
    return onnx_add_reshape(im, node, ".sums", y, shape, err);
}

/* The sum of y, which is x or made of it. Over all axes but the first it is the mean times the
 * number of elements. */
static value_id summed(struct onnx_import *im, onnx_node *node, const char *suffix, value_id y,
                       const struct reduction *r, struct err *err)
{
    if (!(r->axes & 1)) {
        y = reduced(im, node, ".mean", OP_REDUCE_MEAN, y, r, err);
        return onnx_add_scale(im, node, suffix, y, r->count, 0, err);
    }
    struct reduction rest = *r;
    rest.axes &= ~1u, rest.keep = true;
    struct shape target = { 0, { 0 } };
    if (rest.axes)
        y = reduced(im, node, ".mean", OP_REDUCE_MEAN, y, &rest, err);
    y = y == NO_VALUE ? y : over_images(im, node, y, err);
    y = onnx_add_scale(im, node, ".sum", y, r->count / (double)r->shape.dim[0], 0, err);
    for (int i = 0; i < r->shape.rank; i++)
        if (r->keep || !(r->axes >> i & 1))
            target.dim[target.rank++] = r->axes >> i & 1 ? 1 : r->shape.dim[i];
    return onnx_add_reshape(im, node, suffix, y, target, err);
}

bool onnx_reduce_sum(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct reduction r;
    if (!read_reduction(im, node, 13, &r, err))
        return false;
    return onnx_bind(im, node, 0, r.nothing ? r.x : summed(im, node, NULL, r.x, &r, err), err);
}

static bool of_squares(struct onnx_import *im, onnx_node *node, bool root, struct err *err)
{
    struct reduction r;
    if (!read_reduction(im, node, 18, &r, err))
        return false;
    value_id y = onnx_add(im, node, ".squares", OP_MUL, (value_id[]){ r.x, r.x }, 2, NULL, err);
    if (y != NO_VALUE && !r.nothing)
        y = summed(im, node, root ? ".sum" : NULL, y, &r, err);
    if (root)
        y = onnx_add_function(im, node, NULL, y, FUNCTION_SQRT, err);
    return onnx_bind(im, node, 0, y, err);
}

bool onnx_reduce_l2(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return of_squares(im, node, true, err);
}

bool onnx_reduce_sum_square(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return of_squares(im, node, false, err);
}

bool onnx_reduce_l1(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct reduction r;
    if (!read_reduction(im, node, 18, &r, err))
        return false;
    value_id y = onnx_add_function(im, node, ".abs", r.x, FUNCTION_ABS, err);
    return onnx_bind(im, node, 0, r.nothing ? y : summed(im, node, NULL, y, &r, err), err);
}

bool onnx_reduce_max(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct reduction r;
    if (!read_reduction(im, node, 18, &r, err))
        return false;
    if (r.nothing)
        return onnx_bind(im, node, 0, r.x, err);
    if (r.shape.rank == 4 && r.axes == 12 && r.keep)
        return onnx_bind(im, node, 0,
                         onnx_add(im, node, NULL, OP_GLOBAL_MAX_POOL, &r.x, 1, NULL, err), err);
    return onnx_bind(im, node, 0, reduced(im, node, NULL, OP_REDUCE_MAX, r.x, &r, err), err);
}

/* -max(-x) */
bool onnx_reduce_min(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct reduction r;
    if (!read_reduction(im, node, 18, &r, err))
        return false;
    if (r.nothing)
        return onnx_bind(im, node, 0, r.x, err);
    value_id y = onnx_add_scale(im, node, ".minus", r.x, -1, 0, err);
    y = reduced(im, node, ".max", OP_REDUCE_MAX, y, &r, err);
    return onnx_bind(im, node, 0, onnx_add_scale(im, node, NULL, y, -1, 0, err), err);
}

/* Over height and width the mean of exponentials, and what a sum has more; else max + log(sum of
 * exp(x - max)). */
bool onnx_reduce_log_sum_exp(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct reduction r;
    if (!read_reduction(im, node, 18, &r, err))
        return false;
    if (r.nothing)
        return onnx_bind(im, node, 0, r.x, err);
    if (r.shape.rank == 4 && r.axes == 12 && r.keep) {
        union attr lse = { .lse = { 1 } };
        value_id y = onnx_add(im, node, ".pool", OP_GLOBAL_LSE_POOL, &r.x, 1, &lse, err);
        return onnx_bind(im, node, 0, onnx_add_scale(im, node, NULL, y, 1, log(r.count), err), err);
    }
    struct reduction kept = r;
    kept.keep = true;
    value_id max = reduced(im, node, ".max", OP_REDUCE_MAX, r.x, &kept, err);
    if (max == NO_VALUE)
        return false;
    value_id y = onnx_add(im, node, ".difference", OP_SUB, (value_id[]){ r.x, max }, 2, NULL, err);
    y = onnx_add_function(im, node, ".exp", y, FUNCTION_EXP, err);
    y = y == NO_VALUE ? y : summed(im, node, ".sum", y, &r, err);
    y = onnx_add_function(im, node, ".log", y, FUNCTION_LOG, err);
    if (!r.keep)
        max = reduced(im, node, ".largest", OP_REDUCE_MAX, r.x, &r, err);
    if (y == NO_VALUE || max == NO_VALUE)
        return false;
    return onnx_bind(im, node, 0,
                     onnx_add(im, node, NULL, OP_ADD, (value_id[]){ y, max }, 2, NULL, err), err);
}
