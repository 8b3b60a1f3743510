/* tiff_maker.c: see tiff_maker.h. */
#include "tests/unit/support/tiff_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include "base/rng.h"

void tiff_maker_draw(int64_t width, int64_t height, struct image *out)
{
    struct err err = { 0 };
    assert_true(image_new(out, width, height, 3, &err));
    struct rng rng = rng_new(7, (uint64_t)width, (uint64_t)height);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            double wave = sin((double)x * 0.071) * cos((double)y * 0.053);
            double dots = (x * x + 3 * y * y) % 97 < 9 ? -70 : 0;
            int noise = (int)rng_below(&rng, 21) - 10;
            uint8_t *px = image_at(out, x, y);
            px[0] = (uint8_t)(165 + 50 * wave + dots + noise);
            px[1] = (uint8_t)(120 + 60 * sin((double)(x + y) * 0.03) + 0.5 * dots + noise);
            px[2] = (uint8_t)(150 - 55 * wave + 0.3 * dots - noise);
        }
}

static void put_pixel(uint8_t *tile, const struct tiff_flavour *flavour, int64_t index,
                      const uint8_t rgb[3])
{
    int channels = flavour->alpha ? 4 : 3;
    int bytes = flavour->bits == 16 ? 2 : 1;
    for (int c = 0; c < channels; c++)
        for (int k = 0; k < bytes; k++) /* 257 times the byte */
            tile[(index * channels + c) * bytes + k] = c < 3 ? rgb[c] : 255;
}

static int n_levels(const struct tiff_flavour *flavour)
{
    int n = 0;
    while (n < TIFF_MAKER_LEVELS && flavour->ratios[n] > 0)
        n++;
    return n;
}

static void write_directory(TIFF *tiff, const struct tiff_flavour *flavour, int64_t width,
                            int64_t height, int level)
{
    uint32_t tile = flavour->tile_px;
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, (uint32_t)width);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, (uint32_t)height);
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, tile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, tile);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, flavour->bits ? flavour->bits : 8);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, flavour->alpha ? 4 : 3);
    if (flavour->alpha)
        TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, (uint16_t[]){ EXTRASAMPLE_UNASSALPHA });
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, flavour->compression);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, flavour->photometric);
    if (level > 0 && !flavour->unmarked)
        TIFFSetField(tiff, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
    if (level == 0 && flavour->description)
        TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, flavour->description);
    if (level == 0 && flavour->software)
        TIFFSetField(tiff, TIFFTAG_SOFTWARE, flavour->software);
    if (flavour->resolution_unit) {
        TIFFSetField(tiff, TIFFTAG_RESOLUTIONUNIT, flavour->resolution_unit);
        TIFFSetField(tiff, TIFFTAG_XRESOLUTION, flavour->resolution);
        TIFFSetField(tiff, TIFFTAG_YRESOLUTION,
                     flavour->resolution_y > 0 ? flavour->resolution_y : flavour->resolution);
    }
    if (flavour->compression == COMPRESSION_JPEG) {
        if (flavour->photometric == PHOTOMETRIC_YCBCR) {
            TIFFSetField(tiff, TIFFTAG_YCBCRSUBSAMPLING, flavour->sub_x, flavour->sub_y);
            TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        }
        TIFFSetField(tiff, TIFFTAG_JPEGQUALITY, 85);
        TIFFSetField(tiff, TIFFTAG_JPEGTABLESMODE,
                     flavour->own_tables ? 0 : JPEGTABLESMODE_QUANT | JPEGTABLESMODE_HUFF);
    }
    if (level == 0 && flavour->sub_directories)
        TIFFSetField(tiff, TIFFTAG_SUBIFD, n_levels(flavour), (uint64_t[TIFF_MAKER_LEVELS]){ 0 });
    struct image image;
    tiff_maker_draw(width, height, &image);
    uint8_t *px = malloc((size_t)tile * tile * 8);
    assert_non_null(px);
    for (int64_t y = 0; y < height; y += tile)
        for (int64_t x = 0; x < width; x += tile) {
            if (level == 0 &&
                TIFFComputeTile(tiff, (uint32_t)x, (uint32_t)y, 0, 0) + 1 == flavour->absent)
                continue;
            for (int64_t j = 0; j < tile; j++)
                for (int64_t i = 0; i < tile; i++) {
                    int64_t from_x = x + i < width ? x + i : width - 1;
                    int64_t from_y = y + j < height ? y + j : height - 1;
                    put_pixel(px, flavour, j * tile + i, image_at(&image, from_x, from_y));
                }
            assert_true(TIFFWriteTile(tiff, px, (uint32_t)x, (uint32_t)y, 0, 0) > 0);
        }
    assert_true(TIFFWriteDirectory(tiff));
    free(px);
    image_free(&image);
}

void tiff_maker_write(const char *path, const struct tiff_flavour *flavour)
{
    TIFF *tiff = TIFFOpen(path, flavour->mode);
    assert_non_null(tiff);
    write_directory(tiff, flavour, flavour->width, flavour->height, 0);
    for (int i = 0; i < n_levels(flavour); i++) {
        int64_t width = (int64_t)((double)flavour->width / flavour->ratios[i]);
        int64_t height = (int64_t)((double)flavour->height / flavour->ratios[i]);
        int64_t unit = flavour->padded ? flavour->tile_px : 1;
        write_directory(tiff, flavour, (width + unit - 1) / unit * unit,
                        (height + unit - 1) / unit * unit, i + 1);
    }
    for (int i = 0; i < flavour->more_pages; i++)
        write_directory(tiff, flavour, flavour->width, flavour->height, 0);
    TIFFClose(tiff);
}

void tiff_maker_find_tile(const char *path, int directory, uint32_t tile, uint64_t *offset,
                          uint64_t *size)
{
    TIFF *tiff = TIFFOpen(path, "r");
    assert_non_null(tiff);
    assert_true(TIFFSetDirectory(tiff, (tdir_t)directory));
    *offset = TIFFGetStrileOffset(tiff, tile);
    *size = TIFFGetStrileByteCount(tiff, tile);
    TIFFClose(tiff);
}
