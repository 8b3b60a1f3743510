/* test_slide.c: the facts of a slide, and files that are not what they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tiffio.h>
#include "base/file.h"
#include "base/pool.h"
#include "slide/band.h"
#include "slide/driver.h"
#include "slide/slide_list.h"
#include "slide/tiff_file.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/tiff_maker.h"

static struct tiff_flavour plain_flavour(void)
{
    return (struct tiff_flavour){ .mode = "w",
                                  .compression = COMPRESSION_JPEG,
                                  .photometric = PHOTOMETRIC_YCBCR,
                                  .sub_x = 2,
                                  .sub_y = 2,
                                  .tile_px = 256,
                                  .width = 1100,
                                  .height = 900,
                                  .ratios = { 4 } };
}

static char *make(const char *name, const struct tiff_flavour *flavour)
{
    char *path = scratch_path(name);
    tiff_maker_write(path, flavour);
    return path;
}

static struct slide *open_given(const char *path, double mpp)
{
    struct slide *slide = NULL;
    struct err err = { 0 };
    if (!slide_open(path, mpp, &slide, &err))
        fail_msg("%s", err.text);
    return slide;
}

static void expect_mpp(const struct tiff_flavour *flavour, double given, double mpp,
                       enum mpp_source source)
{
    char *path = make("mpp.tiff", flavour);
    struct slide *slide = open_given(path, given);
    const struct slide_info *info = slide_info(slide);
    assert_int_equal(info->mpp_source, source);
    assert_true(fabs(info->mpp - mpp) < 1e-6);
    slide_close(slide);
    free(path);
}

static void um_per_px_comes_from_the_best_source(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    expect_mpp(&flavour, 0, 0, MPP_UNKNOWN);
    expect_mpp(&flavour, 0.31, 0.31, MPP_GIVEN);
    flavour.resolution_unit = RESUNIT_CENTIMETER;
    flavour.resolution = 40000;
    expect_mpp(&flavour, 0, 0.25, MPP_TIFF_TAGS);
    expect_mpp(&flavour, 0.31, 0.31, MPP_GIVEN);
    flavour.resolution_unit = RESUNIT_INCH;
    flavour.resolution = 50800;
    expect_mpp(&flavour, 0, 0.5, MPP_TIFF_TAGS);
    flavour.resolution = 72; /* what programs write that know nothing */
    expect_mpp(&flavour, 0, 0, MPP_UNKNOWN);
    flavour.resolution = 50800;
    flavour.description = "Aperio Image Library v11\r\nmade up|AppMag = 40|MPP = 0.2520";
    expect_mpp(&flavour, 0, 0.252, MPP_VENDOR);
    flavour.description = "Aperio Image Library v11\r\nmade up|AppMag = 40";
    expect_mpp(&flavour, 0, 0.5, MPP_TIFF_TAGS);
}

static void expect_refusal(const char *name, const struct tiff_flavour *flavour, const char *why)
{
    char *path = make(name, flavour);
    struct slide *slide = NULL;
    struct err err = { 0 };
    assert_false(slide_open(path, 0, &slide, &err));
    if (!strstr(err.text, why))
        fail_msg("'%s' should say '%s'", err.text, why);
    free(path);
}

/* OpenSlide reads the first page, or the first channel, and says nothing of the others. */
static void channels_are_not_left_out(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    flavour.more_pages = 2;
    expect_refusal("pages.tiff", &flavour, "has 3 full-size pages");
    flavour = plain_flavour();
    flavour.compression = COMPRESSION_LZW;
    flavour.photometric = PHOTOMETRIC_MINISBLACK;
    expect_refusal("channels.tiff", &flavour, "has 3 channels, of which only 1 would be read");
}

/* Opens a slide of a list for work; "" or what the error must say. */
static void open_listed(const char *path, double listed, double option, double mpp, const char *why)
{
    struct slide_entry entry = { .path = (char *)path, .mpp = listed };
    struct slide *slide = NULL;
    struct err err = { 0 };
    bool ok = slide_open_entry(&entry, &(struct slide_access){ .mpp = option }, &slide, &err);
    if (ok != (why[0] == 0) || !strstr(err.text, why))
        fail_msg("list %g, option %g: '%s' should say '%s'", listed, option, err.text, why);
    if (ok)
        assert_true(fabs(slide_info(slide)->mpp - mpp) < 1e-6);
    slide_close(slide);
}

