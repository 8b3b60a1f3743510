/* pyramid.c: see pyramid.h. */
#include "slide/pyramid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/pool.h"

enum { MAX_LEVELS = 32, SMALLEST_SIDE_PX = 512 };

struct level {
    int64_t width, height;
    int64_t across, down;         /* tiles */
    uint8_t *rows;                /* [tile, across * tile] px: the row of tiles being filled */
    int64_t next_row;             /* of tiles */
    struct tiff_waiting *waiting; /* [down * across]; rows and waiting: not the first level */
};

struct writer {
    struct tiff_out *out;
    const struct pyramid *pyramid;
    const struct ctx *ctx;
    struct level levels[MAX_LEVELS];
    int n_levels;
    int64_t tile_bytes;           /* of pixels */
    uint8_t *tile_px;             /* [workers, tile, tile] px */
    struct pyramid_tile *encoded; /* [levels[0].across] */
};

static bool make_levels(struct writer *w, struct err *err)
{
    const struct pyramid *p = w->pyramid;
    int64_t width = p->width, height = p->height;
    w->tile_bytes = p->tile_px * p->tile_px * p->kind->px_bytes;
    for (int k = 0; k < MAX_LEVELS; k++) {
        struct level *level = &w->levels[k];
        *level = (struct level){ .width = width, .height = height };
        level->across = ceil_div(width, p->tile_px);
        level->down = ceil_div(height, p->tile_px);
        w->n_levels = k + 1;
        if (k > 0) {
            level->rows = malloc((size_t)(level->across * w->tile_bytes));
            level->waiting = calloc((size_t)(level->across * level->down), sizeof *level->waiting);
            if (!level->rows || !level->waiting)
                return err_memory(err, w->out->path);
        }
        if (width <= SMALLEST_SIDE_PX && height <= SMALLEST_SIDE_PX)
            break;
        width = ceil_div(width, 2), height = ceil_div(height, 2);
    }
    w->tile_px = malloc((size_t)(pool_workers(w->ctx->pool) * w->tile_bytes));
    w->encoded = calloc((size_t)w->levels[0].across, sizeof *w->encoded);
    return (w->tile_px && w->encoded) || err_memory(err, w->out->path);
}

struct tile_row {
    struct writer *writer;
    int k;
    int64_t row;
};

/* Draws one tile or takes it from its level, halves it into the next level, and encodes it. */
static bool make_tile(void *arg, int64_t column, int worker, struct err *err)
{
    const struct tile_row *job = arg;
    struct writer *w = job->writer;
    const struct pyramid *p = w->pyramid;
    const struct level *level = &w->levels[job->k];
    int64_t tile = p->tile_px, x = column * tile, y = job->row * tile, size = p->kind->px_bytes;
    int64_t width = level->width - x < tile ? level->width - x : tile;
    int64_t height = level->height - y < tile ? level->height - y : tile;
    uint8_t *px = w->tile_px + worker * w->tile_bytes;
    if (job->k == 0) {
        if (!p->draw(p->arg, x, y, width, height, px, tile * size, worker, err))
            return false;
    } else {
        for (int64_t i = 0; i < height; i++)
            memcpy(px + i * tile * size, level->rows + (i * level->across * tile + x) * size,
                   (size_t)(width * size));
    }
    p->kind->pad(px, tile, width, height);
    if (job->k + 1 < w->n_levels) {
        const struct level *half = &w->levels[job->k + 1];
        int64_t stride = half->across * tile;
        int64_t at = (job->row & 1) * (tile / 2) * stride + column * (tile / 2);
        p->kind->halve(px, tile, half->rows + at * size, stride);
    }
    return p->kind->encode(p->style, px, tile, &w->encoded[column], err);
}

