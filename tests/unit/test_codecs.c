/* test_codecs.c: every tile codec gives back what was encoded, and a damaged tile of every codec is
 * an error that names the codec, or, where the format cannot tell, at least does no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <tiff.h>
#include "base/rng.h"
#include "slide/codec.h"
#include "tests/unit/support/tile_encoder.h"

/* One of each codec: small, so that every byte can be tried. */
static const struct tile_kind kinds[] = {
    { COMPRESSION_NONE, 16, 16, 3, 8, .lossless = true },
    { COMPRESSION_LZW, 16, 16, 3, 8, .lossless = true },
    { COMPRESSION_PACKBITS, 16, 16, 3, 8, .lossless = true },
    { COMPRESSION_ADOBE_DEFLATE, 16, 16, 3, 8, .lossless = true },
    { COMPRESSION_DEFLATE, 16, 16, 3, 16, .lossless = true },
    { COMPRESSION_ZSTD, 16, 16, 3, 8, .lossless = true },
    { COMPRESSION_WEBP, 16, 16, 3, 8, .lossless = true },
    { COMPRESSION_WEBP, 16, 16, 4, 8, .lossless = true },
    { COMPRESSION_WEBP, 16, 16, 3, 8, .lossless = false },
    { COMPRESSION_JPEG, 16, 16, 3, 8, .lossless = false },
    { COMPRESSION_JPEG, 16, 16, 1, 8, .lossless = false },
    { TILE_JP2K, 16, 16, 3, 8, .lossless = true },
    { TILE_JP2K, 16, 16, 1, 16, .lossless = true },
    { TILE_JP2K, 16, 16, 4, 8, .lossless = true, .boxes = true },
    { TILE_JP2K_LOSSY, 16, 16, 1, 8, .lossless = false },
    { TILE_JP2K_RGB, 16, 16, 3, 8, .lossless = true, .no_transform = true },
};
#define N_KINDS (sizeof kinds / sizeof *kinds)

static const char *name_of(const struct tile_kind *kind)
{
    return codec_find(kind->compression)->name;
}

/* Smooth colours with some noise: what is drawn depends on the seed. The caller frees it. */
static uint8_t *draw(const struct tile_kind *kind, uint64_t seed, int noise)
{
    size_t n = (size_t)kind->width * (size_t)kind->height * (size_t)kind->samples;
    uint8_t *px = malloc(n * (size_t)kind->bits / 8);
    assert_non_null(px);
    struct rng rng = rng_new(seed, 0, 0);
    for (size_t i = 0; i < n; i++) {
        int at = (int)(i / (size_t)kind->samples);
        int value = 20 + at % kind->width * 80 / kind->width +
                    at / kind->width * 20 / kind->height + 10 * (int)(i % (size_t)kind->samples);
        value += noise ? (int)rng_below(&rng, (uint64_t)noise) : 0;
        if (kind->bits == 16)
            ((uint16_t *)(void *)px)[i] = (uint16_t)(value * 200);
        else
            px[i] = (uint8_t)value;
    }
    return px;
}

/* A decoder of one directory, with room for the tile it gives. */
struct bench {
    struct tiff_directory d;
    void *state;
    uint8_t *px;
    size_t bytes;
    int64_t stride;
};

static void bench_open(struct bench *bench, struct tiff_directory d)
{
    *bench = (struct bench){ .d = d };
    bool rgb = d.codec->gives == CODEC_RGB;
    bench->stride = rgb ? 3 * d.tile_width : d.row_bytes;
    bench->bytes = (size_t)(bench->stride * d.tile_height);
    bench->px = malloc(bench->bytes);
    assert_non_null(bench->px);
    if (d.codec->begin)
        assert_true(d.codec->begin(&bench->d, &bench->state, NULL));
}

static void bench_close(struct bench *bench)
{
    if (bench->d.codec->end)
        bench->d.codec->end(bench->state);
    free(bench->px);
}

static bool bench_decode(struct bench *bench, const uint8_t *bytes, size_t size, struct err *err)
{
    memset(bench->px, 0xA5, bench->bytes);
    return bench->d.codec->decode(bench->state, &bench->d, bytes, size, bench->px, bench->stride,
                                  err);
}

/* A copy of exactly these bytes, so that a sanitizer sees what is read beyond them. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    return copy;
}

/* Greatest difference from what was drawn; a grey JPEG is RGB when it is decoded. */
static int difference(const struct bench *bench, const uint8_t *drawn)
{
    int most = 0;
    bool spread = bench->d.codec->gives == CODEC_RGB && bench->d.samples == 1;
    for (size_t i = 0; i < bench->bytes; i++) {
        int other = abs(bench->px[i] - drawn[spread ? i / 3 : i]);
        most = other > most ? other : most;
    }
    return most;
}

