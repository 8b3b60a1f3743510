/* fuzz_slide.c: any bytes as a whole slide: what our own reader of tiles decodes has the
 * pixels that OpenSlide gives, and a tile that OpenSlide refuses is refused. Levels that
 * OpenSlide scrambles are decoded and not compared. */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "slide/slide_private.h"
#include "slide/source.h"
#include "tests/fuzz/files.h"

#define MOST_TILES 4
#define MOST_PX (1 << 10)

static void die(const struct tile_source *source, int64_t column, int64_t row, const char *why)
{
    fprintf(stderr, "level %d, tile column %lld, row %lld: %s\n", source->level, (long long)column,
            (long long)row, why);
    abort();
}

/* OpenSlide takes level-0 coordinates, and interpolates where they are not whole. */
static bool is_whole(const struct slide *slide, int level, int64_t at)
{
    double downsample = slide_info(slide)->levels[level].downsample;
    return (double)llround((double)at * downsample) / downsample == (double)at;
}

/* The part of a tile that lies on the slide. */
static void compare(struct slide *slide, const struct tile_source *source, void *decoder,
                    int64_t column, int64_t row)
{
    int64_t x = column * source->tile_width, y = row * source->tile_height;
    int64_t width = source->width - x < source->tile_width ? source->width - x : source->tile_width;
    int64_t height =
        source->height - y < source->tile_height ? source->height - y : source->tile_height;
    int64_t stride = 3 * source->tile_width;
    if (!is_whole(slide, source->level, x) || !is_whole(slide, source->level, y))
        return;
    size_t bytes = (size_t)(stride * source->tile_height);
    uint8_t *ours = calloc(bytes, 1), *theirs = calloc(bytes, 1);
    uint32_t *argb = calloc((size_t)(width * height), sizeof *argb);
    if (!ours || !theirs || !argb)
        abort();
    const struct tiff_directory *d = source->of;
    bool fast = slide_info(slide)->levels[source->level].reader == READER_FAST && !d->scrambled;
    if (source->ops->decode(source, decoder, column, row, ours, stride, NULL) && fast) {
        if (!slide_paint(slide, source->level, x, y, width, height, argb, theirs, stride, NULL))
            die(source, column, row, "OpenSlide refuses it");
        for (int64_t i = 0; i < height; i++)
            if (memcmp(ours + i * stride, theirs + i * stride, (size_t)(3 * width)) != 0)
                die(source, column, row, "OpenSlide has other pixels");
    }
    free(ours);
    free(theirs);
    free(argb);
}

static void compare_level(struct slide *slide, int level)
{
    struct tile_source source = slide_source(slide, level);
    void *decoder = NULL;
    if (slide_info(slide)->levels[level].reader == READER_OPENSLIDE ||
        source.tile_width > MOST_PX || source.tile_height > MOST_PX ||
        !source.ops->decoder_new(&source, &decoder, NULL))
        return;
    int64_t columns = (source.width + source.tile_width - 1) / source.tile_width;
    int64_t rows = (source.height + source.tile_height - 1) / source.tile_height;
    for (int64_t i = 0; i < MOST_TILES && i < columns * rows; i++)
        compare(slide, &source, decoder, i % columns, i / columns);
    source.ops->decoder_free(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    struct slide *slide = NULL;
    struct err err = { .kind = ERR_NONE };
    int fd = fuzz_memory_file(data, size, path);
    if (fd < 0)
        return 0;
    if (slide_open(path, 0, &slide, &err)) {
        fuzz_taken += slide_info(slide)->levels[0].reader == READER_FAST;
        for (int i = 0; i < slide_info(slide)->n_levels; i++)
            compare_level(slide, i);
    } else if (err.kind == ERR_NONE) {
        abort(); /* refused without a word */
    }
    slide_close(slide);
    close(fd);
    return 0;
}
