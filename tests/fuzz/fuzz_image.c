/* fuzz_image.c: any bytes as a PNG or JPEG, in colour and, as masks are read, in grey. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <unistd.h>
#include "base/image.h"
#include "tests/fuzz/files.h"

/* Pixels that were not written would be seen here by the sanitizers. */
static void use(struct image *image)
{
    unsigned sum = 0;
    for (size_t i = 0; i < image_bytes(image); i++)
        sum += image->px[i];
    if (image->width < 1 || image->height < 1 || sum > 255 * image_bytes(image))
        abort();
    image_free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image image;
    char path[32], *note = NULL;
    struct err err = { .kind = ERR_NONE };
    if (image_decode(data, size, "fuzz", &image, &err))
        fuzz_taken++, use(&image);
    else if (err.kind == ERR_NONE)
        abort(); /* refused without a word */
    int fd = fuzz_memory_file(data, size, path);
    if (fd < 0)
        return 0;
    if (image_read_png(path, 1, &image, NULL))
        use(&image);
    if (image_read_png_note(path, &note, NULL))
        free(note);
    close(fd);
    return 0;
}