static void um_per_px_that_cannot_be_trusted_are_refused(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    flavour.resolution_unit = RESUNIT_CENTIMETER;
    flavour.resolution = 40000;
    char *path = make("listed.tiff", &flavour);
    open_listed(path, 0, 0, 0.25, "");
    open_listed(path, 0.49, 0, 0.49, "");
    open_listed(path, 0.126, 0, 0.126, "");
    open_listed(path, 25, 0, 0, "the slide list says 25 um/px, the file 0.25");
    open_listed(path, 0.12, 0, 0, "pass --slide-mpp 0.12 if the file is wrong");
    open_listed(path, 250, 1, 1, ""); /* the option decides */
    free(path);
    flavour.resolution_y = 40300; /* within 1 % */
    path = make("nearly-square.tiff", &flavour);
    open_listed(path, 0, 0, 0.249069, "");
    free(path);
    flavour.resolution_y = 20000;
    path = make("not-square.tiff", &flavour);
    open_listed(path, 0, 0, 0, "its pixels are not square (0.25 x 0.5 um)");
    open_listed(path, 0, 0.25, 0.25, "");
    free(path);
    flavour.resolution_unit = 0; /* nothing to compare with */
    path = make("silent.tiff", &flavour);
    open_listed(path, 25, 0, 25, "");
    open_listed(path, 250, 0, 0, "the slide list says 250 um/px, which no slide has (0.01 to 100)");
    open_listed(path, 0, 250, 0, "--slide-mpp says 250 um/px, which no slide has");
    free(path);
}

static void facts_of_an_aperio_slide(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    flavour.description = "Aperio Image Library v11\r\nmade up|AppMag = 40|MPP = 0.2520";
    char *path = make("facts.svs", &flavour);
    struct slide *slide = open_given(path, 0);
    const struct slide_info *info = slide_info(slide);
    assert_string_equal(info->vendor, "aperio");
    assert_string_equal(info->name, "facts");
    assert_string_equal(info->path, path);
    assert_true(info->objective == 40);
    assert_int_equal(info->n_levels, 2);
    assert_int_equal(info->levels[0].width, 1100);
    assert_int_equal(info->levels[1].height, 225);
    assert_true(fabs(info->levels[1].downsample - 4) < 1e-9);
    struct raster raster;
    struct err err = { 0 };
    assert_false(raster_open(slide, &(struct raster_request){ .level = 2 }, &raster, &err));
    assert_non_null(strstr(err.text, "no level 2"));
    assert_false(raster_open(slide, &(struct raster_request){ .mpp = 100 }, &raster, &err));
    assert_true(raster_open(slide, &(struct raster_request){ .mpp = 1.01 }, &raster, &err));
    assert_int_equal(raster.level, 1);
    assert_true(raster.ratio == 1);
    assert_int_equal(raster_to_l0(&raster, 7), 28);
    assert_int_equal(raster_from_l0(&raster, 30), 8);
    slide_close(slide);
    free(path);
}

static void expect_refused(const char *path, const char *word)
{
    struct slide *slide = NULL;
    struct err err = { 0 };
    assert_false(slide_open(path, 0, &slide, &err));
    assert_null(slide);
    if (!strstr(err.text, word) || strncmp(err.text, path, strlen(path)) != 0)
        fail_msg("said '%s', not '%s: ...%s'", err.text, path, word);
}

static void write_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

static void what_is_no_slide_is_refused(void **state)
{
    (void)state;
    char *path = scratch_path("no.svs");
    unlink(path);
    expect_refused(path, "No such file");
    write_bytes(path, "", 0);
    expect_refused(path, "is empty");
    write_bytes(path, "just text\n", 10);
    expect_refused(path, "neither a slide");
    write_bytes(path, "II*\0\x08\0\0\0\xff\xff", 10);
    expect_refused(path, "truncated");
    if (geteuid() != 0) {
        assert_int_equal(chmod(path, 0), 0);
        expect_refused(path, "Permission denied");
    }
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    expect_refused(path, "is a folder");
    rmdir(path);
    free(path);
}

static void a_truncated_slide_is_refused(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    char *path = make("truncated.tiff", &flavour);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    for (off_t part = 1; part < 8; part++) { /* the first directory lies before level 1's tiles */
        assert_int_equal(truncate(path, status.st_size * (8 - part) / 8), 0);
        struct slide *slide = NULL;
        struct err err = { 0 };
        assert_false(slide_open(path, 0, &slide, &err));
        assert_non_null(strstr(err.text, "truncated"));
    }
    free(path);
}

