/* test_tile_cache.c: decoded tiles on disk: images that are read in bands, and low levels that a
 * slide does not have. */
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
#include <sys/wait.h>
#include <tiffio.h>
#include <unistd.h>
#include "base/file.h"
#include "base/pool.h"
#include "base/folder.h"
#include "base/text.h"
#include "slide/low_level.h"
#include "slide/slide.h"
#include "slide/tile_cache.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/tiff_maker.h"

/* Files of a folder with an ending; NULL: all. */
static size_t count_files(const char *folder, const char *ending)
{
    const char *const endings[] = { ending, NULL };
    char **names = NULL;
    size_t n = 0;
    assert_true(folder_names(folder, ending ? endings : NULL, &names, &n, NULL));
    folder_names_free(names, n);
    return n;
}

/* A new, empty folder; the caller's. */
static char *fresh_folder(const char *name)
{
    char *path = scratch_path(name), *command = text_format("rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
    free(command);
    return path;
}

/* The only file of a folder, the caller's. */
static char *only_file(const char *folder)
{
    char **names = NULL;
    size_t n = 0;
    assert_true(folder_names(folder, NULL, &names, &n, NULL));
    assert_int_equal(n, 1);
    char *path = text_format("%s/%s", folder, names[0]);
    folder_names_free(names, n);
    return path;
}

static struct slide *open_slide(const char *path, const char *cache)
{
    struct slide *slide = NULL;
    struct err err = { 0 };
    if (!slide_open(path, 0, &slide, &err) || !slide_set_cache(slide, cache, &err))
        fail_msg("%s", err.text);
    return slide;
}

static struct image overview(const char *path, const char *cache, double downsample)
{
    struct slide *slide = open_slide(path, cache);
    struct image image;
    struct err err = { 0 };
    if (!slide_overview(slide, downsample, NULL, &image, &err))
        fail_msg("%s", err.text);
    slide_close(slide);
    return image;
}

static void expect_same(const struct image *a, const struct image *b)
{
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->height, b->height);
    assert_memory_equal(a->px, b->px, image_bytes(a));
}

/* A slide of one level, larger than LOW_LEVEL_MIN_PX; all tests share it. The caller's. */
static char *one_level(void)
{
    struct tiff_flavour flavour = { .mode = "w",
                                    .compression = COMPRESSION_JPEG,
                                    .photometric = PHOTOMETRIC_YCBCR,
                                    .sub_x = 2,
                                    .sub_y = 2,
                                    .tile_px = 240,
                                    .width = 4304,
                                    .height = 4112 };
    static bool written;
    char *path = scratch_path("one.tiff");
    if (!written)
        tiff_maker_write(path, &flavour);
    written = true;
    return path;
}

/* Many threads give the same file as one; a stop leaves nothing behind, and is no damaged slide. */
static void low_levels_are_made_by_all_threads_and_stop(void **state)
{
    (void)state;
    char *path = one_level(), *cache = fresh_folder("threads");
    struct pool *pool = pool_new(3);
    atomic_bool stop = true;
    struct ctx ctx = { .pool = pool, .stop = &stop };
    struct err err = { 0 };
    struct image alone = overview(path, NULL, 16), together;
    struct slide *slide = open_slide(path, cache);
    assert_false(slide_overview(slide, 16, &ctx, &together, &err));
    assert_int_equal(err.kind, ERR_STOPPED);
    stop = false;
    assert_true(slide_overview(slide, 16, &ctx, &together, &err));
    expect_same(&alone, &together);
    slide_close(slide);
    image_free(&together);
    together = overview(path, cache, 16); /* from the file */
    expect_same(&alone, &together);
    image_free(&together);
    image_free(&alone);
    pool_free(pool);
    free(path);
    free(cache);
}

static void low_levels_are_exact_means(void **state)
{
    (void)state;
    struct err err = { 0 };
    char *path = one_level(), *cache = fresh_folder("means");
    struct slide *slide = open_slide(path, cache);
    struct image level, ours = overview(path, cache, LOW_LEVEL_FACTOR);
    assert_true(slide_read(slide, 0, 0, 0, 4304, 4112, &level, &err));
    assert_int_equal(ours.width, 269);
    assert_int_equal(ours.height, 257);
    for (int64_t y = 0; y < ours.height; y++)
        for (int64_t x = 0; x < ours.width; x++)
            for (int c = 0; c < 3; c++) {
                unsigned sum = 0;
                for (int i = 0; i < 256; i++)
                    sum += image_at(&level, 16 * x + i % 16, 16 * y + i / 16)[c];
                assert_int_equal(image_at(&ours, x, y)[c], (sum + 128) / 256);
            }
    image_free(&level);
    image_free(&ours);
    slide_close(slide);
    free(path);
    free(cache);
}

