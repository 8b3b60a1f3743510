/* test_tiff.c: our own reader of tiled TIFF against libtiff, pixel by pixel, and against OpenSlide,
 * level by level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "slide/codec.h"
#include "slide/raster.h"
#include "slide/slide_private.h"
#include "slide/tiff_file.h"
#include "slide/tiff_rgba.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/tiff_maker.h"

enum { SIDE = 200, TILE = 128 };

/* A kind of pixel as libtiff writes it. */
struct kind {
    const char *mode;
    uint16_t photometric, bits, samples, alpha, planar, predictor, compression;
};

static void set_colours(TIFF *tiff, const struct kind *kind, bool wide)
{
    uint16_t map[3][256];
    for (int i = 0; i < 256; i++) {
        map[0][i] = (uint16_t)(wide ? 65535 - 251 * i : 255 - i);
        map[1][i] = (uint16_t)(wide ? 127 * i : i / 2);
        map[2][i] = (uint16_t)(wide ? 65535 - (i * i & 65535) : i);
    }
    if (kind->photometric == PHOTOMETRIC_PALETTE)
        TIFFSetField(tiff, TIFFTAG_COLORMAP, map[0], map[1], map[2]);
}

/* Any bytes; colours that are multiplied by alpha (8 bit, not planar) do not exceed it. */
static void fill_tile(const struct kind *kind, struct rng *rng, uint8_t *px, size_t size)
{
    for (size_t i = 0; i < size; i++)
        px[i] = (uint8_t)rng_below(rng, 256);
    if (kind->alpha != EXTRASAMPLE_ASSOCALPHA)
        return;
    for (size_t i = 0; i < size; i += kind->samples)
        for (int c = 0; c < 3; c++)
            px[i + (size_t)c] = (uint8_t)(px[i + (size_t)c] % (px[i + 3] + 1));
}

static char *write_kind(const struct kind *kind, int number)
{
    char *path = scratch_path("kind.tiff");
    TIFF *tiff = TIFFOpen(path, kind->mode);
    assert_non_null(tiff);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, SIDE);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, SIDE);
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, TILE);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, TILE);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, kind->bits);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, kind->samples);
    if (kind->alpha)
        TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &kind->alpha);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, kind->planar ? kind->planar : PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, kind->compression);
    if (kind->predictor)
        TIFFSetField(tiff, TIFFTAG_PREDICTOR, kind->predictor);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, kind->photometric);
    set_colours(tiff, kind, number % 2);
    size_t size = (size_t)TIFFTileSize(tiff);
    uint8_t *px = malloc(size);
    struct rng rng = rng_new(1, (uint64_t)number, 0);
    for (uint32_t i = 0; i < TIFFNumberOfTiles(tiff); i++) {
        fill_tile(kind, &rng, px, size);
        assert_true(TIFFWriteEncodedTile(tiff, i, px, (tmsize_t)size) > 0);
    }
    free(px);
    TIFFClose(tiff);
    return path;
}

/* Every tile of the first directory by us and by libtiff, within the image. In 16-bit grey, libtiff
 * 4.5.0 takes half the step to the next row in tiles that extend beyond the right edge: only
 * whole tiles are compared, and the test says when that changes. */
