/* test_band.c: reading by bands gives OpenSlide's pixels, decodes each tile once, and does not
 * depend on threads, strips or the order of the patches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include "base/file.h"
#include "base/pool.h"
#include "slide/band.h"
#include "slide/slide_private.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/tiff_maker.h"
#include "base/text.h"

static struct tiff_flavour plain_flavour(void)
{
    return (struct tiff_flavour){ .mode = "w8",
                                  .compression = COMPRESSION_JPEG,
                                  .photometric = PHOTOMETRIC_YCBCR,
                                  .sub_x = 2,
                                  .sub_y = 2,
                                  .tile_px = 256,
                                  .width = 1300,
                                  .height = 1111,
                                  .ratios = { 2, 4 },
                                  .resolution_unit = RESUNIT_CENTIMETER,
                                  .resolution = 20000 };
}

static struct slide *open_slide(const char *path)
{
    struct slide *slide = NULL;
    struct err err = { 0 };
    if (!slide_open(path, 0, &slide, &err))
        fail_msg("%s", err.text);
    return slide;
}

static struct slide *make_slide(const char *name, const struct tiff_flavour *flavour)
{
    char *path = scratch_path(name);
    tiff_maker_write(path, flavour);
    struct slide *slide = open_slide(path);
    free(path);
    return slide;
}

static struct raster raster_at(struct slide *slide, double mpp, int level)
{
    struct raster raster;
    struct err err = { 0 };
    struct raster_request request = { .mpp = mpp, .mpp_tolerance = 10, .level = level };
    if (!raster_open(slide, &request, &raster, &err))
        fail_msg("%s", err.text);
    return raster;
}

static struct image read_raster(const struct raster *raster, int64_t x, int64_t y, int64_t width,
                                int64_t height)
{
    struct image image;
    struct err err = { 0 };
    if (!raster_read(raster, x, y, width, height, &image, &err))
        fail_msg("%s", err.text);
    return image;
}

/* In squares of 1024 px: OpenSlide shifts what does not begin at a whole pixel of level 0. */
static struct image read_openslide(struct slide *slide, int level, int64_t x, int64_t y,
                                   int64_t width, int64_t height)
{
    const int64_t side = 1024;
    struct image image;
    struct err err = { 0 };
    struct slide *theirs = NULL;
    uint32_t *argb = malloc((size_t)(side * side) * sizeof *argb);
    if (!slide_open_by(&driver_openslide, slide_info(slide)->path, 0, &theirs, &err) ||
        !image_new(&image, width, height, 3, &err))
        fail_msg("%s", err.text);
    for (int64_t top = 0; top < height; top += side)
        for (int64_t left = 0; left < width; left += side) {
            int64_t columns = width - left < side ? width - left : side;
            int64_t rows = height - top < side ? height - top : side;
            if (!slide_paint(theirs, level, x + left, y + top, columns, rows, argb,
                             image_at(&image, left, top), 3 * width, &err))
                fail_msg("%s", err.text);
        }
    free(argb);
    slide_close(theirs);
    return image;
}

static void assert_same(struct image *a, struct image *b, const char *what)
{
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->height, b->height);
    for (size_t i = 0; i < image_bytes(a); i++)
        if (a->px[i] != b->px[i])
            fail_msg("%s: x %zu, y %zu: %d and %d", what, i / 3 % (size_t)a->width,
                     i / 3 / (size_t)a->width, a->px[i], b->px[i]);
    image_free(a);
    image_free(b);
}

/* Whole levels from their origin, where OpenSlide reads without shifting. With a border that lies
 * outside of the slide. */
static void compare_levels(struct slide *slide, const char *what)
{
    const struct slide_info *info = slide_info(slide);
    for (int i = 0; i < info->n_levels; i++) {
        const struct slide_level *level = &info->levels[i];
        struct raster raster = raster_at(slide, 0, i);
        int64_t width = level->width + 33, height = level->height + 17;
        if (i > 0) {
            width = width < 1024 ? width : 1024;
            height = height < 1024 ? height : 1024;
        }
        struct image ours = read_raster(&raster, 0, 0, width, height);
        struct image theirs = read_openslide(slide, i, 0, 0, width, height);
        assert_same(&ours, &theirs, what);
    }
}

