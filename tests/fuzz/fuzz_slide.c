/* fuzz_slide.c: any bytes as a whole slide: what our own reader of tiles decodes has the pixels
 * that OpenSlide gives, if OpenSlide finds the same levels. Levels that OpenSlide scrambles, and
 * tiles that it refuses although they are whole, are decoded and not compared. */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "slide/codec.h"
#include "slide/slide_private.h"
#include "slide/source.h"
#include "slide/tiff_file.h"
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

/* With the libtiff of Debian 12, OpenSlide scrambles levels smaller than a tile, unless it decodes
 * their tiles itself. */
static bool is_scrambled(const struct tiff_directory *d)
{
    return d->codec != &codec_jpeg && d->codec != &codec_jp2k &&
           (d->tile_width > d->width || d->tile_height > d->height);
}

/* The part of a tile that is on the slide. */
static void compare(struct slide *slide, struct slide *theirs, const struct tile_source *source,
                    void *decoder, int64_t column, int64_t row)
{
    int64_t x = column * source->tile_width, y = row * source->tile_height;
    int64_t width = source->width - x < source->tile_width ? source->width - x : source->tile_width;
    int64_t height =
        source->height - y < source->tile_height ? source->height - y : source->tile_height;
    int64_t stride = 3 * source->tile_width;
    size_t bytes = (size_t)(stride * source->tile_height);
    uint8_t *ours = calloc(bytes, 1), *other = calloc(bytes, 1);
    uint32_t *argb = calloc((size_t)(width * height), sizeof *argb);
    if (!ours || !other || !argb)
        abort();
    bool decoded = source->ops->decode(source, decoder, column, row, ours, stride, NULL);
    if (decoded && theirs && is_whole(slide, source->level, x) &&
        is_whole(slide, source->level, y)) {
        const struct tiff_directory *d = source->of;
        if (slide_paint(theirs, source->level, x, y, width, height, argb, other, stride, NULL)) {
            for (int64_t i = 0; i < height; i++)
                if (memcmp(ours + i * stride, other + i * stride, (size_t)(3 * width)) != 0)
                    die(source, column, row, "OpenSlide has other pixels");
        } else if (d->codec == &codec_jpeg && !tiff_directory_absent(d, column, row)) {
            die(source, column, row, "OpenSlide refuses it");
        }
    }
    free(ours);
    free(other);
    free(argb);
}

/* Whether OpenSlide reads the same levels: their number, and the size of this one. */
static bool has_level(struct slide *theirs, const struct slide *slide, int level)
{
    const struct slide_info *a = slide_info(slide), *b = theirs ? slide_info(theirs) : NULL;
    return b && a->n_levels == b->n_levels && a->levels[level].width == b->levels[level].width &&
           a->levels[level].height == b->levels[level].height &&
           a->levels[level].downsample == b->levels[level].downsample;
}

static void compare_level(struct slide *slide, struct slide *theirs, int level)
{
    struct tile_source source = slide_source(slide, level);
    enum slide_reader reader = slide_info(slide)->levels[level].reader;
    void *decoder = NULL;
    if (reader == READER_OPENSLIDE || source.tile_width > MOST_PX || source.tile_height > MOST_PX ||
        !source.ops->decoder_new(&source, &decoder, NULL))
        return;
    bool comparable =
        reader == READER_FAST && has_level(theirs, slide, level) && !is_scrambled(source.of);
    int64_t columns = (source.width + source.tile_width - 1) / source.tile_width;
    int64_t rows = (source.height + source.tile_height - 1) / source.tile_height;
    for (int64_t i = 0; i < MOST_TILES && i < columns * rows; i++)
        compare(slide, comparable ? theirs : NULL, &source, decoder, i % columns, i / columns);
    source.ops->decoder_free(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    struct slide *slide = NULL, *theirs = NULL;
    struct err err = { .kind = ERR_NONE };
    int fd = fuzz_memory_file(data, size, path);
    if (fd < 0)
        return 0;
    if (slide_open(path, 0, &slide, &err)) {
        slide_set_cache(slide, "/dev/null/none", NULL); /* nothing is written */
        fuzz_taken += slide_info(slide)->levels[0].reader == READER_FAST;
        if (!slide_open_by(&driver_openslide, path, 0, &theirs, NULL))
            theirs = NULL;
        for (int i = 0; i < slide_info(slide)->n_levels; i++)
            compare_level(slide, theirs, i);
    } else if (err.kind == ERR_NONE) {
        abort(); /* refused without a word */
    }
    slide_close(slide);
    slide_close(theirs);
    close(fd);
    return 0;
}