static void every_codec_gives_back_what_was_encoded(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < N_KINDS; k++)
        for (int size = 16; size <= 256; size *= 4)
            for (int noise = 0; noise <= 90; noise += 30) {
                struct tile_kind kind = kinds[k];
                struct bench bench;
                struct err err = { 0 };
                size_t n = 0;
                kind.width = size, kind.height = size / 2 < 16 ? 16 : size / 2;
                uint8_t *px = draw(&kind, 7, kind.lossless ? noise : noise / 15);
                uint8_t *bytes = tile_encode(&kind, px, &n);
                bench_open(&bench, tile_directory(&kind));
                if (bench.d.codec->why_unfit)
                    assert_null(bench.d.codec->why_unfit(&bench.d));
                if (!bench_decode(&bench, bytes, n, &err))
                    fail_msg("%s: %s", name_of(&kind), err.text);
                assert_in_range(difference(&bench, px), 0, kind.lossless ? 0 : 60);
                bench_close(&bench);
                free(bytes);
                free(px);
            }
}

/* LZW: what its table makes special. One value gives the longest strings, noise a table that fills
 * up and is cleared again and again. */
static void lzw_of_every_texture(void **unused)
{
    (void)unused;
    static const int noises[] = { 0, 1, 2, 3, 5, 9, 30, 256 };
    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++) {
        struct tile_kind kind = { COMPRESSION_LZW, 512, 512, 3, 8, .lossless = true };
        struct bench bench;
        size_t n = 0, all = 512 * 512 * 3;
        uint8_t *px = malloc(all);
        assert_non_null(px);
        struct rng rng = rng_new(i, 0, 0);
        for (size_t at = 0; at < all; at++)
            px[at] = noises[i] ? (uint8_t)rng_below(&rng, (uint64_t)noises[i]) : 77;
        uint8_t *bytes = tile_encode(&kind, px, &n);
        bench_open(&bench, tile_directory(&kind));
        assert_true(bench_decode(&bench, bytes, n, NULL));
        assert_memory_equal(bench.px, px, all);
        bench_close(&bench);
        free(bytes);
        free(px);
    }
}

static void lzw_of_before_tiff_6_is_refused(void **unused)
{
    (void)unused;
    static const uint8_t old[] = { 0x00, 0x01, 0x02, 0x03, 0x04 };
    struct tile_kind kind = { COMPRESSION_LZW, 16, 16, 3, 8, .lossless = true };
    struct bench bench;
    struct err err = { 0 };
    bench_open(&bench, tile_directory(&kind));
    assert_false(bench_decode(&bench, old, sizeof old, &err));
    assert_non_null(strstr(err.text, "before TIFF 6.0"));
    bench_close(&bench);
}

/* Every length that is too short is an error that names the codec; or all pixels were there. */
static void truncated_tiles_are_errors(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < N_KINDS; k++) {
        struct bench bench;
        size_t n = 0, refused = 0;
        uint8_t *px = draw(&kinds[k], 3, 30);
        uint8_t *bytes = tile_encode(&kinds[k], px, &n);
        bench_open(&bench, tile_directory(&kinds[k]));
        assert_true(bench_decode(&bench, bytes, n, NULL));
        uint8_t *whole = exact_copy(bench.px, bench.bytes);
        for (size_t size = 0; size < n; size++) {
            struct err err = { 0 };
            uint8_t *part = exact_copy(bytes, size);
            if (bench_decode(&bench, part, size, &err)) {
                assert_memory_equal(bench.px, whole, bench.bytes);
            } else {
                refused++;
                assert_int_equal(err.kind, ERR_FORMAT);
                if (bench.d.codec != &codec_jpeg)
                    assert_non_null(strstr(err.text, name_of(&kinds[k])));
                assert_non_null(strstr(err.text, "damaged"));
            }
            free(part);
        }
        if (refused + 8 < n)
            fail_msg("%s: only %zu of %zu truncated tiles are refused", name_of(&kinds[k]), refused,
                     n);
        bench_close(&bench);
        free(whole);
        free(bytes);
        free(px);
    }
}

/* Every bit flipped. Nothing is read or written outside (sanitizers look on); what has a checksum
 * never gives other pixels. */
