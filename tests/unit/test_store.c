/* test_store.c: blocks of overlapping patches, the four layouts written and read back, groups, and
 * files that lie. Pixels are a function of their place, so that any mix-up shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "base/rng.h"
#include "patch/h5.h"
#include "patch/store.h"
#include "tests/unit/support/paths.h"

static uint8_t pixel(int64_t x, int64_t y, int channel)
{
    uint64_t hash = (uint64_t)(x + 1000) * 0x9E3779B97F4A7C15u + (uint64_t)(y + 1000) * 0xBF58476Du;
    return (uint8_t)(hash >> (16 + 8 * channel));
}

static void paint(uint8_t *out, int64_t x0, int64_t y0, int64_t size)
{
    for (int64_t y = 0; y < size; y++)
        for (int64_t x = 0; x < size; x++)
            for (int c = 0; c < 3; c++)
                *out++ = pixel(x0 + x, y0 + y, c);
}

/* A grid of columns x rows with some tiles left out. */
static struct patch_list some_patches(int64_t columns, int64_t rows, int64_t stride, int64_t margin)
{
    struct patch_list list = { 0 };
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            struct rng rng = rng_new(5, (uint64_t)row, (uint64_t)column);
            if (rng_below(&rng, 4) == 0)
                continue;
            struct patch patch = { .x = column * stride - margin,
                                   .y = row * stride - margin,
                                   .column = column,
                                   .row = row,
                                   .tissue = 0.5f,
                                   .tumor = 0.25f,
                                   .label = (int8_t)((int)rng_below(&rng, 3) - 1) };
            patch.x_l0 = 2 * patch.x, patch.y_l0 = 2 * patch.y;
            assert_true(patch_list_add(&list, &patch, NULL));
        }
    return list;
}

static void block_sizes(void **state)
{
    (void)state;
    assert_int_equal(units_block_size(448, 224), 224);
    assert_int_equal(units_block_size(448, 448), 448);
    assert_int_equal(units_block_size(448, 112), 112);
    assert_int_equal(units_block_size(448, 32), 32);
    assert_int_equal(units_block_size(448, 16), 448); /* too small to be worth it */
    assert_int_equal(units_block_size(256, 384), 128);
    assert_int_equal(units_block_size(300, 224), 300);
    assert_int_equal(units_block_size(224, 1000), 224);
}

/* Every patch is made of its blocks, every block is there once and belongs to a patch. */
static void blocks_cover_patches_once(void **state)
{
    (void)state;
    struct patch_list list = some_patches(13, 9, 64, 32);
    struct units units;
    assert_true(units_of_blocks(&list, 128, 64, &units, NULL));
    assert_int_equal(units.per_side, 2);
    bool *used = calloc((size_t)units.n, sizeof *used);
    for (int64_t i = 0; i < list.n; i++)
        for (int j = 0; j < 4; j++) {
            int32_t unit = units.of_patch[4 * i + j];
            assert_in_range(unit, 0, units.n - 1);
            used[unit] = true;
            assert_int_equal(units.places[unit].x, list.items[i].x + 64 * (j % 2));
            assert_int_equal(units.places[unit].y, list.items[i].y + 64 * (j / 2));
        }
    for (int64_t i = 0; i < units.n; i++) {
        assert_true(used[i]);
        if (i > 0) /* row by row, none twice */
            assert_true(units.places[i].y > units.places[i - 1].y ||
                        (units.places[i].y == units.places[i - 1].y &&
                         units.places[i].x > units.places[i - 1].x));
    }
    free(used);
    units_free(&units);
    patch_list_free(&list);
}

