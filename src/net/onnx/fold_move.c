/* fold_move.c: known elements under another shape or at another place. */
#include <string.h>
#include "net/onnx/fold.h"

/* The elements of x in their order under another shape of as many elements. */
static struct host *under(const struct fold_args *args, struct shape shape)
{
    const struct host *x = args->in[0];
    struct host *host = onnx_host_new(args->im, x->type, shape, args->err);
    if (!host)
        return NULL;
    if (host->count != x->count) {
        host_free(host);
        return fold_fail(args, "the shape does not match the number of elements");
    }
    for (int64_t i = 0; i < host->count; i++)
        host_copy(host, i, x, i);
    host->origin = x->transposed ? NULL : x->origin;
    host->element = x->element;
    return host;
}

/* PyTorch stores equal weights once and names the others by an Identity: each becomes a separate
 * parameter, so that layers are not tied in training. */
struct host *fold_identity(const struct fold_args *args)
{
    struct host *host = under(args, args->in[0]->shape);
    if (host && host->origin)
        host->origin = args->node->output[0];
    return host;
}

struct host *fold_reshape(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    struct shape shape = { 0, { 0 } };
    shape.rank =
        args->im->opset >= 5
            ? onnx_ints(args->im, args->node, 1, "the shape", shape.dim, SHAPE_DIMS, args->err)
            : onnx_int_list(args->node, "shape", shape.dim, SHAPE_DIMS, args->err);
    if (shape.rank < 0)
        return NULL;
    int64_t known = 1;
    int open = -1;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] == 0 && !onnx_int(args->node, "allowzero", 0))
            shape.dim[i] = i < x->shape.rank ? x->shape.dim[i] : -2;
        if (shape.dim[i] == -1 && open < 0)
            open = i;
        else if (shape.dim[i] < 0 || __builtin_mul_overflow(known, shape.dim[i], &known))
            return fold_fail(args, "the shape does not match the number of elements");
    }
    if (open >= 0)
        shape.dim[open] = known ? x->count / known : 0;
    return under(args, shape);
}

struct host *fold_flatten(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    int64_t axis = onnx_int(args->node, "axis", 1);
    axis = axis < 0 ? axis + x->shape.rank : axis;
    if (axis < 0 || axis > x->shape.rank)
        return fold_fail(args, "the axis does not exist");
    return under(args, SHAPE(shape_span(&x->shape, 0, (int)axis),
                             shape_span(&x->shape, (int)axis, x->shape.rank)));
}

struct host *fold_squeeze(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    struct shape shape = { 0, { 0 } };
    uint32_t axes;
    bool given;
    if (!onnx_axes(args->im, args->node, 13, x->shape.rank, &axes, &given, args->err))
        return NULL;
    for (int i = 0; i < x->shape.rank; i++)
        if (!(given ? axes >> i & 1 : x->shape.dim[i] == 1))
            shape.dim[shape.rank++] = x->shape.dim[i];
    return under(args, shape);
}

struct host *fold_unsqueeze(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    int64_t list[SHAPE_DIMS];
    uint32_t axes;
    bool given;
    int added =
        args->im->opset >= 13
            ? onnx_ints(args->im, args->node, 1, "the list of axes", list, SHAPE_DIMS, args->err)
            : onnx_int_list(args->node, "axes", list, SHAPE_DIMS, args->err);
    if (added < 0)
        return NULL;
    struct shape shape = { x->shape.rank + added, { 0 } };
    if (shape.rank > SHAPE_DIMS)
        return fold_fail(args, "too many axes");
    if (!onnx_axes(args->im, args->node, 13, shape.rank, &axes, &given, args->err))
        return NULL;
    for (int i = 0, from = 0; i < shape.rank; i++) {
        bool here = axes >> i & 1;
        if (!here && from == x->shape.rank)
            return fold_fail(args, "an axis is named twice");
        shape.dim[i] = here ? 1 : x->shape.dim[from++];
    }
    return under(args, shape);
}

/* Element i of the result is element base + sum(index along axis k * step[k]) of x. */
static struct host *strided(const struct fold_args *args, struct shape shape, int64_t base,
                            const int64_t *step)
{
    struct host *host = onnx_host_new(args->im, args->in[0]->type, shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++) {
        int64_t rest = i, place = base;
        for (int k = shape.rank - 1; k >= 0; k--) {
            place += rest % shape.dim[k] * step[k];
            rest /= shape.dim[k];
        }
        host_copy(host, i, args->in[0], place);
    }
    return host;
}

static void strides_of(const struct shape *shape, int64_t *stride)
{
    int64_t next = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        stride[i] = next;
        next *= shape->dim[i];
    }
}

