/* torch_file.c: see torch_file.h. An archive has the pickle NAME/data.pkl, whose tensors refer to
 * storages NAME/data/KEY. */
#include "net/model/torch_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "net/torch/pickle.h"
#include "net/torch/zip.h"

#define PICKLE_LIMIT ((size_t)256 << 20)
#define DEPTH_LIMIT 64
#define NAME_LIMIT 1000
#define WALK_LIMIT 4000000

static const uint8_t legacy_magic[] = { 0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c,
                                        0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19 };

struct reader {
    struct safetensors *file;
    struct zip zip;
    struct pickle pickle;
    uint8_t **unpacked; /* [n_entries]: storages that are deflated */
    char *folder;       /* "archive/" */
    size_t copied, copy_limit;
    size_t walked, capacity;
    struct err *err;
};

static bool is_tar(const uint8_t *bytes, size_t size)
{
    return size > 262 && memcmp(bytes + 257, "ustar", 5) == 0;
}

static bool is_torch(const uint8_t *bytes, size_t size)
{
    return (size >= 4 && memcmp(bytes, "PK\3\4", 4) == 0) || (size >= 2 && bytes[0] == 0x80) ||
           is_tar(bytes, size);
}

bool torch_file_is(const char *path)
{
    uint8_t start[512];
    FILE *stream = fopen(path, "rb");
    size_t n = stream ? fread(start, 1, sizeof start, stream) : 0;
    if (stream)
        fclose(stream);
    /* The second byte of a pickle is its protocol; of a short safetensors header it is rarely. */
    return is_torch(start, n) && (start[0] != 0x80 || (start[1] <= 5 && n > 8 && start[8] != '{'));
}

static const struct pickle_value *value_at(const struct reader *r, uint32_t index)
{
    return &r->pickle.values[index];
}

/* Memory that lives as long as the file; NULL: none left. */
static void *keep(struct reader *r, void *memory)
{
    struct safetensors *file = r->file;
    void **larger = memory ? reallocarray(file->owned, file->n_owned + 1, sizeof *larger) : NULL;
    if (!larger) {
        free(memory);
        err_memory(r->err, file->path);
        return NULL;
    }
    file->owned = larger;
    return larger[file->n_owned++] = memory;
}

static bool bad(const struct reader *r, const char *name, const char *fact)
{
    return err_set(r->err, ERR_FORMAT, "%s: tensor '%.200s': %s", r->file->path, name, fact);
}

static const struct safetensors_type *type_of(const struct pickle_value *global)
{
    static const char *const names[][2] = {
        { "FloatStorage", "F32" },
        { "HalfStorage", "F16" },
        { "BFloat16Storage", "BF16" },
        { "DoubleStorage", "F64" },
        { "LongStorage", "I64" },
        { "IntStorage", "I32" },
        { "ShortStorage", "I16" },
        { "CharStorage", "I8" },
        { "ByteStorage", "U8" },
        { "BoolStorage", "BOOL" },
        { "float32", "F32" },
        { "float16", "F16" },
        { "bfloat16", "BF16" },
        { "float64", "F64" },
        { "int64", "I64" },
        { "int32", "I32" },
        { "int16", "I16" },
        { "int8", "I8" },
        { "uint8", "U8" },
        { "bool", "BOOL" },
        { "float8_e4m3fn", "F8_E4M3" },
        { "float8_e5m2", "F8_E5M2" },
    };
    for (size_t i = 0; global->kind == PICKLE_GLOBAL && i < sizeof names / sizeof *names; i++)
        if (strlen(names[i][0]) == global->length2 &&
            memcmp(names[i][0], global->text2, global->length2) == 0)
            return safetensors_type(names[i][1]);
    return NULL;
}

/* The bytes of the storage that a tensor refers to: ('storage', type, key, device, elements). */
static bool read_storage(struct reader *r, const char *name, const struct pickle_value *storage,
                         const struct pickle_value **type, const uint8_t **bytes, size_t *size)
{
    const struct pickle_value *id =
        storage->kind == PICKLE_STORAGE ? value_at(r, storage->items[0]) : NULL;
    if (!id || id->n_items < 5 || !pickle_is(value_at(r, id->items[0]), "storage"))
        return bad(r, name, "its storage is not described");
    *type = value_at(r, id->items[1]);
    const struct pickle_value *key = value_at(r, id->items[2]);
    if (key->kind != PICKLE_TEXT || key->length > 100)
        return bad(r, name, "its storage has no name");
    char *path = text_format("%sdata/%.*s", r->folder, (int)key->length, key->text);
    const struct zip_entry *entry = path ? zip_find(&r->zip, path) : NULL;
    free(path);
    if (!entry)
        return bad(r, name, "its storage is not in the file");
    uint8_t **kept = &r->unpacked[entry - r->zip.entries], *own = NULL;
    if (!*kept && !zip_read(entry, r->file->path, SIZE_MAX / 2, bytes, &own, r->err))
        return false;
    if (own && !(*kept = keep(r, own)))
        return false;
    *bytes = *kept ? *kept : *bytes;
    *size = entry->size;
    return true;
}

