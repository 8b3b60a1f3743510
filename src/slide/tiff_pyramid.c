/* tiff_pyramid.c: see tiff_pyramid.h. */
#include "slide/tiff_pyramid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/console.h"
#include "slide/tiff_jpeg.h"
#include "slide/tiff_out.h"

enum { MAX_LEVELS = 32, SMALLEST_SIDE_PX = 512 };

struct level {
    int64_t width, height;
    int64_t across, down; /* tiles */
    uint8_t *rows;        /* [tile, across * tile, 3]: the row of tiles being filled; not level 0 */
    int64_t next_row;     /* the next row of tiles */
    struct tiff_waiting *waiting; /* [down * across]; not level 0 */
};

struct pyramid {
    const char *path;
    struct tiff_pyramid_options options; /* with defaults filled in */
    struct tiff_jpeg_style style;
    tiff_pyramid_draw draw;
    void *draw_arg;
    const struct ctx *ctx;
    struct level levels[MAX_LEVELS];
    int n_levels;
    uint8_t *tile_px;                /* [workers, tile, tile, 3] */
    struct tiff_jpeg_bytes *encoded; /* [levels[0].across] */
    struct tiff_out out;
};

static bool check_options(const struct tiff_pyramid_options *o, const char *path, struct err *err)
{
    bool sampled = o->chroma_x >= 1 && o->chroma_x <= 2 && o->chroma_y >= 1 && o->chroma_y <= 2;
    if (o->width < 1 || o->height < 1 || o->width > 1 << 24 || o->height > 1 << 24)
        return err_set(err, ERR_USAGE, "%s: a side must have 1 to 2^24 px", path);
    if (o->tile_px < 16 || o->tile_px > 4096 || o->tile_px % 16)
        return err_set(err, ERR_USAGE, "%s: tiles must have a multiple of 16 px, not %d", path,
                       o->tile_px);
    if (o->quality < 1 || o->quality > 100 || !sampled)
        return err_set(err, ERR_USAGE, "%s: no such JPEG quality or chroma sampling", path);
    return true;
}

static struct tiff_pyramid_options with_defaults(const struct tiff_pyramid_options *given)
{
    struct tiff_pyramid_options o = *given;
    o.tile_px = o.tile_px ? o.tile_px : 256;
    o.quality = o.quality ? o.quality : 80;
    o.chroma_x = o.chroma_x ? o.chroma_x : 2;
    o.chroma_y = o.chroma_y ? o.chroma_y : 2;
    return o;
}

int64_t tiff_pyramid_tiles(const struct tiff_pyramid_options *options)
{
    struct tiff_pyramid_options o = with_defaults(options);
    return ceil_div(o.width, o.tile_px) * ceil_div(o.height, o.tile_px);
}

static bool make_levels(struct pyramid *p, struct err *err)
{
    int64_t tile = p->options.tile_px, width = p->options.width, height = p->options.height;
    for (int k = 0;; k++) {
        struct level *level = &p->levels[k];
        *level = (struct level){ .width = width, .height = height };
        level->across = ceil_div(width, tile);
        level->down = ceil_div(height, tile);
        p->n_levels = k + 1;
        if (k > 0) {
            size_t tiles = (size_t)(level->across * level->down);
            level->rows = calloc((size_t)(level->across * tile), (size_t)tile * 3);
            level->waiting = calloc(tiles, sizeof *level->waiting);
            if (!level->rows || !level->waiting)
                return err_memory(err, p->path);
        }
        if (width <= SMALLEST_SIDE_PX && height <= SMALLEST_SIDE_PX)
            break;
        width = ceil_div(width, 2), height = ceil_div(height, 2);
    }
    size_t workers = (size_t)pool_workers(p->ctx->pool);
    p->tile_px = malloc(workers * (size_t)(tile * tile * 3));
    p->encoded = calloc((size_t)p->levels[0].across, sizeof *p->encoded);
    return (p->tile_px && p->encoded) || err_memory(err, p->path);
}

/* Fills the area to the right of and below the valid pixels with the last of them, so that the edge
 * of the slide has no ringing and halving stays exact. */
static void pad_tile(uint8_t *px, int64_t tile, int64_t width, int64_t height)
{
    for (int64_t y = 0; y < height && width < tile; y++)
        for (int64_t x = width; x < tile; x++)
            memcpy(px + (y * tile + x) * 3, px + (y * tile + width - 1) * 3, 3);
    for (int64_t y = height; y < tile; y++)
        memcpy(px + y * tile * 3, px + (height - 1) * tile * 3, (size_t)tile * 3);
}