static void compare_with_libtiff(const char *path, const char *what)
{
    static uint8_t ours[TILE * TILE * 3], theirs[TILE * TILE * 3];
    struct tiff_file *file = NULL;
    struct tile_decoder *decoder = NULL;
    struct rgba_decoder *reference = NULL;
    struct err err = { 0 };
    if (!tiff_file_open(path, &file, &err))
        fail_msg("%s: %s", what, err.text);
    const struct tiff_directory *d = &file->directories[0];
    if (d->unfit)
        fail_msg("%s: %s", what, d->unfit);
    assert_true(tile_decoder_new(file, d, 0, &decoder, &err));
    assert_true(rgba_decoder_new(file, d, &reference, &err));
    for (int64_t tile = 0; tile < d->columns * d->rows; tile++) {
        int64_t column = tile % d->columns, row = tile / d->columns;
        if (!tile_decode(decoder, column, row, ours, TILE * 3, &err) ||
            !rgba_decode(reference, column, row, theirs, TILE * 3, &err))
            fail_msg("%s: %s", what, err.text);
        if (d->bits == 16 && d->samples == 1 && (column + 1) * TILE > SIDE) {
            assert_memory_not_equal(ours, theirs, (SIDE - TILE) * 3 + TILE * 3);
            continue;
        }
        for (int64_t y = 0; y < TILE && row * TILE + y < SIDE; y++)
            for (int64_t x = 0; x < TILE && column * TILE + x < SIDE; x++)
                for (int c = 0; c < 3; c++) {
                    int64_t i = 3 * (y * TILE + x) + c;
                    if (ours[i] != theirs[i])
                        fail_msg("%s: tile %lld, x %lld, y %lld, colour %d: %d, libtiff %d", what,
                                 (long long)tile, (long long)x, (long long)y, c, ours[i],
                                 theirs[i]);
                }
    }
    tile_decoder_free(decoder);
    rgba_decoder_free(reference);
    tiff_file_close(file);
}

static void every_pixel_type_is_read_as_by_libtiff(void **state)
{
    (void)state;
    static const struct kind kinds[] = {
        { .photometric = PHOTOMETRIC_RGB, .bits = 8, .samples = 3 },
        { .photometric = PHOTOMETRIC_RGB, .bits = 16, .samples = 3 },
        { .photometric = PHOTOMETRIC_RGB, .bits = 8, .samples = 4, .alpha = 2 },
        { .photometric = PHOTOMETRIC_RGB, .bits = 16, .samples = 4, .alpha = 2 },
        { .photometric = PHOTOMETRIC_RGB, .bits = 8, .samples = 4, .alpha = 1 },
        { .photometric = PHOTOMETRIC_MINISBLACK, .bits = 8, .samples = 1 },
        { .photometric = PHOTOMETRIC_MINISBLACK, .bits = 16, .samples = 1 },
        { .photometric = PHOTOMETRIC_MINISWHITE, .bits = 8, .samples = 1 },
        { .photometric = PHOTOMETRIC_MINISWHITE, .bits = 16, .samples = 1 },
        { .photometric = PHOTOMETRIC_MINISBLACK, .bits = 1, .samples = 1 },
        { .photometric = PHOTOMETRIC_MINISWHITE, .bits = 1, .samples = 1 },
        { .photometric = PHOTOMETRIC_MINISBLACK, .bits = 4, .samples = 1 },
        { .photometric = PHOTOMETRIC_MINISBLACK, .bits = 2, .samples = 1 },
        { .photometric = PHOTOMETRIC_PALETTE, .bits = 8, .samples = 1 },
        { .photometric = PHOTOMETRIC_PALETTE, .bits = 4, .samples = 1 },
        { .photometric = PHOTOMETRIC_PALETTE, .bits = 8, .samples = 1 },
    };
    static const uint16_t compressions[] = { COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE,
                                             COMPRESSION_ZSTD, COMPRESSION_NONE };
    static const char *const modes[] = { "wl", "wb", "w8l", "w8b" };
    int n = sizeof kinds / sizeof *kinds;
    for (int i = 0; i < n * 16; i++) {
        struct kind kind = kinds[i % n];
        kind.mode = modes[i / n % 4];
        kind.compression = compressions[i / n / 4 % 4];
        bool predicted = (i / n + i) % 2 && kind.bits >= 8 && kind.compression != COMPRESSION_NONE;
        kind.predictor = predicted ? PREDICTOR_HORIZONTAL : 0;
        kind.planar =
            kind.samples > 1 && kind.alpha != 1 && i / n % 3 == 2 ? PLANARCONFIG_SEPARATE : 0;
        char *what = text_format("photometric %d, %d x %d bit, alpha %d, planar %d, predictor %d, "
                                 "compression %d, %s",
                                 kind.photometric, kind.samples, kind.bits, kind.alpha, kind.planar,
                                 kind.predictor, kind.compression, kind.mode);
        char *path = write_kind(&kind, i);
        compare_with_libtiff(path, what);
        free(path);
        free(what);
    }
}

