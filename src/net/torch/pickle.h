/* pickle.h: a pickle (protocols 2 to 5) of a PyTorch file -> a tree of plain values and tensors.
 * Nothing is run: the only functions that a pickle may name are those that make tensors and
 * containers, which are done here; any other is refused by its name. Time and memory are in
 * proportion to the pickle's bytes. */
#ifndef NET_TORCH_PICKLE_H
#define NET_TORCH_PICKLE_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_INT, /* also booleans */
    PICKLE_FLOAT,
    PICKLE_TEXT, /* also bytes */
    PICKLE_TUPLE,
    PICKLE_LIST,    /* also sets */
    PICKLE_DICT,    /* also the attributes of a TorchScript object: key, value, key, .. */
    PICKLE_GLOBAL,  /* the name of a function or class */
    PICKLE_STORAGE, /* items: what the persistent id is */
    PICKLE_TENSOR,  /* items: the arguments of its constructor */
};

struct pickle_value {
    enum pickle_kind kind;
    int64_t number;   /* of a PICKLE_DICT: 1 if it is a TorchScript object */
    const char *text; /* within the bytes, not terminated; the module of a PICKLE_GLOBAL */
    size_t length;
    const char *text2; /* the name of a PICKLE_GLOBAL */
    size_t length2;
    uint32_t *items; /* indices of values */
    size_t n_items, capacity;
};

struct pickle {
    struct pickle_value *values;
    size_t n_values, capacity;
    uint32_t root;
};

/* `bytes` must live as long as *out, which is the caller's; free with pickle_free. `path` names the
 * file in messages. */
bool pickle_parse(const uint8_t *bytes, size_t size, const char *path, struct pickle *out,
                  struct err *err);
void pickle_free(struct pickle *pickle); /* also fine on a zeroed struct */

/* Whether a value is this text. */
bool pickle_is(const struct pickle_value *value, const char *text);
#endif