static void flipped_bits_do_no_harm(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < N_KINDS; k++) {
        struct bench bench;
        size_t n = 0;
        bool sums = codec_find(kinds[k].compression) == &codec_deflate;
        uint8_t *px = draw(&kinds[k], 5, 30);
        uint8_t *bytes = tile_encode(&kinds[k], px, &n);
        bench_open(&bench, tile_directory(&kinds[k]));
        for (size_t i = 0; i < 8 * n; i++) {
            struct err err = { 0 };
            bytes[i / 8] ^= (uint8_t)(1 << i % 8);
            bool ok = bench_decode(&bench, bytes, n, &err);
            if (!ok)
                assert_true(err.kind == ERR_FORMAT && err.text[0]);
            else if (sums)
                assert_memory_equal(bench.px, px, bench.bytes);
            bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        }
        assert_true(bench_decode(&bench, bytes, n, NULL)); /* the state took no harm either */
        bench_close(&bench);
        free(bytes);
        free(px);
    }
}

/* A tile of another size than its directory says. */
static void other_sizes_are_errors(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < N_KINDS; k++)
        for (int larger = 0; larger < 2; larger++) {
            struct tile_kind kind = kinds[k];
            struct bench bench;
            struct err err = { 0 };
            size_t n = 0;
            kind.width = larger ? 32 : 16, kind.height = 32;
            uint8_t *px = draw(&kind, 5, 30);
            uint8_t *bytes = tile_encode(&kind, px, &n);
            kind.width = larger ? 16 : 32;
            bench_open(&bench, tile_directory(&kind));
            bool ok = bench_decode(&bench, bytes, n, &err);
            bool endless = kind.compression == COMPRESSION_NONE ||
                           kind.compression == COMPRESSION_PACKBITS ||
                           kind.compression == COMPRESSION_LZW; /* more may be padding */
            if (!endless || !larger)
                assert_false(ok);
            bench_close(&bench);
            free(bytes);
            free(px);
        }
}

static void jp2k_colours(void **unused)
{
    (void)unused;
    /* Y, Cb, Cr and the RGB that OpenSlide 4 gives for them */
    static const uint8_t colours[][6] = {
        { 0, 0, 0, 0, 135, 0 },           { 255, 255, 255, 255, 121, 255 },
        { 128, 128, 128, 128, 128, 128 }, { 100, 200, 30, 0, 145, 228 },
        { 100, 30, 200, 201, 82, 0 },     { 57, 91, 171, 117, 39, 0 },
    };
    struct tile_kind kind = {
        TILE_JP2K_YCBCR, 16, 16, 3, 8, .lossless = true, .no_transform = true
    };
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++) {
        struct bench bench;
        size_t n = 0;
        uint8_t px[16 * 16 * 3];
        for (size_t at = 0; at < sizeof px; at++)
            px[at] = colours[i][at % 3];
        uint8_t *bytes = tile_encode(&kind, px, &n);
        bench_open(&bench, tile_directory(&kind));
        assert_true(bench_decode(&bench, bytes, n, NULL));
        for (int c = 0; c < 3; c++)
            assert_int_equal(bench.px[c], colours[i][3 + c]);
        bench_close(&bench);
        free(bytes);
    }
}

/* Components of half the width: each of their samples serves two pixels. */
static void jp2k_with_subsampled_components(void **unused)
{
    (void)unused;
    struct tile_kind kind = { TILE_JP2K_RGB, 32, 16, 3, 8, .lossless = true, .chroma_x = 2 };
    struct bench bench;
    size_t n = 0;
    uint8_t *px = draw(&kind, 5, 30);
    uint8_t *bytes = tile_encode(&kind, px, &n);
    bench_open(&bench, tile_directory(&kind));
    assert_true(bench_decode(&bench, bytes, n, NULL));
    for (int i = 0; i < 32 * 16 * 3; i++)
        assert_int_equal(bench.px[i], px[i % 3 && i / 3 % 2 ? i - 3 : i]);
    bench_close(&bench);
    free(bytes);
    free(px);
}