/* libtiff forgets to multiply grey by its alpha; we lay it on white. */
static void grey_with_alpha_is_laid_on_white(void **state)
{
    (void)state;
    struct kind kind = { .mode = "w",
                         .photometric = PHOTOMETRIC_MINISBLACK,
                         .bits = 8,
                         .samples = 2,
                         .alpha = EXTRASAMPLE_UNASSALPHA,
                         .compression = COMPRESSION_NONE };
    char *path = write_kind(&kind, 0);
    struct slide *slide = NULL;
    struct image image;
    struct rng rng = rng_new(1, 0, 0);
    static uint8_t px[TILE * TILE * 2];
    fill_tile(&kind, &rng, px, sizeof px);
    assert_true(slide_open(path, 0, &slide, NULL));
    assert_true(slide_read(slide, 0, 0, 0, TILE, TILE, &image, NULL));
    for (int i = 0; i < TILE * TILE; i++) {
        double alpha = px[2 * i + 1] / 255.0;
        assert_true(fabs(image.px[3 * i] - (px[2 * i] * alpha + 255 * (1 - alpha))) <= 0.51);
        assert_int_equal(image.px[3 * i], image.px[3 * i + 2]);
    }
    image_free(&image);
    slide_close(slide);
    free(path);
}

/* CMYK, Lab and YCbCr outside of JPEG come through libtiff; numbers that are no colours do not. */
static void other_pixels_are_left_to_libtiff_or_refused(void **state)
{
    (void)state;
    struct kind kind = { .mode = "w",
                         .photometric = PHOTOMETRIC_SEPARATED,
                         .bits = 8,
                         .samples = 4,
                         .compression = COMPRESSION_LZW };
    struct slide *slide = NULL;
    struct err err = { 0 };
    char *path = write_kind(&kind, 0);
    if (!slide_open(path, 0, &slide, &err))
        fail_msg("%s", err.text);
    assert_int_equal(slide_info(slide)->levels[0].reader, READER_LIBTIFF);
    assert_string_equal(slide_info(slide)->levels[0].slow_reason,
                        "its colours are neither grey, RGB nor a palette");
    struct image image;
    assert_true(slide_read(slide, 0, 0, 0, SIDE, SIDE, &image, &err));
    image_free(&image);
    slide_close(slide);
    free(path);
    kind = (struct kind){ .mode = "w",
                          .photometric = PHOTOMETRIC_MINISBLACK,
                          .bits = 32,
                          .samples = 1,
                          .compression = COMPRESSION_LZW };
    path = write_kind(&kind, 0);
    assert_false(slide_open(path, 0, &slide, &err));
    assert_non_null(strstr(err.text, "its samples do not have 1, 2, 4, 8 or 16 bits"));
    assert_non_null(strstr(err.text, "convert it to 8-bit RGB"));
    free(path);
}

static struct tiff_flavour plain_flavour(void)
{
    return (struct tiff_flavour){ .mode = "w",
                                  .compression = COMPRESSION_JPEG,
                                  .photometric = PHOTOMETRIC_YCBCR,
                                  .sub_x = 2,
                                  .sub_y = 2,
                                  .tile_px = 128,
                                  .width = 900,
                                  .height = 700,
                                  .ratios = { 2.01, 3.98, 8 } };
}

