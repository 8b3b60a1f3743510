/* fold_logic.c: truths, limits, sums and extremes of known numbers, and matrices of them. */
#include <math.h>
#include <string.h>
#include "net/onnx/fold.h"

static struct host *truths(const struct fold_args *args, bool (*fn)(double))
{
    const struct host *x = args->in[0];
    struct host *host = onnx_host_new(args->im, HOST_INT, x->shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++)
        host->ints[i] = fn(host_number(x, i));
    return host;
}

static bool is_zero(double x)
{
    return x == 0;
}

static bool is_nan(double x)
{
    return isnan(x);
}

struct host *fold_not(const struct fold_args *args)
{
    return truths(args, is_zero);
}

struct host *fold_is_nan(const struct fold_args *args)
{
    return truths(args, is_nan);
}

enum relation { LESS, AT_MOST, GREATER, AT_LEAST, BOTH, EITHER, ONE };

static bool holds(enum relation relation, double a, double b)
{
    switch (relation) {
    case LESS:
        return a < b;
    case AT_MOST:
        return a <= b;
    case GREATER:
        return a > b;
    case AT_LEAST:
        return a >= b;
    case BOTH:
        return a != 0 && b != 0;
    case EITHER:
        return a != 0 || b != 0;
    case ONE:
        return (a != 0) != (b != 0);
    }
    return false;
}

static struct host *compare(const struct fold_args *args, enum relation relation)
{
    const struct host *a = args->in[0], *b = args->n == 2 ? args->in[1] : NULL;
    struct shape shape;
    if (!b || !shape_broadcast(&a->shape, &b->shape, &shape))
        return fold_fail(args, "two inputs of matching shapes are needed");
    struct host *host = onnx_host_new(args->im, HOST_INT, shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++)
        host->ints[i] = holds(relation, host_number(a, fold_broadcast(&shape, i, &a->shape)),
                              host_number(b, fold_broadcast(&shape, i, &b->shape)));
    return host;
}

#define COMPARE(name, relation)                                                                    \
    struct host *name(const struct fold_args *args)                                                \
    {                                                                                              \
        return compare(args, relation);                                                            \
    }
COMPARE(fold_less, LESS)
COMPARE(fold_at_most, AT_MOST)
COMPARE(fold_greater, GREATER)
COMPARE(fold_at_least, AT_LEAST)
COMPARE(fold_and, BOTH)
COMPARE(fold_or, EITHER)
COMPARE(fold_xor, ONE)

/* A limit of Clip: input i from opset 11 on, else an attribute. */
static bool clip_limit(const struct fold_args *args, int i, const char *name, double *out)
{
    const Onnx__AttributeProto *attribute = onnx_attribute(args->node, name);
    if (args->im->opset < 11 && attribute)
        *out = (double)attribute->f;
    if (args->im->opset < 11 || i >= args->n || !args->in[i])
        return true;
    if (args->in[i]->count == 1)
        *out = host_number(args->in[i], 0);
    return args->in[i]->count == 1;
}

struct host *fold_clip(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    double low = -INFINITY, high = INFINITY;
    if (!clip_limit(args, 1, "min", &low) || !clip_limit(args, 2, "max", &high))
        return fold_fail(args, "a limit is not one number");
    struct host *host = onnx_host_new(args->im, x->type, x->shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++) {
        double number = host_number(x, i);
        double kept = number < low ? low : number;
        kept = kept > high ? high : kept;
        if (kept == number || isnan(number))
            host_copy(host, i, x, i);
        else if (x->type == HOST_FLOAT)
            host->floats[i] = (float)kept;
        else
            host->ints[i] = fabs(kept) < 9e18 ? (int64_t)kept : x->ints[i];
    }
    return host;
}

/* Along one axis, from either end, with or without the element itself. */
struct host *fold_cum_sum(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    int64_t given;
    if (onnx_ints(args->im, args->node, 1, "the axis", &given, 1, args->err) != 1)
        return args->err && args->err->kind != ERR_NONE ? NULL : fold_fail(args, "no axis");
    int axis = axis_of(given, x->shape.rank);
    if (axis < 0)
        return fold_fail(args, "the axis does not exist");
    bool without = onnx_int(args->node, "exclusive", 0) != 0;
    bool back = onnx_int(args->node, "reverse", 0) != 0;
    struct host *host = onnx_host_new(args->im, x->type, x->shape, args->err);
    int64_t extent = x->shape.dim[axis];
    int64_t inner = shape_span(&x->shape, axis + 1, x->shape.rank);
    int64_t rows = host && host->count ? host->count / extent : 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t base = r / inner * extent * inner + r % inner, whole = 0;
        double sum = 0;
        for (int64_t k = 0; k < extent; k++) {
            int64_t at = base + (back ? extent - 1 - k : k) * inner, before = whole;
            double earlier = sum;
            if (x->type == HOST_FLOAT)
                sum += (double)x->floats[at], host->floats[at] = (float)(without ? earlier : sum);
            else if (!__builtin_add_overflow(whole, x->ints[at], &whole))
                host->ints[at] = without ? before : whole;
        }
    }
    return host;
}