/* Means of 2x2 pixels, rounded to nearest. dst rows are dst_stride bytes apart. */
static void halve_tile(const uint8_t *px, int64_t tile, uint8_t *dst, int64_t dst_stride)
{
    for (int64_t y = 0; y < tile / 2; y++) {
        const uint8_t *upper = px + 2 * y * tile * 3, *lower = upper + tile * 3;
        uint8_t *to = dst + y * dst_stride;
        for (int64_t x = 0; x < tile / 2; x++, upper += 6, lower += 6, to += 3)
            for (int c = 0; c < 3; c++)
                to[c] = (uint8_t)((upper[c] + upper[c + 3] + lower[c] + lower[c + 3] + 2) >> 2);
    }
}

struct tile_row {
    struct pyramid *p;
    int level;
    int64_t row;
};

static bool make_tile(void *arg, int64_t column, int worker, struct err *err)
{
    const struct tile_row *job = arg;
    struct pyramid *p = job->p;
    const struct level *level = &p->levels[job->level];
    int64_t tile = p->options.tile_px, x = column * tile, y = job->row * tile;
    int64_t width = level->width - x < tile ? level->width - x : tile;
    int64_t height = level->height - y < tile ? level->height - y : tile;
    uint8_t *px = p->tile_px + (size_t)worker * (size_t)(tile * tile * 3);
    if (job->level == 0) {
        if (!p->draw(p->draw_arg, x, y, width, height, px, tile * 3, worker, err))
            return false;
    } else {
        for (int64_t i = 0; i < height; i++)
            memcpy(px + i * tile * 3, level->rows + (i * level->across * tile + x) * 3,
                   (size_t)width * 3);
    }
    pad_tile(px, tile, width, height);
    if (job->level + 1 < p->n_levels) {
        struct level *half = &p->levels[job->level + 1];
        int64_t stride = half->across * tile * 3;
        halve_tile(px, tile,
                   half->rows + (job->row & 1) * (tile / 2) * stride + column * (tile / 2) * 3,
                   stride);
    }
    if (!tiff_jpeg_encode(&p->style, px, &p->encoded[column], err))
        return false;
    if (job->level == 0)
        console_advance(p->ctx->console, 1);
    return true;
}

static bool store_tile(struct pyramid *p, int k, int64_t index, const struct tiff_jpeg_bytes *tile,
                       struct err *err)
{
    int64_t size = (int64_t)tile->size;
    return k == 0 ? tiff_out_tile(&p->out, index, tile->bytes, size, err)
                  : tiff_out_wait(&p->out, tile->bytes, size, &p->levels[k].waiting[index], err);
}

static void free_encoded(struct pyramid *p)
{
    for (int64_t i = 0; p->encoded && i < p->levels[0].across; i++) {
        free(p->encoded[i].bytes);
        p->encoded[i].bytes = NULL;
    }
}

/* Makes one row of tiles and, level by level, each coarser row that it completes. */
static bool make_row(struct pyramid *p, struct err *err)
{
    for (int k = 0; k < p->n_levels; k++) {
        struct level *level = &p->levels[k];
        struct tile_row job = { p, k, level->next_row++ };
        bool ok = pool_for(p->ctx->pool, level->across, make_tile, &job, p->ctx->stop, err);
        for (int64_t i = 0; ok && i < level->across; i++)
            ok = store_tile(p, k, job.row * level->across + i, &p->encoded[i], err);
        free_encoded(p);
        if (!ok)
            return false;
        if (job.row % 2 == 0 && job.row + 1 < level->down)
            break;
    }
    return true;
}

