/* records.h: what the forward pass of each tile leaves for its backward pass (the strips of its
 * neighbours), one record of bytes a tile: written in order, read in the opposite order. Records
 * are in memory as far as the budget allows; the rest, the first ones, which are needed last, are
 * in one file, written behind and read ahead by one thread while tiles are computed, several
 * records at a time (a group), past the page cache where the file system allows it. Where a record
 * is changes no bit of it. Used by one thread. */
#ifndef NET_STREAM_RECORDS_H
#define NET_STREAM_RECORDS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct records;

struct records_options {
    int64_t n;           /* records */
    const size_t *bytes; /* [n]: of each; multiples of 4: floats */
    size_t memory;       /* bytes that all of them and the buffers may take; 0: no limit */
    const char *folder;  /* of the file, which is removed at once (unlinked); NULL: never spill.
                            It must be there even if nothing is spilled */
    bool bf16;           /* kept as bfloat16: half the bytes, 8 bits of precision */
    int64_t group_bytes; /* written and read together; 0: a default. 1: record by record */
    bool wait;           /* no thread: every transfer is waited for (to compare) */
};

struct records_stats {
    size_t bytes;             /* of all records, as kept */
    size_t memory, spilled;   /* where they are; memory includes the buffers */
    double written_s, read_s; /* time of the transfers */
    double waited_s;          /* of that, not hidden behind computing */
    int64_t groups;           /* in the file */
    bool direct;              /* transfers went past the page cache */
};

/* The least `memory` that can work, for messages and planning. */
size_t records_least(const struct records_options *options);
bool records_new(const struct records_options *options, struct records **out, struct err *err);
void records_free(struct records *records);

/* A forward pass (the first one reserves the space of the file): for i = 0, 1, .., n - 1: fill
 * [bytes[i]] at records_put, then call it for the next one, or records_turn behind the last. */
bool records_put(struct records *records, int64_t i, void **at, struct err *err);
bool records_turn(struct records *records, struct err *err);
/* Then, for i = n - 1, .., 0: the floats of a record, until the next call. Any number of such reads
 * may be skipped (a tile without gradient), but never repeated. */
bool records_get(struct records *records, int64_t i, const void **at, struct err *err);
struct records_stats records_stats(const struct records *records);
#endif
