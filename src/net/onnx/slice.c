/* slice.c: parts of tensors, and borders around them. */
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "net/onnx/import.h"

/* starts, ends, axes, steps of Slice, from inputs or, before opset 10, attributes. */
struct ranges {
    int n;
    int64_t starts[SHAPE_DIMS], ends[SHAPE_DIMS], axes[SHAPE_DIMS], steps[SHAPE_DIMS];
};

/* Input i or the attribute; -1 with an error; 0 if absent. */
static int list_of(struct onnx_import *im, onnx_node *node, size_t i, const char *name,
                   int64_t *out, struct err *err)
{
    if (im->opset < 10)
        return onnx_int_list(node, name, out, SHAPE_DIMS, err);
    return onnx_has(node, i) ? onnx_ints(im, node, i, name, out, SHAPE_DIMS, err) : 0;
}

static bool read_ranges(struct onnx_import *im, onnx_node *node, struct ranges *r, struct err *err)
{
    r->n = list_of(im, node, 1, "starts", r->starts, err);
    int ends = list_of(im, node, 2, "ends", r->ends, err);
    int axes = list_of(im, node, 3, "axes", r->axes, err);
    int steps = list_of(im, node, 4, "steps", r->steps, err);
    if (r->n < 0 || ends < 0 || axes < 0 || steps < 0)
        return false;
    if (ends != r->n || (axes && axes != r->n) || (steps && steps != r->n))
        return err_set(err, ERR_FORMAT, "starts, ends, axes and steps differ in number");
    for (int i = 0; i < r->n; i++) {
        if (!axes)
            r->axes[i] = i;
        if (!steps)
            r->steps[i] = 1;
    }
    return true;
}

bool onnx_slice(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct ranges r;
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE || !read_ranges(im, node, &r, err))
        return false;
    for (int i = 0; i < r.n; i++) {
        if (r.steps[i] == 0)
            return err_set(err, ERR_FORMAT, "a step is 0");
        struct slice_attr slice = { r.axes[i], r.starts[i], r.ends[i], r.steps[i] };
        int axis = axis_of(slice.axis, onnx_shape(im, x)->rank);
        if (axis < 0)
            return no_axis(slice.axis, onnx_shape(im, x)->rank, err);
        int64_t extent = onnx_shape(im, x)->dim[axis];
        if (slice.step < 0) {
            x = onnx_take_backwards(im, node, i + 1 < r.n ? ".axis" : NULL, x, axis, slice.begin,
                                    slice.end, slice.step, err);
            if (x == NO_VALUE)
                return false;
            continue;
        }
        if (slice.begin < -extent)
            slice.begin = 0;
        if (slice.end > extent)
            slice.end = INT64_MAX;
        if ((slice.begin == 0 || slice.begin == -extent) && slice.step == 1 &&
            (slice.end == INT64_MAX || slice.end == extent))
            continue;
        x = onnx_add(im, node, i + 1 < r.n ? ".axis" : NULL, OP_SLICE, &x, 1,
                     &(union attr){ .slice = slice }, err);
        if (x == NO_VALUE)
            return false;
    }
    return onnx_bind(im, node, 0, x, err);
}

static value_id part(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                     int axis, int64_t begin, int64_t end, struct err *err)
{
    union attr attr = { .slice = { axis, begin, end, 1 } };
    return onnx_add(im, node, suffix, OP_SLICE, &x, 1, &attr, err);
}