enum reduction { MEAN, SUM, SQUARES, NORM, LARGEST, SMALLEST, PRODUCT };

static double joined(enum reduction kind, double all, double next)
{
    switch (kind) {
    case SQUARES:
    case NORM:
        return all + next * next;
    case LARGEST:
        return next > all ? next : all;
    case SMALLEST:
        return next < all ? next : all;
    case PRODUCT:
        return all * next;
    default:
        return all + next;
    }
}

/* In double. Whole numbers stay whole, but not beyond 2^53. */
static struct host *reduce(const struct fold_args *args, enum reduction kind, int64_t since)
{
    const struct host *x = args->in[0];
    struct shape shape = { 0, { 0 } }, full = x->shape;
    uint32_t axes;
    bool given, keep = onnx_int(args->node, "keepdims", 1) != 0;
    if (!onnx_axes(args->im, args->node, since, x->shape.rank, &axes, &given, args->err))
        return NULL;
    if (!given && !onnx_int(args->node, "noop_with_empty_axes", 0))
        axes = (1u << x->shape.rank) - 1;
    for (int i = 0; i < x->shape.rank; i++) {
        bool gone = axes >> i & 1;
        full.dim[i] = gone ? 1 : x->shape.dim[i];
        if (!gone || keep)
            shape.dim[shape.rank++] = full.dim[i];
    }
    struct host *host = onnx_host_new(args->im, x->type, shape, args->err);
    struct host *sums = host ? onnx_host_new(args->im, HOST_INT, full, args->err) : NULL;
    if (!sums || x->count == 0) {
        host_free(host), host_free(sums);
        return sums ? fold_fail(args, "nothing is left to reduce") : NULL;
    }
    double *all = (double *)(void *)sums->ints; /* of the same size */
    for (int64_t i = 0; i < sums->count; i++)
        all[i] = kind == LARGEST ? -INFINITY : kind == SMALLEST ? INFINITY : kind == PRODUCT;
    for (int64_t i = 0; i < x->count; i++) {
        double *to = &all[fold_broadcast(&x->shape, i, &full)];
        *to = joined(kind, *to, host_number(x, i));
    }
    for (int64_t i = 0; i < host->count; i++) {
        double number = kind == MEAN   ? all[i] / (double)(x->count / host->count)
                        : kind == NORM ? sqrt(all[i])
                                       : all[i];
        if (host->type == HOST_FLOAT)
            host->floats[i] = (float)number;
        else
            host->ints[i] = fabs(number) < 9e15 ? (int64_t)number : 0;
    }
    host_free(sums);
    return host;
}

#define REDUCE(name, kind, since)                                                                  \
    struct host *name(const struct fold_args *args)                                                \
    {                                                                                              \
        return reduce(args, kind, since);                                                          \
    }
REDUCE(fold_reduce_mean, MEAN, 18)
REDUCE(fold_reduce_sum, SUM, 13)
REDUCE(fold_reduce_sum_square, SQUARES, 18)
REDUCE(fold_reduce_l2, NORM, 18)
REDUCE(fold_reduce_max, LARGEST, 18)
REDUCE(fold_reduce_min, SMALLEST, 18)
REDUCE(fold_reduce_prod, PRODUCT, 18)

/* Of a weight [1, rows, numbers], as standardised convolutions have it: every row by its own mean
 * and variance (training mode), or by those that are given. */
struct host *fold_batch_norm(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    bool own = onnx_int(args->node, "training_mode", 0) != 0;
    int64_t channels = x->shape.rank > 1 ? x->shape.dim[1] : 0, n = x->count;
    int64_t inner = shape_span(&x->shape, 2, x->shape.rank);
    if (args->n != 5 || channels < 1 || n < 1)
        return fold_fail(args, "five inputs and an axis of channels are needed");
    for (int i = 1; i < 5; i++)
        if (!args->in[i] || args->in[i]->count != channels)
            return fold_fail(args, "one number for each channel is needed");
    double epsilon = (double)onnx_float(args->node, "epsilon", 1e-5f);
    struct host *host = onnx_host_new(args->im, HOST_FLOAT, x->shape, args->err);
    int64_t each = n / channels;
    for (int64_t c = 0; host && c < channels; c++) {
        double mean = 0, squares = 0;
        for (int64_t k = 0; k < each; k++)
            mean += host_number(x, (k / inner * channels + c) * inner + k % inner);
        mean = own ? mean / (double)each : host_number(args->in[3], c);
        for (int64_t k = 0; k < each; k++) {
            double d = host_number(x, (k / inner * channels + c) * inner + k % inner) - mean;
            squares += d * d;
        }
        double variance = own ? squares / (double)each : host_number(args->in[4], c);
        double factor = host_number(args->in[1], c) / sqrt(variance + epsilon);
        for (int64_t k = 0; k < each; k++) {
            int64_t at = (k / inner * channels + c) * inner + k % inner;
            host->floats[at] =
                (float)((host_number(x, at) - mean) * factor + host_number(args->in[2], c));
        }
    }
    return host;
}