/* A tuple of whole numbers from 0. */
static bool read_extents(const struct reader *r, const struct pickle_value *tuple,
                         struct shape *out)
{
    *out = (struct shape){ 0 };
    if ((tuple->kind != PICKLE_TUPLE && tuple->kind != PICKLE_LIST) || tuple->n_items > SHAPE_DIMS)
        return false;
    for (size_t i = 0; i < tuple->n_items; i++) {
        const struct pickle_value *extent = value_at(r, tuple->items[i]);
        if (extent->kind != PICKLE_INT || extent->number < 0)
            return false;
        out->dim[out->rank++] = extent->number;
    }
    return true;
}

/* Whether the elements follow one another; *last: the offset of the last one. */
static bool reach(const struct safetensors_tensor *tensor, const struct shape *stride,
                  bool *contiguous, int64_t *last)
{
    int64_t next = 1, step;
    *contiguous = true, *last = 0;
    for (int i = tensor->shape.rank; i-- > 0;) {
        int64_t extent = tensor->shape.dim[i];
        if (extent > 1 && stride->dim[i] != next)
            *contiguous = false;
        if (__builtin_mul_overflow(extent ? extent - 1 : 0, stride->dim[i], &step) ||
            __builtin_add_overflow(*last, step, last) ||
            __builtin_mul_overflow(next, extent, &next))
            return false;
    }
    return true;
}

/* Elements in any order into memory of their own, row by row. */
static bool gather(struct reader *r, struct safetensors_tensor *tensor, const struct shape *stride)
{
    size_t each = safetensors_type_bytes(tensor->type), total = (size_t)tensor->count * each;
    if (total > r->copy_limit - r->copied)
        return bad(r, tensor->name, "it repeats its elements too often");
    r->copied += total;
    uint8_t *to = keep(r, malloc(total + 1));
    int64_t index[SHAPE_DIMS] = { 0 };
    const uint8_t *from = tensor->data;
    if (!to)
        return false;
    for (int64_t i = 0; i < tensor->count; i++) {
        memcpy(to + (size_t)i * each, from, each);
        for (int axis = tensor->shape.rank; axis-- > 0;) {
            int64_t step = stride->dim[axis] * (int64_t)each;
            from += step;
            if (++index[axis] < tensor->shape.dim[axis])
                break;
            from -= step * index[axis];
            index[axis] = 0;
        }
    }
    tensor->data = to;
    return true;
}

/* storage, offset, size, stride, ..; in version 3 the type is the seventh. */
static bool read_tensor(struct reader *r, const struct pickle_value *value,
                        struct safetensors_tensor *out)
{
    const struct pickle_value *type = NULL;
    struct shape stride;
    size_t size = 0;
    int64_t last = 0, end = 0;
    bool contiguous = true;
    const char *name = out->name;
    if (value->n_items < (value->number == 3 ? 7 : 4) ||
        value_at(r, value->items[1])->kind != PICKLE_INT ||
        !read_extents(r, value_at(r, value->items[2]), &out->shape) ||
        !read_extents(r, value_at(r, value->items[3]), &stride) || stride.rank != out->shape.rank)
        return bad(r, name, "its shape is not a list of at most 6 numbers");
    if (!read_storage(r, name, value_at(r, value->items[0]), &type, &out->data, &size))
        return false;
    type = value->number == 3 ? value_at(r, value->items[6]) : type;
    out->type = type_of(type);
    if (!out->type)
        return err_set(r->err, ERR_FORMAT, "%s: tensor '%.200s': the type '%.*s' is not supported",
                       r->file->path, name, (int)(type->length2 < 60 ? type->length2 : 60),
                       type->kind == PICKLE_GLOBAL ? type->text2 : "");
    int64_t offset = value_at(r, value->items[1])->number;
    if (offset < 0 || !reach(out, &stride, &contiguous, &last) ||
        __builtin_add_overflow(offset, last, &end))
        return bad(r, name, "its shape is too large");
    out->count = 1;
    for (int i = 0; i < out->shape.rank; i++)
        out->count *= out->shape.dim[i];
    size_t each = safetensors_type_bytes(out->type);
    if (out->count == 0)
        return true;
    if ((uint64_t)end >= size / each)
        return bad(r, name, "its data is outside its storage");
    out->data += (size_t)offset * each;
    return contiguous || gather(r, out, &stride);
}

