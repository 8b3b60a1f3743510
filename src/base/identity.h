/* identity.h: which file was it? Its size and a hash of its content; the name and the time of the
 * last change do not count: a copy is the same file. Results keep one line of inputs,
 *     slide=73418240:9f2c51d07be3a844 annotation=4321:0123456789abcdef
 * and a later run with the same options compares it with the files as they are then. */
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

/* All of the content is read: for annotations, masks, templates. */
bool identity_of_file(const char *path, struct identity *out, struct err *err);
/* At most IDENTITY_SAMPLE_BYTES of it are read, at its beginning, its end and evenly between: for
 * files of any size whose beginning tells much, such as patch stores. */
#define IDENTITY_SAMPLE_BYTES (768 << 10)
bool identity_of_sample(const char *path, struct identity *out, struct err *err);

#define INPUTS_ROOM 256 /* of a line of inputs */

/* Adds an input to the line, which begins as "". kind: a short word without spaces. */
void inputs_add(char line[INPUTS_ROOM], const char *kind, const struct identity *identity);
/* Fails where the files are not what `result` was made from, naming what differs and both
 * identities. then: the line that the result has; "": it has none, being of an older version. */
bool inputs_check(const char *result, const char *then, const char *now, struct err *err);
/* The same of files that changed since work on `name` began. remedy: what to do about it. */
bool inputs_hold(const char *name, const char *then, const char *now, const char *remedy,
                 struct err *err);
#endif
