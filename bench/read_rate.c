/* read_rate.c: how fast one thread can read the tissue of a tiled JPEG slide, in Mpx/s of tiles.
 * - bare: libjpeg-turbo on the tiles, their bytes already in memory, pixels discarded row by row.
 * - pass: the reader of `extract` from the file: the same tiles decoded, every 224-px block of the
 *   dense grid cut once.
 *
 * Prints "bare X" and "pass Y", each the best of three. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <tiffio.h>
#include "base/pool.h"
#include "base/console.h"
#include "patch/grid.h"
#include "patch/pass.h"
#include "base/clock.h"

#define TILE_PX 224 /* of the dense grid, with a margin of half of it */
#define REPEATS 3

/* The compressed tiles of the first directory. */
struct tiles {
    uint8_t **bytes;
    size_t *sizes;
    uint32_t n;
    void *tables;
    uint32_t tables_size;
    uint16_t photometric;
    uint32_t width, height; /* of a tile */
    uint32_t columns;
    bool *needed; /* [n] */
};

static bool tiles_read(const char *path, struct tiles *tiles, struct err *err)
{
    TIFF *tiff = TIFFOpen(path, "r");
    if (!tiff)
        return err_set(err, ERR_FORMAT, "%s: not a TIFF", path);
    uint32_t image_width = 0, tables_size = 0;
    void *tables = NULL;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &image_width);
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &tiles->width);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &tiles->height);
    tiles->columns = (image_width + tiles->width - 1) / tiles->width;
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &tiles->photometric);
    if (TIFFGetField(tiff, TIFFTAG_JPEGTABLES, &tables_size, &tables)) {
        tiles->tables = malloc(tables_size);
        tiles->tables_size = tables_size;
        memcpy(tiles->tables, tables, tables_size);
    }
    tiles->n = TIFFNumberOfTiles(tiff);
    tiles->bytes = calloc(tiles->n, sizeof *tiles->bytes);
    tiles->sizes = calloc(tiles->n, sizeof *tiles->sizes);
    tiles->needed = calloc(tiles->n, sizeof *tiles->needed);
    for (uint32_t i = 0; i < tiles->n; i++) {
        tiles->sizes[i] = TIFFGetStrileByteCount(tiff, i);
        tiles->bytes[i] = malloc(tiles->sizes[i]);
        if (TIFFReadRawTile(tiff, i, tiles->bytes[i], (tmsize_t)tiles->sizes[i]) < 0) {
            TIFFClose(tiff);
            return err_set(err, ERR_IO, "%s: tile %u cannot be read", path, i);
        }
    }
    TIFFClose(tiff);
    return true;
}

static void tiles_free(struct tiles *tiles)
{
    for (uint32_t i = 0; tiles->bytes && i < tiles->n; i++)
        free(tiles->bytes[i]);
    free(tiles->bytes);
    free(tiles->sizes);
    free(tiles->needed);
    free(tiles->tables);
}

static double decode_bare_s(const struct tiles *tiles)
{
    struct jpeg_error_mgr errors;
    struct jpeg_decompress_struct jpeg = { .err = jpeg_std_error(&errors) };
    jpeg_create_decompress(&jpeg);
    uint8_t *row = NULL;
    double began_s = clock_monotonic_s();
    if (tiles->tables) {
        jpeg_mem_src(&jpeg, tiles->tables, tiles->tables_size);
        jpeg_read_header(&jpeg, FALSE);
    }
    for (uint32_t i = 0; i < tiles->n; i++) {
        if (!tiles->needed[i])
            continue;
        jpeg_mem_src(&jpeg, tiles->bytes[i], tiles->sizes[i]);
        jpeg_read_header(&jpeg, TRUE);
        jpeg.jpeg_color_space = tiles->photometric == PHOTOMETRIC_RGB ? JCS_RGB : JCS_YCbCr;
        jpeg.out_color_space = JCS_EXT_RGB;
        jpeg_start_decompress(&jpeg);
        if (!row)
            row = malloc((size_t)jpeg.output_width * 3);
        while (jpeg.output_scanline < jpeg.output_height)
            jpeg_read_scanlines(&jpeg, &row, 1);
        jpeg_finish_decompress(&jpeg);
    }
    double took_s = clock_monotonic_s() - began_s;
    jpeg_destroy_decompress(&jpeg);
    free(row);
    return took_s;
}

