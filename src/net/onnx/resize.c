/* resize.c: images enlarged or shrunk. ONNX defines many ways to place the pixels; one is supported
 * if every pixel of the output comes from the same place as in our implementation. */
#include <math.h>
#include "net/onnx/import.h"

/* Of one side; every pixel's place is compared. */
#define PIXELS_LIMIT (1 << 17)

enum { HALF_PIXEL, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC, TF_HALF_PIXEL };
static const char *const coordinates[] = { "half_pixel", "pytorch_half_pixel",   "align_corners",
                                           "asymmetric", "tf_half_pixel_for_nn", NULL };
enum { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };
static const char *const roundings[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
                                         NULL };
static const char *const modes[] = { "nearest", "linear", NULL };

struct resize {
    int mode, coordinates, rounding;
    double scale[2];
    int64_t size[2]; /* 0: by the scale */
};

/* The position of output pixel i in the input (one axis), in floats, as in ONNX Runtime. */
static float place(const struct resize *r, int64_t i, int64_t in, int64_t out, float scale)
{
    switch (r->coordinates) {
    case PYTORCH_HALF_PIXEL:
        return out > 1 ? ((float)i + 0.5f) / scale - 0.5f : 0;
    case ALIGN_CORNERS:
        return out > 1 ? (float)i * (float)(in - 1) / (float)(out - 1) : 0;
    case ASYMMETRIC:
        return (float)i / scale;
    case TF_HALF_PIXEL:
        return ((float)i + 0.5f) / scale;
    default:
        return ((float)i + 0.5f) / scale - 0.5f;
    }
}

static int64_t nearest(const struct resize *r, float place, int64_t in)
{
    double at = (double)place;
    double whole = r->rounding == FLOOR          ? floor(at)
                   : r->rounding == CEIL         ? ceil(at)
                   : r->rounding == PREFER_FLOOR ? ceil(at - 0.5)
                                                 : floor(at + 0.5);
    return whole < 0 ? 0 : whole > (double)(in - 1) ? in - 1 : (int64_t)whole;
}

static double clamped(float at, int64_t in)
{
    return at < 0 ? 0 : (double)at > (double)(in - 1) ? (double)(in - 1) : (double)at;
}

/* Ours along one axis: nearest takes floor(i / scale), linear the middle of the pixels or, with
 * align_corners, the corners. */
static bool same_places(const struct resize *r, int64_t in, int64_t out, float scale,
                        bool align_corners)
{
    struct resize own = { .coordinates = r->mode == 0    ? ASYMMETRIC
                                         : align_corners ? ALIGN_CORNERS
                                                         : HALF_PIXEL,
                          .rounding = FLOOR };
    for (int64_t i = 0; i < out; i++) {
        float theirs = place(r, i, in, out, scale), ours = place(&own, i, in, out, scale);
        if (r->mode == 0 ? nearest(r, theirs, in) != nearest(&own, ours, in)
                         : fabs(clamped(theirs, in) - clamped(ours, in)) > 1e-6 * (double)in)
            return false;
    }
    return true;
}

/* n numbers for all axes (or the named ones): those of height and width; others must be 1 (scales)
 * or the extent (sizes). */
static bool take_scales(const struct host *scales, const int64_t *axes, int named, struct resize *r,
                        struct err *err)
{
    int n = named ? named : 4;
    if (scales->count != n)
        return err_set(err, ERR_FORMAT, "there are %lld scales for %d axes",
                       (long long)scales->count, n);
    for (int i = 0; i < n; i++) {
        int axis = named ? axis_of(axes[i], 4) : i;
        double scale = host_number(scales, i);
        if (axis < 0 || (axis < 2 && scale != 1))
            return err_set(err, ERR_FORMAT, "only height and width can be resized");
        if (axis >= 2 && !(scale > 0 && scale < 1e6))
            return err_set(err, ERR_FORMAT, "the scale %g is not between 0 and 1e6", scale);
        if (axis >= 2)
            r->scale[axis - 2] = scale;
    }
    return true;
}

static bool take_sizes(const struct host *sizes, const struct shape *x, const int64_t *axes,
                       int named, struct resize *r, struct err *err)
{
    int n = named ? named : 4;
    if (sizes->count != n || sizes->type != HOST_INT)
        return err_set(err, ERR_FORMAT, "there are %lld sizes for %d axes, or they are not whole",
                       (long long)sizes->count, n);
    for (int i = 0; i < n; i++) {
        int axis = named ? axis_of(axes[i], 4) : i;
        int64_t size = sizes->ints[i];
        if (axis < 0 || (axis < 2 && size != x->dim[axis]))
            return err_set(err, ERR_FORMAT, "only height and width can be resized");
        if (size < 1 || size > INT32_MAX)
            return err_set(err, ERR_FORMAT, "the size %lld is not between 1 and 2^31",
                           (long long)size);
        if (axis >= 2) {
            r->size[axis - 2] = size;
            r->scale[axis - 2] = (double)((float)size / (float)x->dim[axis]);
        }
    }
    return true;
}