static struct store_facts some_facts(void)
{
    return (struct store_facts){ .program = "microtome test",
                                 .slide = "s1",
                                 .file = "s1.svs",
                                 .vendor = "aperio",
                                 .patient = "patient_012",
                                 .node = "node_3",
                                 .center = "center_1",
                                 .split = "train",
                                 .slide_label = "tumor",
                                 .mode = "dense",
                                 .options = "a=1 b=2",
                                 .tissue_method = "fda",
                                 .label_rule = "majority",
                                 .stain_method = "macenko",
                                 .width_l0 = 1664,
                                 .height_l0 = 1152,
                                 .level = 1,
                                 .level_width = 832,
                                 .level_height = 576,
                                 .patch = 128,
                                 .tile = 64,
                                 .margin = 32,
                                 .stride = 64,
                                 .seed = 7,
                                 .mpp_l0 = 0.25,
                                 .mpp = 0.5,
                                 .ratio = 1,
                                 .downsample = 2,
                                 .objective = 40,
                                 .stain_matrix = { .5, .75, .4, .15, .83, .53 },
                                 .stain_p99 = { 2.9, 1.1 } };
}

static void write_store(const char *path, enum store_layout layout, const struct store_facts *facts,
                        const struct patch_list *list, int64_t group, int64_t batch_bytes)
{
    struct err err = { 0 };
    struct store_request request = { .layout = layout,
                                     .facts = facts,
                                     .patches = list,
                                     .group = group,
                                     .batch_bytes = batch_bytes };
    struct store_writer *writer = NULL;
    if (!store_create(path, &request, &writer, &err))
        fail_msg("%s", err.text);
    const struct units *units = store_units(writer);
    int64_t batch = store_batch_units(writer), placed = 0;
    for (int64_t i = 0; i < units->n; i++) {
        if (placed++ == batch) {
            assert_true(store_flush(writer, &err));
            placed = 1;
        }
        uint8_t *to = store_place(writer, i);
        assert_non_null(to);
        paint(to, units->places[i].x, units->places[i].y, units->size);
    }
    assert_false(file_exists(path));
    if (!store_commit(writer, &err))
        fail_msg("%s", err.text);
    assert_true(file_exists(path));
    assert_false(part_left(path));
}

static void check_patch(const uint8_t *px, const struct patch *patch, int64_t size)
{
    uint8_t *want = malloc((size_t)(size * size * 3));
    paint(want, patch->x_l0 / 2, patch->y_l0 / 2, size);
    assert_memory_equal(px, want, (size_t)(size * size * 3));
    free(want);
}

static void check_store(const char *path, enum store_layout layout, const struct patch_list *list)
{
    struct err err = { 0 };
    struct store *store = NULL;
    if (!store_open(path, &store, &err))
        fail_msg("%s", err.text);
    assert_int_equal(store_layout(store), layout);
    int64_t size = store_patch_px(store), n = store_patches(store)->n;
    assert_int_equal(size, 128);
    assert_int_equal(n, list->n);
    assert_string_equal(store_facts(store)->patient, "patient_012");
    assert_string_equal(store_facts(store)->options, "a=1 b=2");
    assert_int_equal(store_facts(store)->stride, 64);
    assert_true(store_facts(store)->stain_matrix[5] == .53);
    int64_t bytes = size * size * 3, seen = 0;
    int64_t labels[3] = { 0 }, wanted[3] = { 0 };
    for (int64_t g = 0; g < store_n_groups(store); g++) {
        struct store_group group = store_group(store, g);
        uint8_t *px = malloc((size_t)(group.n * bytes));
        assert_true(store_read(store, group.first, group.n, px, &err));
        for (int64_t i = 0; i < group.n; i++)
            check_patch(px + i * bytes, &store_patches(store)->items[group.first + i], size);
        free(px);
        seen += group.n;
    }
    assert_int_equal(seen, n);
    uint8_t *px = malloc((size_t)bytes);
    for (int64_t i = 0; i < n; i += 7) {
        assert_true(store_read(store, i, 1, px, &err));
        check_patch(px, &store_patches(store)->items[i], size);
    }
    for (int64_t i = 0; i < n; i++) {
        labels[store_patches(store)->items[i].label + 1]++;
        wanted[list->items[i].label + 1]++;
        if (layout != STORE_PROCESS)
            assert_int_equal(store_patches(store)->items[i].x_l0, list->items[i].x_l0);
        if (layout == STORE_FDA)
            assert_int_equal(store_patches(store)->items[i].column, list->items[i].column);
    }
    assert_memory_equal(labels, wanted, sizeof labels);
    assert_false(store_read(store, n - 1, 2, px, &err));
    assert_false(store_read(store, -1, 1, px, &err));
    free(px);
    store_close(store);
}

