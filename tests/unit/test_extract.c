/* test_extract.c: one slide to one store: the same bytes on any number of threads and strips, a
 * bound on memory, and nothing left behind by a stop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/file.h"
#include "base/pool.h"
#include "patch/extract.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/plain_slide.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static struct slide_entry entry_of(char *path)
{
    return (struct slide_entry){ .path = path,
                                 .name = "plain",
                                 .label = "",
                                 .annotation = "",
                                 .patient = "p",
                                 .node = "",
                                 .center = "",
                                 .split = "" };
}

static struct extract_options dense_options(void)
{
    return (struct extract_options){ .grid = { .tile = 224, .margin = 112, .stride = 224 },
                                     .min_tissue = 0.05,
                                     .max_white = 1,
                                     .max_black = 1,
                                     .group = 10,
                                     .band_bytes = EXTRACT_BAND_BYTES,
                                     .batch_bytes = EXTRACT_BATCH_BYTES };
}

static struct extract_result extract(char *slide, const struct extract_options *options,
                                     const char *out, int threads)
{
    struct err err = { 0 };
    struct pool *pool = pool_new(threads);
    struct ctx ctx = { .pool = pool };
    struct slide_entry entry = entry_of(slide);
    struct extract_result result = { 0 };
    struct stain_fit target = stain_default_target(options->stain);
    unlink(out);
    if (!extract_slide(&entry, options, &target, out, &ctx, &result, &err))
        fail_msg("%s", err.text);
    pool_free(pool);
    return result;
}

static void same_file(const char *path, char **before, size_t *before_size)
{
    char *now = NULL;
    size_t size = 0;
    assert_true(file_read(path, 1 << 30, &now, &size, NULL));
    if (*before) {
        assert_int_equal(size, *before_size);
        assert_memory_equal(now, *before, size);
        free(now);
    } else {
        *before = now;
        *before_size = size;
    }
}

/* Threads, narrow strips and small batches change nothing. */
static void check_same_bytes(char *slide, const struct extract_options *options)
{
    static const struct {
        int threads;
        int64_t band_bytes, batch_bytes;
    } ways[] = { { 1, EXTRACT_BAND_BYTES, EXTRACT_BATCH_BYTES },
                 { 2, EXTRACT_BAND_BYTES, EXTRACT_BATCH_BYTES },
                 { 3, EXTRACT_BAND_BYTES, 1 },
                 { 1, 1, 1 << 21 },
                 { 3, 3 << 20, 1 << 20 } };
    char *out = scratch_path("same.h5"), *before = NULL;
    size_t size = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct extract_options way = *options;
        way.band_bytes = ways[i].band_bytes;
        way.batch_bytes = ways[i].batch_bytes;
        struct extract_result result = extract(slide, &way, out, ways[i].threads);
        assert_true(result.patches > 10);
        same_file(out, &before, &size);
    }
    unlink(out);
    free(out);
    free(before);
}

static void bytes_do_not_depend_on_threads_or_strips(void **state)
{
    (void)state;
    char *slide = plain_slide_write("threads.tiff", 3000, 1400, 0.25);
    struct extract_options options = dense_options();
    for (int layout = STORE_BLOCKS; layout <= STORE_PROCESS; layout++) {
        options.layout = (enum store_layout)layout;
        check_same_bytes(slide, &options);
    }
    options.layout = STORE_BLOCKS;
    options.stain = STAIN_MACENKO;
    check_same_bytes(slide, &options);
    options.stain = STAIN_REINHARD;
    options.raster.mpp = 0.4;
    options.grid = (struct grid){ .tile = 90, .margin = 13, .stride = 70 }; /* no common block */
    check_same_bytes(slide, &options);
    options = dense_options();
    options.per_class = 30;
    options.grid = (struct grid){ .tile = 200, .stride = 200 };
    options.max_white = 0.5;
    check_same_bytes(slide, &options);
    unlink(slide);
    free(slide);
}

