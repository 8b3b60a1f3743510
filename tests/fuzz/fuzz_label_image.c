/* fuzz_label_image.c: any bytes as a label image, PNG or .npy: what is taken has all its pixels,
 * none below 0. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <unistd.h>
#include "base/label_image.h"
#include "tests/fuzz/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct label_image image;
    struct err err = { .kind = ERR_NONE };
    char path[32];
    int fd = fuzz_memory_file(data, size, path);
    if (fd < 0)
        return 0;
    if (label_image_read(path, &image, &err)) {
        fuzz_taken++;
        for (int64_t i = 0; i < image.width * image.height; i++)
            if (image.px[i] < 0)
                abort();
        label_image_free(&image);
    } else if (err.kind == ERR_NONE) {
        abort(); /* refused without a word */
    }
    close(fd);
    return 0;
}
