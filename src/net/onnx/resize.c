/* resize.c: images enlarged or shrunk. ONNX defines many ways to place the pixels. Where every
 * pixel of the output comes from the same place as in our own upsampling, that is used; else pixels
 * are taken one by one, or each side is a product with a matrix of weights. */
#include <math.h>
#include <stdlib.h>
#include "net/onnx/fold.h"
#include "net/onnx/resize_axis.h"

/* Of one side; every pixel's place is compared. */
#define PIXELS_LIMIT (1 << 17)

static const char *const coordinates[] = { "half_pixel", "pytorch_half_pixel",   "align_corners",
                                           "asymmetric", "tf_half_pixel_for_nn", NULL };
static const char *const roundings[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
                                         NULL };
static const char *const modes[] = { "nearest", "linear", "cubic", NULL };

struct resize {
    struct resize_axis how; /* but for scale and extents */
    double scale[2];
    int64_t size[2]; /* 0: by the scale */
};

static double clamped(float at, int64_t in)
{
    return at < 0 ? 0 : (double)at > (double)(in - 1) ? (double)(in - 1) : (double)at;
}

/* Ours along one axis: nearest takes floor(i / scale), linear the middle of the pixels or, with
 * align_corners, the corners. */
static bool same_places(const struct resize_axis *a)
{
    struct resize_axis own = *a;
    own.coordinates = a->mode == RESIZE_NEAREST         ? ASYMMETRIC
                      : a->coordinates == ALIGN_CORNERS ? ALIGN_CORNERS
                                                        : HALF_PIXEL;
    own.rounding = FLOOR;
    if (a->mode == RESIZE_CUBIC || a->antialias)
        return false;
    for (int64_t i = 0; i < a->out; i++) {
        float theirs = resize_place(a, i), ours = resize_place(&own, i);
        if (a->mode == RESIZE_NEAREST
                ? resize_nearest(a, i) != resize_nearest(&own, i)
                : fabs(clamped(theirs, a->in) - clamped(ours, a->in)) > 1e-6 * (double)a->in)
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

/* Side i (0: height) of an image of this shape; false with an error. */
static bool side_of(const struct resize *r, int i, const struct shape *shape,
                    struct resize_axis *side, struct err *err)
{
    *side = r->how;
    side->in = shape->dim[2 + i];
    side->scale = (float)r->scale[i];
    double extent =
        r->size[i] ? (double)r->size[i] : floor((double)((float)side->in * side->scale));
    if (!(extent >= 1 && extent <= PIXELS_LIMIT) || side->in < 1 || side->in > PIXELS_LIMIT)
        return err_set(err, ERR_FORMAT, "%lld px cannot become %g px; 1 to %d are supported",
                       (long long)side->in, extent, PIXELS_LIMIT);
    side->out = (int64_t)extent;
    return true;
}

/* The weights [out, in] of a side; the caller's. */
static struct host *matrix_of(struct onnx_import *im, const struct resize_axis *side,
                              struct err *err)
{
    struct host *matrix = onnx_host_new(im, HOST_FLOAT, SHAPE(side->out, side->in), err);
    for (int64_t i = 0; matrix && i < side->out; i++)
        resize_weights(side, i, matrix->floats + i * side->in);
    return matrix;
}

static value_id by_places(struct onnx_import *im, onnx_node *node, value_id x, int axis,
                          const struct resize_axis *side, struct err *err)
{
    struct host *places = onnx_host_new(im, HOST_FLOAT, SHAPE(side->out), err);
    for (int64_t i = 0; places && i < side->out; i++)
        places->floats[i] = (float)resize_nearest(side, i);
    value_id inputs[2] = { x, places ? onnx_store(im, node->output[0], true, places->shape,
                                                  places->floats, err)
                                     : NO_VALUE };
    host_free(places);
    if (inputs[1] == NO_VALUE)
        return NO_VALUE;
    return onnx_add(im, node, ".side", OP_TAKE, inputs, 2, &(union attr){ .axis = { axis } }, err);
}

/* Height: weights [out, H] times x [N, C, H, W]; width: x times the weights transposed. */
static value_id by_weights(struct onnx_import *im, onnx_node *node, value_id x, int axis,
                           const struct resize_axis *side, struct err *err)
{
    struct host *matrix = matrix_of(im, side, err);
    value_id weights =
        matrix ? onnx_store(im, node->output[0], true, matrix->shape, matrix->floats, err)
               : NO_VALUE;
    host_free(matrix);
    if (weights == NO_VALUE)
        return NO_VALUE;
    if (axis == 3)
        return onnx_add(im, node, ".side", OP_LINEAR, (value_id[]){ x, weights }, 2, NULL, err);
    return onnx_add(im, node, ".side", OP_MATMUL, (value_id[]){ weights, x }, 2, NULL, err);
}

static bool make_node(struct onnx_import *im, onnx_node *node, value_id x, const struct resize *r,
                      struct err *err)
{
    struct shape shape = *onnx_shape(im, x);
    struct resize_axis sides[2];
    if (!side_of(r, 0, &shape, &sides[0], err) || !side_of(r, 1, &shape, &sides[1], err))
        return false;
    bool same_size = sides[0].out == sides[0].in && sides[1].out == sides[1].in;
    if (same_size || (same_places(&sides[0]) && same_places(&sides[1]))) {
        bool linear = r->how.mode == RESIZE_LINEAR;
        union attr attr = { .upsample = { .mode = linear ? UPSAMPLE_BILINEAR : UPSAMPLE_NEAREST,
                                          .align_corners =
                                              linear && r->how.coordinates == ALIGN_CORNERS,
                                          .scale = { r->scale[0], r->scale[1] },
                                          .size = { r->size[0], r->size[1] } } };
        return onnx_bind(im, node, 0, onnx_add(im, node, NULL, OP_UPSAMPLE, &x, 1, &attr, err),
                         err);
    }
    for (int i = 0; i < 2 && x != NO_VALUE; i++)
        if (sides[i].out != sides[i].in)
            x = r->how.mode == RESIZE_NEAREST ? by_places(im, node, x, 2 + i, &sides[i], err)
                                              : by_weights(im, node, x, 2 + i, &sides[i], err);
    return onnx_bind(im, node, 0, x, err);
}

/* What Resize says from opset 11 on; `shape` is that of the image. */
static bool read_new(struct onnx_import *im, onnx_node *node, const struct shape *shape,
                     struct resize *r, struct err *err)
{
    static const char *const policies[] = { "stretch", NULL };
    int64_t axes[SHAPE_DIMS];
    int named = onnx_int_list(node, "axes", axes, SHAPE_DIMS, err);
    r->how.mode = onnx_choice(node, "mode", modes, err);
    r->how.coordinates =
        r->how.mode < 0 ? -1
                        : onnx_choice(node, "coordinate_transformation_mode", coordinates, err);
    r->how.rounding =
        r->how.coordinates < 0 ? -1 : onnx_choice(node, "nearest_mode", roundings, err);
    if (named < 0 || r->how.rounding < 0 ||
        onnx_choice(node, "keep_aspect_ratio_policy", policies, err) < 0)
        return false;
    r->how.antialias = onnx_int(node, "antialias", 0) && r->how.mode != RESIZE_NEAREST;
    r->how.exclude_outside = onnx_int(node, "exclude_outside", 0) != 0;
    r->how.cubic = onnx_float(node, "cubic_coeff_a", -0.75f);
    const struct host *scales = onnx_known(im, node, 2, NULL);
    if (scales && scales->count)
        return take_scales(scales, axes, named, r, err);
    const struct host *sizes = onnx_constant(im, node, 3, "the sizes", err);
    return sizes && take_sizes(sizes, shape, axes, named, r, err);
}

/* Upsample, and Resize of opset 10. Before opset 11 ONNX Runtime rounds up where an image is made
 * smaller. */
static bool read_old(struct onnx_import *im, onnx_node *node, struct resize *r, struct err *err)
{
    static const char *const old_modes[] = { "nearest", "linear", NULL };
    const Onnx__AttributeProto *list = onnx_attribute(node, "scales");
    struct host own = { .type = HOST_FLOAT, .count = 4, .floats = list ? list->floats : NULL };
    const struct host *scales = &own;
    r->how.coordinates = ASYMMETRIC, r->how.rounding = FLOOR;
    r->how.mode = onnx_choice(node, "mode", old_modes, err);
    if (r->how.mode < 0)
        return false;
    if (im->opset >= 9)
        scales = onnx_constant(im, node, im->opset >= 11 ? 2 : 1, "the scales", err);
    else if (!list || list->n_floats != 4)
        return err_set(err, ERR_FORMAT, "four scales are needed");
    if (!scales || !take_scales(scales, NULL, 0, r, err))
        return false;
    if (r->scale[0] < 1 || r->scale[1] < 1)
        r->how.rounding = CEIL;
    return true;
}

static bool import_resize(struct onnx_import *im, onnx_node *node, bool old, struct err *err)
{
    struct resize r = { .scale = { 1, 1 } };
    value_id x = onnx_value(im, node, 0, err);
    if (x == NO_VALUE)
        return false;
    struct shape shape = *onnx_shape(im, x);
    if (shape.rank != 4)
        return err_set(err, ERR_FORMAT, "only [N, C, H, W] can be resized");
    return (old ? read_old(im, node, &r, err) : read_new(im, node, &shape, &r, err)) &&
           make_node(im, node, x, &r, err);
}

bool onnx_upsample(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return import_resize(im, node, true, err);
}

bool onnx_resize(struct onnx_import *im, onnx_node *node, struct err *err)
{
    return import_resize(im, node, im->opset < 11, err);
}

/* x [outer, in, inner] -> [outer, out, inner]; frees x. */
static struct host *resized(const struct fold_args *args, struct host *x, int axis,
                            const struct resize_axis *side)
{
    struct shape shape = x->shape;
    int64_t outer = shape_span(&shape, 0, axis), inner = shape_span(&shape, axis + 1, shape.rank);
    shape.dim[axis] = side->out;
    struct host *y = onnx_host_new(args->im, HOST_FLOAT, shape, args->err);
    struct host *matrix = y ? matrix_of(args->im, side, args->err) : NULL;
    for (int64_t o = 0; matrix && o < outer * side->out; o++)
        for (int64_t k = 0; k < side->in; k++) {
            float weight = matrix->floats[o % side->out * side->in + k];
            const float *from = x->floats + (o / side->out * side->in + k) * inner;
            for (int64_t i = 0; weight != 0 && i < inner; i++)
                y->floats[o * inner + i] += weight * from[i];
        }
    host_free(x);
    if (!matrix)
        host_free(y);
    host_free(matrix);
    return matrix ? y : NULL;
}

/* Position embeddings that are resampled. */
struct host *fold_resize(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    struct resize r = { .scale = { 1, 1 } };
    struct resize_axis sides[2];
    if (x->shape.rank != 4 || x->type != HOST_FLOAT)
        return fold_fail(args, "only [N, C, H, W] can be resized");
    if (!(args->im->opset < 11 ? read_old(args->im, args->node, &r, args->err)
                               : read_new(args->im, args->node, &x->shape, &r, args->err)) ||
        !side_of(&r, 0, &x->shape, &sides[0], args->err) ||
        !side_of(&r, 1, &x->shape, &sides[1], args->err))
        return NULL;
    struct host *y = fold_identity(args);
    if (y)
        y->origin = NULL;
    for (int i = 0; i < 2 && y; i++)
        if (sides[i].out != sides[i].in)
            y = resized(args, y, 2 + i, &sides[i]);
    return y;
}
