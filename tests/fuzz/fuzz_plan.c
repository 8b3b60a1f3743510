/* fuzz_plan.c: any bytes as the plan of a slide and its first part: up to the first 0 byte
 * plan.json, after it the scores of group 0, for which header and checksum are made. A plan that is
 * taken is consistent; what it lacks is named, and with all parts there it becomes a heatmap that
 * opens. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include "heatmap/part_file.h"
#include "tests/fuzz/files.h"

#define MOST_FLOATS (1 << 16) /* of a heatmap that is put together */
#define MEMORY (1 << 16)

static void check(const struct partition *partition)
{
    int64_t next = 0;
    for (int64_t g = 0; g < partition->n_groups; g++) {
        if (partition->groups[g].first != next || partition->groups[g].n < 1 ||
            partition->groups[g].cost < 0 || part_bytes(partition, g) < 0)
            abort();
        next += partition->groups[g].n;
    }
    if (next != partition->n_blocks)
        abort();
}

/* The scores as far as there are any, as a part that is whole. */
static void write_part(const struct partition *partition, const uint8_t *scores, size_t size)
{
    size_t bytes = (size_t)part_bytes(partition, 0);
    struct part_header header = part_header(partition, 0);
    uint8_t *part = calloc(bytes, 1);
    if (!part)
        return;
    size_t room = bytes - sizeof header - sizeof(uint64_t);
    memcpy(part, &header, sizeof header);
    memcpy(part + sizeof header, scores, size < room ? size : room);
    uint64_t sum = part_hash(PART_HASH_BEGIN, part, bytes - sizeof sum);
    memcpy(part + bytes - sizeof sum, &sum, sizeof sum);
    fuzz_write("parts/000000.scores", part, bytes);
    free(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_piece json = fuzz_next(&data, &size);
    struct partition partition;
    struct heatmap *heatmap = NULL;
    struct ctx ctx = { 0 };
    struct err err = { .kind = ERR_NONE };
    const char *folder = fuzz_folder();
    fuzz_write("plan.json", json.bytes, json.size);
    if (partition_read(folder, &partition, &err)) {
        check(&partition);
        if (partition.info.width * partition.info.height <=
            MOST_FLOATS / partition.info.n_classes) {
            if (partition.n_groups > 0)
                write_part(&partition, data, size);
            if (part_stitch(folder, &partition, MEMORY, &ctx, &err)) {
                fuzz_taken++;
                if (partition.n_groups > 1 || !heatmap_open(folder, &heatmap, &err))
                    abort();
                heatmap_close(heatmap);
            } else if (err.kind == ERR_NONE) {
                abort(); /* refused without a word */
            }
        }
        partition_free(&partition);
    } else if (err.kind == ERR_NONE) {
        abort();
    }
    fuzz_clear();
    return 0;
}
