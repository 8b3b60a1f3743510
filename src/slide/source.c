/* source.c: the sources of tiles (OpenSlide, our own TIFF reader, libtiff), and the choice for each
 * level. */
#include "slide/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "slide/slide_private.h"
#include "slide/tiff_rgba.h"

#define OWN_TILE_PX 512 /* if the file's tiles are unknown or unsuitable */

static bool name_place(const struct tile_source *source, int64_t column, int64_t row,
                       struct err *err)
{
    char place[128];
    snprintf(place, sizeof place, "level %d, tile column %lld, row %lld", source->level,
             (long long)column, (long long)row);
    err_prefix(err, place);
    return err_prefix(err, source->slide->path);
}

static bool paint_decoder_new(const struct tile_source *source, void **out, struct err *err)
{
    *out = malloc((size_t)(source->tile_width * source->tile_height) * sizeof(uint32_t));
    return *out ? true : err_memory(err, "a tile");
}

static bool paint_tile(const struct tile_source *source, void *decoder, int64_t column, int64_t row,
                       uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    int64_t x = column * source->tile_width, y = row * source->tile_height;
    if (slide_paint(source->slide, source->level, x, y, source->tile_width, source->tile_height,
                    decoder, dst, stride_bytes, err))
        return true;
    return name_place(source, column, row, err);
}

const struct tile_source_ops openslide_source_ops = {
    .decoder_new = paint_decoder_new,
    .decoder_free = free,
    .decode = paint_tile,
};

static bool tiff_decoder_new(const struct tile_source *source, void **out, struct err *err)
{
    struct tile_decoder *decoder = NULL;
    const struct slide *slide = source->slide;
    bool ok = tile_decoder_new(slide->tiff, slide->directories[source->level], &decoder, err);
    *out = decoder;
    return ok;
}

static void tiff_decoder_free(void *decoder)
{
    tile_decoder_free(decoder);
}

static bool tiff_tile(const struct tile_source *source, void *decoder, int64_t column, int64_t row,
                      uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    return tile_decode(decoder, column, row, dst, stride_bytes, err) ||
           name_place(source, column, row, err);
}

const struct tile_source_ops tiff_source_ops = {
    .decoder_new = tiff_decoder_new,
    .decoder_free = tiff_decoder_free,
    .decode = tiff_tile,
};

static bool libtiff_decoder_new(const struct tile_source *source, void **out, struct err *err)
{
    struct rgba_decoder *decoder = NULL;
    const struct slide *slide = source->slide;
    bool ok = rgba_decoder_new(slide->tiff, slide->directories[source->level], &decoder, err);
    *out = decoder;
    return ok;
}

static void libtiff_decoder_free(void *decoder)
{
    rgba_decoder_free(decoder);
}

static bool libtiff_tile(const struct tile_source *source, void *decoder, int64_t column,
                         int64_t row, uint8_t *dst, int64_t stride_bytes, struct err *err)
{
    return rgba_decode(decoder, column, row, dst, stride_bytes, err) ||
           name_place(source, column, row, err);
}

const struct tile_source_ops rgba_source_ops = {
    .decoder_new = libtiff_decoder_new,
    .decoder_free = libtiff_decoder_free,
    .decode = libtiff_tile,
};

/* A multiple of the file's own tile near OWN_TILE_PX, so that OpenSlide decodes each once. */
static int64_t painted_tile_px(int64_t file_tile_px)
{
    if (file_tile_px < 16 || file_tile_px > 2 * OWN_TILE_PX)
        return OWN_TILE_PX;
    return file_tile_px < OWN_TILE_PX ? OWN_TILE_PX / file_tile_px * file_tile_px : file_tile_px;
}

struct tile_source slide_source(struct slide *slide, int level)
{
    const struct slide_level *facts = &slide->levels[level];
    struct tile_source source = {
        .slide = slide, .level = level, .width = facts->width, .height = facts->height
    };
    if (facts->reader == READER_FAST || facts->reader == READER_LIBTIFF) {
        source.ops = facts->reader == READER_FAST ? &tiff_source_ops : &rgba_source_ops;
        source.tile_width = facts->tile_width;
        source.tile_height = facts->tile_height;
    } else {
        source.ops = &openslide_source_ops;
        source.tile_width = painted_tile_px(facts->tile_width);
        source.tile_height = painted_tile_px(facts->tile_height);
    }
    return source;
}
