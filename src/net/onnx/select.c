/* select.c: elements chosen by a constant condition, and blocks of pixels moved to channels and
 * back.
 */
#include <string.h>
#include "net/onnx/fold.h"

/* Input i where the condition is `yes`, else 0. An infinite constant elsewhere does no harm. */
static value_id chosen(struct onnx_import *im, onnx_node *node, size_t i, const struct host *where,
                       bool yes, struct err *err)
{
    const struct host *known = onnx_known(im, node, i, NULL);
    struct shape shape = where->shape;
    if (known && !shape_broadcast(&known->shape, &where->shape, &shape)) {
        err_set(err, ERR_FORMAT, "the shapes of the inputs do not match");
        return NO_VALUE;
    }
    struct host *mask = shape_check(&shape, "the condition", err)
                            ? onnx_host_new(im, HOST_FLOAT, shape, err)
                            : NULL;
    if (!mask)
        return NO_VALUE;
    for (int64_t k = 0; k < mask->count; k++) {
        bool here = (where->ints[fold_broadcast(&shape, k, &where->shape)] != 0) == yes;
        mask->floats[k] = !here   ? 0
                          : known ? host_float(known, fold_broadcast(&shape, k, &known->shape))
                                  : 1;
    }
    value_id factor = onnx_store(im, node->output[0], true, shape, mask->floats, err);
    host_free(mask);
    if (known || factor == NO_VALUE)
        return factor;
    value_id x = onnx_value(im, node, i, err);
    if (x == NO_VALUE)
        return NO_VALUE;
    return onnx_add(im, node, yes ? ".yes" : ".no", OP_MUL, (value_id[]){ x, factor }, 2, NULL,
                    err);
}

/* a where the condition holds, plus b where it does not. */
bool onnx_where(struct onnx_import *im, onnx_node *node, struct err *err)
{
    const struct host *where = onnx_constant(im, node, 0, "the condition", err);
    if (!where)
        return false;
    if (where->type != HOST_INT)
        return err_set(err, ERR_FORMAT, "the condition is not true or false");
    value_id a = chosen(im, node, 1, where, true, err);
    where = a == NO_VALUE ? NULL : onnx_constant(im, node, 0, "the condition", err);
    value_id b = where ? chosen(im, node, 2, where, false, err) : NO_VALUE;
    if (b == NO_VALUE)
        return false;
    value_id y = onnx_add(im, node, NULL, OP_ADD, (value_id[]){ a, b }, 2, NULL, err);
    return onnx_bind(im, node, 0, y, err);
}

/* x times ones and zeros. */
bool onnx_trilu(struct onnx_import *im, onnx_node *node, struct err *err)
{
    value_id x = onnx_value(im, node, 0, err);
    int64_t shift = 0;
    if (x == NO_VALUE ||
        (onnx_has(node, 1) && onnx_ints(im, node, 1, "the diagonal", &shift, 1, err) < 0))
        return false;
    const struct shape *shape = onnx_shape(im, x);
    if (shape->rank < 2)
        return err_set(err, ERR_FORMAT, "the input is not a matrix");
    struct shape matrix = SHAPE(shape->dim[shape->rank - 2], shape->dim[shape->rank - 1]);
    bool upper = onnx_int(node, "upper", 1) != 0;
    shift = shift < -matrix.dim[0] ? -matrix.dim[0] : shift > matrix.dim[1] ? matrix.dim[1] : shift;
    struct host *mask = onnx_host_new(im, HOST_FLOAT, matrix, err);
    if (!mask)
        return false;
    for (int64_t i = 0; i < mask->count; i++) {
        int64_t above = i % matrix.dim[1] - i / matrix.dim[1] - shift;
        mask->floats[i] = (upper ? above >= 0 : above <= 0) ? 1 : 0;
    }
    value_id factor = onnx_store(im, node->output[0], true, matrix, mask->floats, err);
    host_free(mask);
    if (factor == NO_VALUE)
        return false;
    value_id y = onnx_add(im, node, NULL, OP_MUL, (value_id[]){ x, factor }, 2, NULL, err);
    return onnx_bind(im, node, 0, y, err);
}

