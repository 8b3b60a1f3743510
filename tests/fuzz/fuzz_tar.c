/* fuzz_tar.c: any bytes as a tar archive: its entries lie within it and can be read. The sums of
 * headers are put right in a second try, so that what lies behind them is tried too. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/fuzz/files.h"
#include "train/tar.h"

enum { BLOCK = 512, SUM_AT = 148, SUM_SIZE = 8, MOST_READ = 16 };

static void try_tar(const uint8_t *data, size_t size)
{
    char path[32];
    struct tar tar;
    int fd = fuzz_memory_file(data, size, path);
    if (fd < 0)
        return;
    if (tar_open(path, &tar, NULL)) {
        fuzz_taken += tar.n > 0;
        for (size_t i = 0; i < tar.n; i++) {
            uint8_t *bytes = NULL;
            if (tar.entries[i].offset < 0 || tar.entries[i].size < 0 ||
                tar.entries[i].offset + tar.entries[i].size > (int64_t)size)
                abort();
            if (i < MOST_READ && tar_read(&tar, i, &bytes, NULL))
                free(bytes);
        }
        tar_close(&tar);
    }
    close(fd);
}

/* As if every block were a header. */
static void set_sums(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at + BLOCK <= size; at += BLOCK) {
        unsigned sum = 0;
        char text[SUM_SIZE + 1];
        memset(bytes + at + SUM_AT, ' ', SUM_SIZE);
        for (size_t i = 0; i < BLOCK; i++)
            sum += bytes[at + i];
        snprintf(text, sizeof text, "%06o", sum);
        memcpy(bytes + at + SUM_AT, text, 7);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    try_tar(data, size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    set_sums(copy, size);
    try_tar(copy, size);
    free(copy);
    return 0;
}
