/* identity.h: identifies a file by its size and a hash of its content; the name and modification
 * time do not count: a copy is the same file. Results keep one line of inputs,
 *     slide=73418240:9f2c51d07be3a844 annotation=4321:0123456789abcdef
 * and a later run with the same options compares it with the current files. */
#ifndef BASE_IDENTITY_H
#define BASE_IDENTITY_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct identity {
    int64_t bytes;
    uint64_t hash;
};

#define IDENTITY_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
/* FNV-1a, continued over n more bytes. */
uint64_t identity_hash(uint64_t hash, const void *bytes, size_t n);

/* Reads the whole content, 2 ms for 1 MB: for annotations, masks, templates. */
bool identity_of_file(const char *path, struct identity *out, struct err *err);
/* Reads at most IDENTITY_SAMPLE_BYTES, at the beginning, the end and evenly between: for files of
 * any size whose beginning is distinctive, such as patch stores. About 1 ms. */
#define IDENTITY_SAMPLE_BYTES (768 << 10)
bool identity_of_sample(const char *path, struct identity *out, struct err *err);

#define INPUTS_ROOM 256 /* of a line of inputs */

/* Adds an input to the line, which is "" at first. kind: a short word without spaces. */
void inputs_add(char line[INPUTS_ROOM], const char *kind, const struct identity *identity);
/* Fails if `result` was made from other files, naming what differs and both identities. then: the
 * line stored with the result; "": none, from an older version. */
bool inputs_check(const char *result, const char *then, const char *now, struct err *err);
/* The same for files that changed since work on `name` started. remedy: what to do about it. */
bool inputs_hold(const char *name, const char *then, const char *now, const char *remedy,
                 struct err *err);
#endif