/* x as `split` axes, these in another order, and as `joined` axes again. */
static value_id shuffled(struct onnx_import *im, onnx_node *node, value_id x, struct shape split,
                         const int64_t order[SHAPE_DIMS], struct shape together, struct err *err)
{
    union attr attr = { .transpose = { .rank = SHAPE_DIMS } };
    memcpy(attr.transpose.order, order, sizeof attr.transpose.order);
    value_id y = onnx_add_reshape(im, node, ".split", x, split, err);
    if (y == NO_VALUE)
        return NO_VALUE;
    y = onnx_add(im, node, ".moved", OP_TRANSPOSE, &y, 1, &attr, err);
    return onnx_add_reshape(im, node, NULL, y, together, err);
}

static bool image_and_block(struct onnx_import *im, onnx_node *node, value_id *x, int64_t *block,
                            struct err *err)
{
    *x = onnx_value(im, node, 0, err);
    *block = onnx_int(node, "blocksize", 0);
    if (*x == NO_VALUE)
        return false;
    if (onnx_shape(im, *x)->rank != 4 || *block < 1 || *block > 1024)
        return err_set(err, ERR_FORMAT,
                       "only [N, C, H, W] and blocks of 1 to 1024 px are supported");
    return true;
}

bool onnx_depth_to_space(struct onnx_import *im, onnx_node *node, struct err *err)
{
    static const char *const modes[] = { "DCR", "CRD", NULL };
    static const int64_t orders[2][SHAPE_DIMS] = { { 0, 3, 4, 1, 5, 2 }, { 0, 1, 4, 2, 5, 3 } };
    int mode = onnx_choice(node, "mode", modes, err);
    value_id x;
    int64_t b;
    if (mode < 0 || !image_and_block(im, node, &x, &b, err))
        return false;
    struct shape s = *onnx_shape(im, x);
    int64_t channels = s.dim[1] / (b * b);
    if (channels * b * b != s.dim[1])
        return err_set(err, ERR_FORMAT, "%lld channels are not blocks of %lld px",
                       (long long)s.dim[1], (long long)b);
    struct shape split = mode ? SHAPE(s.dim[0], channels, b, b, s.dim[2], s.dim[3])
                              : SHAPE(s.dim[0], b, b, channels, s.dim[2], s.dim[3]);
    struct shape together = SHAPE(s.dim[0], channels, s.dim[2] * b, s.dim[3] * b);
    return onnx_bind(im, node, 0, shuffled(im, node, x, split, orders[mode], together, err), err);
}

bool onnx_space_to_depth(struct onnx_import *im, onnx_node *node, struct err *err)
{
    static const char *const modes[] = { "DCR", "CRD", NULL };
    static const int64_t orders[2][SHAPE_DIMS] = { { 0, 3, 5, 1, 2, 4 }, { 0, 1, 3, 5, 2, 4 } };
    int mode = onnx_choice(node, "mode", modes, err);
    value_id x;
    int64_t b;
    if (mode < 0 || !image_and_block(im, node, &x, &b, err))
        return false;
    struct shape s = *onnx_shape(im, x);
    if (s.dim[2] % b || s.dim[3] % b)
        return err_set(err, ERR_FORMAT, "%lld x %lld px are not blocks of %lld px",
                       (long long)s.dim[3], (long long)s.dim[2], (long long)b);
    struct shape split = SHAPE(s.dim[0], s.dim[1], s.dim[2] / b, b, s.dim[3] / b, b);
    struct shape together = SHAPE(s.dim[0], s.dim[1] * b * b, s.dim[2] / b, s.dim[3] / b);
    return onnx_bind(im, node, 0, shuffled(im, node, x, split, orders[mode], together, err), err);
}
