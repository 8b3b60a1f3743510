/* fold_place.c: known elements that are put somewhere: ScatterND, Pad, OneHot, triangles; and those
 * that are fetched from places: GatherND, GatherElements. */
#include <string.h>
#include "net/onnx/fold.h"

/* The place of row r of `rows` [.., length] in a tensor, in blocks of its other axes; -1 if it is
 * outside. */
static int64_t place_of_row(const struct host *rows, int64_t r, int64_t length,
                            const struct shape *x)
{
    int64_t place = 0;
    for (int64_t k = 0; k < length; k++) {
        int64_t at = rows->ints[r * length + k], extent = x->dim[k];
        at = at < 0 ? at + extent : at;
        if (at < 0 || at >= extent)
            return -1;
        place = place * extent + at;
    }
    return place;
}

/* Indices [.., length] into the first axes of x. */
static bool are_rows(const struct host *rows, const struct shape *x, int64_t *length)
{
    *length = rows && rows->shape.rank ? rows->shape.dim[rows->shape.rank - 1] : 0;
    return *length >= 1 && *length <= x->rank && rows->type == HOST_INT;
}

enum { REPLACE, ADD, MULTIPLY };

/* Element `to` of x becomes, or is added to or multiplied by, element `from` of y. */
static void put(int how, struct host *x, int64_t to, const struct host *y, int64_t from)
{
    if (how == REPLACE)
        host_copy(x, to, y, from);
    else if (x->type == HOST_FLOAT)
        x->floats[to] =
            how == ADD ? x->floats[to] + y->floats[from] : x->floats[to] * y->floats[from];
    else /* as whole numbers of 64 bits do, without a sign */
        x->ints[to] = (int64_t)(how == ADD ? (uint64_t)x->ints[to] + (uint64_t)y->ints[from]
                                           : (uint64_t)x->ints[to] * (uint64_t)y->ints[from]);
}

struct host *fold_scatter_nd(const struct fold_args *args)
{
    static const char *const reductions[] = { "none", "add", "mul", NULL };
    const struct host *x = args->in[0], *rows = args->n == 3 ? args->in[1] : NULL;
    int64_t length;
    int how = onnx_choice(args->node, "reduction", reductions, args->err);
    if (how < 0)
        return NULL;
    if (!are_rows(rows, &x->shape, &length) || !args->in[2] || args->in[2]->type != x->type)
        return fold_fail(args, "data, indices and updates of the same type are needed");
    int64_t block = shape_span(&x->shape, (int)length, x->shape.rank);
    if (args->in[2]->count != rows->count / length * block)
        return fold_fail(args, "the updates do not match the indices");
    struct host *host = onnx_host_new(args->im, x->type, x->shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++)
        host_copy(host, i, x, i);
    for (int64_t r = 0; host && r < rows->count / length; r++) {
        int64_t place = place_of_row(rows, r, length, &x->shape);
        if (place < 0) {
            host_free(host);
            return fold_fail(args, "an index is outside the axis");
        }
        for (int64_t k = 0; k < block; k++)
            put(how, host, place * block + k, args->in[2], r * block + k);
    }
    return host;
}

struct host *fold_gather_nd(const struct fold_args *args)
{
    const struct host *x = args->in[0], *rows = args->n == 2 ? args->in[1] : NULL;
    struct shape shape = { 0, { 0 } };
    int64_t length;
    if (onnx_int(args->node, "batch_dims", 0) || !are_rows(rows, &x->shape, &length) ||
        rows->shape.rank - 1 + x->shape.rank - length > SHAPE_DIMS)
        return fold_fail(args, "batch_dims or indices of this shape are not supported");
    for (int i = 0; i + 1 < rows->shape.rank; i++)
        shape.dim[shape.rank++] = rows->shape.dim[i];
    for (int i = (int)length; i < x->shape.rank; i++)
        shape.dim[shape.rank++] = x->shape.dim[i];
    struct host *host = onnx_host_new(args->im, x->type, shape, args->err);
    int64_t block = shape_span(&x->shape, (int)length, x->shape.rank);
    for (int64_t i = 0; host && i < host->count; i++) {
        int64_t place = place_of_row(rows, i / block, length, &x->shape);
        if (place < 0) {
            host_free(host);
            return fold_fail(args, "an index is outside the axis");
        }
        host_copy(host, i, x, place * block + i % block);
    }
    return host;
}

struct host *fold_gather_elements(const struct fold_args *args)
{
    const struct host *x = args->in[0], *places = args->n == 2 ? args->in[1] : NULL;
    int axis = axis_of(onnx_int(args->node, "axis", 0), x->shape.rank);
    bool fits =
        axis >= 0 && places && places->type == HOST_INT && places->shape.rank == x->shape.rank;
    for (int i = 0; fits && i < x->shape.rank; i++)
        fits = i == axis || places->shape.dim[i] <= x->shape.dim[i];
    if (!fits)
        return fold_fail(args, "the indices do not match the axes");
    struct host *host = onnx_host_new(args->im, x->type, places->shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++) {
        int64_t rest = i, place = 0, stride = 1;
        for (int k = x->shape.rank - 1; k >= 0; k--) {
            int64_t at = rest % places->shape.dim[k], extent = x->shape.dim[k];
            rest /= places->shape.dim[k];
            at = k != axis ? at : places->ints[i] < 0 ? places->ints[i] + extent : places->ints[i];
            if (at < 0 || at >= extent) {
                host_free(host);
                return fold_fail(args, "an index is outside the axis");
            }
            place += at * stride;
            stride *= extent;
        }
        host_copy(host, i, x, place);
    }
    return host;
}

