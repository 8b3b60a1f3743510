/* window.c: convolutions and pooling. Signals (one spatial axis) are images of height 1. */
#include <string.h>
#include "base/divide.h"
#include "net/onnx/import.h"

/* The attributes that convolutions and pooling share, for images; those of a signal are in the
 * second place. */
struct window {
    int spatial; /* axes: 1 or 2 */
    int64_t kernel[2], stride[2], pad[SIDES], dilation[2], output_pad[2];
    int auto_pad; /* index in auto_pads */
};

enum { PAD_GIVEN, PAD_SAME_UPPER, PAD_SAME_LOWER, PAD_VALID };
static const char *const auto_pads[] = { "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL };

/* A list attribute with one entry for each spatial axis (pads: two); absent leaves out as it is. */
static bool spread(onnx_node *node, const char *name, int spatial, int64_t *out, int per_axis,
                   struct err *err)
{
    int64_t values[SIDES];
    int n = onnx_int_list(node, name, values, SIDES, err);
    if (n < 0)
        return false;
    if (n && n != spatial * per_axis)
        return err_set(err, ERR_FORMAT, "%s has %d entries for %d axes", name, n, spatial);
    for (int i = 0; i < n; i++)
        out[i / spatial * 2 + i % spatial + (2 - spatial)] = values[i];
    return true;
}

static bool in_range(const int64_t *values, int n, int64_t min, const char *name, struct err *err)
{
    for (int i = 0; i < n; i++)
        if (values[i] < min || values[i] > INT32_MAX)
            return err_set(err, ERR_FORMAT, "%s contains %lld; the minimum is %lld", name,
                           (long long)values[i], (long long)min);
    return true;
}

static bool read_window(onnx_node *node, int rank, struct window *w, struct err *err)
{
    *w = (struct window){
        .spatial = rank - 2, .kernel = { 1, 1 }, .stride = { 1, 1 }, .dilation = { 1, 1 }
    };
    if (rank != 3 && rank != 4)
        return err_set(err, ERR_FORMAT, "%d spatial axes are not supported; 1 and 2 are",
                       rank < 2 ? 0 : rank - 2);
    w->auto_pad = onnx_choice(node, "auto_pad", auto_pads, err);
    return w->auto_pad >= 0 && spread(node, "kernel_shape", w->spatial, w->kernel, 1, err) &&
           spread(node, "strides", w->spatial, w->stride, 1, err) &&
           spread(node, "dilations", w->spatial, w->dilation, 1, err) &&
           spread(node, "output_padding", w->spatial, w->output_pad, 1, err) &&
           spread(node, "pads", w->spatial, w->pad, 2, err) &&
           in_range(w->kernel, 2, 1, "kernel_shape", err) &&
           in_range(w->stride, 2, 1, "strides", err) &&
           in_range(w->dilation, 2, 1, "dilations", err) &&
           in_range(w->output_pad, 2, 0, "output_padding", err) &&
           in_range(w->pad, SIDES, 0, "pads", err);
}

/* SAME: ceil(extent / stride) windows; VALID: none padded. */
static void resolve_auto_pad(struct window *w, const struct shape *x)
{
    if (w->auto_pad == PAD_VALID)
        memset(w->pad, 0, sizeof w->pad);
    if (w->auto_pad != PAD_SAME_UPPER && w->auto_pad != PAD_SAME_LOWER)
        return;
    for (int i = 0; i < 2; i++) {
        int64_t extent = x->dim[2 + i];
        int64_t count = ceil_div(extent, w->stride[i]);
        int64_t total =
            (count - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - extent;
        if (total < 0)
            total = 0;
        int64_t less = total / 2;
        w->pad[i] = w->auto_pad == PAD_SAME_UPPER ? less : total - less;
        w->pad[2 + i] = total - w->pad[i];
    }
}

/* [N, C, L] -> [N, C, 1, L]; images stay as they are. */
static value_id as_image(struct onnx_import *im, onnx_node *node, value_id x, struct err *err)
{
    if (x == NO_VALUE || onnx_shape(im, x)->rank != 3)
        return x;
    return onnx_add_reshape(im, node, ".image", x, SHAPE(0, 0, 1, -1), err);
}

/* The result of a node that was given a signal as an image. */
static bool bind_result(struct onnx_import *im, onnx_node *node, const struct window *w,
                        value_id value, struct err *err)
{
    if (w->spatial == 1)
        value = onnx_add_reshape(im, node, ".signal", value, SHAPE(0, 0, -1), err);
    return onnx_bind(im, node, 0, value, err);
}

/* The weight as a parameter of an image convolution. */
static value_id weight_of(struct onnx_import *im, onnx_node *node, struct window *w,
                          struct err *err)
{
    const struct host *host = onnx_constant(im, node, 1, "the weight", err);
    if (!host)
        return NO_VALUE;
    struct shape shape = host->shape;
    if (shape.rank != w->spatial + 2) {
        err_set(err, ERR_FORMAT, "the weight has %d axes, the input %d", shape.rank,
                w->spatial + 2);
        return NO_VALUE;
    }
    if (w->spatial == 1)
        shape = SHAPE(shape.dim[0], shape.dim[1], 1, shape.dim[2]);
    w->kernel[0] = shape.dim[2], w->kernel[1] = shape.dim[3];
    return onnx_parameter(im, node, 1, shape, false, err);
}

/* x, weight and, if there is one, bias. Returns their number, 0 with an error. */
static int conv_inputs(struct onnx_import *im, onnx_node *node, struct window *w, value_id *inputs,
                       bool transposed, struct err *err)
{
    inputs[0] = onnx_value(im, node, 0, err);
    if (inputs[0] == NO_VALUE || !read_window(node, onnx_shape(im, inputs[0])->rank, w, err))
        return 0;
    const struct shape *x = onnx_shape(im, inputs[0]);
    if (!in_range(x->dim, x->rank, 1, "the input's shape", err))
        return 0;
    inputs[0] = as_image(im, node, inputs[0], err);
    inputs[1] = inputs[0] == NO_VALUE ? NO_VALUE : weight_of(im, node, w, err);
    if (inputs[1] == NO_VALUE)
        return 0;
    if (!onnx_has(node, 2))
        return 2;
    const struct shape *weight = onnx_shape(im, inputs[1]);
    int64_t groups = onnx_int(node, "group", 1);
    int64_t outputs = weight->dim[0];
    if (transposed && (groups < 1 || __builtin_mul_overflow(weight->dim[1], groups, &outputs))) {
        err_set(err, ERR_FORMAT, "%lld groups are not possible", (long long)groups);
        return 0;
    }
    inputs[2] = onnx_parameter(im, node, 2, SHAPE(outputs), false, err);
    return inputs[2] == NO_VALUE ? 0 : 3;
}

static struct conv_attr conv_attr_of(onnx_node *node, const struct window *w)
{
    struct conv_attr attr = { .groups = onnx_int(node, "group", 1) };
    memcpy(attr.kernel, w->kernel, sizeof attr.kernel);
    memcpy(attr.stride, w->stride, sizeof attr.stride);
    memcpy(attr.pad, w->pad, sizeof attr.pad);
    memcpy(attr.dilation, w->dilation, sizeof attr.dilation);
    memcpy(attr.output_pad, w->output_pad, sizeof attr.output_pad);
    if (attr.groups == 0)
        attr.groups = -1; /* 0 would mean 1 */
    return attr;
}

/* The first two entries of a list for three axes, and what the third one must be. */
static bool flat_list(onnx_node *node, const char *name, int64_t third, int64_t *out,
                      struct err *err)
{
    int64_t values[3];
    int n = onnx_int_list(node, name, values, 3, err);
    if (n == 0)
        return true;
    if (n == 3)
        out[0] = values[0], out[1] = values[1];
    return n == 3 && values[2] == third;
}

/* A convolution of a volume [N, C, H, W, D] that does not reach along its last axis: of D images.
 */
static bool conv_slices(struct onnx_import *im, onnx_node *node, value_id x, struct err *err)
{
    union attr to = { .transpose = { 5, { 0, 4, 1, 2, 3 } } };
    union attr back = { .transpose = { 5, { 0, 2, 3, 4, 1 } } };
    union attr attr = { .conv = { .groups = onnx_int(node, "group", 1) } };
    int64_t pads[6] = { 0 };
    const struct host *weight = onnx_constant(im, node, 1, "the weight", err);
    if (!weight)
        return false;
    struct shape s = *onnx_shape(im, x), k = weight->shape;
    bool flat = flat_list(node, "strides", 1, attr.conv.stride, err) &&
                flat_list(node, "dilations", 1, attr.conv.dilation, err) && k.rank == 5 &&
                k.dim[4] == 1 && onnx_int_list(node, "pads", pads, 6, err) >= 0 && !pads[2] &&
                !pads[5] && onnx_choice(node, "auto_pad", auto_pads, err) == PAD_GIVEN &&
                attr.conv.groups > 0 && in_range(pads, 6, 0, "pads", err);
    if (!flat)
        return err_set(err, ERR_FORMAT, "3 spatial axes are not supported; 1 and 2 are");
    memcpy(attr.conv.pad, (int64_t[SIDES]){ pads[0], pads[1], pads[3], pads[4] },
           sizeof attr.conv.pad);
    attr.conv.kernel[0] = k.dim[2], attr.conv.kernel[1] = k.dim[3];
    value_id inputs[3] = { onnx_add(im, node, ".slices", OP_TRANSPOSE, &x, 1, &to, err) };
    inputs[0] = onnx_add_reshape(im, node, ".images", inputs[0],
                                 SHAPE(s.dim[0] * s.dim[4], s.dim[1], s.dim[2], s.dim[3]), err);
    inputs[1] =
        onnx_parameter(im, node, 1, SHAPE(k.dim[0], k.dim[1], k.dim[2], k.dim[3]), false, err);
    inputs[2] = onnx_has(node, 2) ? onnx_parameter(im, node, 2, SHAPE(k.dim[0]), false, err) : 0;
    if (inputs[0] == NO_VALUE || inputs[1] == NO_VALUE || inputs[2] == NO_VALUE)
        return false;
    value_id y =
        onnx_add(im, node, ".conv", OP_CONV, inputs, onnx_has(node, 2) ? 3 : 2, &attr, err);
    if (y == NO_VALUE)
        return false;
    struct shape o = *onnx_shape(im, y);
    y = onnx_add_reshape(im, node, ".volume", y,
                         SHAPE(s.dim[0], s.dim[4], o.dim[1], o.dim[2], o.dim[3]), err);
    if (y == NO_VALUE)
        return false;
    return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_TRANSPOSE, &y, 1, &back, err), err);
}

