/* float_pyramid.c: see float_pyramid.h. */
#include "heatmap/float_pyramid.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "base/divide.h"
#include "base/pool.h"

/* Scores hardly shrink further with more effort; the empty part does at once. */
#define DEFLATE_LEVEL 1

enum { MAX_LEVELS = 48, SMALLEST_SIDE_PX = 512 };

struct level {
    int64_t width, height;
    int64_t across, down;         /* tiles */
    float *rows;                  /* [tile, across * tile]: the row of tiles that is filled */
    int64_t next_row;             /* of tiles */
    struct tiff_waiting *waiting; /* [down * across]; not level 0 */
};

struct deflated {
    uint8_t *bytes;
    uLongf size, room;
};

struct pyramid {
    struct tiff_out *out;
    const struct float_pyramid *plane;
    const struct ctx *ctx;
    struct level levels[MAX_LEVELS];
    int n_levels;
    struct deflated *tiles; /* [levels[0].across] */
    float *tile_px;         /* [workers, tile, tile] */
};

int64_t float_pyramid_bytes(int64_t width, int64_t tile_px)
{
    int64_t row = ceil_div(width, tile_px) * tile_px * tile_px * (int64_t)sizeof(float);
    return 2 * row + row + row / 8; /* all levels' rows, and the row of tiles deflated */
}

static bool make_levels(struct pyramid *p, struct err *err)
{
    int64_t tile = p->plane->tile_px, width = p->plane->width, height = p->plane->height;
    for (int k = 0; k < MAX_LEVELS; k++) {
        struct level *level = &p->levels[k];
        level->width = width, level->height = height;
        level->across = ceil_div(width, tile), level->down = ceil_div(height, tile);
        p->n_levels = k + 1;
        level->rows = malloc((size_t)(level->across * tile * tile) * sizeof *level->rows);
        level->waiting = calloc((size_t)(level->across * level->down), sizeof *level->waiting);
        if (!level->rows || !level->waiting)
            return err_memory(err, p->out->path);
        if (width <= SMALLEST_SIDE_PX && height <= SMALLEST_SIDE_PX)
            break;
        width = ceil_div(width, 2), height = ceil_div(height, 2);
    }
    p->tiles = calloc((size_t)p->levels[0].across, sizeof *p->tiles);
    p->tile_px = malloc((size_t)(pool_workers(p->ctx->pool) * tile * tile) * sizeof *p->tile_px);
    return (p->tiles && p->tile_px) || err_memory(err, p->out->path);
}

/* What is outside of the level is as if there were no tissue. */
static void empty_rows(const struct pyramid *p, struct level *level)
{
    int64_t n = level->across * p->plane->tile_px * p->plane->tile_px;
    for (int64_t i = 0; i < n; i++)
        level->rows[i] = NAN;
}

static float mean_of_four(float a, float b, float c, float d)
{
    const float all[4] = { a, b, c, d };
    double sum = 0;
    int n = 0;
    for (int i = 0; i < 4; i++)
        if (!isnan(all[i]))
            sum += (double)all[i], n++;
    return n ? (float)(sum / n) : NAN;
}

/* from [tile, tile] -> a quarter of a tile, rows to_stride apart. */
static void halve_tile(const float *from, int64_t tile, float *to, int64_t to_stride)
{
    for (int64_t y = 0; y < tile / 2; y++, from += 2 * tile, to += to_stride)
        for (int64_t x = 0; x < tile / 2; x++)
            to[x] = mean_of_four(from[2 * x], from[2 * x + 1], from[tile + 2 * x],
                                 from[tile + 2 * x + 1]);
}

struct tile_row {
    struct pyramid *p;
    int k;
    int64_t row;
};

/* Halves one tile into the next level and deflates it. */
static bool make_tile(void *arg, int64_t column, int worker, struct err *err)
{
    const struct tile_row *job = arg;
    struct pyramid *p = job->p;
    const struct level *level = &p->levels[job->k];
    int64_t tile = p->plane->tile_px, stride = level->across * tile;
    float *px = p->tile_px + worker * tile * tile;
    for (int64_t y = 0; y < tile; y++)
        memcpy(px + y * tile, level->rows + y * stride + column * tile, (size_t)tile * sizeof *px);
    if (job->k + 1 < p->n_levels) {
        const struct level *half = &p->levels[job->k + 1];
        int64_t half_stride = half->across * tile;
        halve_tile(px, tile,
                   half->rows + (job->row & 1) * (tile / 2) * half_stride + column * (tile / 2),
                   half_stride);
    }
    struct deflated *to = &p->tiles[column];
    uLong size = (uLong)(tile * tile) * sizeof *px;
    if (!to->bytes) {
        to->room = compressBound(size);
        to->bytes = malloc(to->room);
    }
    to->size = to->room;
    return (to->bytes &&
            compress2(to->bytes, &to->size, (const Bytef *)px, size, DEFLATE_LEVEL) == Z_OK) ||
           err_memory(err, p->out->path);
}