/* What both drivers say of a file. */
static void compare_facts(const char *path, const char *what)
{
    struct slide *ours = NULL, *theirs = NULL;
    struct err err = { 0 };
    if (!slide_open_by(&driver_tiff, path, 0, &ours, &err) ||
        !slide_open_by(&driver_openslide, path, 0, &theirs, &err))
        fail_msg("%s: %s", what, err.text);
    const struct slide_info *a = slide_info(ours), *b = slide_info(theirs);
    assert_string_equal(a->vendor, b->vendor);
    assert_int_equal(a->n_levels, b->n_levels);
    assert_true(a->objective == b->objective);
    assert_true(a->mpp == b->mpp && a->mpp_x == b->mpp_x && a->mpp_y == b->mpp_y);
    assert_int_equal(a->mpp_source, b->mpp_source);
    for (int i = 0; i < a->n_levels; i++) {
        const struct slide_level *x = &a->levels[i], *y = &b->levels[i];
        if (x->width != y->width || x->height != y->height || x->downsample != y->downsample ||
            x->tile_width != y->tile_width || x->tile_height != y->tile_height)
            fail_msg("%s: level %d: %lld x %lld px at %.17g, OpenSlide has %lld x %lld at %.17g",
                     what, i, (long long)x->width, (long long)x->height, x->downsample,
                     (long long)y->width, (long long)y->height, y->downsample);
        assert_int_equal(x->reader, READER_FAST);
    }
    slide_close(ours);
    slide_close(theirs);
}

static void compare_flavour(const struct tiff_flavour *flavour, const char *what)
{
    char *path = scratch_path("facts.tiff");
    tiff_maker_write(path, flavour);
    compare_facts(path, what);
    free(path);
}

/* The image type comes last in the files of the scanner. */
static const char philips[] =
    "<?xml version='1.0' encoding='UTF-8'?><DataObject ObjectType='DPUfsImport'>"
    "<Attribute Name='DICOM_MANUFACTURER'>PHILIPS</Attribute>"
    "<Attribute Name='PIM_DP_SCANNED_IMAGES'><Array>"
    "<DataObject ObjectType='DPScannedImage'>"
    "<Attribute Name='DICOM_PIXEL_SPACING'>\"0.01\" \"0.01\"</Attribute>"
    "<Attribute Name='PIM_DP_IMAGE_TYPE'>MACROIMAGE</Attribute></DataObject>"
    "<DataObject ObjectType='DPScannedImage'>"
    "<Attribute Name='DICOM_PIXEL_SPACING'>\"0.000226891\" \"0.000226907\"</Attribute>"
    "<Attribute Name='PIIM_PIXEL_DATA_REPRESENTATION_SEQUENCE'><Array>"
    "<DataObject ObjectType='PixelDataRepresentation'>"
    "<Attribute Name='DICOM_PIXEL_SPACING'>\"0.000226891\" \"0.000226907\"</Attribute>"
    "</DataObject><DataObject ObjectType='PixelDataRepresentation'>"
    "<Attribute Name='DICOM_PIXEL_SPACING'>\"0.000453782\" \"0.000453814\"</Attribute>"
    "</DataObject><DataObject ObjectType='PixelDataRepresentation'>"
    "<Attribute Name='DICOM_PIXEL_SPACING'>\"0.000907564\" \"0.000907628\"</Attribute>"
    "</DataObject></Array></Attribute>"
    "<Attribute Name='PIM_DP_IMAGE_TYPE'>WSI</Attribute></DataObject>"
    "</Array></Attribute></DataObject>";