bool onnx_conv(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct window w;
    value_id inputs[3], x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    if (onnx_shape(im, x)->rank == 5)
        return conv_slices(im, node, x, err);
    int n = conv_inputs(im, node, &w, inputs, false, err);
    if (!n)
        return false;
    resolve_auto_pad(&w, onnx_shape(im, inputs[0]));
    union attr attr = { .conv = conv_attr_of(node, &w) };
    return bind_result(im, node, &w, onnx_add(im, node, NULL, OP_CONV, inputs, n, &attr, err), err);
}

/* The padding that gives a wanted output size: of output_shape, or of SAME (extent * stride). */
static bool transpose_padding(onnx_node *node, struct window *w, const struct shape *x,
                              struct err *err)
{
    int64_t wanted[2] = { 1, 1 }, given[SHAPE_DIMS];
    int n = onnx_int_list(node, "output_shape", given, SHAPE_DIMS, err);
    if (n < 0)
        return false;
    bool same = w->auto_pad == PAD_SAME_UPPER || w->auto_pad == PAD_SAME_LOWER;
    if (!n && !same) {
        resolve_auto_pad(w, x);
        return true;
    }
    if (n && n < w->spatial)
        return err_set(err, ERR_FORMAT, "output_shape has %d entries for %d axes", n, w->spatial);
    for (int i = 0; i < w->spatial; i++) {
        int axis = i + 2 - w->spatial;
        wanted[axis] = n ? given[n - w->spatial + i] : x->dim[2 + axis] * w->stride[axis];
    }
    if (!in_range(wanted, 2, 1, "output_shape", err))
        return false;
    for (int i = 0; i < 2; i++) {
        int64_t total = w->stride[i] * (x->dim[2 + i] - 1) + w->output_pad[i] +
                        (w->kernel[i] - 1) * w->dilation[i] + 1 - wanted[i];
        if (total < 0)
            w->output_pad[i] -= total, total = 0;
        int64_t less = total / 2;
        w->pad[i] = w->auto_pad == PAD_SAME_UPPER ? less : total - less;
        w->pad[2 + i] = total - w->pad[i];
    }
    return true;
}