static void layouts_round_trip(void **state)
{
    (void)state;
    struct patch_list list = some_patches(13, 9, 64, 32);
    struct store_facts facts = some_facts();
    for (int layout = STORE_BLOCKS; layout <= STORE_PROCESS; layout++) {
        char *path = scratch_path("round-trip.h5");
        unlink(path);
        /* the smallest batch there is, then one for all: same bytes, so also compare the files */
        write_store(path, (enum store_layout)layout, &facts, &list, 20, 1);
        char *small = NULL, *large = NULL;
        size_t small_size = 0, large_size = 0;
        assert_true(file_read(path, 1 << 30, &small, &small_size, NULL));
        unlink(path);
        write_store(path, (enum store_layout)layout, &facts, &list, 20, 1 << 26);
        assert_true(file_read(path, 1 << 30, &large, &large_size, NULL));
        assert_int_equal(small_size, large_size);
        assert_memory_equal(small, large, large_size);
        free(small);
        free(large);
        check_store(path, (enum store_layout)layout, &list);
        unlink(path);
        free(path);
    }
    patch_list_free(&list);
}

static void odd_sizes_and_empty_stores(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct store_facts facts = some_facts();
    facts.patch = facts.tile = 75; /* pieces that end on no page */
    facts.stride = facts.margin = 0;
    struct patch_list list = { 0 };
    char *path = scratch_path("odd.h5");
    for (int n = 0; n < 40; n += 39) {
        for (int i = (int)list.n; i < n; i++) {
            struct patch patch = { .x = 31 * i, .y = 17 * i, .x_l0 = 62 * i, .y_l0 = 34 * i };
            assert_true(patch_list_add(&list, &patch, NULL));
        }
        for (int layout = STORE_BLOCKS; layout <= STORE_PROCESS; layout++) {
            unlink(path);
            write_store(path, (enum store_layout)layout, &facts, &list, 16, 100000);
            struct store *store = NULL;
            if (!store_open(path, &store, &err))
                fail_msg("%s", err.text);
            assert_int_equal(store_patches(store)->n, n);
            assert_int_equal(store_n_groups(store), (n + 15) / 16);
            uint8_t *px = malloc((size_t)(75 * 75 * 3 * (n + 1)));
            assert_true(store_read(store, 0, n, px, &err));
            for (int i = 0; i < n; i++)
                check_patch(px + 75 * 75 * 3 * i, &store_patches(store)->items[i], 75);
            free(px);
            store_close(store);
        }
    }
    unlink(path);
    free(path);
    patch_list_free(&list);
}

static void nothing_is_left_of_a_discarded_store(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct patch_list list = some_patches(3, 3, 64, 32);
    struct store_facts facts = some_facts();
    struct store_request request = {
        .layout = STORE_FDA, .facts = &facts, .patches = &list, .group = 5, .batch_bytes = 1 << 20
    };
    char *path = scratch_path("discarded.h5");
    struct store_writer *writer = NULL;
    assert_true(store_create(path, &request, &writer, &err));
    assert_true(part_left(path));
    assert_non_null(store_place(writer, 0));
    store_discard(writer);
    assert_false(part_left(path));
    assert_false(file_exists(path));
    assert_false(store_create("/no/such/folder/x.h5", &request, &writer, &err));
    assert_non_null(strstr(err.text, "/no/such/folder/x.h5"));
    if (!strstr(err.text, "No such file"))
        fail_msg("%s", err.text);
    free(path);
    patch_list_free(&list);
}