/* Where pixels change slowly, an overview by way of the low level is that of the level itself: its
 * pixels lie where they should, up to the last one. */
static void low_levels_lie_where_their_level_does(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct image drawn, level, shrunk;
    char *path = scratch_path("waves.jpg"), *cache = fresh_folder("waves");
    assert_true(image_new(&drawn, 4307, 4101, 3, &err));
    for (int64_t y = 0; y < drawn.height; y++)
        for (int64_t x = 0; x < drawn.width; x++) {
            uint8_t *px = image_at(&drawn, x, y);
            px[0] = (uint8_t)(x / 17), px[1] = (uint8_t)(y / 17);
            px[2] = (uint8_t)((x + y) / 40);
        }
    assert_true(image_write_jpeg(path, &drawn, 98, &err) && image_read(path, &level, &err));
    struct image ours = overview(path, cache, 70.5);
    assert_int_equal(count_files(cache, ".tiles"), 1);
    assert_true(image_shrink(&level, ours.width, ours.height, &shrunk, &err));
    for (size_t i = 0; i < image_bytes(&shrunk); i++)
        assert_in_range(ours.px[i] - shrunk.px[i] + 1, 0, 2);
    struct image *all[] = { &drawn, &level, &shrunk, &ours };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        image_free(all[i]);
    free(path);
    free(cache);
}

/* With a cache, with the same cache again, without one: the same bytes. */
static void overviews_do_not_depend_on_caches(void **state)
{
    (void)state;
    char *path = one_level(), *cache = fresh_folder("overview");
    struct image first = overview(path, cache, 32);
    char *file = only_file(cache);
    struct image again = overview(path, cache, 32), none = overview(path, "/dev/null/none", 32);
    expect_same(&first, &again);
    expect_same(&first, &none);
    /* the cache was really read: other bytes there give another overview */
    int fd = open(file, O_WRONLY);
    for (int i = 0; i < 64; i++)
        assert_int_equal(pwrite(fd, "\0\377\0", 3, 4096 + 3 * i), 3);
    close(fd);
    struct image other = overview(path, cache, 32);
    assert_memory_not_equal(first.px, other.px, image_bytes(&first));
    /* a truncated one is made again */
    assert_int_equal(truncate(file, 5000), 0);
    struct image repaired = overview(path, cache, 32);
    expect_same(&first, &repaired);
    struct image *all[] = { &first, &again, &none, &other, &repaired };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        image_free(all[i]);
    free(file);
    free(path);
    free(cache);
}

/* A slide that has changed, even without changing size, has another cache. */
static void caches_belong_to_one_state_of_a_slide(void **state)
{
    (void)state;
    char *path = one_level(), *cache = fresh_folder("changed");
    struct image first = overview(path, cache, 32);
    struct timespec times[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    struct image second = overview(path, cache, 32);
    assert_int_equal(count_files(cache, ".tiles"), 2);
    expect_same(&first, &second);
    image_free(&first);
    image_free(&second);
    free(path);
    free(cache);
}

/* A JPEG that is too large for memory, and its pixels; all tests share it. The path is the
 * caller's. */
static struct image large_px;
static char *large_jpeg(void)
{
    struct err err = { 0 };
    struct image drawn;
    char *path = scratch_path("large.jpg");
    if (large_px.px)
        return path;
    assert_true(image_new(&drawn, 6001, 5701, 3, &err));
    for (int64_t y = 0; y < drawn.height; y++)
        for (int64_t x = 0; x < drawn.width; x++) {
            uint8_t *px = image_at(&drawn, x, y);
            px[0] = (uint8_t)(x / 16), px[1] = (uint8_t)(y / 16), px[2] = (uint8_t)((x ^ y) & 192);
        }
    assert_true(image_write_jpeg(path, &drawn, 80, &err) && image_read(path, &large_px, &err));
    image_free(&drawn);
    return path;
}

static void expect_pixels(struct slide *slide, const struct image *pixels)
{
    static const int64_t places[][2] = { { 0, 0 },       { 200, 250 },   { 5900, 0 },
                                         { 5900, 5600 }, { 2999, 3001 }, { 511, 5500 } };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct image region;
        struct err err = { 0 };
        int64_t x = places[i][0], y = places[i][1];
        if (!slide_read(slide, 0, x, y, 101, 101, &region, &err))
            fail_msg("%s", err.text);
        for (int64_t row = 0; row < 101; row++)
            assert_memory_equal(image_at(&region, 0, row), image_at(pixels, x, y + row), 303);
        image_free(&region);
    }
}