/* The pads of every axis; false with an error. */
static bool pads_of(const struct fold_args *args, int64_t *front, int64_t *back)
{
    int64_t pads[2 * SHAPE_DIMS];
    int rank = args->in[0]->shape.rank;
    int n = args->im->opset >= 11
                ? onnx_ints(args->im, args->node, 1, "pads", pads, 2 * SHAPE_DIMS, args->err)
                : onnx_int_list(args->node, "pads", pads, 2 * SHAPE_DIMS, args->err);
    if (n < 0)
        return false;
    if (n != 2 * rank || onnx_has(args->node, 3))
        return fold_fail(args, "two pads for each axis are needed") != NULL;
    for (int i = 0; i < rank; i++) {
        front[i] = pads[i], back[i] = pads[rank + i];
        if (front[i] < -INT32_MAX || back[i] < -INT32_MAX || front[i] > INT32_MAX ||
            back[i] > INT32_MAX)
            return fold_fail(args, "a pad is too large") != NULL;
    }
    return true;
}

/* The place that stands at `at`, which may be outside; -1: the value of the border. */
static int64_t padded_place(int mode, int64_t at, int64_t extent)
{
    if (at >= 0 && at < extent)
        return at;
    if (mode == 0 || extent < 1)
        return -1;
    if (mode == 2)
        return at < 0 ? 0 : extent - 1;
    int64_t period = 2 * (extent - 1);
    if (period == 0)
        return 0;
    at = (at % period + period) % period;
    return at < extent ? at : period - at;
}

struct host *fold_pad(const struct fold_args *args)
{
    static const char *const modes[] = { "constant", "reflect", "edge", NULL };
    const struct host *x = args->in[0];
    int64_t front[SHAPE_DIMS], back[SHAPE_DIMS];
    int mode = onnx_choice(args->node, "mode", modes, args->err);
    if (mode < 0 || !pads_of(args, front, back))
        return NULL;
    struct shape shape = x->shape;
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] += front[i] + back[i];
    bool given = args->im->opset >= 11 && args->n > 2 && args->in[2] && args->in[2]->count == 1;
    double border = given ? host_number(args->in[2], 0)
                          : (double)(args->im->opset < 11 ? onnx_float(args->node, "value", 0) : 0);
    struct host *host = onnx_host_new(args->im, x->type, shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++) {
        int64_t rest = i, place = 0, stride = 1;
        for (int k = shape.rank - 1; k >= 0; k--) {
            int64_t at = padded_place(mode, rest % shape.dim[k] - front[k], x->shape.dim[k]);
            rest /= shape.dim[k];
            place = place < 0 || at < 0 ? -1 : place + at * stride;
            stride *= x->shape.dim[k];
        }
        if (place >= 0)
            host_copy(host, i, x, place);
        else if (host->type == HOST_FLOAT)
            host->floats[i] = (float)border;
        else
            host->ints[i] = (int64_t)border;
    }
    return host;
}

struct host *fold_one_hot(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    if (args->n != 3 || !args->in[1] || args->in[1]->count != 1 || !args->in[2] ||
        args->in[2]->count != 2 || x->shape.rank + 1 > SHAPE_DIMS)
        return fold_fail(args, "indices, a depth and two values are needed");
    double depth = host_number(args->in[1], 0);
    int axis = axis_of(onnx_int(args->node, "axis", -1), x->shape.rank + 1);
    if (!(depth >= 1 && depth <= 1e9) || axis < 0)
        return fold_fail(args, "the depth or the axis is not possible");
    struct shape shape = { 0, { 0 } };
    for (int i = 0; i <= x->shape.rank; i++)
        shape.dim[shape.rank++] = i == axis ? (int64_t)depth : x->shape.dim[i - (i > axis)];
    struct host *host = onnx_host_new(args->im, args->in[2]->type, shape, args->err);
    int64_t inner = shape_span(&shape, axis + 1, shape.rank);
    for (int64_t i = 0; host && i < host->count; i++) {
        int64_t at = i / inner % (int64_t)depth;
        double hot = host_number(x, i / inner / (int64_t)depth * inner + i % inner);
        host_copy(host, i, args->in[2], hot == (double)at || hot + depth == (double)at ? 1 : 0);
    }
    return host;
}

struct host *fold_trilu(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    int64_t shift = 0;
    if (x->shape.rank < 2 || (onnx_has(args->node, 1) &&
                              onnx_ints(args->im, args->node, 1, "k", &shift, 1, args->err) < 0))
        return args->err && args->err->kind ? NULL : fold_fail(args, "the input is not a matrix");
    int64_t rows = x->shape.dim[x->shape.rank - 2], columns = x->shape.dim[x->shape.rank - 1];
    shift = shift < -rows ? -rows : shift > columns ? columns : shift;
    bool upper = onnx_int(args->node, "upper", 1) != 0;
    struct host *host = onnx_host_new(args->im, x->type, x->shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++) {
        int64_t above = i % columns - i / columns % rows - shift;
        if (upper ? above >= 0 : above <= 0)
            host_copy(host, i, x, i);
    }
    return host;
}

/* The indices of all that are not 0, one column for each. */
struct host *fold_non_zero(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    int64_t found = 0, to = 0;
    for (int64_t i = 0; i < x->count; i++)
        found += host_number(x, i) != 0;
    struct host *host =
        onnx_host_new(args->im, HOST_INT, (struct shape){ 2, { x->shape.rank, found } }, args->err);
    for (int64_t i = 0; host && i < x->count; i++) {
        int64_t rest = i;
        if (host_number(x, i) == 0)
            continue;
        for (int k = x->shape.rank - 1; k >= 0; k--) {
            host->ints[k * found + to] = rest % x->shape.dim[k];
            rest /= x->shape.dim[k];
        }
        to++;
    }
    return host;
}
