/* host.c: decodes the tensors of an ONNX file. */
#include "net/onnx/host.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/kernels/half.h"

#define COUNT_LIMIT ((int64_t)1 << 33)

struct host *host_new(enum host_type type, struct shape shape, int64_t limit, struct err *err)
{
    int64_t count = 1;
    bool ok = true;
    for (int i = 0; i < shape.rank; i++)
        ok = ok && shape.dim[i] >= 0 && !__builtin_mul_overflow(count, shape.dim[i], &count);
    if (!ok || count > limit || count > COUNT_LIMIT) {
        err_set(err, ERR_FORMAT, "a constant is too large");
        return NULL;
    }
    struct host *host = calloc(1, sizeof *host);
    size_t bytes = type == HOST_FLOAT ? sizeof(float) : sizeof(int64_t);
    void *data = calloc((size_t)count + 1, bytes);
    if (!host || !data) {
        free(host), free(data);
        err_memory(err, "a constant");
        return NULL;
    }
    host->type = type, host->shape = shape, host->count = count;
    if (type == HOST_FLOAT)
        host->floats = data;
    else
        host->ints = data;
    return host;
}

void host_free(struct host *host)
{
    if (!host)
        return;
    free(host->type == HOST_FLOAT ? (void *)host->floats : (void *)host->ints);
    free(host);
}

/* One element type of a file: how wide it is in raw_data and how it is read from there, and from
 * which of the typed lists it comes otherwise. */
struct kind {
    int type; /* ONNX__TENSOR_PROTO__DATA_TYPE__.. */
    enum host_type host;
    size_t bytes;
    void (*read)(struct host *host, int64_t i, const uint8_t *at);
};

#define READER(name_, type_, member, to)                                                           \
    static void name_(struct host *host, int64_t i, const uint8_t *at)                             \
    {                                                                                              \
        type_ value;                                                                               \
        memcpy(&value, at, sizeof value);                                                          \
        host->member[i] = (to)value;                                                               \
    }
READER(read_float, float, floats, float)
READER(read_double, double, floats, float)
READER(read_i64, int64_t, ints, int64_t)
READER(read_i32, int32_t, ints, int64_t)
READER(read_i16, int16_t, ints, int64_t)
READER(read_i8, int8_t, ints, int64_t)
READER(read_u64, uint64_t, ints, int64_t)
READER(read_u32, uint32_t, ints, int64_t)
READER(read_u16, uint16_t, ints, int64_t)
READER(read_u8, uint8_t, ints, int64_t)

static void read_half(struct host *host, int64_t i, const uint8_t *at)
{
    host->floats[i] = float_of_half((uint16_t)(at[0] | at[1] << 8));
}

static void read_bfloat(struct host *host, int64_t i, const uint8_t *at)
{
    host->floats[i] = float_of_bfloat16((uint16_t)(at[0] | at[1] << 8));
}

#define TYPE(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name
static const struct kind kinds[] = {
    { TYPE(FLOAT), HOST_FLOAT, 4, read_float },     { TYPE(DOUBLE), HOST_FLOAT, 8, read_double },
    { TYPE(FLOAT16), HOST_FLOAT, 2, read_half },    { TYPE(INT64), HOST_INT, 8, read_i64 },
    { TYPE(INT32), HOST_INT, 4, read_i32 },         { TYPE(INT16), HOST_INT, 2, read_i16 },
    { TYPE(INT8), HOST_INT, 1, read_i8 },           { TYPE(UINT64), HOST_INT, 8, read_u64 },
    { TYPE(UINT32), HOST_INT, 4, read_u32 },        { TYPE(UINT16), HOST_INT, 2, read_u16 },
    { TYPE(UINT8), HOST_INT, 1, read_u8 },          { TYPE(BOOL), HOST_INT, 1, read_u8 },
    { TYPE(BFLOAT16), HOST_FLOAT, 2, read_bfloat },
};

static const struct kind *kind_of(int type)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == type)
            return &kinds[i];
    return NULL;
}

/* The typed list that holds this type: its length and the address of an element. */
static size_t typed_list(const Onnx__TensorProto *tensor, const void **data, size_t *stride)
{
    switch (tensor->data_type) {
    case TYPE(FLOAT):
        *data = tensor->float_data, *stride = sizeof(float);
        return tensor->n_float_data;
    case TYPE(DOUBLE):
        *data = tensor->double_data, *stride = sizeof(double);
        return tensor->n_double_data;
    case TYPE(INT64):
        *data = tensor->int64_data, *stride = sizeof(int64_t);
        return tensor->n_int64_data;
    case TYPE(UINT64):
    case TYPE(UINT32):
        *data = tensor->uint64_data, *stride = sizeof(uint64_t);
        return tensor->n_uint64_data;
    default:
        *data = tensor->int32_data, *stride = sizeof(int32_t);
        return tensor->n_int32_data;
    }
}

static bool shape_of(const Onnx__TensorProto *tensor, struct shape *shape, struct err *err)
{
    if (tensor->n_dims > SHAPE_DIMS)
        return err_set(err, ERR_FORMAT, "a constant with %zu axes; at most %d are supported",
                       tensor->n_dims, SHAPE_DIMS);
    *shape = (struct shape){ .rank = (int)tensor->n_dims };
    for (int i = 0; i < shape->rank; i++) {
        shape->dim[i] = tensor->dims[i];
        if (shape->dim[i] < 0)
            return err_set(err, ERR_FORMAT, "a constant with a negative extent");
    }
    return true;
}

struct host *host_from_proto(const Onnx__TensorProto *tensor, struct err *err)
{
    const struct kind *kind = kind_of(tensor->data_type);
    struct shape shape;
    const void *data = tensor->raw_data.data;
    size_t stride = kind ? kind->bytes : 0;
    if (!kind) {
        err_set(err, ERR_FORMAT, "a constant of type %d is not supported", tensor->data_type);
        return NULL;
    }
    bool outside = tensor->n_external_data ||
                   tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if (tensor->segment || (outside && !tensor->raw_data.len)) { /* else onnx/external.h */
        err_set(err, ERR_FORMAT, "a constant's data is outside the file");
        return NULL;
    }
    if (!shape_of(tensor, &shape, err))
        return NULL;
    bool raw = tensor->has_raw_data && tensor->raw_data.len;
    size_t available =
        raw ? tensor->raw_data.len / kind->bytes : typed_list(tensor, &data, &stride);
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++)
        if (__builtin_mul_overflow(count, shape.dim[i], &count))
            count = -1;
    if (count != (int64_t)available || (raw && tensor->raw_data.len % kind->bytes)) {
        err_set(err, ERR_FORMAT, "the length of a constant's data does not match its shape");
        return NULL;
    }
    struct host *host = host_new(kind->host, shape, count, err);
    if (!host)
        return NULL;
    host->element = kind->type;
    for (int64_t i = 0; i < host->count; i++)
        kind->read(host, i, (const uint8_t *)data + (size_t)i * stride);
    return host;
}