/* The patches of a store, through its reader, against single reads of the slide. */
static void stored_pixels_are_the_slides(void **state)
{
    (void)state;
    char *path = plain_slide_write("pixels.tiff", 1300, 1000, 0.25), *out = scratch_path("px.h5");
    struct err err = { 0 };
    for (int layout = STORE_BLOCKS; layout <= STORE_PROCESS; layout++) {
        struct extract_options options = dense_options();
        options.layout = (enum store_layout)layout;
        options.raster.mpp = 0.35;
        struct extract_result result = extract(path, &options, out, 2);
        struct store *store = NULL;
        struct slide *slide = NULL;
        struct raster raster;
        assert_true(store_open(out, &store, &err));
        assert_true(slide_open(path, 0, &slide, &err));
        assert_true(raster_open(slide, &options.raster, &raster, &err));
        assert_int_equal(store_patches(store)->n, result.patches);
        assert_int_equal(store_n_groups(store), result.groups);
        uint8_t *px = malloc(448 * 448 * 3);
        for (int64_t i = 0; i < result.patches; i++) {
            const struct patch *patch = &store_patches(store)->items[i];
            struct image want;
            assert_true(store_read(store, i, 1, px, &err));
            assert_true(raster_read(&raster, raster_from_l0(&raster, patch->x_l0),
                                    raster_from_l0(&raster, patch->y_l0), 448, 448, &want, &err));
            assert_memory_equal(px, want.px, image_bytes(&want));
            image_free(&want);
        }
        free(px);
        slide_close(slide);
        store_close(store);
    }
    unlink(out);
    unlink(path);
    free(out);
    free(path);
}

/* 448-px patches of a slide 60,000 px wide, in a process of its own: below 300 MB. */
static void memory_is_bounded(void **state)
{
    (void)state;
    if (SANITIZED) /* has its own use of memory */
        skip();
    char *slide = plain_slide_write("wide.tiff", 60000, 1800, 0.25), *out = scratch_path("wide.h5");
    for (int layout = STORE_BLOCKS; layout <= STORE_FDA; layout++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct extract_options options = dense_options();
            options.layout = (enum store_layout)layout;
            options.group = 400;
            struct pool *pool = pool_new(2);
            struct ctx ctx = { .pool = pool };
            struct slide_entry entry = entry_of(slide);
            struct extract_result result = { 0 };
            bool ok = extract_slide(&entry, &options, NULL, out, &ctx, &result, NULL);
            _exit(ok && result.patches > 1000 ? 0 : 1);
        }
        int status = 0;
        struct rusage usage;
        assert_int_equal(wait4(child, &status, 0, &usage), child);
        assert_int_equal(status, 0);
        print_message("%s: peak %ld MB\n", store_layout_names[layout], usage.ru_maxrss / 1024);
        assert_true(usage.ru_maxrss < 300 * 1024);
    }
    unlink(out);
    unlink(slide);
    free(out);
    free(slide);
}

/* Glass alone gives a store without patches; a slide narrower than a patch, with and without um/px,
 * is no error. */
static void slides_at_the_limits(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    struct extract_options options = dense_options();
    struct extract_result result;
    char *glass = plain_slide_write_glass("glass.tiff", 800, 700), *out = scratch_path("limit.h5");
    struct slide_entry entry = entry_of(glass);
    unlink(out);
    assert_true(extract_slide(&entry, &options, NULL, out, &ctx, &result, &err));
    assert_int_equal(result.patches, 0);
    struct store *empty = NULL;
    assert_true(store_open(out, &empty, &err));
    assert_int_equal(store_patches(empty)->n, 0);
    assert_int_equal(store_n_groups(empty), 0);
    assert_int_equal(store_facts(empty)->width_l0, 800);
    store_close(empty);
    char *narrow = plain_slide_write("narrow.tiff", 200, 4000, 0);
    for (int random = 0; random < 2; random++) {
        options.per_class = random ? 4 : 0;
        options.grid.margin = random ? 0 : 112;
        result = extract(narrow, &options, out, 1);
        assert_true(result.patches >= 3);
        assert_true(result.mpp == 0);
    }
    entry = entry_of(narrow);
    options.raster.mpp = 0.5;
    assert_false(extract_slide(&entry, &options, NULL, out, &ctx, &result, &err));
    assert_non_null(strstr(err.text, "--slide-mpp"));
    options.slide_mpp = 0.25;
    options.grid.tile = 112;
    assert_true(extract(narrow, &options, out, 1).mpp == 0.5);
    pool_free(pool);
    unlink(out);
    unlink(glass);
    unlink(narrow);
    free(glass);
    free(narrow);
    free(out);
}