bool onnx_split(struct onnx_import *im, onnx_node *node, struct err *err)
{
    enum { MOST = 256 };
    int64_t sizes[MOST], begin = 0;
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    int axis = axis_of(onnx_int(node, "axis", 0), onnx_shape(im, x)->rank);
    if (axis < 0)
        return no_axis(onnx_int(node, "axis", 0), onnx_shape(im, x)->rank, err);
    if (node->n_output < 1 || node->n_output > MOST)
        return err_set(err, ERR_FORMAT, "there are %zu parts; 1 to %d are supported",
                       node->n_output, MOST);
    int parts = (int)node->n_output;
    int64_t extent = onnx_shape(im, x)->dim[axis];
    int given = im->opset < 13      ? onnx_int_list(node, "split", sizes, MOST, err)
                : onnx_has(node, 1) ? onnx_ints(im, node, 1, "split", sizes, MOST, err)
                                    : 0;
    if (given < 0)
        return false;
    if (given && given != parts)
        return err_set(err, ERR_FORMAT, "there are %d sizes for %d outputs", given, parts);
    int64_t each = ceil_div(extent, parts);
    for (int i = 0; i < parts; i++) {
        int64_t size = given ? sizes[i] : i + 1 < parts ? each : extent - begin;
        if (size < 1 || size > extent - begin)
            return err_set(err, ERR_FORMAT, "part %d has size %lld; %lld are left", i,
                           (long long)size, (long long)(extent - begin));
        value_id y = part(im, node, i ? ".part" : NULL, x, axis, begin, begin + size, err);
        if (!onnx_bind(im, node, (size_t)i, y, err))
            return false;
        begin += size;
    }
    return true;
}

/* The pads in front of and behind every axis; 0 where none are named. */
static bool read_pads(struct onnx_import *im, onnx_node *node, int rank, int64_t *front,
                      int64_t *back, struct err *err)
{
    int64_t pads[2 * SHAPE_DIMS], axes[SHAPE_DIMS];
    int n = im->opset >= 11 ? onnx_ints(im, node, 1, "pads", pads, 2 * SHAPE_DIMS, err)
                            : onnx_int_list(node, im->opset < 2 ? "paddings" : "pads", pads,
                                            2 * SHAPE_DIMS, err);
    int named = onnx_has(node, 3) ? onnx_ints(im, node, 3, "axes", axes, SHAPE_DIMS, err) : 0;
    if (n < 0 || named < 0)
        return false;
    if (n != 2 * (named ? named : rank))
        return err_set(err, ERR_FORMAT, "there are %d pads for %d axes; two per axis are needed", n,
                       named ? named : rank);
    for (int i = 0; i < n / 2; i++) {
        int axis = named ? axis_of(axes[i], rank) : i;
        if (axis < 0)
            return no_axis(axes[i], rank, err);
        front[axis] = pads[i], back[axis] = pads[n / 2 + i];
    }
    return true;
}

static bool pad_value(struct onnx_import *im, onnx_node *node, float *out, struct err *err)
{
    *out = onnx_float(node, "value", 0);
    if (im->opset < 11 || !onnx_has(node, 2))
        return true;
    const struct host *value = onnx_constant(im, node, 2, "the value", err);
    if (!value)
        return false;
    if (value->count > 1)
        return err_set(err, ERR_FORMAT, "the value is not one number");
    *out = value->count ? host_float(value, 0) : 0;
    return true;
}

/* The axes of [.., .., .., ..] in an order that has the padded ones, at most two, at the end. False
 * if there are more. */
static bool padded_last(const int64_t *front, const int64_t *back, int64_t *order)
{
    int n = 0, padded = 0;
    bool last[4];
    for (int i = 0; i < 4; i++)
        padded += last[i] = front[i] || back[i];
    for (int i = 3; i >= 0 && padded < 2; i--)
        if (!last[i])
            last[i] = true, padded++;
    for (int i = 0; i < 8; i++)
        if (last[i % 4] == (i >= 4))
            order[n++] = i % 4;
    return padded == 2;
}

static value_id transposed(struct onnx_import *im, onnx_node *node, const char *suffix, value_id x,
                           const int64_t *order, struct err *err)
{
    union attr attr = { .transpose = { .rank = 4 } };
    memcpy(attr.transpose.order, order, 4 * sizeof *order);
    return x == NO_VALUE ? NO_VALUE : onnx_add(im, node, suffix, OP_TRANSPOSE, &x, 1, &attr, err);
}

