/* safetensors.h: the native weight file: a JSON header with the name, type, shape and place of
 * every tensor, then their bytes. Reading maps the file and checks everything in the header before
 * using it; nothing is allocated in proportion to a number in the file. Thread-safe once open. */
#ifndef NET_MODEL_SAFETENSORS_H
#define NET_MODEL_SAFETENSORS_H
#include <stdbool.h>
#include <stddef.h>
#include "net/graph/tensor.h"

struct safetensors_type; /* F32, BF16, I64, .. */

struct safetensors_tensor {
    const char *name;
    const struct safetensors_type *type;
    struct shape shape;  /* extents may be 0 */
    int64_t count;       /* elements */
    const uint8_t *data; /* within the mapped file */
};

struct safetensors {
    char *path; /* for messages */
    struct safetensors_tensor *tensors;
    size_t n_tensors; /* in the order of their names */
    void *header;     /* the parsed JSON, which owns the names */
    void *map;        /* the mapped file, or NULL */
    size_t map_bytes;
    void **owned; /* other memory that names and data lie in */
    size_t n_owned;
};

/* *out is the caller's; free with safetensors_close. Reads the header only; tensors are paged in
 * when they are used. */
bool safetensors_open(const char *path, struct safetensors *out, struct err *err);
/* The same over bytes in memory, which must live as long as *out. path only names them. */
bool safetensors_parse(const uint8_t *bytes, size_t size, const char *path, struct safetensors *out,
                       struct err *err);
void safetensors_close(struct safetensors *file); /* also fine on a zeroed struct */

/* NULL if there is none. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name);
/* Text in __metadata__; NULL if absent. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);
/* NULL if there is none of this name. */
const struct safetensors_type *safetensors_type(const char *name);
size_t safetensors_type_bytes(const struct safetensors_type *type);
/* Sorts the tensors by name, as all functions here expect. */
void safetensors_sort(struct safetensors *file);
/* Maps the file of file->path, which closing unmaps. */
bool safetensors_map(struct safetensors *file, struct err *err);
/* "F32". */
const char *safetensors_type_name(const struct safetensors_tensor *tensor);
/* All elements as floats into out [count]; false if the type is not a number (never for F64, F32,
 * F16, BF16, the integers and BOOL). */
bool safetensors_floats(const struct safetensors_tensor *tensor, float *out);

/* All tensors of `file`, whatever it was read from, in their own types, to a safetensors file. */
bool safetensors_copy(const struct safetensors *file, const char *path, struct err *err);

/* A tensor to write: floats, not copied. */
struct safetensors_source {
    const char *name; /* unique; not "__metadata__" */
    struct shape shape;
    const float *data;
};

struct safetensors_note {
    const char *key, *value;
};

/* Writes F32 tensors in the given order to a temporary file and renames it. __metadata__ is
 * { "format": "pt" }, so that PyTorch's loaders accept it, and the notes. */
bool safetensors_write(const char *path, const struct safetensors_source *tensors, size_t n,
                       const struct safetensors_note *notes, size_t n_notes, struct err *err);
#endif