bool onnx_conv_transpose(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct window w;
    value_id inputs[3];
    int n = conv_inputs(im, node, &w, inputs, true, err);
    if (!n || !transpose_padding(node, &w, onnx_shape(im, inputs[0]), err))
        return false;
    union attr attr = { .conv = conv_attr_of(node, &w) };
    return bind_result(im, node, &w,
                       onnx_add(im, node, NULL, OP_CONV_TRANSPOSE, inputs, n, &attr, err), err);
}

static bool pool(struct onnx_import *im, onnx_node *node, enum op_kind kind, struct err *err)
{
    struct window w;
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE || !read_window(node, onnx_shape(im, x)->rank, &w, err))
        return false;
    if (!onnx_attribute(node, "kernel_shape"))
        return err_set(err, ERR_FORMAT, "kernel_shape is missing");
    x = as_image(im, node, x, err);
    if (x == NO_VALUE)
        return false;
    resolve_auto_pad(&w, onnx_shape(im, x));
    union attr attr = { .pool = { .ceil_mode = onnx_int(node, "ceil_mode", 0) != 0,
                                  .count_include_pad =
                                      onnx_int(node, "count_include_pad", 0) != 0 } };
    memcpy(attr.pool.kernel, w.kernel, sizeof attr.pool.kernel);
    memcpy(attr.pool.stride, w.stride, sizeof attr.pool.stride);
    memcpy(attr.pool.pad, w.pad, sizeof attr.pool.pad);
    memcpy(attr.pool.dilation, w.dilation, sizeof attr.pool.dilation);
    return bind_result(im, node, &w, onnx_add(im, node, NULL, kind, &x, 1, &attr, err), err);
}

bool onnx_max_pool(struct onnx_import *im, onnx_node *node, struct err *err)
{
    if (onnx_wanted(im, node, 1))
        return err_set(err, ERR_FORMAT,
                       "the indices of the maxima (second output) are not supported");
    return pool(im, node, OP_MAX_POOL, err);
}

bool onnx_average_pool(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return pool(im, node, OP_AVERAGE_POOL, err);
}

static bool global_pool(struct onnx_import *im, onnx_node *node, enum op_kind kind, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    int rank = onnx_shape(im, x)->rank;
    struct window w = { .spatial = rank - 2 };
    if (rank != 3 && rank != 4)
        return err_set(err, ERR_FORMAT, "the input has %d axes; 3 and 4 are supported", rank);
    x = as_image(im, node, x, err);
    if (x == NO_VALUE)
        return false;
    return bind_result(im, node, &w, onnx_add(im, node, NULL, kind, &x, 1, NULL, err), err);
}

bool onnx_global_average_pool(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return global_pool(im, node, OP_GLOBAL_AVERAGE_POOL, err);
}

bool onnx_global_max_pool(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return global_pool(im, node, OP_GLOBAL_MAX_POOL, err);
}
