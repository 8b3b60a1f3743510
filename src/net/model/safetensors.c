/* safetensors.c: reading, by mapping the file; everything in the header is checked here. */
#include "net/model/safetensors.h"
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "net/kernels/half.h"

/* A header this long would name some hundred thousand tensors. */
#define HEADER_LIMIT ((uint64_t)16 << 20)

struct safetensors_type {
    const char *name;
    size_t bytes;
    float (*to_float)(const uint8_t *at); /* NULL: only the place is checked */
};

/* The elements lie at any address: they are copied out, not dereferenced. */
#define READER(name_, type_)                                                                       \
    static float name_(const uint8_t *at)                                                          \
    {                                                                                              \
        type_ value;                                                                               \
        memcpy(&value, at, sizeof value);                                                          \
        return (float)value;                                                                       \
    }
READER(from_f64, double)
READER(from_f32, float)
READER(from_i64, int64_t)
READER(from_u64, uint64_t)
READER(from_i32, int32_t)
READER(from_u32, uint32_t)
READER(from_i16, int16_t)
READER(from_u16, uint16_t)
READER(from_i8, int8_t)
READER(from_u8, uint8_t)

static float from_f16(const uint8_t *at)
{
    return float_of_half((uint16_t)(at[0] | at[1] << 8));
}

static float from_bf16(const uint8_t *at)
{
    return float_of_bfloat16((uint16_t)(at[0] | at[1] << 8));
}

static const struct safetensors_type types[] = {
    { "F32", 4, from_f32 }, { "F16", 2, from_f16 }, { "BF16", 2, from_bf16 },
    { "F64", 8, from_f64 }, { "I64", 8, from_i64 }, { "U64", 8, from_u64 },
    { "I32", 4, from_i32 }, { "U32", 4, from_u32 }, { "I16", 2, from_i16 },
    { "U16", 2, from_u16 }, { "I8", 1, from_i8 },   { "U8", 1, from_u8 },
    { "BOOL", 1, from_u8 }, { "F8_E4M3", 1, NULL }, { "F8_E5M2", 1, NULL },
};

const struct safetensors_type *safetensors_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

static bool bad(struct err *err, const char *path, const char *name, const char *fact)
{
    return err_set(err, ERR_FORMAT, "%s: tensor '%.200s': %s", path, name, fact);
}

/* "shape": whole numbers >= 0 whose product cannot overflow. */
static bool parse_shape(const json_t *json, const char *path, struct safetensors_tensor *tensor,
                        struct err *err)
{
    if (!json_is_array(json) || json_array_size(json) > SHAPE_DIMS)
        return bad(err, path, tensor->name, "its shape is not a list of at most 6 numbers");
    tensor->count = 1;
    tensor->shape.rank = (int)json_array_size(json);
    for (int i = 0; i < tensor->shape.rank; i++) {
        const json_t *extent = json_array_get(json, (size_t)i);
        json_int_t value = json_integer_value(extent);
        if (!json_is_integer(extent) || value < 0)
            return bad(err, path, tensor->name, "its shape contains something other than numbers");
        if (__builtin_mul_overflow(tensor->count, (int64_t)value, &tensor->count))
            return bad(err, path, tensor->name, "its shape is too large");
        tensor->shape.dim[i] = value;
    }
    return true;
}

/* "data_offsets": [begin, end) within the `size` bytes after the header. */
static bool parse_place(const json_t *json, const char *path, size_t size,
                        struct safetensors_tensor *tensor, const uint8_t *bytes, struct err *err)
{
    const json_t *first = json_array_get(json, 0), *last = json_array_get(json, 1);
    if (!json_is_array(json) || json_array_size(json) != 2 || !json_is_integer(first) ||
        !json_is_integer(last))
        return bad(err, path, tensor->name, "its data_offsets are not two numbers");
    json_int_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || (uint64_t)end > size)
        return bad(err, path, tensor->name, "its data is outside the file");
    int64_t wanted;
    if (__builtin_mul_overflow(tensor->count, (int64_t)tensor->type->bytes, &wanted) ||
        end - begin != wanted)
        return bad(err, path, tensor->name, "the length of its data does not match its shape");
    tensor->data = bytes + begin;
    return true;
}

static bool parse_tensor(const char *name, const json_t *json, const char *path,
                         const uint8_t *bytes, size_t size, struct safetensors_tensor *out,
                         struct err *err)
{
    *out = (struct safetensors_tensor){ .name = name };
    const char *type = json_string_value(json_object_get(json, "dtype"));
    if (!type)
        return bad(err, path, name, "it has no dtype");
    out->type = safetensors_type(type);
    if (!out->type)
        return err_set(err, ERR_FORMAT, "%s: tensor '%.200s': unknown dtype '%.40s'", path, name,
                       type);
    return parse_shape(json_object_get(json, "shape"), path, out, err) &&
           parse_place(json_object_get(json, "data_offsets"), path, size, out, bytes, err);
}

static int by_place(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->count > y->count) - (x->count < y->count); /* empty ones first */
}

static int by_name(const void *a, const void *b)
{
    const struct safetensors_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* The tensors follow one another without gap or overlap and fill the file, as the format wants. */
static bool check_order(struct safetensors *file, const uint8_t *bytes, size_t size,
                        struct err *err)
{
    const uint8_t *at = bytes;
    qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_place);
    for (size_t i = 0; i < file->n_tensors; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        if (tensor->data != at)
            return bad(err, file->path, tensor->name,
                       tensor->data < at ? "its data overlaps that of another tensor"
                                         : "there is a gap before its data");
        at += (size_t)tensor->count * tensor->type->bytes;
    }
    if (at != bytes + size)
        return err_set(err, ERR_FORMAT, "%s: %zu bytes at the end belong to no tensor", file->path,
                       (size_t)(bytes + size - at));
    qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_name);
    return true;
}

