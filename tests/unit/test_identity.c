/* test_identity.c: files and slides keep their identity when copied, touched or named otherwise,
 * and lose it when their content changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tiffio.h>
#include <unistd.h>
#include "base/file.h"
#include "base/identity.h"
#include "slide/slide_identity.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/plain_slide.h"
#include "base/text.h"

static void put(const char *path, int64_t bytes)
{
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    for (int64_t i = 0; i < bytes; i++)
        fputc((int)(i * 7 + i / 251) & 255, stream);
    assert_int_equal(fclose(stream), 0);
}

static void flip(const char *path, int64_t offset)
{
    unsigned char byte;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, (off_t)offset) == 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    close(fd);
}

static bool same(const struct identity *a, const struct identity *b)
{
    return a->bytes == b->bytes && a->hash == b->hash;
}

static void every_byte_of_a_small_file_counts(void **state)
{
    (void)state;
    char *path = scratch_path("identity_small");
    struct identity before, after;
    put(path, 200000);
    assert_true(identity_of_file(path, &before, NULL));
    assert_true(before.bytes == 200000);
    const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    assert_true(identity_of_file(path, &after, NULL) && same(&before, &after));
    for (int64_t offset = 0; offset < 200000; offset += 49999) {
        flip(path, offset);
        assert_true(identity_of_file(path, &after, NULL) && !same(&before, &after));
        assert_true(identity_of_sample(path, &after, NULL) && !same(&before, &after));
        flip(path, offset);
    }
    assert_true(identity_of_sample(path, &after, NULL) && same(&before, &after));
    put(path, 200001);
    assert_true(identity_of_file(path, &after, NULL) && !same(&before, &after));
    free(path);
}

static void a_large_file_is_sampled_at_both_ends(void **state)
{
    (void)state;
    char *path = scratch_path("identity_large");
    struct identity before, after;
    const int64_t bytes = 5 << 20;
    put(path, bytes);
    assert_true(identity_of_sample(path, &before, NULL));
    const int64_t places[] = { 0, 60000, bytes / 10 + 5, bytes - 60000, bytes - 1 };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        flip(path, places[i]);
        assert_true(identity_of_sample(path, &after, NULL) && !same(&before, &after));
        flip(path, places[i]);
    }
    assert_true(truncate(path, (off_t)(bytes - 1)) == 0);
    assert_true(identity_of_sample(path, &after, NULL) && !same(&before, &after));
    free(path);
}

/* Of every directory of a TIFF, a byte in the middle of the pixels of its first tile. */
static int64_t in_tile(const char *path, tdir_t directory, bool *last)
{
    TIFF *tiff = TIFFOpen(path, "r");
    uint64_t *offsets = NULL, *sizes = NULL;
    assert_non_null(tiff);
    *last = directory + 1 == TIFFNumberOfDirectories(tiff);
    assert_true(TIFFSetDirectory(tiff, directory) &&
                TIFFGetField(tiff, TIFFTAG_TILEOFFSETS, &offsets) &&
                TIFFGetField(tiff, TIFFTAG_TILEBYTECOUNTS, &sizes));
    int64_t offset = (int64_t)(offsets[0] + sizes[0] / 2);
    TIFFClose(tiff);
    return offset;
}

static void a_slide_is_known_by_its_smallest_levels(void **state)
{
    (void)state;
    char *path = plain_slide_write("identity.tiff", 6000, 5000, 0.5);
    struct identity before, after;
    struct err err = { 0 };
    assert_true(slide_identity(path, &before, &err));
    assert_true(before.bytes > IDENTITY_SAMPLE_BYTES);
    bool last = false;
    for (tdir_t directory = 2; !last; directory++) {
        int64_t offset = in_tile(path, directory, &last);
        flip(path, offset);
        assert_true(slide_identity(path, &after, &err) && !same(&before, &after));
        flip(path, offset);
    }
    assert_true(slide_identity(path, &after, &err) && same(&before, &after));
    free(path);
    assert_false(slide_identity("no/such.tiff", &after, &err));
    assert_non_null(strstr(err.text, "no/such.tiff: cannot open"));
}

static void pixels_of_mirax_lie_in_a_folder(void **state)
{
    (void)state;
    char *slide = scratch_path("identity_m.mrxs"), *folder = scratch_path("identity_m");
    char *data = text_format("%s/Data0000.dat", folder);
    struct identity before, after;
    put(slide, 100);
    assert_true(file_make_folder(folder, NULL));
    put(data, 3000);
    assert_true(slide_identity(slide, &before, NULL) && before.bytes == 3100);
    flip(data, 1500);
    assert_true(slide_identity(slide, &after, NULL) && !same(&before, &after));
    free(slide);
    free(folder);
    free(data);
}

