/* fuzz_store.c: any bytes as a patch store: refused, or a store whose groups cover its patches and
 * can be read in no more memory than the file can hold. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <unistd.h>
#include "patch/store.h"
#include "tests/fuzz/files.h"

#define MOST_BYTES (INT64_C(16) << 20) /* read of one group: larger ones are only counted */

static void read_all(struct store *store, int64_t file_bytes)
{
    int64_t px = store_patch_px(store), next = 0;
    if (store_patches(store)->n > file_bytes)
        abort();
    for (int64_t g = 0; g < store_n_groups(store); g++) {
        struct store_group group = store_group(store, g);
        int64_t bytes = group.n * px * px * 3;
        if (group.first != next || bytes > 1032 * file_bytes)
            abort();
        next += group.n;
        uint8_t *pixels = bytes <= MOST_BYTES ? malloc((size_t)bytes + 1) : NULL;
        if (pixels)
            store_read(store, group.first, group.n, pixels, NULL);
        free(pixels);
    }
    if (next > store_patches(store)->n)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    struct store *store = NULL;
    struct err err = { .kind = ERR_NONE };
    int fd = fuzz_memory_file(data, size, path);
    if (fd < 0)
        return 0;
    if (store_open(path, &store, &err))
        read_all(store, (int64_t)size);
    else if (err.kind == ERR_NONE)
        abort(); /* refused without a word */
    store_close(store);
    close(fd);
    return 0;
}
