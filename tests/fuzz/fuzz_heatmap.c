/* fuzz_heatmap.c: any bytes as a heatmap: up to the first 0 byte its heatmap.json, after it the
 * .npy. What opens is read row by row, and the cells are placed. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "heatmap/blocks.h"

#define MOST_BYTES (1 << 20)

static bool write_file(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *stream = fopen(path, "wb");
    if (!stream)
        return false;
    bool ok = fwrite(bytes, 1, size, stream) == size;
    return fclose(stream) == 0 && ok;
}

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
    const char *scratch = getenv("SCRATCH");
    const uint8_t *end = memchr(data, 0, size);
    size_t json_size = end ? (size_t)(end - data) : size, skip = json_size + (end != NULL);
    char *folder = file_format("%s/fuzz_heatmap.%d", scratch ? scratch : "/tmp", (int)getpid());
    char *json = file_format("%s/heatmap.json", folder);
    char *npy = file_format("%s/heatmap.npy", folder);
    struct heatmap *heatmap = NULL;
    if (folder && json && npy && file_make_folder(folder, NULL) &&
        write_file(json, data, json_size) && write_file(npy, data + skip, size - skip) &&
        heatmap_open(folder, &heatmap, NULL))
        read_all(heatmap);
    heatmap_close(heatmap);
    unlink(json), unlink(npy), rmdir(folder);
    free(folder), free(json), free(npy);
    return 0;
}
