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

static void check(const struct part_plan *plan)
{
    int64_t next = 0;
    for (int64_t g = 0; g < plan->n_groups; g++) {
        if (plan->groups[g].first != next || plan->groups[g].n < 1 || plan->groups[g].cost < 0 ||
            part_bytes(plan, g) < 0)
            abort();
        next += plan->groups[g].n;
    }
    if (next != plan->n_blocks)
        abort();
}

/* The scores as far as there are any, as a part that is whole. */
static void write_part(const struct part_plan *plan, const uint8_t *scores, size_t size)
{
    size_t bytes = (size_t)part_bytes(plan, 0);
    struct part_header header = part_header(plan, 0);
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
    struct part_plan plan;
    struct heatmap *heatmap = NULL;
    struct ctx ctx = { 0 };
    struct err err = { .kind = ERR_NONE };
    const char *folder = fuzz_folder();
    fuzz_write("plan.json", json.bytes, json.size);
    if (part_plan_read(folder, &plan, &err)) {
        check(&plan);
        if (plan.info.width * plan.info.height <= MOST_FLOATS / plan.info.n_classes) {
            if (plan.n_groups > 0)
                write_part(&plan, data, size);
            if (part_stitch(folder, &plan, MEMORY, &ctx, &err)) {
                fuzz_taken++;
                if (plan.n_groups > 1 || !heatmap_open(folder, &heatmap, &err))
                    abort();
                heatmap_close(heatmap);
            } else if (err.kind == ERR_NONE) {
                abort(); /* refused without a word */
            }
        }
        part_plan_free(&plan);
    } else if (err.kind == ERR_NONE) {
        abort();
    }
    fuzz_clear();
    return 0;
}