/* A reduced resolution is the same image at half the size, and one too far is an error. */
static void jp2k_at_reduced_resolution(void **unused)
{
    (void)unused;
    struct tile_kind kind = { TILE_JP2K_RGB, 64, 64, 3, 8, .lossless = true };
    size_t n = 0;
    uint8_t *px = draw(&kind, 5, 0);
    uint8_t *bytes = tile_encode(&kind, px, &n);
    for (int reduce = 1; reduce <= 3; reduce++) {
        struct tile_kind small = kind;
        struct bench bench;
        struct err err = { 0 };
        small.width = small.height = 64 >> reduce;
        struct tiff_directory d = tile_directory(&small);
        d.reduce = reduce;
        bench_open(&bench, d);
        bool ok = bench_decode(&bench, bytes, n, &err);
        if (reduce == 3) { /* of three resolutions */
            assert_false(ok);
            assert_non_null(strstr(err.text, "2 reduced resolutions"));
        }
        for (int i = 0; ok && i < small.width * small.height * 3; i++) {
            int x = i / 3 % small.width, y = i / 3 / small.width;
            int drawn = px[((y << reduce) * 64 + (x << reduce)) * 3 + i % 3];
            assert_in_range(abs(bench.px[i] - drawn), 0, 8);
        }
        bench_close(&bench);
    }
    free(bytes);
    free(px);
}

static void put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Headers that claim sizes nobody has memory for are refused before anything is allocated. */
static void absurd_claims_allocate_nothing(void **unused)
{
    (void)unused;
    struct tile_kind kind = { TILE_JP2K_RGB, 16, 16, 3, 8, .lossless = true };
    struct bench bench;
    size_t n = 0;
    uint8_t *px = draw(&kind, 5, 30);
    uint8_t *bytes = tile_encode(&kind, px, &n);
    bench_open(&bench, tile_directory(&kind));
    /* size of the image, size of its tiles */
    static const uint32_t claims[][4] = {
        { 0x7FFFFFFF, 16, 0x7FFFFFFF, 16 },
        { 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF },
        { 16, 0xFFFFFFFF, 16, 0xFFFFFFFF },
        { 0x7FFFFFFF, 0x7FFFFFFF, 1, 1 },
    };
    static const size_t places[] = { 8, 12, 24, 28 }; /* from the start of the codestream */
    for (size_t i = 0; i < 4; i++) {
        struct err err = { 0 };
        uint8_t *wrong = exact_copy(bytes, n);
        for (int j = 0; j < 4; j++)
            put32(wrong + places[j], claims[i][j]);
        struct mallinfo2 before = mallinfo2();
        assert_false(bench_decode(&bench, wrong, n, &err));
        struct mallinfo2 after = mallinfo2();
        assert_true(after.uordblks + after.hblkhd <= before.uordblks + before.hblkhd + 4096);
        assert_non_null(strstr(err.text, i < 3 ? "not the tile's 16 x 16" : "very many tiles"));
        free(wrong);
    }
    bench_close(&bench);
    free(bytes);
    free(px);
}

static void jpeg_that_no_viewer_shows_is_named(void **unused)
{
    (void)unused;
    struct tile_kind kind = { COMPRESSION_JPEG, 16, 16, 3, 8, .lossless = false };
    struct tiff_directory d = tile_directory(&kind);
    assert_null(codec_jpeg.why_unfit(&d));
    d.bits = 12;
    assert_non_null(strstr(codec_jpeg.why_unfit(&d), "12 bit"));
    d.bits = 8, d.samples = 4, d.photometric = PHOTOMETRIC_SEPARATED;
    assert_non_null(strstr(codec_jpeg.why_unfit(&d), "CMYK"));
    d.photometric = PHOTOMETRIC_RGB;
    assert_non_null(codec_jpeg.why_unfit(&d));
}

static void the_table_has_each_compression_once(void **unused)
{
    (void)unused;
    for (size_t i = 0; codec_at(i); i++)
        for (const uint16_t *value = codec_at(i)->compressions; *value; value++)
            assert_ptr_equal(codec_find(*value), codec_at(i));
    assert_null(codec_find(0));
    assert_null(codec_find(COMPRESSION_CCITTFAX4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_each_compression_once),
        cmocka_unit_test(every_codec_gives_back_what_was_encoded),
        cmocka_unit_test(lzw_of_every_texture),
        cmocka_unit_test(lzw_of_before_tiff_6_is_refused),
        cmocka_unit_test(truncated_tiles_are_errors),
        cmocka_unit_test(flipped_bits_do_no_harm),
        cmocka_unit_test(other_sizes_are_errors),
        cmocka_unit_test(jp2k_colours),
        cmocka_unit_test(jp2k_with_subsampled_components),
        cmocka_unit_test(jp2k_at_reduced_resolution),
        cmocka_unit_test(absurd_claims_allocate_nothing),
        cmocka_unit_test(jpeg_that_no_viewer_shows_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
