/* fuzz_heatmap.c: any bytes as a heatmap: up to the first 0 byte its heatmap.json, after it the
 * .npy. What opens is read row by row, and the cells are placed. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include "heatmap/blocks.h"
#include "tests/fuzz/files.h"

#define MOST_BYTES (1 << 20)

static void read_all(const struct heatmap *heatmap)
{
    const struct heatmap_info *info = heatmap_info(heatmap);
    struct blocks blocks;
    if (!blocks_open(&blocks, heatmap, 3, MOST_BYTES, NULL))
        return;
    float *row = malloc((size_t)(blocks.across * info->n_classes) * sizeof *row);
    for (int64_t y = 0; row && y < blocks.down; y++) {
        if (!blocks_read(&blocks, y, row, NULL))
            break;
        blocks_place(&blocks, blocks.across - 1, y);
    }
    free(row);
    blocks_close(&blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_piece json = fuzz_next(&data, &size);
    struct heatmap *heatmap = NULL;
    const char *folder = fuzz_folder();
    fuzz_write("heatmap.json", json.bytes, json.size);
    fuzz_write("heatmap.npy", data, size);
    if (heatmap_open(folder, &heatmap, NULL))
        fuzz_taken++, read_all(heatmap);
    heatmap_close(heatmap);
    fuzz_clear();
    return 0;
}