static void levels_and_facts_are_those_of_openslide(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    compare_flavour(&flavour, "no resolution");
    flavour.resolution_unit = RESUNIT_INCH;
    flavour.resolution = 100577.3f;
    flavour.resolution_y = 100311.7f;
    compare_flavour(&flavour, "inches");
    flavour.resolution_unit = RESUNIT_CENTIMETER;
    flavour.resolution = 39561.123f;
    flavour.mode = "w8b";
    compare_flavour(&flavour, "centimetres, big-endian BigTIFF");
    flavour.mode = "w8";
    flavour.ratios[0] = 4, flavour.ratios[1] = 2, flavour.ratios[2] = 16;
    compare_flavour(&flavour, "levels out of order");
    flavour = plain_flavour();
    flavour.description = "Aperio Image Library v11.2.1\r\n46000x32914 [0,100 46000x32814] "
                          "(240x240) JPEG/RGB Q=30|AppMag = 20|StripeWidth = 2040|ScanScope ID = "
                          "CPAPERIOCS|MPP = 0.4990|Left = 25.691574";
    compare_flavour(&flavour, "Aperio");
    flavour.description = "Aperio x|MPP = 0,2461|AppMag = 40|MPP2 = 9";
    compare_flavour(&flavour, "Aperio with a decimal comma");
    flavour.description = "Aperio x|MPP = none|AppMag = ";
    flavour.resolution_unit = RESUNIT_INCH;
    flavour.resolution = 100577.3f;
    compare_flavour(&flavour, "Aperio without numbers");
    flavour = plain_flavour();
    flavour.width = 1000, flavour.height = 770;
    flavour.ratios[0] = 2, flavour.ratios[1] = 4, flavour.ratios[2] = 0;
    flavour.padded = true;
    flavour.software = "Philips DP v1.0";
    flavour.description = philips;
    compare_flavour(&flavour, "Philips");
    const char *shared = getenv("SHARED");
    char *real = text_format("%s/data/slides/CMU-1-Small-Region.svs", shared ? shared : "");
    if (file_exists(real))
        compare_facts(real, "CMU-1-Small-Region");
    free(real);
}

/* Level i has the pixels that were drawn for its size. */
static void expect_drawn_levels(const struct slide *slide, const char *what)
{
    const struct slide_info *info = slide_info(slide);
    for (int i = 0; i < info->n_levels; i++) {
        struct image ours, drawn;
        const struct slide_level *level = &info->levels[i];
        assert_int_equal(level->reader, READER_FAST);
        assert_true(
            slide_read((struct slide *)slide, i, 0, 0, level->width, level->height, &ours, NULL));
        tiff_maker_draw(level->width, level->height, &drawn);
        if (memcmp(ours.px, drawn.px, image_bytes(&drawn)) != 0)
            fail_msg("%s: level %d has other pixels", what, i);
        image_free(&ours);
        image_free(&drawn);
    }
}

static struct slide *open_made(const char *name, const struct tiff_flavour *flavour,
                               struct err *err)
{
    char *path = scratch_path(name);
    struct slide *slide = NULL;
    tiff_maker_write(path, flavour);
    bool ok = slide_open(path, 0, &slide, err);
    free(path);
    return ok ? slide : NULL;
}

/* OpenSlide reads only the first level of both. */
static void pyramids_in_sub_directories_and_unmarked_pages(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    struct err err = { 0 };
    flavour.compression = COMPRESSION_LZW;
    flavour.photometric = PHOTOMETRIC_RGB;
    for (int i = 0; i < 4; i++) {
        flavour.mode = (const char *[]){ "w", "wb", "w8", "w8b" }[i];
        flavour.sub_directories = i % 2 == 0;
        flavour.unmarked = i % 2;
        struct slide *slide = open_made("sub.tiff", &flavour, &err);
        if (!slide)
            fail_msg("%s", err.text);
        assert_string_equal(slide_info(slide)->vendor, "generic-tiff");
        assert_int_equal(slide_info(slide)->n_levels, 4);
        expect_drawn_levels(slide, flavour.mode);
        slide_close(slide);
    }
}

static char *ome_xml(const char *pixels, const char *channels)
{
    return text_format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
                       "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" "
                       "UUID=\"urn:uuid:1\"><Instrument ID=\"Instrument:0\">"
                       "<Objective ID=\"Objective:0\" NominalMagnification=\"5\"/>"
                       "<Objective ID=\"Objective:1\" NominalMagnification=\"40\"/></Instrument>"
                       "<Image ID=\"Image:0\"><ObjectiveSettings ID=\"Objective:1\"/>"
                       "<Pixels Type=\"uint8\" DimensionOrder=\"XYCZT\" %s>%s"
                       "</Pixels></Image></OME>",
                       pixels, channels);
}