static bool add_tensor(struct reader *r, const char *name, const struct pickle_value *value)
{
    struct safetensors *file = r->file;
    if (file->n_tensors == r->capacity) {
        size_t larger = r->capacity ? 2 * r->capacity : 64;
        void *moved = reallocarray(file->tensors, larger, sizeof *file->tensors);
        if (!moved)
            return err_memory(r->err, file->path);
        file->tensors = moved, r->capacity = larger;
    }
    struct safetensors_tensor *tensor = &file->tensors[file->n_tensors];
    *tensor = (struct safetensors_tensor){ .name = keep(r, strdup(name)) };
    if (!tensor->name || !read_tensor(r, value, tensor))
        return false;
    file->n_tensors++;
    return true;
}

/* All tensors below a dictionary, by the path to them. */
static bool walk(struct reader *r, const struct pickle_value *dict, const char *prefix, int depth)
{
    char name[NAME_LIMIT];
    for (size_t i = 0; i + 1 < dict->n_items; i += 2) {
        const struct pickle_value *key = value_at(r, dict->items[i]);
        const struct pickle_value *value = value_at(r, dict->items[i + 1]);
        if (depth > DEPTH_LIMIT || ++r->walked > WALK_LIMIT)
            return err_set(r->err, ERR_FORMAT, "%s: its values are nested too deeply",
                           r->file->path);
        if (key->kind != PICKLE_TEXT ||
            (value->kind != PICKLE_TENSOR && value->kind != PICKLE_DICT))
            continue;
        if (key->length > 200 || strlen(prefix) + key->length + 2 > sizeof name ||
            memchr(key->text, 0, key->length))
            return err_set(r->err, ERR_FORMAT, "%s: the name of a tensor is too long",
                           r->file->path);
        snprintf(name, sizeof name, "%s%.*s%s", prefix, (int)key->length, key->text,
                 value->kind == PICKLE_DICT ? "." : "");
        if (!(value->kind == PICKLE_TENSOR ? add_tensor(r, name, value)
                                           : walk(r, value, name, depth + 1)))
            return false;
    }
    return true;
}

static bool holds_tensors(const struct reader *r, const struct pickle_value *dict)
{
    for (size_t i = 0; dict->kind == PICKLE_DICT && i + 1 < dict->n_items; i += 2)
        if (value_at(r, dict->items[i])->kind == PICKLE_TEXT &&
            value_at(r, dict->items[i + 1])->kind == PICKLE_TENSOR)
            return true;
    return false;
}

/* The dictionary with the weights: the root, "state_dict" in it, or the only one with tensors. */
static bool choose(const struct reader *r, const struct pickle_value **dict)
{
    const struct pickle_value *root = *dict, *found = NULL;
    char names[400] = "";
    size_t n = 0;
    for (size_t i = 0; i + 1 < root->n_items; i += 2) {
        const struct pickle_value *key = value_at(r, root->items[i]);
        const struct pickle_value *value = value_at(r, root->items[i + 1]);
        if (key->kind != PICKLE_TEXT || !holds_tensors(r, value))
            continue;
        if (pickle_is(key, "state_dict")) {
            *dict = value;
            return true;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%.*s", n ? ", " : "",
                 (int)(key->length < 60 ? key->length : 60), key->text);
        found = value, n++;
    }
    if (holds_tensors(r, root) || n == 0)
        return true;
    if (n > 1)
        return err_set(r->err, ERR_FORMAT,
                       "%s: it has several sets of weights: %s; save one of them: "
                       "torch.save(torch.load(FILE)[NAME], ..)",
                       r->file->path, names);
    *dict = found;
    return true;
}

/* A prefix that all names have and that says nothing. */
static void strip(struct safetensors *file, const char *prefix)
{
    size_t length = strlen(prefix);
    for (size_t i = 0; i < file->n_tensors; i++)
        if (strncmp(file->tensors[i].name, prefix, length) != 0 || !file->tensors[i].name[length])
            return;
    for (size_t i = 0; i < file->n_tensors; i++)
        file->tensors[i].name += length;
}

static bool check_unique(const struct reader *r)
{
    const struct safetensors *file = r->file;
    for (size_t i = 1; i < file->n_tensors; i++)
        if (strcmp(file->tensors[i - 1].name, file->tensors[i].name) == 0)
            return bad(r, file->tensors[i].name, "there are two of this name");
    return true;
}