static void put_text(const char *path, const char *bytes, size_t size)
{
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

static void pixels_of_hamamatsu_lie_in_images(void **state)
{
    (void)state;
    static const char index[] = "[Virtual Microscope Specimen]\r\nNoLayers=1\r\n"
                                "ImageFile=identity_h0.jpg\r\nImageFile(1,0)=identity_h1.jpg\r\n"
                                "MapFile=identity_map.jpg\r\nMapFile2=../elsewhere.jpg\r\n";
    char *slide = scratch_path("identity_h.vms"), *image = scratch_path("identity_h1.jpg");
    char *other = scratch_path("identity_h2.jpg");
    struct identity before, after;
    put_text(slide, index, sizeof index - 1);
    put(image, 3000);
    put(other, 1000);
    assert_true(slide_identity(slide, &before, NULL));
    assert_int_equal(before.bytes, 3000 + (int64_t)sizeof index - 1);
    flip(other, 500); /* not named in the index */
    assert_true(slide_identity(slide, &after, NULL) && same(&before, &after));
    flip(image, 1500);
    assert_true(slide_identity(slide, &after, NULL) && !same(&before, &after));
    free(slide);
    free(image);
    free(other);
}

/* The preamble, then the series. */
static void put_dicom(const char *path, const char *series)
{
    char bytes[300] = { 0 };
    memcpy(bytes + 128, "DICM", 4);
    memcpy(bytes + 200, "\x20\0\x0e\0UI", 6);
    bytes[206] = (char)strlen(series);
    memcpy(bytes + 208, series, strlen(series));
    put_text(path, bytes, sizeof bytes);
}

static void a_dicom_slide_is_its_series(void **state)
{
    (void)state;
    char *folder = scratch_path("identity_dicom");
    char *paths[3] = { 0 };
    struct identity before, after;
    assert_true(file_make_folder(folder, NULL));
    for (int i = 0; i < 3; i++) {
        paths[i] = text_format("%s/%d.dcm", folder, i);
        put_dicom(paths[i], i < 2 ? "1.2.840.1" : "1.2.840.2");
    }
    assert_true(slide_identity(paths[0], &before, NULL));
    assert_int_equal(before.bytes, 900); /* itself, and both files of the series */
    flip(paths[2], 280);                 /* another slide */
    assert_true(slide_identity(paths[0], &after, NULL) && same(&before, &after));
    flip(paths[1], 280);
    assert_true(slide_identity(paths[0], &after, NULL) && !same(&before, &after));
    for (int i = 0; i < 3; i++)
        free(paths[i]);
    free(folder);
}

static void differences_are_named(void **state)
{
    (void)state;
    char then[INPUTS_ROOM] = "", now[INPUTS_ROOM] = "";
    struct err err = { 0 };
    inputs_add(then, "slide", &(struct identity){ 12, 0xab });
    assert_string_equal(then, "slide=12:00000000000000ab");
    assert_true(inputs_check("a.h5", then, then, NULL));
    assert_false(inputs_check("a.h5", "", then, &err));
    assert_non_null(strstr(err.text, "a.h5: does not record which files it was made from"));
    inputs_add(now, "slide", &(struct identity){ 12, 0xab });
    inputs_add(now, "annotation", &(struct identity){ 3, 1 });
    assert_false(inputs_check("a.h5", then, now, &err));
    assert_string_equal(err.text,
                        "a.h5: was made from a different annotation (then none; now 3 bytes, "
                        "hash 0000000000000001); pass --overwrite or another -o folder");
    assert_false(inputs_check("a.h5", now, then, &err));
    assert_non_null(strstr(err.text, "hash 0000000000000001; now none)"));
    assert_false(inputs_hold("a.tif", then, "slide=13:00000000000000ab", "run again", &err));
    assert_string_equal(err.text,
                        "a.tif: the slide changed since the run started (then 12 bytes, hash "
                        "00000000000000ab; now 13 bytes, hash 00000000000000ab); run again");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_of_a_small_file_counts),
        cmocka_unit_test(a_large_file_is_sampled_at_both_ends),
        cmocka_unit_test(a_slide_is_known_by_its_smallest_levels),
        cmocka_unit_test(pixels_of_mirax_lie_in_a_folder),
        cmocka_unit_test(pixels_of_hamamatsu_lie_in_images),
        cmocka_unit_test(a_dicom_slide_is_its_series),
        cmocka_unit_test(differences_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