struct host *fold_transpose(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    int rank = x->shape.rank;
    int64_t order[SHAPE_DIMS], stride[SHAPE_DIMS], step[SHAPE_DIMS] = { 0 };
    struct shape shape = { rank, { 0 } };
    uint32_t seen = 0;
    int n = onnx_int_list(args->node, "perm", order, SHAPE_DIMS, args->err);
    if (n < 0)
        return NULL;
    for (int i = 0; i < rank && n == 0; i++)
        order[i] = rank - 1 - i;
    strides_of(&x->shape, stride);
    for (int i = 0; i < rank && (n == 0 || n == rank); i++) {
        if (order[i] < 0 || order[i] >= rank)
            break;
        seen |= 1u << order[i];
        shape.dim[i] = x->shape.dim[order[i]];
        step[i] = stride[order[i]];
    }
    if (seen != (1u << rank) - 1)
        return fold_fail(args, "perm does not name every axis once");
    struct host *host = strided(args, shape, 0, step);
    if (host && rank == 2 && order[0] == 1)
        host->origin = x->origin, host->transposed = !x->transposed;
    return host;
}

struct host *fold_concat(const struct fold_args *args)
{
    const struct host *first = args->in[0];
    int axis = axis_of(onnx_int(args->node, "axis", 1), first->shape.rank);
    struct shape shape = first->shape;
    if (axis < 0) {
        no_axis(onnx_int(args->node, "axis", 1), first->shape.rank, args->err);
        return NULL;
    }
    for (int i = 1; i < args->n; i++) {
        struct shape other = args->in[i] ? args->in[i]->shape : shape;
        if (!args->in[i] || args->in[i]->type != first->type || other.rank != shape.rank ||
            __builtin_add_overflow(shape.dim[axis], other.dim[axis], &shape.dim[axis]))
            return fold_fail(args, "the constants cannot be joined");
        for (int k = 0; k < shape.rank; k++)
            if (k != axis && other.dim[k] != shape.dim[k])
                return fold_fail(args, "the constants cannot be joined");
    }
    struct host *host = onnx_host_new(args->im, first->type, shape, args->err);
    if (!host)
        return NULL;
    int64_t outer = shape_span(&shape, 0, axis), to = 0;
    for (int64_t o = 0; o < outer && host->count; o++)
        for (int i = 0; i < args->n; i++) {
            int64_t run = shape_span(&args->in[i]->shape, axis, shape.rank);
            for (int64_t k = 0; k < run; k++)
                host_copy(host, to++, args->in[i], o * run + k);
        }
    return host;
}

/* One axis of Slice as numpy counts: the first place and how many. */
static int64_t slice_axis(int64_t extent, int64_t *begin, int64_t end, int64_t step)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    int64_t first = *begin < 0 ? *begin + extent : *begin;
    int64_t last = end < 0 ? end + extent : end;
    first = first < low ? low : first > high ? high : first;
    last = last < low ? low : last > high ? high : last;
    *begin = first;
    if (step > 0)
        return last > first ? (last - first - 1) / step + 1 : 0;
    if (last >= first)
        return 0;
    return step < -extent ? 1 : (first - last - 1) / -step + 1;
}

struct host *fold_slice(const struct fold_args *args)
{
    static const char *const names[] = { "starts", "ends", "axes", "steps" };
    int64_t list[4][SHAPE_DIMS], step[SHAPE_DIMS], base = 0;
    int count[4];
    struct shape shape = args->in[0]->shape;
    for (size_t i = 0; i < 4; i++) {
        bool input = args->im->opset >= 10;
        count[i] = !input ? onnx_int_list(args->node, names[i], list[i], SHAPE_DIMS, args->err)
                   : onnx_has(args->node, i + 1) ? onnx_ints(args->im, args->node, i + 1, names[i],
                                                             list[i], SHAPE_DIMS, args->err)
                                                 : 0;
        if (count[i] < 0)
            return NULL;
        if (i && count[i] != count[0] && (i == 1 || count[i]))
            return fold_fail(args, "starts, ends, axes and steps differ in number");
    }
    strides_of(&shape, step);
    for (int i = 0; i < count[0]; i++) {
        int axis = axis_of(count[2] ? list[2][i] : i, shape.rank);
        int64_t by = count[3] ? list[3][i] : 1, begin = list[0][i];
        if (axis < 0 || by == 0)
            return fold_fail(args, "an axis does not exist, or a step is 0");
        int64_t left = slice_axis(shape.dim[axis], &begin, list[1][i], by);
        base += left ? begin * step[axis] : 0;
        if (left > 1)
            step[axis] *= by;
        shape.dim[axis] = left;
    }
    return strided(args, shape, base, step);
}