/* TorchScript: a module is an object, which freezing leaves without attributes. */
static bool explain_none(const struct reader *r)
{
    char *constants = text_format("%sconstants.pkl", r->folder);
    const struct zip_entry *entry = constants ? zip_find(&r->zip, constants) : NULL;
    free(constants);
    if (entry && entry->size > 8)
        return err_set(r->err, ERR_FORMAT,
                       "%s: a frozen TorchScript module, whose weights have no names; save it "
                       "without torch.jit.freeze, or export it as ONNX",
                       r->file->path);
    return err_set(r->err, ERR_FORMAT, "%s: it has no tensors by name", r->file->path);
}

static bool read_tensors(struct reader *r)
{
    const struct pickle_value *root = value_at(r, r->pickle.root);
    if (root->kind != PICKLE_DICT)
        return err_set(r->err, ERR_FORMAT, "%s: it has no dictionary of tensors", r->file->path);
    if ((!root->number && !choose(r, &root)) || !walk(r, root, "", 0))
        return false;
    if (!r->file->n_tensors)
        return explain_none(r);
    strip(r->file, "module.");
    strip(r->file, "model.");
    safetensors_sort(r->file);
    return check_unique(r);
}

/* data.pkl, in the one folder that an archive has. */
static const struct zip_entry *find_pickle(struct reader *r)
{
    static const char last[] = "data.pkl";
    size_t tail = sizeof last - 1;
    for (size_t i = 0; i < r->zip.n_entries; i++) {
        const struct zip_entry *entry = &r->zip.entries[i];
        size_t folder = entry->name_length - tail;
        if (entry->name_length < tail || memcmp(entry->name + folder, last, tail) != 0 ||
            (folder && entry->name[folder - 1] != '/') || folder > 1000)
            continue;
        r->folder = text_format("%.*s", (int)folder, entry->name);
        return r->folder ? entry : NULL;
    }
    return NULL;
}

static bool check_order(struct reader *r)
{
    char *name = text_format("%sbyteorder", r->folder);
    const struct zip_entry *entry = name ? zip_find(&r->zip, name) : NULL;
    free(name);
    if (entry && !entry->deflated && entry->size == 3 && memcmp(entry->bytes, "big", 3) == 0)
        return err_set(r->err, ERR_FORMAT,
                       "%s: its numbers are big-endian; save it again on another machine",
                       r->file->path);
    return true;
}

static bool read_archive(struct reader *r, const uint8_t *bytes, size_t size)
{
    const char *path = r->file->path;
    const uint8_t *pickle = NULL;
    uint8_t *own = NULL;
    if ((size >= sizeof legacy_magic && memcmp(bytes, legacy_magic, sizeof legacy_magic) == 0) ||
        is_tar(bytes, size))
        return err_set(r->err, ERR_FORMAT,
                       "%s: PyTorch's format from before 1.6; in Python, save it again: "
                       "torch.save(torch.load(FILE), FILE)",
                       path);
    if (size < 4 || memcmp(bytes, "PK\3\4", 4) != 0)
        return err_set(r->err, ERR_FORMAT, "%s: not a file of PyTorch: it is no zip archive", path);
    if (!zip_open(bytes, size, path, &r->zip, r->err))
        return false;
    const struct zip_entry *entry = find_pickle(r);
    if (!entry)
        return err_set(r->err, ERR_FORMAT, "%s: not a file of PyTorch: it has no data.pkl", path);
    r->unpacked = calloc(r->zip.n_entries, sizeof *r->unpacked);
    r->copy_limit = ((size_t)64 << 20) + size;
    bool ok = (r->unpacked || err_memory(r->err, path)) && check_order(r) &&
              zip_read(entry, path, PICKLE_LIMIT, &pickle, &own, r->err) &&
              pickle_parse(pickle, entry->size, path, &r->pickle, r->err) && read_tensors(r);
    free(own);
    return ok;
}

static bool parse(struct safetensors *file, const uint8_t *bytes, size_t size, struct err *err)
{
    struct reader r = { .file = file, .err = err };
    bool ok = read_archive(&r, bytes, size);
    zip_close(&r.zip);
    pickle_free(&r.pickle);
    free(r.unpacked), free(r.folder);
    if (!ok)
        safetensors_close(file);
    return ok;
}

bool torch_file_parse(const uint8_t *bytes, size_t size, const char *path, struct safetensors *out,
                      struct err *err)
{
    *out = (struct safetensors){ .path = strdup(path) };
    return out->path ? parse(out, bytes, size, err) : err_memory(err, path);
}

bool torch_file_open(const char *path, struct safetensors *out, struct err *err)
{
    *out = (struct safetensors){ .path = strdup(path) };
    if (!out->path)
        return err_memory(err, path);
    if (safetensors_map(out, err))
        return parse(out, out->map, out->map_bytes, err);
    safetensors_close(out);
    return false;
}