static bool set_tags(struct pyramid *p, int k, struct err *err)
{
    const struct tiff_pyramid_options *o = &p->options;
    const struct level *level = &p->levels[k];
    TIFF *t = p->out.tiff;
    errno = 0;
    bool ok = TIFFSetField(t, TIFFTAG_SUBFILETYPE, k ? FILETYPE_REDUCEDIMAGE : 0) &&
              TIFFSetField(t, TIFFTAG_IMAGEWIDTH, (uint32_t)level->width) &&
              TIFFSetField(t, TIFFTAG_IMAGELENGTH, (uint32_t)level->height) &&
              TIFFSetField(t, TIFFTAG_TILEWIDTH, (uint32_t)o->tile_px) &&
              TIFFSetField(t, TIFFTAG_TILELENGTH, (uint32_t)o->tile_px) &&
              TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 8) &&
              TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, 3) &&
              TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) &&
              TIFFSetField(t, TIFFTAG_COMPRESSION, COMPRESSION_JPEG) &&
              TIFFSetField(t, TIFFTAG_PHOTOMETRIC, o->rgb ? PHOTOMETRIC_RGB : PHOTOMETRIC_YCBCR);
    if (ok && !o->rgb) {
        static const float full_range[6] = { 0, 255, 128, 255, 128, 255 };
        ok = TIFFSetField(t, TIFFTAG_YCBCRSUBSAMPLING, o->chroma_x, o->chroma_y) &&
             TIFFSetField(t, TIFFTAG_REFERENCEBLACKWHITE, full_range);
    }
    if (ok && o->mpp > 0) {
        double pixels_per_cm = 1e4 / o->mpp * (double)level->width / (double)o->width;
        ok = TIFFSetField(t, TIFFTAG_XRESOLUTION, pixels_per_cm) &&
             TIFFSetField(t, TIFFTAG_YRESOLUTION,
                          1e4 / o->mpp * (double)level->height / (double)o->height) &&
             TIFFSetField(t, TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
    }
    if (ok && k == 0 && o->description)
        ok = TIFFSetField(t, TIFFTAG_IMAGEDESCRIPTION, o->description);
    if (ok && !o->full_jpeg) {
        struct tiff_jpeg_bytes tables;
        if (!tiff_jpeg_tables(&p->style, &tables, err))
            return false;
        ok = TIFFSetField(t, TIFFTAG_JPEGTABLES, (uint32_t)tables.size, tables.bytes);
        free(tables.bytes);
    }
    return ok || tiff_out_failed(&p->out, err);
}

static bool write_levels(struct pyramid *p, struct err *err)
{
    if (!set_tags(p, 0, err))
        return false;
    while (p->levels[0].next_row < p->levels[0].down)
        if (!make_row(p, err))
            return false;
    for (int k = 0; k < p->n_levels; k++) {
        const struct level *level = &p->levels[k];
        if (k > 0 && !(set_tags(p, k, err) &&
                       tiff_out_copy(&p->out, level->waiting, level->across * level->down, err)))
            return false;
        if (!tiff_out_directory(&p->out, err))
            return false;
    }
    return true;
}

static void free_pyramid(struct pyramid *p)
{
    tiff_out_close(&p->out);
    for (int k = 0; k < p->n_levels; k++) {
        free(p->levels[k].rows);
        free(p->levels[k].waiting);
    }
    free_encoded(p);
    free(p->encoded);
    free(p->tile_px);
}

bool tiff_pyramid_write(const char *path, const struct tiff_pyramid_options *options,
                        tiff_pyramid_draw draw, void *arg, const struct ctx *ctx, struct err *err)
{
    struct pyramid p = { .path = path,
                         .options = with_defaults(options),
                         .draw = draw,
                         .draw_arg = arg,
                         .ctx = ctx,
                         .out.waiting = -1 };
    char mode[] = { 'w', options->classic ? '4' : '8', options->big_endian ? 'b' : 'l', 0 };
    p.style = (struct tiff_jpeg_style){ .tile_px = p.options.tile_px,
                                        .quality = p.options.quality,
                                        .chroma_x = p.options.chroma_x,
                                        .chroma_y = p.options.chroma_y,
                                        .rgb = p.options.rgb,
                                        .full_jpeg = p.options.full_jpeg };
    struct file_out out;
    if (!check_options(&p.options, path, err) || !file_out_reserve(&out, path, err))
        return false;
    bool ok = make_levels(&p, err) && tiff_out_open(&p.out, path, out.handle, mode, err) &&
              write_levels(&p, err);
    free_pyramid(&p);
    if (ok)
        return file_out_commit(&out, err);
    file_out_discard(&out);
    return false;
}

bool tiff_pyramid_description(const char *path, char **out, struct err *err)
{
    struct tiff_out in;
    if (!tiff_out_open(&in, path, path, "r", NULL))
        return err_set(err, ERR_FORMAT, "%s: not a TIFF: %s", path, in.complaint);
    char *text = NULL;
    *out = strdup(TIFFGetField(in.tiff, TIFFTAG_IMAGEDESCRIPTION, &text) && text ? text : "");
    tiff_out_close(&in);
    return *out || err_memory(err, path);
}