static bool make_node(struct onnx_import *im, onnx_node *node, value_id x, const struct resize *r,
                      struct err *err)
{
    union attr attr = { .upsample = { .mode = r->mode ? UPSAMPLE_BILINEAR : UPSAMPLE_NEAREST,
                                      .align_corners = r->mode && r->coordinates == ALIGN_CORNERS,
                                      .scale = { r->scale[0], r->scale[1] },
                                      .size = { r->size[0], r->size[1] } } };
    struct shape shape = *onnx_shape(im, x);
    value_id y = onnx_add(im, node, NULL, OP_UPSAMPLE, &x, 1, &attr, err);
    if (y == NO_VALUE)
        return false;
    bool same_size = shape_equal(&shape, onnx_shape(im, y));
    for (int i = 0; i < 2; i++)
        if (onnx_shape(im, y)->dim[2 + i] > PIXELS_LIMIT ||
            (!same_size && !same_places(r, shape.dim[2 + i], onnx_shape(im, y)->dim[2 + i],
                                        (float)r->scale[i], attr.upsample.align_corners)))
            return err_set(err, ERR_FORMAT,
                           "%s interpolation with the coordinates '%s' and the rounding '%s' is "
                           "not supported at this scale",
                           modes[r->mode], coordinates[r->coordinates], roundings[r->rounding]);
    return onnx_bind(im, node, 0, y, err);
}

static bool image_input(struct onnx_import *im, onnx_node *node, value_id *x, struct err *err)
{
    *x = onnx_value(im, node, 0, err);
    if (*x == NO_VALUE)
        return false;
    return onnx_shape(im, *x)->rank == 4 ||
           err_set(err, ERR_FORMAT, "only [N, C, H, W] can be resized");
}

/* Before opset 11 ONNX Runtime rounds up where an image is made smaller. */
static bool make_old(struct onnx_import *im, onnx_node *node, value_id x, const struct host *scales,
                     struct resize *r, struct err *err)
{
    if (!take_scales(scales, NULL, 0, r, err))
        return false;
    if (r->scale[0] < 1 || r->scale[1] < 1)
        r->rounding = CEIL;
    return make_node(im, node, x, r, err);
}

bool onnx_upsample(struct onnx_import *im, onnx_node *node, struct err *err)
{
    struct resize r = { .coordinates = ASYMMETRIC, .rounding = FLOOR, .scale = { 1, 1 } };
    value_id x;
    if (!image_input(im, node, &x, err) || (r.mode = onnx_choice(node, "mode", modes, err)) < 0)
        return false;
    if (im->opset >= 9) {
        size_t i = im->opset >= 11 ? 2 : 1;
        const struct host *scales = onnx_constant(im, node, i, "the scales", err);
        return scales && make_old(im, node, x, scales, &r, err);
    }
    const Onnx__AttributeProto *list = onnx_attribute(node, "scales");
    if (!list || list->n_floats != 4)
        return err_set(err, ERR_FORMAT, "four scales are needed");
    struct host scales = { .type = HOST_FLOAT, .count = 4, .floats = list->floats };
    return make_old(im, node, x, &scales, &r, err);
}

bool onnx_resize(struct onnx_import *im, onnx_node *node, struct err *err)
{
    static const char *const policies[] = { "stretch", NULL };
    struct resize r = { .scale = { 1, 1 } };
    int64_t axes[SHAPE_DIMS];
    value_id x;
    if (im->opset < 11)
        return onnx_upsample(im, node, err);
    int named = onnx_int_list(node, "axes", axes, SHAPE_DIMS, err);
    r.mode = onnx_choice(node, "mode", modes, err);
    r.coordinates =
        r.mode < 0 ? -1 : onnx_choice(node, "coordinate_transformation_mode", coordinates, err);
    r.rounding = r.coordinates < 0 ? -1 : onnx_choice(node, "nearest_mode", roundings, err);
    if (named < 0 || r.rounding < 0 ||
        onnx_choice(node, "keep_aspect_ratio_policy", policies, err) < 0 ||
        !image_input(im, node, &x, err))
        return false;
    if (onnx_int(node, "antialias", 0))
        return err_set(err, ERR_FORMAT, "antialias is not supported");
    const struct host *scales = onnx_known(im, node, 2, NULL);
    if (scales && scales->count)
        return take_scales(scales, axes, named, &r, err) && make_node(im, node, x, &r, err);
    const struct host *sizes = onnx_constant(im, node, 3, "the sizes", err);
    struct shape shape = *onnx_shape(im, x);
    return sizes && take_sizes(sizes, &shape, axes, named, &r, err) &&
           make_node(im, node, x, &r, err);
}