/* Overwrites the middle of a tile's bytes. */
static void damage_tile(const char *path, int directory, uint32_t tile)
{
    uint64_t offset = 0, size = 0;
    tiff_maker_find_tile(path, directory, tile, &offset, &size);
    FILE *stream = fopen(path, "r+b");
    assert_non_null(stream);
    fseek(stream, (long)(offset + size / 2), SEEK_SET);
    for (int i = 0; i < 64; i++)
        fputc(i % 2 ? 0xD9 : 0xFF, stream);
    assert_int_equal(fclose(stream), 0);
}

static void expect_damage(const char *path, bool fast)
{
    struct slide *slide = NULL;
    assert_true(slide_open_by(fast ? &driver_tiff : &driver_openslide, path, 0, &slide, NULL));
    struct pool *pool = pool_new(2);
    struct ctx ctx = { .pool = pool };
    struct raster raster;
    struct band *band = NULL;
    struct err err = { 0 };
    assert_int_equal(slide_info(slide)->levels[0].reader == READER_FAST, fast);
    assert_true(raster_open(slide, &(struct raster_request){ 0 }, &raster, &err));
    assert_true(band_open(&raster, 0, 1100, 256, &ctx, &band, &err));
    struct band_rect good = { 0, 0, 1100, 256 }, bad = { 0, 512, 1100, 256 };
    for (int i = 0; i < 2; i++) { /* an error does not stay */
        assert_true(band_load_start(band, &good, 1, 0, &err));
        assert_true(band_load_join(band, &err));
        assert_true(band_load_start(band, &bad, 1, 512, &err));
        assert_false(band_load_join(band, &err));
        if (!strstr(err.text, fast ? "level 0, tile column 2, row 2: damaged tile"
                                   : "level 0, tile column 1, row 1"))
            fail_msg("%s", err.text);
        struct image image;
        assert_false(slide_read(slide, 0, 500, 500, 100, 100, &image, &err));
        assert_non_null(strstr(err.text, "level 0, tile column "));
        assert_true(slide_read(slide, 0, 0, 0, 100, 100, &image, &err));
        image_free(&image);
    }
    band_close(band);
    slide_close(slide);
    pool_free(pool);
}

static void a_damaged_tile_is_named(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    char *path = make("damaged.tiff", &flavour);
    damage_tile(path, 0, 2 * 5 + 2);
    expect_damage(path, true);
    expect_damage(path, false);
    free(path);
}

/* Makes the table of tile sizes of level 0 say that a tile is larger than the file. */
static void enlarge_tile(const char *path, uint32_t tile)
{
    uint64_t offset = 0, size = 0, next = 0;
    size_t length = 0;
    char *bytes = NULL;
    tiff_maker_find_tile(path, 0, tile, &offset, &size);
    tiff_maker_find_tile(path, 0, tile + 1, &offset, &next);
    assert_true(file_read(path, (size_t)64 << 20, &bytes, &length, NULL));
    const uint32_t wide[2] = { (uint32_t)size, (uint32_t)next };
    const uint16_t narrow[2] = { (uint16_t)size, (uint16_t)next };
    char *at = memmem(bytes, length, wide, sizeof wide);
    if (at)
        memset(at, 0x7f, sizeof wide[0]);
    else
        assert_non_null(at = memmem(bytes, length, narrow, sizeof narrow));
    memset(at, 0xff, sizeof narrow[0]);
    write_bytes(path, bytes, length);
    free(bytes);
}

static void sizes_beyond_the_file_are_refused(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    flavour.height = 257; /* a small file: even 16 bits reach beyond its end */
    flavour.width = 800;
    flavour.ratios[0] = 0;
    char *path = make("beyond.tiff", &flavour);
    enlarge_tile(path, 6);
    expect_refused(path, "level 0, tile column 2, row 1 is beyond the end of the file");
    free(path);
}

/* One directory with tiles of this size and a few bytes in the only tile. */
static void write_claim(const char *path, uint32_t size_px, uint32_t tile_px)
{
    TIFF *tiff = TIFFOpen(path, "w8");
    assert_non_null(tiff);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, size_px);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, size_px);
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, tile_px);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, tile_px);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_JPEG);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_YCBCR);
    char bytes[] = "\xff\xd8 not a JPEG";
    assert_true(TIFFWriteRawTile(tiff, 0, bytes, sizeof bytes) > 0);
    TIFFClose(tiff);
}