/* Opens an OME-TIFF of this XML: its um/px, or what the error must say. */
static void expect_ome(const char *pixels, const char *channels, double mpp, const char *why)
{
    struct tiff_flavour flavour = plain_flavour();
    struct err err = { 0 };
    char *xml = ome_xml(pixels, channels);
    flavour.compression = COMPRESSION_ADOBE_DEFLATE;
    flavour.photometric = PHOTOMETRIC_RGB;
    flavour.sub_directories = true;
    flavour.description = xml;
    flavour.resolution_unit = RESUNIT_CENTIMETER;
    flavour.resolution = 20000; /* 0.5 */
    struct slide *slide = open_made("slide.ome.tiff", &flavour, &err);
    if ((slide != NULL) != (why == NULL))
        fail_msg("%s: %s", pixels, err.text);
    if (why && !strstr(err.text, why))
        fail_msg("'%s' should say '%s'", err.text, why);
    if (slide) {
        const struct slide_info *info = slide_info(slide);
        assert_string_equal(info->vendor, "ome-tiff");
        assert_int_equal(info->n_levels, 4);
        assert_true(info->objective == 40);
        assert_int_equal(info->mpp_source, mpp == 0.5 ? MPP_TIFF_TAGS : MPP_VENDOR);
        if (fabs(info->mpp - mpp) > 1e-9)
            fail_msg("%s: %.12g um/px, not %.12g", pixels, info->mpp, mpp);
        expect_drawn_levels(slide, "OME");
        slide_close(slide);
    }
    free(xml);
}

#define OME_SIZE "SizeX=\"900\" SizeY=\"700\" SizeZ=\"1\" SizeT=\"1\" SizeC=\"3\""
#define OME_RGB "<Channel ID=\"Channel:0:0\" SamplesPerPixel=\"3\"/><TiffData/>"

static void ome_tiff_says_its_pixel_size_and_channels(void **state)
{
    (void)state;
    static const struct {
        const char *unit;
        double mpp;
    } units[] = { { "", 0.25 },
                  { " PhysicalSizeXUnit=\"\xC2\xB5m\" PhysicalSizeYUnit=\"\xC2\xB5m\"", 0.25 },
                  { " PhysicalSizeXUnit=\"pixel\" PhysicalSizeYUnit=\"pixel\"", 0.5 } };
    for (int i = 0; i < 3; i++) {
        char *pixels = text_format("%s PhysicalSizeX=\"0.25\" PhysicalSizeY=\"0.25\"%s", OME_SIZE,
                                   units[i].unit);
        expect_ome(pixels, OME_RGB, units[i].mpp, NULL);
        free(pixels);
    }
    expect_ome(OME_SIZE " PhysicalSizeX=\"251\" PhysicalSizeXUnit=\"nm\" PhysicalSizeY=\"251\" "
                        "PhysicalSizeYUnit=\"nm\"",
               OME_RGB, 0.251, NULL);
    expect_ome(OME_SIZE " PhysicalSizeX=\"2.6e-4\" PhysicalSizeXUnit=\"mm\" "
                        "PhysicalSizeY=\"2.6e-5\" PhysicalSizeYUnit=\"cm\"",
               OME_RGB, 0.26, NULL);
    expect_ome(OME_SIZE " PhysicalSizeX=\"1e-5\" PhysicalSizeXUnit=\"in\" PhysicalSizeY=\"1e-5\" "
                        "PhysicalSizeYUnit=\"in\"",
               OME_RGB, 0.254, NULL);
    expect_ome(OME_SIZE, OME_RGB, 0.5, NULL);
    expect_ome(OME_SIZE,
               "<TiffData IFD=\"0\"><UUID FileName=\"renamed.ome.tiff\">urn:uuid:1</UUID>"
               "</TiffData>",
               0.5, NULL);
}