/* A good store, damaged in one way, must be refused with a word that contains `want`. */
static void refused(const char *path, const char *want)
{
    struct err err = { 0 };
    struct store *store = NULL;
    if (store_open(path, &store, &err)) {
        store_close(store);
        fail_msg("%s: was believed (%s wanted)", path, want);
    }
    if (!strstr(err.text, want) || !strstr(err.text, path))
        fail_msg("'%s' does not say '%s'", err.text, want);
}

static void replace_dataset(const char *path, const char *name, hid_t type, int rank,
                            const hsize_t *dims, const void *data)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    if (data) {
        assert_true(h5_put_data(file, name, type, type, rank, dims, data));
    } else if (rank > 0) { /* dimensions without storage */
        hid_t space = H5Screate_simple(rank, dims, NULL);
        hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(set >= 0);
        H5Dclose(set);
        H5Sclose(space);
    }
    assert_true(H5Fclose(file) >= 0);
}

static void good_store(const char *path, enum store_layout layout)
{
    struct patch_list list = some_patches(4, 3, 64, 32);
    struct store_facts facts = some_facts();
    unlink(path);
    write_store(path, layout, &facts, &list, 5, 1 << 20);
    patch_list_free(&list);
}

static void files_that_lie_are_refused(void **state)
{
    (void)state;
    char *path = scratch_path("lying.h5");
    int32_t wild[16 * 4];
    for (int i = 0; i < 64; i++)
        wild[i] = i == 40 ? 1 << 20 : 0;
    struct store *store = NULL;
    good_store(path, STORE_BLOCKS);
    assert_true(store_open(path, &store, NULL));
    hsize_t n = (hsize_t)store_patches(store)->n;
    store_close(store);
    replace_dataset(path, "patch_blocks", H5T_NATIVE_INT32, 2, (hsize_t[]){ n, 4 }, wild);
    if (n * 4 > 40)
        refused(path, "refers to block 1048576");
    replace_dataset(path, "patch_blocks", H5T_NATIVE_INT32, 2, (hsize_t[]){ n, 3 }, wild);
    refused(path, "square");
    replace_dataset(path, "patch_blocks", H5T_NATIVE_INT32, 2, (hsize_t[]){ n - 1, 4 }, wild);
    refused(path, "dimension 0");

    good_store(path, STORE_BLOCKS);
    int64_t groups[2] = { 1, INT64_MAX };
    replace_dataset(path, "groups", H5T_NATIVE_INT64, 2, (hsize_t[]){ 1, 2 }, groups);
    refused(path, "group 0 extends past");

    good_store(path, STORE_BLOCKS);
    replace_dataset(path, "blocks", H5T_NATIVE_UINT8, 4, (hsize_t[]){ 1ull << 40, 64, 64, 3 },
                    NULL);
    refused(path, "is incomplete");
    replace_dataset(path, "blocks", H5T_NATIVE_UINT8, 4, (hsize_t[]){ 1ull << 59, 64, 64, 3 },
                    NULL);
    refused(path, "");

    good_store(path, STORE_CLAM);
    replace_dataset(path, "coords", H5T_NATIVE_INT64, 0, NULL, NULL);
    refused(path, "coords");
    good_store(path, STORE_FDA);
    replace_dataset(path, "t1/coord", H5T_NATIVE_INT64, 2, (hsize_t[]){ 1, 5 },
                    (int64_t[]){ 0, 0, 0, 0, 0 });
    refused(path, "coord");
    free(path);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    char *path = scratch_path("damaged.h5");
    good_store(path, STORE_FDA);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(truncate(path, status.st_size / 2), 0);
    refused(path, "damaged");
    assert_int_equal(truncate(path, 0), 0);
    refused(path, "not an HDF5 file");
    unlink(path);
    refused(path, "No such file");
    hid_t file = h5_create(path);
    H5Fclose(file);
    refused(path, "not a patch store");

    good_store(path, STORE_CLAM);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Adelete(file, "version");
    assert_true(h5_put_int(file, "version", 99));
    H5Fclose(file);
    refused(path, "version 99");
    unlink(path);
    free(path);
}