/* Marks the tiles under the blocks; returns their pixels. */
static int64_t mark_needed(struct tiles *tiles, const struct raster *raster,
                           const struct units *blocks)
{
    int64_t n = 0;
    for (int64_t i = 0; i < blocks->n; i++) {
        int64_t x0 = blocks->places[i].x, x1 = x0 + blocks->size - 1;
        int64_t y0 = blocks->places[i].y, y1 = y0 + blocks->size - 1;
        x0 = x0 > 0 ? x0 : 0, y0 = y0 > 0 ? y0 : 0;
        x1 = x1 < raster->width ? x1 : raster->width - 1;
        y1 = y1 < raster->height ? y1 : raster->height - 1;
        for (int64_t row = y0 / tiles->height; row <= y1 / tiles->height; row++)
            for (int64_t column = x0 / tiles->width; column <= x1 / tiles->width; column++)
                tiles->needed[row * tiles->columns + column] = true;
    }
    for (uint32_t i = 0; i < tiles->n; i++)
        n += tiles->needed[i];
    return n * tiles->width * tiles->height;
}

static uint8_t *one_place(void *arg, int64_t k, int worker)
{
    (void)k, (void)worker;
    return arg;
}

static void nothing_more(void *arg, int64_t index, uint8_t *px)
{
    (void)arg, (void)index, (void)px;
}

static bool read_pass_s(const struct raster *raster, const struct units *blocks,
                        const struct ctx *ctx, double *took_s, struct err *err)
{
    uint8_t *block = malloc((size_t)(blocks->size * blocks->size * 3));
    struct pass pass = { .raster = raster,
                         .places = blocks->places,
                         .n = blocks->n,
                         .size = blocks->size,
                         .band_bytes = 96 << 20,
                         .batch = 64,
                         .arg = block,
                         .where = one_place,
                         .cut = nothing_more };
    double began_s = clock_monotonic_s();
    bool ok = block && pass_run(&pass, ctx, err);
    *took_s = clock_monotonic_s() - began_s;
    free(block);
    return ok;
}

/* The blocks of the dense grid over the slide's tissue. */
static bool list_blocks(struct slide *slide, const struct raster *raster, struct units *out,
                        struct err *err)
{
    struct grid grid = { .tile = TILE_PX, .margin = TILE_PX / 2, .stride = TILE_PX };
    struct tissue_options options = tissue_defaults();
    struct tissue_mask mask = { 0 };
    struct tissue_sums *sums = NULL;
    struct patch_list patches = { 0 };
    bool ok = tissue_find(slide, &options, NULL, &mask, err) &&
              tissue_sums_new(&mask, &sums, err) &&
              grid_list(&grid, raster, sums, 0.05, &patches, err) &&
              units_of_blocks(&patches, 2 * TILE_PX, TILE_PX, out, err);
    patch_list_free(&patches);
    tissue_sums_free(sums);
    tissue_mask_free(&mask);
    return ok;
}

static bool measure(const char *path, struct err *err)
{
    struct tiles tiles = { 0 };
    struct units blocks = { 0 };
    struct slide *slide = NULL;
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    struct raster raster;
    double bare_s = 1e30, pass_s = 1e30;
    bool ok = pool && tiles_read(path, &tiles, err) && slide_open(path, 0, &slide, err) &&
              raster_open(slide, &(struct raster_request){ 0 }, &raster, err) &&
              list_blocks(slide, &raster, &blocks, err);
    int64_t px = ok ? mark_needed(&tiles, &raster, &blocks) : 0;
    for (int i = 0; ok && i < REPEATS; i++) {
        double took_s = decode_bare_s(&tiles);
        bare_s = took_s < bare_s ? took_s : bare_s;
        ok = read_pass_s(&raster, &blocks, &ctx, &took_s, err);
        pass_s = took_s < pass_s ? took_s : pass_s;
    }
    if (ok)
        printf("bare %.2f\npass %.2f\n", 1e-6 * (double)px / bare_s, 1e-6 * (double)px / pass_s);
    units_free(&blocks);
    slide_close(slide);
    tiles_free(&tiles);
    pool_free(pool);
    return ok;
}

int main(int argc, char **argv)
{
    struct err err = { 0 };
    if (argc != 2) {
        fprintf(stderr, "usage: read_rate SLIDE\n");
        return 2;
    }
    if (measure(argv[1], &err))
        return 0;
    fprintf(stderr, "read_rate: %s\n", err.text);
    return 1;
}
