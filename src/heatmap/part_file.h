/* part_file.h: what a part looks like on disk; private to part.c and part_stitch.c. */
#ifndef HEATMAP_PART_FILE_H
#define HEATMAP_PART_FILE_H
#include <stddef.h>
#include "base/identity.h"
#include "heatmap/part.h"

#define PART_MAGIC UINT64_C(0x31545241504d5444)
#define PART_HASH_BEGIN IDENTITY_HASH_BEGIN

struct part_header {
    uint64_t magic, plan;
    int64_t group;
};

static inline uint64_t part_hash(uint64_t hash, const void *bytes, size_t n)
{
    return identity_hash(hash, bytes, n);
}
struct part_header part_header(const struct part_plan *plan, int64_t group);
int64_t part_block_floats(const struct part_plan *plan, int64_t block);
int64_t part_bytes(const struct part_plan *plan, int64_t group); /* of the file */
#endif