/* One axis of a tensor as the rows of images [before, 1, extent, behind], which is padded there. */
static value_id pad_axis(struct onnx_import *im, onnx_node *node, value_id x, int axis,
                         int64_t front, int64_t back, const struct pad_attr *pad, struct err *err)
{
    struct shape shape = *onnx_shape(im, x), target = shape;
    int64_t before = shape_span(&shape, 0, axis);
    int64_t behind = shape_span(&shape, axis + 1, shape.rank);
    union attr attr = { .pad = *pad };
    memset(attr.pad.pad, 0, sizeof attr.pad.pad);
    attr.pad.pad[SIDE_TOP] = front, attr.pad.pad[SIDE_BOTTOM] = back;
    x = onnx_add_reshape(im, node, ".rows", x, SHAPE(before, 1, shape.dim[axis], behind), err);
    if (x == NO_VALUE)
        return NO_VALUE;
    x = onnx_add(im, node, ".padded", OP_PAD, &x, 1, &attr, err);
    if (x == NO_VALUE)
        return NO_VALUE;
    target.dim[axis] = onnx_shape(im, x)->dim[2];
    return onnx_add_reshape(im, node, ".axes", x, target, err);
}

static bool pad_each(struct onnx_import *im, onnx_node *node, value_id x, const int64_t *front,
                     const int64_t *back, const struct pad_attr *pad, struct err *err)
{
    int rank = onnx_shape(im, x)->rank;
    if (front[0] || back[0])
        return err_set(err, ERR_FORMAT, "the first axis, the images, cannot be padded");
    for (int i = 1; i < rank && x != NO_VALUE; i++)
        if (front[i] || back[i])
            x = pad_axis(im, node, x, i, front[i], back[i], pad, err);
    return onnx_bind(im, node, 0, x, err);
}

bool onnx_pad(struct onnx_import *im, onnx_node *node, struct err *err)
{
    static const char *const modes[] = { "constant", "reflect", "edge", NULL };
    static const enum pad_mode kinds[] = { PAD_ZERO, PAD_REFLECT, PAD_REPLICATE };
    int64_t front[SHAPE_DIMS] = { 0 }, back[SHAPE_DIMS] = { 0 }, order[4], inverse[4];
    value_id x = onnx_value(im, node, 0, err);
    int mode = onnx_choice(node, "mode", modes, err);
    union attr attr = { .pad = { .mode = kinds[mode < 0 ? 0 : mode] } };
    if (x == NO_VALUE || mode < 0 || !pad_value(im, node, &attr.pad.value, err))
        return false;
    int rank = onnx_shape(im, x)->rank;
    if (!read_pads(im, node, rank, front, back, err))
        return false;
    bool any = false;
    for (int i = 0; i < rank; i++)
        any = any || front[i] || back[i];
    if (!any)
        return onnx_bind(im, node, 0, x, err);
    if (rank != 4 || !padded_last(front, back, order))
        return pad_each(im, node, x, front, back, &attr.pad, err);
    bool moved = order[2] != 2 || order[3] != 3;
    for (int i = 0; i < 4; i++)
        inverse[order[i]] = i;
    attr.pad.pad[SIDE_TOP] = front[order[2]], attr.pad.pad[SIDE_LEFT] = front[order[3]];
    attr.pad.pad[SIDE_BOTTOM] = back[order[2]], attr.pad.pad[SIDE_RIGHT] = back[order[3]];
    if (moved)
        x = transposed(im, node, ".before", x, order, err);
    if (x == NO_VALUE)
        return false;
    x = onnx_add(im, node, moved ? ".padded" : NULL, OP_PAD, &x, 1, &attr, err);
    if (moved)
        x = transposed(im, node, NULL, x, inverse, err);
    return onnx_bind(im, node, 0, x, err);
}
