/* fuzz_tiff.c: any bytes as a TIFF: its directories are read and some tiles decoded. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "slide/tiff_file.h"
#include "tests/fuzz/fuzz.h"

static void decode_some(const struct tiff_file *file, const struct tiff_directory *d)
{
    struct tile_decoder *decoder = NULL;
    uint8_t *px = malloc((size_t)(d->tile_width * d->tile_height * 3));
    if (px && tile_decoder_new(file, d, 0, &decoder, NULL))
        for (int64_t i = 0; i < 2 * d->columns && i < d->rows * d->columns && i < 4; i++)
            tile_decode(decoder, i % d->columns, i / d->columns, px, 3 * d->tile_width, NULL);
    tile_decoder_free(decoder);
    free(px);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct tiff_file *file = NULL;
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (tiff_file_open(path, &file, NULL))
        fuzz_taken++;
    if (file)
        for (int i = 0; i < file->n_directories; i++)
            if (!file->directories[i].unfit)
                decode_some(file, &file->directories[i]);
    tiff_file_close(file);
    close(fd);
    return 0;
}