/* Several processes at once make one file, and read the same pixels. */
static void large_images_become_tiles_once(void **state)
{
    (void)state;
    char *path = large_jpeg(), *cache = fresh_folder("large");
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            struct slide *slide = NULL;
            struct image region;
            bool ok = slide_open(path, 0, &slide, NULL) && slide_set_cache(slide, cache, NULL) &&
                      slide_read(slide, 0, 5900, 5600, 101, 101, &region, NULL) &&
                      memcmp(region.px, image_at(&large_px, 5900, 5600), 303) == 0;
            _exit(ok ? 0 : 1);
        }
    }
    for (int i = 0; i < 3; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_files(cache, NULL), 1);
    struct slide *slide = open_slide(path, cache);
    expect_pixels(slide, &large_px);
    slide_close(slide);
    free(path);
    free(cache);
}

static void expect_failure(const char *path, const char *cache, const char *why)
{
    struct slide *slide = open_slide(path, cache);
    struct image region;
    struct err err = { 0 };
    for (int i = 0; i < 2; i++) { /* the second time without decoding */
        assert_false(slide_read(slide, 0, 0, 0, 10, 10, &region, &err));
        if (!strstr(err.text, why) || strncmp(err.text, path, strlen(path)) != 0)
            fail_msg("'%s' should begin with %s and say '%s'", err.text, path, why);
    }
    slide_close(slide);
}

static void folders_that_cannot_be_used_are_named(void **state)
{
    (void)state;
    char *path = large_jpeg(), *cache = fresh_folder("refused");
    expect_failure(path, "/dev/null/tiles",
                   "its decoded tiles (104 MB) cannot be kept: "
                   "/dev/null/tiles: cannot create the folder");
    expect_failure(path, "/dev/full", "/dev/full: exists and is not a folder; pass --cache DIR");
    setenv("XDG_CACHE_HOME", "", 1);
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    unsetenv("HOME");
    expect_failure(path, NULL, "neither XDG_CACHE_HOME nor HOME is set; pass --cache DIR");
    if (home)
        setenv("HOME", home, 1);
    free(home);
    assert_int_equal(truncate(path, 300000), 0);
    expect_failure(path, cache, "of 5701: Premature end of JPEG file");
    assert_int_equal(count_files(cache, NULL), 0);
    image_free(&large_px);
    free(path);
    free(cache);
}

static void write_hole(const char *folder, const char *name, int64_t bytes, time_t used)
{
    char *path = text_format("%s/%s", folder, name);
    struct timespec times[2] = { { used, 0 }, { used, 0 } };
    int fd = open(path, O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0); /* takes no space */
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
    free(path);
}

static void the_oldest_caches_make_room(void **state)
{
    (void)state;
    char *path = one_level(), *cache = fresh_folder("room");
    assert_true(file_make_folder(cache, NULL));
    write_hole(cache, "newer.tiles", TILE_CACHE_MAX_BYTES / 2, 2000000);
    write_hole(cache, "oldest.tiles", TILE_CACHE_MAX_BYTES / 2, 1000000);
    write_hole(cache, "other.tiff", TILE_CACHE_MAX_BYTES / 2, 1000);
    struct image image = overview(path, cache, 32);
    char *oldest = text_format("%s/oldest.tiles", cache);
    assert_false(file_exists(oldest));
    assert_int_equal(count_files(cache, ".tiles"), 2);
    assert_int_equal(count_files(cache, ".tiff"), 1);
    image_free(&image);
    free(oldest);
    free(path);
    free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(low_levels_are_exact_means),
        cmocka_unit_test(low_levels_are_made_by_all_threads_and_stop),
        cmocka_unit_test(low_levels_lie_where_their_level_does),
        cmocka_unit_test(overviews_do_not_depend_on_caches),
        cmocka_unit_test(caches_belong_to_one_state_of_a_slide),
        cmocka_unit_test(large_images_become_tiles_once),
        cmocka_unit_test(folders_that_cannot_be_used_are_named),
        cmocka_unit_test(the_oldest_caches_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
