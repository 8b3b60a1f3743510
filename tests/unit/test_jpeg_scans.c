/* test_jpeg_scans.c: a JPEG of very many scans is refused, in a file, in a tile that we decode and
 * in one that OpenSlide decodes; one of as many as encoders write is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <tiffio.h>
#include "base/image.h"
#include "slide/raster.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/tiff_maker.h"

enum { SIDE = 64, MANY = 190 };

/* One scan for each coefficient of each colour. */
static void many_scans(jpeg_scan_info scans[MANY])
{
    int n = 0;
    scans[n++] = (jpeg_scan_info){ .comps_in_scan = 3, .component_index = { 0, 1, 2 } };
    for (int c = 0; c < 3; c++)
        for (int k = 1; k < 64; k++)
            scans[n++] =
                (jpeg_scan_info){ .comps_in_scan = 1, .component_index = { c }, .Ss = k, .Se = k };
    assert_int_equal(n, MANY);
}

/* The bytes are the caller's. */
static uint8_t *make_jpeg(bool many, unsigned long *size)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr manager;
    jpeg_scan_info scans[MANY];
    struct image image;
    uint8_t *bytes = NULL;
    tiff_maker_draw(SIDE, SIDE, &image);
    jpeg.err = jpeg_std_error(&manager);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, size);
    jpeg.image_width = jpeg.image_height = SIDE;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_simple_progression(&jpeg); /* ten scans */
    if (many) {
        many_scans(scans);
        jpeg.scan_info = scans;
        jpeg.num_scans = MANY;
    }
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        JSAMPROW row = image_at(&image, 0, jpeg.next_scanline);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    image_free(&image);
    return bytes;
}

/* A slide of one tile. */
static struct slide *make_slide(const char *name, uint8_t *bytes, unsigned long size)
{
    char *path = scratch_path(name);
    TIFF *tiff = TIFFOpen(path, "w");
    assert_non_null(tiff);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, SIDE);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, SIDE);
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, SIDE);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, SIDE);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_JPEG);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_YCBCR);
    TIFFSetField(tiff, TIFFTAG_YCBCRSUBSAMPLING, 2, 2);
    assert_true(TIFFWriteRawTile(tiff, 0, bytes, (tmsize_t)size) > 0);
    TIFFClose(tiff);
    struct slide *slide = NULL;
    struct err err = { 0 };
    if (!slide_open(path, 0, &slide, &err))
        fail_msg("%s", err.text);
    free(path);
    return slide;
}

static void expect(bool ok, bool many, const struct err *err, const char *who)
{
    if (ok == many || (many && !strstr(err->text, "more than 100 scans")))
        fail_msg("%s, %s: %s", who, many ? "many scans" : "ten scans", ok ? "read" : err->text);
}

static void scans_are_bounded(void **state)
{
    (void)state;
    for (int many = 0; many < 2; many++) {
        unsigned long size = 0;
        uint8_t *bytes = make_jpeg(many, &size);
        struct image image = { 0 };
        struct err err = { 0 };
        expect(image_decode(bytes, size, "a.jpg", &image, &err), many, &err, "a file");
        image_free(&image);
        struct slide *slide = make_slide("scans.tiff", bytes, size);
        struct raster raster;
        assert_int_equal(slide_info(slide)->levels[0].reader, READER_FAST);
        assert_true(raster_open(slide, &(struct raster_request){ 0 }, &raster, &err));
        expect(raster_read(&raster, 0, 0, SIDE, SIDE, &image, &err), many, &err, "our tile");
        image_free(&image);
        expect(slide_read(slide, 0, 0, 0, SIDE, SIDE, &image, &err), many, &err, "OpenSlide's");
        image_free(&image);
        slide_close(slide);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(scans_are_bounded) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