static void ome_tiff_that_would_lose_pixels_is_refused(void **state)
{
    (void)state;
    expect_ome("SizeX=\"900\" SizeY=\"700\" SizeZ=\"1\" SizeT=\"1\" SizeC=\"12\"", "<TiffData/>", 0,
               "has 12 channels, of which only 3 would be read");
    expect_ome("SizeX=\"900\" SizeY=\"700\" SizeZ=\"7\" SizeT=\"1\" SizeC=\"3\"", "<TiffData/>", 0,
               "has 7 focus planes");
    expect_ome(OME_SIZE,
               "<TiffData IFD=\"0\"><UUID FileName=\"b.ome.tiff\">urn:uuid:2</UUID></TiffData>", 0,
               "pixels are in b.ome.tiff");
    expect_ome(OME_SIZE, "<TiffData IFD=\"3\"/>", 0, "in page 3, but there are 1 pages");
    expect_ome("SizeX=\"90\" SizeY=\"700\" SizeC=\"3\"", OME_RGB, 0, "says 90 x 700 px");
    expect_ome(OME_SIZE, "<TiffData>", 0, "not well-formed XML");
}

/* Gives the directory of a little-endian classic TIFF another compression. */
static void change_compression(const char *path, int page, uint8_t low, uint8_t high)
{
    struct tiff_file *file = NULL;
    assert_true(tiff_file_open(path, &file, NULL));
    long at = (long)file->directories[page].offset + 2;
    tiff_file_close(file);
    FILE *stream = fopen(path, "r+b");
    assert_non_null(stream);
    for (;; at += 12) {
        uint8_t tag[2];
        assert_int_equal(fseek(stream, at, SEEK_SET), 0);
        assert_int_equal(fread(tag, 1, 2, stream), 2);
        if (tag[0] + 256 * tag[1] == TIFFTAG_COMPRESSION)
            break;
    }
    assert_int_equal(fseek(stream, at + 8, SEEK_SET), 0);
    fputc(low, stream);
    fputc(high, stream);
    assert_int_equal(fclose(stream), 0);
}

/* A level that nothing can read is an error where it is requested; nothing else uses it. */
static void a_level_of_unknown_compression_is_named(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    struct slide *slide = NULL;
    struct err err = { 0 };
    struct image image;
    char *path = scratch_path("unknown.tiff");
    tiff_maker_write(path, &flavour);
    change_compression(path, 1, 0x40, 0x9C); /* 40000 */
    assert_true(slide_open(path, 1, &slide, &err));
    assert_int_equal(slide_info(slide)->levels[0].reader, READER_FAST);
    assert_int_equal(slide_info(slide)->levels[1].reader, READER_NONE);
    assert_true(slide_read(slide, 0, 0, 0, 10, 10, &image, &err));
    image_free(&image);
    assert_false(slide_read(slide, 1, 0, 0, 10, 10, &image, &err));
    assert_non_null(strstr(err.text, "level 1 cannot be read: the compression of its tiles is "
                                     "unknown; convert the slide"));
    if (!slide_overview(slide, 2.5, NULL, &image, &err)) /* from level 0 */
        fail_msg("%s", err.text);
    image_free(&image);
    struct raster raster;
    assert_true(raster_open(slide, &(struct raster_request){ .mpp = 2.5 }, &raster, &err));
    assert_int_equal(raster.level, 0);
    slide_close(slide);
    change_compression(path, 0, 0x40, 0x9C);
    assert_false(slide_open(path, 0, &slide, &err));
    assert_non_null(strstr(err.text, "the compression of its tiles is unknown (TIFF compression "
                                     "40000, 3 x 8 bit); convert it"));
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pixel_type_is_read_as_by_libtiff),
        cmocka_unit_test(grey_with_alpha_is_laid_on_white),
        cmocka_unit_test(other_pixels_are_left_to_libtiff_or_refused),
        cmocka_unit_test(levels_and_facts_are_those_of_openslide),
        cmocka_unit_test(pyramids_in_sub_directories_and_unmarked_pages),
        cmocka_unit_test(ome_tiff_says_its_pixel_size_and_channels),
        cmocka_unit_test(ome_tiff_that_would_lose_pixels_is_refused),
        cmocka_unit_test(a_level_of_unknown_compression_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