static void every_flavour_reads_as_openslide_does(void **state)
{
    (void)state;
    struct tiff_flavour flavours[12];
    const char *modes[] = { "w", "w8", "w8b" };
    for (int i = 0; i < 12; i++) {
        flavours[i] = plain_flavour();
        flavours[i].mode = modes[i / 3 % 3];
        flavours[i].tile_px = (uint32_t[]){ 240, 256, 512 }[i % 3];
        flavours[i].own_tables = i % 2;
        flavours[i].sub_x = (uint16_t[]){ 2, 2, 1 }[i / 2 % 3];
        flavours[i].sub_y = (uint16_t[]){ 2, 1, 1 }[i / 2 % 3];
        flavours[i].photometric = i >= 9 ? PHOTOMETRIC_RGB : PHOTOMETRIC_YCBCR;
        flavours[i].width += 61 * i;
        flavours[i].ratios[0] = 2 + 0.37 * i;
        flavours[i].ratios[1] = 5 + 0.81 * i;
    }
    flavours[4].description = flavours[9].description =
        "Aperio Image Library v11\r\nmade up|AppMag = 40|MPP = 0.25";
    for (int i = 0; i < 12; i++) {
        char what[32];
        snprintf(what, sizeof what, "flavour-%d.tiff", i);
        struct slide *slide = make_slide(what, &flavours[i]);
        const struct slide_info *info = slide_info(slide);
        assert_string_equal(info->vendor, flavours[i].description ? "aperio" : "generic-tiff");
        assert_int_equal(info->n_levels, 3);
        for (int level = 0; level < 3; level++) {
            if (info->levels[level].reader != READER_FAST)
                fail_msg("%s level %d: %s", what, level, info->levels[level].slow_reason);
            assert_int_equal(info->levels[level].tile_width, flavours[i].tile_px);
        }
        compare_levels(slide, what);
        slide_close(slide);
    }
}

static void a_real_aperio_slide_reads_as_openslide_does(void **state)
{
    (void)state;
    const char *shared = getenv("SHARED");
    char *path = text_format("%s/data/slides/CMU-1-Small-Region.svs", shared ? shared : "");
    if (!file_exists(path)) {
        free(path);
        print_message("skipped: no real slide in SHARED\n");
        skip();
    }
    struct slide *slide = open_slide(path);
    assert_true(slide_info(slide)->levels[0].reader == READER_FAST);
    compare_levels(slide, path);
    struct raster raster = raster_at(slide, 0, 0);
    struct image ours = read_raster(&raster, -100, -50, 700, 800);
    struct image theirs = read_openslide(slide, 0, -100, -50, 700, 800);
    assert_same(&ours, &theirs, "top left corner");
    slide_close(slide);
    free(path);
}

static const char philips_description[] =
    "<?xml version='1.0' encoding='UTF-8'?><DataObject ObjectType='DPUfsImport'>"
    "<Attribute Name='DICOM_MANUFACTURER' Group='0x0008' Element='0x0070' PMSVR='IString'>PHILIPS"
    "</Attribute><Attribute Name='PIM_DP_SCANNED_IMAGES'><Array>"
    "<DataObject ObjectType='DPScannedImage'>"
    "<Attribute Name='PIM_DP_IMAGE_TYPE'>WSI</Attribute>"
    "<Attribute Name='DICOM_PIXEL_SPACING'>\"0.00025\" \"0.00025\"</Attribute>"
    "<Attribute Name='PIIM_PIXEL_DATA_REPRESENTATION_SEQUENCE'><Array>"
    "<DataObject ObjectType='PixelDataRepresentation'>"
    "<Attribute Name='DICOM_PIXEL_SPACING'>\"0.00025\" \"0.00025\"</Attribute></DataObject>"
    "<DataObject ObjectType='PixelDataRepresentation'>"
    "<Attribute Name='DICOM_PIXEL_SPACING'>\"0.0005\" \"0.0005\"</Attribute></DataObject>"
    "<DataObject ObjectType='PixelDataRepresentation'>"
    "<Attribute Name='DICOM_PIXEL_SPACING'>\"0.001\" \"0.001\"</Attribute></DataObject>"
    "</Array></Attribute></DataObject></Array></Attribute></DataObject>";

/* Philips levels are padded to whole tiles, and what was not scanned is absent and blank. */
static void philips_padding_and_absent_tiles(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    flavour.width = flavour.height = 1280;
    flavour.padded = true;
    flavour.absent = 8;
    flavour.software = "Philips made up";
    flavour.description = philips_description;
    struct slide *slide = make_slide("philips.tiff", &flavour);
    const struct slide_info *info = slide_info(slide);
    assert_string_equal(info->vendor, "philips");
    assert_int_equal(info->n_levels, 3);
    assert_int_equal(info->levels[1].width, 640);
    assert_true(fabs(info->mpp - 0.25) < 1e-9);
    for (int i = 0; i < 3; i++)
        assert_true(info->levels[i].reader == READER_FAST);
    compare_levels(slide, "philips");
    slide_close(slide);
}