static bool check_metadata(const json_t *json, const char *path, struct err *err)
{
    const char *key;
    json_t *value;
    if (!json)
        return true;
    if (!json_is_object(json))
        return err_set(err, ERR_FORMAT, "%s: __metadata__ is not an object", path);
    json_object_foreach((json_t *)json, key, value)
    {
        if (!json_is_string(value))
            return err_set(err, ERR_FORMAT, "%s: __metadata__: '%.200s' is not text", path, key);
    }
    return true;
}

static bool parse_tensors(struct safetensors *file, const uint8_t *bytes, size_t size,
                          struct err *err)
{
    json_t *header = file->header;
    const char *name;
    json_t *json;
    if (!check_metadata(json_object_get(header, "__metadata__"), file->path, err))
        return false;
    file->tensors = calloc(json_object_size(header) + 1, sizeof *file->tensors);
    if (!file->tensors)
        return err_memory(err, file->path);
    json_object_foreach(header, name, json)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        if (!parse_tensor(name, json, file->path, bytes, size, &file->tensors[file->n_tensors],
                          err))
            return false;
        file->n_tensors++;
    }
    return check_order(file, bytes, size, err);
}

/* The JSON header; *length are its bytes, behind the 8 of the length itself. */
static bool parse_header(struct safetensors *file, const uint8_t *bytes, size_t size,
                         uint64_t *length, struct err *err)
{
    *length = 0;
    for (int i = 7; i >= 0 && size >= 8; i--)
        *length = *length << 8 | bytes[i];
    if (size < 8 || *length > size - 8)
        return err_set(err, ERR_FORMAT,
                       "%s: not a safetensors file, or truncated: the header does not fit into it",
                       file->path);
    if (*length > HEADER_LIMIT)
        return err_set(err, ERR_FORMAT, "%s: the header is longer than %llu bytes", file->path,
                       (unsigned long long)HEADER_LIMIT);
    json_error_t why;
    json_t *header = json_loadb((const char *)bytes + 8, *length, JSON_REJECT_DUPLICATES, &why);
    file->header = header;
    if (!header)
        return err_set(err, ERR_FORMAT, "%s: not a safetensors file: the header is not JSON: %s",
                       file->path, why.text);
    if (!json_is_object(header))
        return err_set(err, ERR_FORMAT, "%s: not a safetensors file: the header is not an object",
                       file->path);
    return true;
}

static bool parse_into(struct safetensors *file, const uint8_t *bytes, size_t size, struct err *err)
{
    uint64_t length;
    return parse_header(file, bytes, size, &length, err) &&
           parse_tensors(file, bytes + 8 + length, size - 8 - length, err);
}

bool safetensors_parse(const uint8_t *bytes, size_t size, const char *path, struct safetensors *out,
                       struct err *err)
{
    *out = (struct safetensors){ .path = strdup(path) };
    if (!out->path)
        return err_memory(err, path);
    if (parse_into(out, bytes, size, err))
        return true;
    safetensors_close(out);
    return false;
}

bool safetensors_map(struct safetensors *file, struct err *err)
{
    struct stat status;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, file->path, "open");
    bool ok = false;
    if (fstat(fd, &status) != 0) {
        err_errno(err, file->path, "read");
    } else if (!S_ISREG(status.st_mode) || status.st_size < 8) {
        err_set(err, ERR_FORMAT, "%s: not a file of weights: too short", file->path);
    } else {
        file->map_bytes = (size_t)status.st_size;
        file->map = mmap(NULL, file->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        ok = file->map != MAP_FAILED || err_errno(err, file->path, "map");
        if (!ok)
            file->map = NULL;
    }
    close(fd);
    return ok;
}

bool safetensors_open(const char *path, struct safetensors *out, struct err *err)
{
    *out = (struct safetensors){ .path = strdup(path) };
    if (!out->path)
        return err_memory(err, path);
    if (safetensors_map(out, err) && parse_into(out, out->map, out->map_bytes, err))
        return true;
    safetensors_close(out);
    return false;
}

void safetensors_close(struct safetensors *file)
{
    json_decref((json_t *)file->header);
    for (size_t i = 0; i < file->n_owned; i++)
        free(file->owned[i]);
    free(file->owned);
    free(file->tensors);
    free(file->path);
    if (file->map)
        munmap(file->map, file->map_bytes);
    *file = (struct safetensors){ 0 };
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name)
{
    struct safetensors_tensor key = { .name = name };
    return file->n_tensors
               ? bsearch(&key, file->tensors, file->n_tensors, sizeof *file->tensors, by_name)
               : NULL;
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

size_t safetensors_type_bytes(const struct safetensors_type *type)
{
    return type->bytes;
}

void safetensors_sort(struct safetensors *file)
{
    if (file->n_tensors)
        qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_name);
}

const char *safetensors_type_name(const struct safetensors_tensor *tensor)
{
    return tensor->type->name;
}

bool safetensors_floats(const struct safetensors_tensor *tensor, float *out)
{
    if (!tensor->type->to_float)
        return false;
    if (tensor->type->to_float == from_f32) {
        memcpy(out, tensor->data, (size_t)tensor->count * sizeof *out);
        return true;
    }
    for (int64_t i = 0; i < tensor->count; i++)
        out[i] = tensor->type->to_float(tensor->data + (size_t)i * tensor->type->bytes);
    return true;
}