static void absurd_tile_sizes_are_not_allocated(void **state)
{
    (void)state;
    char *path = scratch_path("absurd.tiff");
    struct tiff_file *file = NULL;
    struct tile_decoder *decoder = NULL;
    struct err err = { 0 };
    static uint8_t px[16 * 16 * 3];
    write_claim(path, 100000, 1 << 20);
    assert_true(tiff_file_open(path, &file, &err));
    assert_non_null(strstr(file->directories[0].unfit, "larger than 4096 px"));
    tiff_file_close(file);
    write_claim(path, 16, 16);
    assert_true(tiff_file_open(path, &file, &err));
    assert_null(file->directories[0].unfit);
    assert_true(tile_decoder_new(file, &file->directories[0], 0, &decoder, &err));
    assert_false(tile_decode(decoder, 0, 0, px, 16 * 3, &err));
    assert_non_null(strstr(err.text, "damaged tile"));
    tile_decoder_free(decoder);
    tiff_file_close(file);
    free(path);
}

/* The same TIFF in both byte orders. OpenSlide 3.4.1 does not open big-endian classic TIFF. */
static void both_byte_orders_decode_to_the_same(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    struct tiff_file *little = NULL, *big = NULL;
    struct tile_decoder *from_little = NULL, *from_big = NULL;
    static uint8_t a[256 * 256 * 3], b[256 * 256 * 3];
    char *little_path = make("little.tiff", &flavour);
    flavour.mode = "wb";
    char *big_path = make("big.tiff", &flavour);
    assert_true(tiff_file_open(little_path, &little, NULL));
    assert_true(tiff_file_open(big_path, &big, NULL));
    assert_int_equal(big->n_directories, 2);
    for (int i = 0; i < 2; i++) {
        const struct tiff_directory *d = &big->directories[i];
        assert_null(d->unfit);
        assert_true(tile_decoder_new(little, &little->directories[i], 0, &from_little, NULL));
        assert_true(tile_decoder_new(big, d, 0, &from_big, NULL));
        for (int64_t tile = 0; tile < d->columns * d->rows; tile++) {
            int64_t column = tile % d->columns, row = tile / d->columns;
            assert_true(tile_decode(from_little, column, row, a, 256 * 3, NULL));
            assert_true(tile_decode(from_big, column, row, b, 256 * 3, NULL));
            assert_memory_equal(a, b, sizeof a);
        }
        tile_decoder_free(from_little);
        tile_decoder_free(from_big);
    }
    tiff_file_close(little);
    tiff_file_close(big);
    slide_close(open_given(big_path, 0));
    free(little_path);
    free(big_path);
}

/* libtiff has a word on tiles that are larger than their image, which OpenSlide lets through. */
static void small_slides_are_read_in_silence(void **state)
{
    (void)state;
    struct tiff_flavour flavour = plain_flavour();
    flavour.compression = COMPRESSION_LZW;
    flavour.photometric = PHOTOMETRIC_RGB;
    flavour.sub_x = flavour.sub_y = 1;
    flavour.width = 120, flavour.height = 100, flavour.ratios[0] = 0;
    char *path = make("small.tiff", &flavour), *said = scratch_path("small.txt");
    struct image image = { 0 };
    struct stat info;
    int before = dup(2), file = open(said, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_true(before >= 0 && file >= 0 && dup2(file, 2) == 2);
    struct slide *slide = NULL;
    bool ok =
        slide_open(path, 0, &slide, NULL) && slide_read(slide, 0, 0, 0, 120, 100, &image, NULL);
    assert_int_equal(dup2(before, 2), 2);
    assert_true(ok && fstat(file, &info) == 0);
    assert_int_equal(info.st_size, 0);
    close(before), close(file);
    image_free(&image);
    slide_close(slide);
    unlink(said), unlink(path);
    free(said), free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(um_per_px_comes_from_the_best_source),
        cmocka_unit_test(channels_are_not_left_out),
        cmocka_unit_test(um_per_px_that_cannot_be_trusted_are_refused),
        cmocka_unit_test(facts_of_an_aperio_slide),
        cmocka_unit_test(what_is_no_slide_is_refused),
        cmocka_unit_test(a_truncated_slide_is_refused),
        cmocka_unit_test(sizes_beyond_the_file_are_refused),
        cmocka_unit_test(absurd_tile_sizes_are_not_allocated),
        cmocka_unit_test(a_damaged_tile_is_named),
        cmocka_unit_test(small_slides_are_read_in_silence),
        cmocka_unit_test(both_byte_orders_decode_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