struct stopper {
    const char *path;
    atomic_bool stop, over;
};

static void *stop_when_it_writes(void *arg)
{
    struct stopper *stopper = arg;
    while (!atomic_load(&stopper->over) && !part_left(stopper->path))
        nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    atomic_store(&stopper->stop, true);
    return NULL;
}

/* The stain fit that a store records. */
static struct store_facts stain_of(char *slide, const struct extract_options *options)
{
    char *out = scratch_path("stain_of.h5");
    struct store *store = NULL;
    extract(slide, options, out, 2);
    assert_true(store_open(out, &store, NULL));
    struct store_facts facts = *store_facts(store);
    store_close(store);
    unlink(out);
    free(out);
    return facts;
}

static void same_stain(const struct store_facts *a, const struct store_facts *b)
{
    assert_memory_equal(a->stain_matrix, b->stain_matrix, sizeof a->stain_matrix);
    assert_memory_equal(a->stain_p99, b->stain_p99, sizeof a->stain_p99);
    assert_memory_equal(a->stain_lab_mean, b->stain_lab_mean, sizeof a->stain_lab_mean);
    assert_memory_equal(a->stain_lab_std, b->stain_lab_std, sizeof a->stain_lab_std);
}

/* The fit belongs to the slide: which patches are cut, and how, does not matter. */
static void a_stain_fit_is_the_slides(void **state)
{
    (void)state;
    char *slide = plain_slide_write("stain.tiff", 3000, 2400, 0.25);
    for (int m = STAIN_REINHARD; m <= STAIN_MACENKO; m++) {
        struct extract_options options = dense_options();
        options.stain = (enum stain_method)m;
        struct store_facts dense = stain_of(slide, &options), other;
        assert_true(dense.stain_matrix[0] > 0 || dense.stain_lab_std[0] > 0);
        options.raster.mpp = 1; /* another resolution, grid, and way to find tissue */
        options.grid = (struct grid){ .tile = 100, .stride = 100 };
        options.tissue_method = tissue_defaults().method == TISSUE_FDA ? TISSUE_NCRF : TISSUE_FDA;
        other = stain_of(slide, &options);
        same_stain(&dense, &other);
        for (int seed = 0; seed < 3; seed++) {
            options = dense_options();
            options.stain = (enum stain_method)m;
            options.per_class = 5;
            options.seed = seed;
            options.grid = (struct grid){ .tile = 100, .stride = 100 };
            other = stain_of(slide, &options);
            same_stain(&dense, &other);
        }
    }
    unlink(slide);
    free(slide);
}

static void a_stop_leaves_nothing(void **state)
{
    (void)state;
    char *slide = plain_slide_write("stop.tiff", 6000, 3000, 0.25);
    char *out = scratch_path("stop.h5");
    struct stopper stopper = { .path = out };
    struct pool *pool = pool_new(2);
    struct ctx ctx = { .pool = pool, .stop = &stopper.stop };
    struct extract_options options = dense_options();
    struct slide_entry entry = entry_of(slide);
    struct extract_result result;
    struct err err = { 0 };
    pthread_t thread;
    options.layout = STORE_FDA;
    options.batch_bytes = 1;
    unlink(out);
    assert_int_equal(pthread_create(&thread, NULL, stop_when_it_writes, &stopper), 0);
    bool ok = extract_slide(&entry, &options, NULL, out, &ctx, &result, &err);
    atomic_store(&stopper.over, true);
    pthread_join(thread, NULL);
    if (!ok)
        assert_int_equal(err.kind, ERR_STOPPED);
    assert_int_equal(ok, file_exists(out)); /* whole or not at all */
    assert_false(part_left(out));
    assert_false(extract_slide(&entry, &options, NULL, out, &ctx, &result, &err));
    assert_int_equal(err.kind, ERR_STOPPED);
    pool_free(pool);
    unlink(out);
    unlink(slide);
    free(slide);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_do_not_depend_on_threads_or_strips),
        cmocka_unit_test(stored_pixels_are_the_slides),
        cmocka_unit_test(slides_at_the_limits),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(a_stain_fit_is_the_slides),
        cmocka_unit_test(a_stop_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