/* A missing tile is blank, as in OpenSlide 4; 3.4.1 refuses it outside of Aperio and Philips. What
 * is over it in coarser levels of Aperio is drawn from finer ones: we leave that to OpenSlide. */
static void absent_tiles_are_blank(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    flavour.width = flavour.height = 1280; /* whole ratios, at which OpenSlide does not shift */
    flavour.absent = 8;
    struct slide *slide = make_slide("absent.tiff", &flavour);
    assert_true(slide_info(slide)->levels[0].reader == READER_FAST);
    assert_true(slide_info(slide)->levels[1].reader == READER_FAST);
    struct image tile;
    assert_true(slide_read(slide, 0, 512, 256, 256, 256, &tile, NULL));
    for (size_t i = 0; i < image_bytes(&tile); i++)
        assert_int_equal(tile.px[i], 255);
    image_free(&tile);
    slide_close(slide);
    flavour.description = "Aperio Image Library v11\r\nmade up";
    slide = make_slide("absent.svs", &flavour);
    assert_true(slide_info(slide)->levels[0].reader == READER_FAST);
    assert_true(slide_info(slide)->levels[1].reader == READER_OPENSLIDE);
    assert_string_equal(slide_info(slide)->levels[1].slow_reason,
                        "tiles are missing from the file");
    compare_levels(slide, "absent");
    slide_close(slide);
}

/* Lossless: what was drawn must come back. */
static void lossless_tiles_come_back_as_drawn(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    flavour.compression = COMPRESSION_LZW;
    flavour.photometric = PHOTOMETRIC_RGB;
    struct slide *slide = make_slide("lossless.tiff", &flavour);
    assert_true(slide_info(slide)->levels[0].reader == READER_FAST);
    struct raster raster = raster_at(slide, 0, 0);
    struct image drawn, ours = read_raster(&raster, 0, 0, flavour.width, flavour.height);
    tiff_maker_draw(flavour.width, flavour.height, &drawn);
    assert_same(&ours, &drawn, "lossless");
    slide_close(slide);
}

/* OpenSlide with Debian's libtiff scrambles lossless levels that are smaller than a tile. */
static void small_levels_come_back_as_drawn(void **state)
{
    (void)state;
    static const uint16_t compressions[] = { COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE,
                                             COMPRESSION_ZSTD, COMPRESSION_NONE };
    for (int i = 0; i < 12; i++) {
        struct tiff_flavour flavour = plain_flavour();
        flavour.compression = compressions[i % 4];
        flavour.photometric = PHOTOMETRIC_RGB;
        flavour.bits = i >= 4 && i < 8 ? 16 : 8;
        flavour.alpha = i >= 8;
        flavour.width = i % 4 == 1 ? 2600 : 650;  /* level 2 is lower and narrower than a tile, */
        flavour.height = i % 4 == 2 ? 2220 : 555; /* or only the one or the other */
        struct slide *slide = make_slide("small.tiff", &flavour);
        const struct slide_level *level = &slide_info(slide)->levels[2];
        assert_int_equal(slide_info(slide)->levels[1].reader, READER_FAST);
        assert_int_equal(level->reader, READER_FAST);
        struct raster raster = raster_at(slide, 0, 2);
        struct image drawn, ours = read_raster(&raster, 0, 0, level->width, level->height);
        tiff_maker_draw(level->width, level->height, &drawn);
        assert_same(&ours, &drawn, "small, by bands");
        struct image part;
        assert_true(slide_read(slide, 2, 10, -5, 200, 100, &part, NULL));
        ours = read_raster(&raster, 10, -5, 200, 100);
        assert_same(&ours, &part, "small, a region");
        slide_close(slide);
    }
}

/* Two directories of one size are two levels, each with its own pixels. */
static void two_levels_of_one_size_are_read(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    flavour.compression = COMPRESSION_LZW;
    flavour.photometric = PHOTOMETRIC_RGB;
    flavour.ratios[0] = flavour.ratios[1] = 8;
    struct slide *slide = make_slide("twice.tiff", &flavour);
    assert_int_equal(slide_info(slide)->n_levels, 3);
    for (int i = 1; i < 3; i++) {
        const struct slide_level *level = &slide_info(slide)->levels[i];
        struct raster raster = raster_at(slide, 0, i);
        struct image drawn, ours = read_raster(&raster, 0, 0, level->width, level->height);
        tiff_maker_draw(level->width, level->height, &drawn);
        assert_same(&ours, &drawn, "twice");
    }
    slide_close(slide);
}

