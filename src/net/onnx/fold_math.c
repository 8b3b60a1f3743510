/* fold_math.c: arithmetic on known numbers, with numpy's broadcasting. Integers stay integers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/onnx/fold.h"

enum math {
    MATH_ADD,
    MATH_SUB,
    MATH_MUL,
    MATH_DIV,
    MATH_MIN,
    MATH_MAX,
    MATH_POW,
    MATH_EQUAL,
    MATH_MOD
};

static bool math_ints(enum math math, int64_t a, int64_t b, int64_t *out)
{
    switch (math) {
    case MATH_ADD:
        return !__builtin_add_overflow(a, b, out);
    case MATH_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case MATH_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case MATH_DIV:
        if (b == 0 || (a == INT64_MIN && b == -1))
            return false;
        *out = a / b;
        return true;
    case MATH_MIN:
        *out = a < b ? a : b;
        return true;
    case MATH_MAX:
        *out = a > b ? a : b;
        return true;
    case MATH_EQUAL:
        *out = a == b;
        return true;
    case MATH_MOD: /* the sign is that of b, as in Python */
        if (b == 0 || b == -1)
            return b == -1 && (*out = 0, true);
        *out = a % b;
        if (*out && (*out < 0) != (b < 0))
            *out += b;
        return true;
    case MATH_POW:
        break;
    }
    return false;
}

static double math_reals(enum math math, double a, double b)
{
    switch (math) {
    case MATH_ADD:
        return a + b;
    case MATH_SUB:
        return a - b;
    case MATH_MUL:
        return a * b;
    case MATH_DIV:
        return a / b;
    case MATH_MIN:
        return a < b ? a : b;
    case MATH_MAX:
        return a > b ? a : b;
    case MATH_POW:
        return pow(a, b);
    case MATH_EQUAL:
        return a == b;
    case MATH_MOD:
        return a - b * floor(a / b);
    }
    return 0;
}

int64_t fold_broadcast(const struct shape *to, int64_t index, const struct shape *from)
{
    int64_t place = 0, stride = 1;
    for (int i = to->rank - 1, k = from->rank - 1; k >= 0; i--, k--) {
        int64_t at = index % to->dim[i];
        index /= to->dim[i];
        if (from->dim[k] != 1)
            place += at * stride;
        stride *= from->dim[k];
    }
    return place;
}

static struct host *pair(const struct fold_args *args, enum math math, const struct host *a,
                         const struct host *b)
{
    struct shape shape;
    if (!shape_broadcast(&a->shape, &b->shape, &shape))
        return fold_fail(args, "the shapes of the constants do not match");
    bool whole = a->type == HOST_INT && b->type == HOST_INT && math != MATH_POW;
    enum host_type type = whole || math == MATH_EQUAL ? HOST_INT : HOST_FLOAT;
    struct host *host = onnx_host_new(args->im, type, shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++) {
        int64_t ia = fold_broadcast(&shape, i, &a->shape);
        int64_t ib = fold_broadcast(&shape, i, &b->shape);
        if (whole) {
            if (!math_ints(math, a->ints[ia], b->ints[ib], &host->ints[i])) {
                host_free(host);
                return fold_fail(args, "a constant is divided by 0, or a result is too large");
            }
        } else if (type == HOST_INT) {
            host->ints[i] = host_number(a, ia) == host_number(b, ib);
        } else {
            host->floats[i] = (float)math_reals(math, host_number(a, ia), host_number(b, ib));
        }
    }
    return host;
}

static struct host *binary(const struct fold_args *args, enum math math)
{
    if (args->n != 2 || !args->in[1])
        return fold_fail(args, "two inputs are needed");
    return pair(args, math, args->in[0], args->in[1]);
}

/* Of any number of inputs, in turn. */
static struct host *several(const struct fold_args *args, enum math math)
{
    struct host *all = NULL;
    if (args->n == 1)
        return fold_identity(args);
    for (int i = 1; i < args->n; i++) {
        struct host *next =
            args->in[i] ? pair(args, math, all ? all : args->in[0], args->in[i]) : NULL;
        host_free(all);
        all = next;
        if (!all)
            return args->in[i] ? NULL : fold_fail(args, "an input is missing");
    }
    return all;
}

struct host *fold_add(const struct fold_args *args)
{
    return binary(args, MATH_ADD);
}

struct host *fold_sub(const struct fold_args *args)
{
    return binary(args, MATH_SUB);
}

struct host *fold_mul(const struct fold_args *args)
{
    return binary(args, MATH_MUL);
}

struct host *fold_div(const struct fold_args *args)
{
    return binary(args, MATH_DIV);
}

struct host *fold_min(const struct fold_args *args)
{
    return several(args, MATH_MIN);
}

struct host *fold_max(const struct fold_args *args)
{
    return several(args, MATH_MAX);
}

struct host *fold_pow(const struct fold_args *args)
{
    return binary(args, MATH_POW);
}

struct host *fold_equal(const struct fold_args *args)
{
    return binary(args, MATH_EQUAL);
}