/* Makes one row of tiles and, level by level, each coarser row that it completes. */
static bool make_row(struct writer *w, struct err *err)
{
    for (int k = 0; k < w->n_levels; k++) {
        struct level *level = &w->levels[k];
        struct tile_row job = { w, k, level->next_row++ };
        if (!pool_for(w->ctx->pool, level->across, make_tile, &job, w->ctx->stop, err))
            return false;
        for (int64_t i = 0; i < level->across; i++) {
            const struct pyramid_tile *tile = &w->encoded[i];
            int64_t index = job.row * level->across + i, size = (int64_t)tile->size;
            if (k == 0 ? !tiff_out_tile(w->out, index, tile->bytes, size, err)
                       : !tiff_out_wait(w->out, tile->bytes, size, &level->waiting[index], err))
                return false;
        }
        if (job.row % 2 == 0 && job.row + 1 < level->down)
            break;
    }
    return true;
}

static bool set_tags(const struct writer *w, int k, struct err *err)
{
    const struct pyramid *p = w->pyramid;
    const struct level *level = &w->levels[k];
    const uint64_t later[MAX_LEVELS] = { 0 }; /* libtiff fills in where the SubIFDs are */
    TIFF *t = w->out->tiff;
    errno = 0;
    bool ok = TIFFSetField(t, TIFFTAG_SUBFILETYPE, k ? FILETYPE_REDUCEDIMAGE : 0) &&
              TIFFSetField(t, TIFFTAG_IMAGEWIDTH, (uint32_t)level->width) &&
              TIFFSetField(t, TIFFTAG_IMAGELENGTH, (uint32_t)level->height) &&
              TIFFSetField(t, TIFFTAG_TILEWIDTH, (uint32_t)p->tile_px) &&
              TIFFSetField(t, TIFFTAG_TILELENGTH, (uint32_t)p->tile_px) &&
              TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    if (ok && p->px_um > 0) {
        double per_cm_x = 1e4 / p->px_um * (double)level->width / (double)p->width;
        double per_cm_y = 1e4 / p->px_um * (double)level->height / (double)p->height;
        ok = TIFFSetField(t, TIFFTAG_XRESOLUTION, per_cm_x) &&
             TIFFSetField(t, TIFFTAG_YRESOLUTION, per_cm_y) &&
             TIFFSetField(t, TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
    }
    if (ok && k == 0 && p->description)
        ok = TIFFSetField(t, TIFFTAG_IMAGEDESCRIPTION, p->description);
    if (ok && k == 0 && p->sub_levels && w->n_levels > 1)
        ok = TIFFSetField(t, TIFFTAG_SUBIFD, (uint16_t)(w->n_levels - 1), later);
    if (!ok)
        return tiff_out_failed(w->out, err);
    return p->kind->set_tags(p->style, w->out, err);
}

static bool write_levels(struct writer *w, struct err *err)
{
    const struct pyramid *p = w->pyramid;
    if (!set_tags(w, 0, err))
        return false;
    for (int64_t y = 0; y < p->height; y += p->tile_px) {
        int64_t n = p->height - y < p->tile_px ? p->height - y : p->tile_px;
        if ((p->begin_rows && !p->begin_rows(p->arg, y, n, err)) || !make_row(w, err))
            return false;
    }
    for (int k = 0; k < w->n_levels; k++) {
        const struct level *level = &w->levels[k];
        if (k > 0 && !(set_tags(w, k, err) &&
                       tiff_out_copy(w->out, level->waiting, level->across * level->down, err)))
            return false;
        if (!tiff_out_directory(w->out, err))
            return false;
    }
    return tiff_out_clear(w->out, err);
}

bool pyramid_write(struct tiff_out *out, const struct pyramid *pyramid, const struct ctx *ctx,
                   struct err *err)
{
    struct writer w = { .out = out, .pyramid = pyramid, .ctx = ctx };
    bool ok = make_levels(&w, err) && write_levels(&w, err);
    for (int k = 0; k < w.n_levels; k++) {
        free(w.levels[k].rows);
        free(w.levels[k].waiting);
    }
    for (int64_t i = 0; w.encoded && i < w.levels[0].across; i++)
        free(w.encoded[i].bytes);
    free(w.encoded);
    free(w.tile_px);
    return ok;
}