struct host *fold_gather(const struct fold_args *args)
{
    const struct host *x = args->in[0], *places = args->n > 1 ? args->in[1] : NULL;
    int axis = axis_of(onnx_int(args->node, "axis", 0), x->shape.rank);
    if (axis < 0 || !places || places->type != HOST_INT ||
        x->shape.rank - 1 + places->shape.rank > SHAPE_DIMS)
        return fold_fail(args, "the axis does not exist, or the indices are not whole numbers");
    struct shape shape = { 0, { 0 } };
    for (int i = 0; i < axis; i++)
        shape.dim[shape.rank++] = x->shape.dim[i];
    for (int i = 0; i < places->shape.rank; i++)
        shape.dim[shape.rank++] = places->shape.dim[i];
    for (int i = axis + 1; i < x->shape.rank; i++)
        shape.dim[shape.rank++] = x->shape.dim[i];
    struct host *host = onnx_host_new(args->im, x->type, shape, args->err);
    int64_t inner = shape_span(&x->shape, axis + 1, x->shape.rank);
    int64_t extent = x->shape.dim[axis];
    for (int64_t i = 0; host && i < host->count; i++) {
        int64_t outer = i / inner / places->count;
        int64_t at = places->ints[i / inner % places->count];
        at = at < 0 ? at + extent : at;
        if (at < 0 || at >= extent) {
            host_free(host);
            return fold_fail(args, "an index is outside the axis");
        }
        host_copy(host, i, x, (outer * extent + at) * inner + i % inner);
    }
    return host;
}

struct host *fold_expand(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    struct shape wanted = { 0, { 0 } }, shape;
    int64_t stride[SHAPE_DIMS], step[SHAPE_DIMS] = { 0 };
    wanted.rank =
        onnx_ints(args->im, args->node, 1, "the shape", wanted.dim, SHAPE_DIMS, args->err);
    if (wanted.rank < 0)
        return NULL;
    for (int i = 0; i < wanted.rank; i++)
        if (wanted.dim[i] < 0)
            return fold_fail(args, "the shape has a negative extent");
    if (!shape_broadcast(&x->shape, &wanted, &shape))
        return fold_fail(args, "the input cannot be expanded to the requested shape");
    strides_of(&x->shape, stride);
    for (int i = 0; i < x->shape.rank; i++)
        step[shape.rank - x->shape.rank + i] = x->shape.dim[i] == 1 ? 0 : stride[i];
    return strided(args, shape, 0, step);
}

/* x repeated along every axis: element i of the result is element i modulo the extents of x. */
struct host *fold_tile(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    struct shape shape = x->shape;
    int64_t repeats[SHAPE_DIMS], stride[SHAPE_DIMS];
    int n = onnx_ints(args->im, args->node, 1, "repeats", repeats, SHAPE_DIMS, args->err);
    if (n < 0)
        return NULL;
    if (n != shape.rank)
        return fold_fail(args, "one repeat for each axis is needed");
    for (int i = 0; i < n; i++)
        if (repeats[i] < 0 || __builtin_mul_overflow(shape.dim[i], repeats[i], &shape.dim[i]))
            return fold_fail(args, "a repeat is negative or too large");
    struct host *host = onnx_host_new(args->im, x->type, shape, args->err);
    strides_of(&x->shape, stride);
    for (int64_t i = 0; host && i < host->count; i++) {
        int64_t rest = i, place = 0;
        for (int k = shape.rank - 1; k >= 0; k--) {
            place += rest % shape.dim[k] % x->shape.dim[k] * stride[k];
            rest /= shape.dim[k];
        }
        host_copy(host, i, x, place);
    }
    return host;
}

/* One part along an axis. */
static bool bind_part(const struct fold_args *args, size_t k, int axis, int64_t begin, int64_t size,
                      bool from_shape)
{
    const struct host *x = args->in[0];
    struct shape shape = x->shape;
    int64_t step[SHAPE_DIMS];
    strides_of(&shape, step);
    shape.dim[axis] = size;
    struct host *part = strided(args, shape, begin * step[axis], step);
    if (part)
        part->from_shape = from_shape;
    return onnx_bind_host(args->im, args->node, k, part, args->err);
}

bool fold_split(const struct fold_args *args, bool from_shape)
{
    enum { MOST = 256 };
    int64_t sizes[MOST], begin = 0;
    const struct host *x = args->in[0];
    int axis = axis_of(onnx_int(args->node, "axis", 0), x->shape.rank);
    int64_t parts = (int64_t)args->node->n_output;
    if (axis < 0 || parts > MOST)
        return fold_fail(args, "the axis does not exist, or there are too many parts") != NULL;
    int given = args->im->opset < 13 ? onnx_int_list(args->node, "split", sizes, MOST, args->err)
                : onnx_has(args->node, 1)
                    ? onnx_ints(args->im, args->node, 1, "split", sizes, MOST, args->err)
                    : 0;
    if (given < 0)
        return false;
    int64_t extent = x->shape.dim[axis], each = (extent + parts - 1) / parts;
    for (int64_t i = 0; i < parts; i++) {
        int64_t left = extent - begin;
        int64_t size = given ? (i < given ? sizes[i] : -1) : each < left ? each : left;
        if (size < 0 || size > left)
            return fold_fail(args, "the parts do not match the axis") != NULL;
        if (!bind_part(args, (size_t)i, axis, begin, size, from_shape))
            return false;
        begin += size;
    }
    return true;
}