struct host *fold_mod(const struct fold_args *args)
{
    if (onnx_int(args->node, "fmod", 0))
        return fold_fail(args, "fmod is not supported");
    return binary(args, MATH_MOD);
}

static struct host *unary(const struct fold_args *args, double (*fn)(double))
{
    const struct host *x = args->in[0];
    struct host *host = onnx_host_new(args->im, HOST_FLOAT, x->shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++)
        host->floats[i] = (float)fn(host_number(x, i));
    return host;
}

struct host *fold_sqrt(const struct fold_args *args)
{
    return unary(args, sqrt);
}

struct host *fold_floor(const struct fold_args *args)
{
    return unary(args, floor);
}

struct host *fold_ceil(const struct fold_args *args)
{
    return unary(args, ceil);
}

static double reciprocal(double x)
{
    return 1 / x;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double positive(double x)
{
    return x < 0 ? 0 : x;
}

#define UNARY(name, fn)                                                                            \
    struct host *name(const struct fold_args *args)                                                \
    {                                                                                              \
        return unary(args, fn);                                                                    \
    }
UNARY(fold_exp, exp)
UNARY(fold_log, log)
UNARY(fold_sin, sin)
UNARY(fold_cos, cos)
UNARY(fold_erf, erf)
UNARY(fold_reciprocal, reciprocal)
UNARY(fold_tanh, tanh)
UNARY(fold_sigmoid, sigmoid)
UNARY(fold_relu, positive)
UNARY(fold_round, nearbyint)

struct host *fold_abs(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    struct host *host = onnx_host_new(args->im, x->type, x->shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++)
        if (x->type == HOST_FLOAT)
            host->floats[i] = fabsf(x->floats[i]);
        else
            host->ints[i] = x->ints[i] == INT64_MIN ? INT64_MAX : llabs(x->ints[i]);
    return host;
}

struct host *fold_neg(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    struct host *host = onnx_host_new(args->im, x->type, x->shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++)
        if (x->type == HOST_FLOAT)
            host->floats[i] = -x->floats[i];
        else
            host->ints[i] = x->ints[i] == INT64_MIN ? INT64_MAX : -x->ints[i];
    return host;
}

struct host *fold_where(const struct fold_args *args)
{
    struct shape two, shape;
    if (args->n != 3 || !args->in[1] || !args->in[2] || args->in[0]->type != HOST_INT ||
        args->in[1]->type != args->in[2]->type)
        return fold_fail(args, "a condition and two tensors of the same type are needed");
    if (!shape_broadcast(&args->in[1]->shape, &args->in[2]->shape, &two) ||
        !shape_broadcast(&args->in[0]->shape, &two, &shape))
        return fold_fail(args, "the shapes of the constants do not match");
    struct host *host = onnx_host_new(args->im, args->in[1]->type, shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++) {
        bool yes = args->in[0]->ints[fold_broadcast(&shape, i, &args->in[0]->shape)] != 0;
        const struct host *from = args->in[yes ? 1 : 2];
        host_copy(host, i, from, fold_broadcast(&shape, i, &from->shape));
    }
    return host;
}

struct host *fold_cast(const struct fold_args *args)
{
    const struct host *x = args->in[0];
    int64_t to = onnx_int(args->node, "to", 0);
    bool real = to == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
                to == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ||
                to == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ||
                to == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
    bool truth = to == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
    if (to == ONNX__TENSOR_PROTO__DATA_TYPE__STRING || to < 1 || to > 16)
        return fold_fail(args, "only numbers are supported");
    struct host *host = onnx_host_new(args->im, real ? HOST_FLOAT : HOST_INT, x->shape, args->err);
    if (host)
        host->element = (int)to;
    for (int64_t i = 0; host && i < host->count; i++) {
        double number = host_number(x, i);
        if (real)
            host->floats[i] = host_float(x, i);
        else if (truth)
            host->ints[i] = number != 0;
        else if (x->type == HOST_INT)
            host->ints[i] = x->ints[i];
        else
            host->ints[i] = fabs(number) < 9e18 ? (int64_t)number : 0;
    }
    return host;
}

struct host *fold_range(const struct fold_args *args)
{
    if (args->n != 3)
        return fold_fail(args, "start, limit and delta are needed");
    for (int i = 0; i < 3; i++)
        if (!args->in[i] || args->in[i]->count != 1 || args->in[i]->type != args->in[0]->type)
            return fold_fail(args, "start, limit and delta must be one number each");
    double start = host_number(args->in[0], 0), limit = host_number(args->in[1], 0);
    double delta = host_number(args->in[2], 0);
    double count = ceil((limit - start) / delta);
    if (!(count >= 0))
        count = 0;
    if (count > 1e9)
        return fold_fail(args, "the range is too long");
    struct shape shape = { 1, { (int64_t)count } };
    struct host *host = onnx_host_new(args->im, args->in[0]->type, shape, args->err);
    for (int64_t i = 0; host && i < host->count; i++)
        if (host->type == HOST_FLOAT)
            host->floats[i] = (float)(start + (double)i * delta);
        else
            host->ints[i] = (int64_t)(start + (double)i * delta);
    return host;
}