/* Goes down a raster in rows of overlapping patches, a strip of columns at a time, as extraction
 * does, and compares every patch with one read by itself. Returns the number of tiles decoded. */
static int64_t walk(const struct raster *raster, const struct image *whole, int threads,
                    int64_t strips)
{
    enum { PATCH = 200, STEP = 120 };
    struct err err = { 0 };
    struct pool *pool = pool_new(threads);
    struct ctx ctx = { .pool = pool };
    int64_t decoded = 0, margin = 40, n_columns = (raster->width + 2 * margin) / STEP;
    int64_t per_strip = (n_columns + strips - 1) / strips;
    uint8_t *px = malloc(PATCH * PATCH * 3);
    for (int64_t first = 0; first < n_columns; first += per_strip) {
        struct band *band = NULL;
        int64_t x0 = first * STEP - margin, x1 = x0 + (per_strip - 1) * STEP + PATCH;
        if (!band_open(raster, x0, x1, PATCH, &ctx, &band, &err))
            fail_msg("%s", err.text);
        for (int64_t y = -margin; y < raster->height; y += STEP) {
            struct band_rect rects[64];
            int64_t n = 0;
            for (int64_t i = first; i < first + per_strip && i < n_columns; i++)
                if ((i + y / STEP) % 5 != 1) /* some patches are not asked for */
                    rects[n++] = (struct band_rect){ i * STEP - margin, y, PATCH, PATCH };
            if (!band_load_start(band, rects, n, y, &err) || !band_load_join(band, &err))
                fail_msg("%s", err.text);
            for (int64_t i = 0; i < n; i++) {
                band_copy(band, rects[i], px, 3 * PATCH);
                for (int64_t j = 0; j < PATCH; j++)
                    assert_memory_equal(
                        px + 3 * PATCH * j,
                        image_at(whole, rects[i].x + margin, rects[i].y + margin + j), 3 * PATCH);
            }
        }
        decoded += band_tiles_decoded(band);
        band_close(band);
    }
    free(px);
    pool_free(pool);
    return decoded;
}

static struct image read_with_margin(const struct raster *raster)
{
    return read_raster(raster, -40, -40, raster->width + 480, raster->height + 480);
}

static void each_tile_is_decoded_once(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    struct slide *slide = make_slide("once.tiff", &flavour);
    struct raster raster = raster_at(slide, 0, 0);
    struct image whole = read_with_margin(&raster);
    for (int threads = 1; threads <= 3; threads++) {
        assert_int_equal(walk(&raster, &whole, threads, 1), 6 * 5);
        walk(&raster, &whole, threads, 3);
    }
    image_free(&whole);
    slide_close(slide);
}

/* The mean over the area under a raster pixel, written down plainly. */
static double mean_under(const struct image *image, int64_t x, int64_t y, int channel, double ratio)
{
    double sum = 0, area = 0;
    for (int64_t j = (int64_t)((double)y * ratio); (double)j < (double)(y + 1) * ratio; j++)
        for (int64_t i = (int64_t)((double)x * ratio); (double)i < (double)(x + 1) * ratio; i++) {
            if (i >= image->width || j >= image->height)
                continue;
            double w =
                fmin((double)i + 1, (double)(x + 1) * ratio) - fmax((double)i, (double)x * ratio);
            double h =
                fmin((double)j + 1, (double)(y + 1) * ratio) - fmax((double)j, (double)y * ratio);
            sum += w * h * image_at(image, i, j)[channel];
            area += w * h;
        }
    return sum / area;
}

static void shrinking_is_exact_area_averaging(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    struct slide *slide = make_slide("shrink.tiff", &flavour); /* 0.5 um/px */
    const double mpps[] = { 0.7, 0.99 * 4, 7.3 };
    const int levels[] = { 0, 1, 2 };
    for (int k = 0; k < 3; k++) {
        struct raster raster = raster_at(slide, mpps[k], 0);
        assert_int_equal(raster.level, k == 1 ? 2 : levels[k]);
        struct raster level = raster_at(slide, 0, raster.level);
        struct image source = read_raster(&level, 0, 0, level.width, level.height);
        if (raster.ratio == 1) { /* within 1 %: as it is */
            assert_int_equal(raster.width, level.width);
            image_free(&source);
            continue;
        }
        struct image ours = read_raster(&raster, 0, 0, raster.width, raster.height);
        for (int64_t y = 0; y < raster.height; y += 3)
            for (int64_t x = 0; x < raster.width; x++)
                for (int c = 0; c < 3; c++) {
                    double want = mean_under(&source, x, y, c, raster.ratio);
                    if (fabs(want - image_at(&ours, x, y)[c]) > 0.501)
                        fail_msg("at %d, %d: %g and %d", (int)x, (int)y, want,
                                 image_at(&ours, x, y)[c]);
                }
        image_free(&ours);
        image_free(&source);
    }
    slide_close(slide);
}

