/* read_rate.c: how fast level 0 of a tiled JPEG slide can be read, one thread, in Mpx/s:
 *   bare  libjpeg-turbo over the same tiles, their bytes already in memory, pixels thrown away
 *   band  band.h from the file, every pixel copied once into 224-px blocks
 * Prints "bare X" and "band Y", each the best of three. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <tiffio.h>
#include "base/pool.h"
#include "base/report.h"
#include "slide/band.h"

#define BLOCK_PX 224
#define REPEATS 3

/* The compressed tiles of the first directory. */
struct tiles {
    uint8_t **bytes;
    size_t *sizes;
    uint32_t n;
    void *tables;
    uint32_t tables_size;
    uint16_t photometric;
    int64_t px;
};

static bool tiles_read(const char *path, struct tiles *tiles, struct err *err)
{
    TIFF *tiff = TIFFOpen(path, "r");
    if (!tiff)
        return err_set(err, ERR_FORMAT, "%s: not a TIFF", path);
    uint32_t width = 0, height = 0, tables_size = 0;
    void *tables = NULL;
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &tiles->photometric);
    if (TIFFGetField(tiff, TIFFTAG_JPEGTABLES, &tables_size, &tables)) {
        tiles->tables = malloc(tables_size);
        tiles->tables_size = tables_size;
        memcpy(tiles->tables, tables, tables_size);
    }
    tiles->px = (int64_t)width * height;
    tiles->n = TIFFNumberOfTiles(tiff);
    tiles->bytes = calloc(tiles->n, sizeof *tiles->bytes);
    tiles->sizes = calloc(tiles->n, sizeof *tiles->sizes);
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
    free(tiles->tables);
}

static double decode_bare_s(const struct tiles *tiles)
{
    struct jpeg_error_mgr errors;
    struct jpeg_decompress_struct jpeg = { .err = jpeg_std_error(&errors) };
    jpeg_create_decompress(&jpeg);
    uint8_t *row = NULL;
    double began_s = report_clock_s();
    if (tiles->tables) {
        jpeg_mem_src(&jpeg, tiles->tables, tiles->tables_size);
        jpeg_read_header(&jpeg, FALSE);
    }
    for (uint32_t i = 0; i < tiles->n; i++) {
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
    double took_s = report_clock_s() - began_s;
    jpeg_destroy_decompress(&jpeg);
    free(row);
    return took_s;
}

static bool read_bands(const struct raster *raster, const struct ctx *ctx, double *took_s,
                       struct err *err)
{
    uint8_t *block = malloc((size_t)BLOCK_PX * BLOCK_PX * 3);
    struct band *band = NULL;
    double began_s = report_clock_s();
    bool ok = block && band_open(raster, 0, raster->width, 2 * BLOCK_PX, ctx, &band, err);
    for (int64_t y = 0; ok && y < raster->height; y += BLOCK_PX) {
        struct band_rect row = { 0, y, raster->width, BLOCK_PX };
        ok = band_load_start(band, &row, 1, y, err) && band_load_join(band, err);
        for (int64_t x = 0; ok && x < raster->width; x += BLOCK_PX)
            band_copy(band, (struct band_rect){ x, y, BLOCK_PX, BLOCK_PX }, block, 3 * BLOCK_PX);
    }
    *took_s = report_clock_s() - began_s;
    band_close(band);
    free(block);
    return ok;
}

static bool measure(const char *path, struct err *err)
{
    struct tiles tiles = { 0 };
    struct slide *slide = NULL;
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    struct raster raster;
    double bare_s = 1e30, band_s = 1e30;
    bool ok = pool && tiles_read(path, &tiles, err) && slide_open(path, 0, &slide, err) &&
              raster_open(slide, &(struct raster_request){ 0 }, &raster, err);
    for (int i = 0; ok && i < REPEATS; i++) {
        double took_s = decode_bare_s(&tiles);
        bare_s = took_s < bare_s ? took_s : bare_s;
        ok = read_bands(&raster, &ctx, &took_s, err);
        band_s = took_s < band_s ? took_s : band_s;
    }
    if (ok)
        printf("bare %.2f\nband %.2f\n", 1e-6 * (double)tiles.px / bare_s,
               1e-6 * (double)tiles.px / band_s);
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
