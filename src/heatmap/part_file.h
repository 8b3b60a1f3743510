/* part_file.h: what a part looks like on disk; private to partition.c and part_stitch.c. */
#ifndef HEATMAP_PART_FILE_H
#define HEATMAP_PART_FILE_H
#include <stddef.h>
#include "base/identity.h"
#include "heatmap/partition.h"

#define PART_MAGIC UINT64_C(0x31545241504d5444)
#define PART_HASH_BEGIN IDENTITY_HASH_BEGIN

struct part_header {
    uint64_t magic, partition;
    int64_t group;
};

static inline uint64_t part_hash(uint64_t hash, const void *bytes, size_t n)
{
    return identity_hash(hash, bytes, n);
}
struct part_header part_header(const struct partition *partition, int64_t group);
int64_t part_block_floats(const struct partition *partition, int64_t block);
int64_t part_bytes(const struct partition *partition, int64_t group); /* of the file */
#endif