/* What dldp, CLAM and PROCESS write themselves has no mark of ours. */
static void foreign_files_are_read(void **state)
{
    (void)state;
    char *path = scratch_path("foreign.h5");
    uint8_t *px = malloc(3 * 16 * 16 * 3);
    for (int i = 0; i < 3; i++)
        paint(px + i * 16 * 16 * 3, 100 * i, 50, 16);
    static const char *const images[] = { "imgs", "t1/img", "tumor/l5/c0/p1/n2/0/patches" };
    static const char *const corners[] = { "coords", "t1/coord", "tumor/l5/c0/p1/n2/0/locations" };
    for (int kind = 0; kind < 3; kind++) {
        hsize_t columns = kind == 1 ? 5 : 2;
        int64_t rows[15];
        for (hsize_t i = 0; i < 3; i++) {
            rows[i * columns + columns - 2] = 0;
            rows[i * columns + columns - 1] = 16;
            rows[i * columns + (kind == 1 ? 2 : 0)] = 200 * (int64_t)i;
            rows[i * columns + (kind == 1 ? 3 : 1)] = 100;
        }
        hid_t file = h5_create(path);
        assert_true(h5_put_data(file, images[kind], H5T_STD_U8LE, H5T_NATIVE_UINT8, 4,
                                (hsize_t[]){ 3, 16, 16, 3 }, px));
        assert_true(h5_put_data(file, corners[kind], H5T_STD_I64LE, H5T_NATIVE_INT64, 2,
                                (hsize_t[]){ 3, columns }, rows));
        H5Fclose(file);
        struct err err = { 0 };
        struct store *store = NULL;
        if (!store_open(path, &store, &err))
            fail_msg("%s", err.text);
        assert_int_equal(store_patches(store)->n, 3);
        assert_int_equal(store_n_groups(store), 1);
        assert_int_equal(store_patches(store)->items[1].label, kind == 2 ? 1 : PATCH_UNLABELED);
        uint8_t one[16 * 16 * 3];
        assert_true(store_read(store, 2, 1, one, &err));
        check_patch(one, &store_patches(store)->items[2], 16);
        assert_string_equal(store_facts(store)->slide, "");
        store_close(store);
    }
    unlink(path);
    free(path);
    free(px);
}

/* A file of CLAM's knows no groups, and whoever reads it a group at a time must not need memory for
 * a whole slide. The pixels are a hole in the file. */
static void foreign_files_are_cut_into_groups(void **state)
{
    (void)state;
    char *path = scratch_path("foreign-groups.h5");
    int64_t corners[50 * 2] = { 0 }, next = 0;
    hid_t file = h5_create(path);
    hid_t images = h5_dataset(file, "imgs", H5T_STD_U8LE, 4, (hsize_t[]){ 50, 1024, 1024, 3 });
    assert_true(images >= 0 && H5Dclose(images) >= 0);
    assert_true(h5_put_data(file, "coords", H5T_STD_I64LE, H5T_NATIVE_INT64, 2,
                            (hsize_t[]){ 50, 2 }, corners));
    H5Fclose(file);
    struct store *store = NULL;
    assert_true(store_open(path, &store, NULL));
    assert_int_equal(store_n_groups(store), 3);
    for (int64_t g = 0; g < store_n_groups(store); g++) {
        assert_int_equal(store_group(store, g).first, next);
        assert_in_range(store_group(store, g).n, 1, (64 << 20) / (1024 * 1024 * 3));
        next += store_group(store, g).n;
    }
    assert_int_equal(next, 50);
    store_close(store);
    unlink(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_sizes),
        cmocka_unit_test(blocks_cover_patches_once),
        cmocka_unit_test(layouts_round_trip),
        cmocka_unit_test(odd_sizes_and_empty_stores),
        cmocka_unit_test(nothing_is_left_of_a_discarded_store),
        cmocka_unit_test(files_that_lie_are_refused),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(foreign_files_are_read),
        cmocka_unit_test(foreign_files_are_cut_into_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