static void resampled_patches_do_not_depend_on_the_cut(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    struct slide *slide = make_slide("cut.tiff", &flavour);
    const double mpps[] = { 0.3, 0.63, 0.9 };
    for (int k = 0; k < 3; k++) {
        struct raster raster = raster_at(slide, mpps[k], 0);
        assert_true(raster.ratio != 1);
        struct image whole = read_with_margin(&raster);
        for (int threads = 1; threads <= 3; threads++) {
            assert_int_equal(walk(&raster, &whole, threads, 1), 6 * 5);
            walk(&raster, &whole, threads, 3);
        }
        image_free(&whole);
    }
    slide_close(slide);
}

static void enlarging_is_bilinear(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    struct slide *slide = make_slide("enlarge.tiff", &flavour);
    struct raster raster = raster_at(slide, 0.25, 0), level = raster_at(slide, 0, 0);
    assert_int_equal(raster.width, 2 * flavour.width);
    struct image source = read_raster(&level, 0, 0, 300, 300);
    struct image ours = read_raster(&raster, 0, 0, 500, 500);
    for (int64_t y = 2; y < 500; y++)
        for (int64_t x = 2; x < 500; x++) { /* centres lie 1/4 and 3/4 between two pixels */
            int64_t i = (x - 1) / 2, j = (y - 1) / 2;
            double a = x % 2 ? 0.25 : 0.75, b = y % 2 ? 0.25 : 0.75;
            double want = (1 - b) * ((1 - a) * image_at(&source, i, j)[1] +
                                     a * image_at(&source, i + 1, j)[1]) +
                          b * ((1 - a) * image_at(&source, i, j + 1)[1] +
                               a * image_at(&source, i + 1, j + 1)[1]);
            assert_true(fabs(want - image_at(&ours, x, y)[1]) <= 0.501);
        }
    image_free(&source);
    image_free(&ours);
    slide_close(slide);
}

static void overviews_average_the_whole_slide(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct tiff_flavour flavour = plain_flavour();
    flavour.ratios[0] = 0; /* level 0 alone */
    struct slide *slide = make_slide("overview.tiff", &flavour);
    struct raster level = raster_at(slide, 0, 0);
    struct image source = read_raster(&level, 0, 0, level.width, level.height), ours, want;
    assert_true(slide_overview(slide, 16, NULL, &ours, &err));
    assert_int_equal(ours.width, 82);
    assert_int_equal(ours.height, 70);
    assert_true(image_shrink(&source, 82, 70, &want, &err));
    for (size_t i = 0; i < image_bytes(&want); i++)
        assert_in_range(ours.px[i] - want.px[i] + 1, 0, 2);
    image_free(&source);
    image_free(&ours);
    image_free(&want);
    slide_close(slide);
}

static void bands_have_the_size_they_say(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    struct slide *slide = make_slide("size.tiff", &flavour);
    struct raster raster = raster_at(slide, 0, 0);
    raster.width = 100000; /* only the plan looks at it */
    int64_t bytes = band_bytes(&raster, 1300, 448);
    assert_in_range(bytes, 6 * 3 * 256 * 256 * 3, 6 * 3 * 256 * 256 * 3 + 4096);
    slide_close(slide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flavour_reads_as_openslide_does),
        cmocka_unit_test(a_real_aperio_slide_reads_as_openslide_does),
        cmocka_unit_test(philips_padding_and_absent_tiles),
        cmocka_unit_test(absent_tiles_are_blank),
        cmocka_unit_test(lossless_tiles_come_back_as_drawn),
        cmocka_unit_test(small_levels_come_back_as_drawn),
        cmocka_unit_test(two_levels_of_one_size_are_read),
        cmocka_unit_test(each_tile_is_decoded_once),
        cmocka_unit_test(shrinking_is_exact_area_averaging),
        cmocka_unit_test(resampled_patches_do_not_depend_on_the_cut),
        cmocka_unit_test(enlarging_is_bilinear),
        cmocka_unit_test(overviews_average_the_whole_slide),
        cmocka_unit_test(bands_have_the_size_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