/* Writes the row of tiles that is full and, from level to level, the one that became full by it. */
static bool write_row(struct pyramid *p, struct err *err)
{
    for (int k = 0; k < p->n_levels; k++) {
        struct level *level = &p->levels[k];
        struct tile_row job = { p, k, level->next_row++ };
        if (job.row % 2 == 0 && k + 1 < p->n_levels)
            empty_rows(p, &p->levels[k + 1]);
        if (!pool_for(p->ctx->pool, level->across, make_tile, &job, p->ctx->stop, err))
            return false;
        for (int64_t i = 0; i < level->across; i++) {
            int64_t index = job.row * level->across + i, size = (int64_t)p->tiles[i].size;
            if (k == 0
                    ? !tiff_out_tile(p->out, index, p->tiles[i].bytes, size, err)
                    : !tiff_out_wait(p->out, p->tiles[i].bytes, size, &level->waiting[index], err))
                return false;
        }
        if (job.row % 2 == 0 && job.row + 1 < level->down)
            break;
    }
    return true;
}

static bool set_tags(const struct pyramid *p, int k, struct err *err)
{
    const struct level *level = &p->levels[k];
    const struct float_pyramid *plane = p->plane;
    const uint64_t later[MAX_LEVELS] = { 0 }; /* libtiff fills in where the SubIFDs are */
    TIFF *t = p->out->tiff;
    errno = 0;
    bool ok = TIFFSetField(t, TIFFTAG_SUBFILETYPE, k ? FILETYPE_REDUCEDIMAGE : 0) &&
              TIFFSetField(t, TIFFTAG_IMAGEWIDTH, (uint32_t)level->width) &&
              TIFFSetField(t, TIFFTAG_IMAGELENGTH, (uint32_t)level->height) &&
              TIFFSetField(t, TIFFTAG_TILEWIDTH, (uint32_t)plane->tile_px) &&
              TIFFSetField(t, TIFFTAG_TILELENGTH, (uint32_t)plane->tile_px) &&
              TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 32) &&
              TIFFSetField(t, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP) &&
              TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, 1) &&
              TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) &&
              TIFFSetField(t, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE) &&
              TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    if (ok && plane->px_um > 0) {
        double per_cm_x = 1e4 / plane->px_um * (double)level->width / (double)plane->width;
        double per_cm_y = 1e4 / plane->px_um * (double)level->height / (double)plane->height;
        ok = TIFFSetField(t, TIFFTAG_XRESOLUTION, per_cm_x) &&
             TIFFSetField(t, TIFFTAG_YRESOLUTION, per_cm_y) &&
             TIFFSetField(t, TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
    }
    if (ok && k == 0 && plane->description)
        ok = TIFFSetField(t, TIFFTAG_IMAGEDESCRIPTION, plane->description);
    if (ok && k == 0 && p->n_levels > 1)
        ok = TIFFSetField(t, TIFFTAG_SUBIFD, (uint16_t)(p->n_levels - 1), later);
    return ok || tiff_out_failed(p->out, err);
}

static bool write_plane(struct pyramid *p, float_pyramid_row read, void *arg, struct err *err)
{
    struct level *first = &p->levels[0];
    int64_t tile = p->plane->tile_px;
    if (!set_tags(p, 0, err))
        return false;
    for (int64_t row = 0; row < first->height; row++) {
        if (row % tile == 0)
            empty_rows(p, first);
        if (!read(arg, row, first->rows + row % tile * first->across * tile, err))
            return false;
        if ((row % tile == tile - 1 || row == first->height - 1) && !write_row(p, err))
            return false;
    }
    for (int k = 0; k < p->n_levels; k++) {
        const struct level *level = &p->levels[k];
        if (k > 0 && !(set_tags(p, k, err) &&
                       tiff_out_copy(p->out, level->waiting, level->across * level->down, err)))
            return false;
        if (!tiff_out_directory(p->out, err))
            return false;
    }
    return tiff_out_clear(p->out, err);
}

bool float_pyramid_write(struct tiff_out *out, const struct float_pyramid *plane,
                         float_pyramid_row read, void *arg, const struct ctx *ctx, struct err *err)
{
    if (plane->width > INT32_MAX || plane->height > INT32_MAX)
        return err_set(err, ERR_FORMAT, "%s: a TIFF can be at most 2^31 px wide or high",
                       out->path);
    struct pyramid p = { .out = out, .plane = plane, .ctx = ctx };
    bool ok = make_levels(&p, err) && write_plane(&p, read, arg, err);
    for (int k = 0; k < p.n_levels; k++) {
        free(p.levels[k].rows);
        free(p.levels[k].waiting);
    }
    for (int64_t i = 0; p.tiles && i < p.levels[0].across; i++)
        free(p.tiles[i].bytes);
    free(p.tiles);
    free(p.tile_px);
    return ok;
}
