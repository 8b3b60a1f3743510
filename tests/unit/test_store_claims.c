/* test_store_claims.c: HDF5 files that claim more than they hold: refused before memory is taken
 * for it, in all layouts; files that are deflated as other tools do it are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "patch/h5.h"
#include "patch/store.h"
#include "tests/unit/support/paths.h"

#define CLAIMED (UINT64_C(1) << 27)
#define MOST_KB (256 << 10)

/* The datasets of a layout. */
struct names {
    const char *pixels, *corners;
    hsize_t columns;
};
static const struct names layouts_of_others[] = {
    { "imgs", "coords", 2 },
    { "t1/img", "t1/coord", 5 },
    { "tumor/l5/c0/p1/n2/0/patches", "tumor/l5/c0/p1/n2/0/locations", 2 },
};
static const struct names ours = { "blocks", "coords", 2 };

/* How a dataset is stored; deflates: how often. */
struct storage {
    int deflates;
    bool scale, written;
};

/* A chunked dataset of zeros; with `written` they are in the file. */
static void put_chunked(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims,
                        struct storage storage)
{
    hsize_t chunk[4], count = 1;
    for (int i = 0; i < rank; i++) {
        chunk[i] = i == 0 && dims[0] > 1 << 16 ? 1 << 16 : dims[i];
        count *= dims[i];
    }
    hid_t space = H5Screate_simple(rank, dims, NULL), create = H5Pcreate(H5P_DATASET_CREATE);
    hid_t link = H5Pcreate(H5P_LINK_CREATE);
    assert_true(H5Pset_create_intermediate_group(link, 1) >= 0);
    assert_true(H5Pset_chunk(create, rank, chunk) >= 0);
    for (int i = 0; i < storage.deflates; i++)
        assert_true(H5Pset_filter(create, H5Z_FILTER_DEFLATE, 0, 1, (unsigned[]){ 9 }) >= 0);
    if (storage.scale)
        assert_true(H5Pset_scaleoffset(create, H5Z_SO_INT, 0) >= 0);
    hid_t set = H5Dcreate2(file, name, type, space, link, create, H5P_DEFAULT);
    assert_true(set >= 0);
    if (storage.written) {
        void *zeros = calloc(count, H5Tget_size(type));
        assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros) >= 0);
        free(zeros);
    }
    H5Dclose(set);
    H5Pclose(link);
    H5Pclose(create);
    H5Sclose(space);
}

static void put_claims(const char *path, struct names names, hsize_t n, hsize_t patch_px,
                       struct storage storage)
{
    hid_t file = h5_create(path);
    assert_true(file >= 0);
    put_chunked(file, names.pixels, H5T_STD_U8LE, 4, (hsize_t[]){ n, patch_px, patch_px, 3 },
                storage);
    put_chunked(file, names.corners, H5T_STD_I64LE, 2, (hsize_t[]){ n, names.columns }, storage);
    if (strcmp(names.pixels, "blocks") == 0)
        put_chunked(file, "patch_blocks", H5T_STD_I32LE, 2, (hsize_t[]){ n, 1 }, storage);
    assert_true(H5Fclose(file) >= 0);
}

static long peak_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Refused with a word that contains `want`, without the memory that is claimed. */
static void refused(const char *path, const char *want)
{
    struct err err = { 0 };
    struct store *store = NULL;
    long before = peak_kb();
    if (store_open(path, &store, &err)) {
        store_close(store);
        fail_msg("%s: was believed ('%s' wanted)", path, want);
    }
    if (!strstr(err.text, want) || !strstr(err.text, path))
        fail_msg("'%s' does not say '%s'", err.text, want);
    assert_in_range(peak_kb() - before, 0, MOST_KB);
}

static void chunks_that_are_not_there(void **state)
{
    (void)state;
    char *path = scratch_path("claims.h5");
    struct stat status;
    for (size_t i = 0; i < 3; i++) {
        put_claims(path, layouts_of_others[i], CLAIMED, 8, (struct storage){ 0 });
        assert_int_equal(stat(path, &status), 0);
        assert_in_range(status.st_size, 1, 8192);
        refused(path, "is incomplete");
    }
    put_claims(path, ours, CLAIMED, 8, (struct storage){ 0 });
    refused(path, "is incomplete");
    unlink(path);
    free(path);
}

/* Zeros are deflated a thousandfold, and again as much if they are deflated twice. */
static void chunks_that_are_nearly_nothing(void **state)
{
    (void)state;
    char *path = scratch_path("deflated.h5");
    for (size_t i = 0; i < 3; i++) {
        put_claims(path, layouts_of_others[i], 1 << 20, 1, (struct storage){ 1, false, true });
        refused(path, "claims 1048576 patches, more than");
    }
    put_claims(path, ours, 1 << 20, 1, (struct storage){ 1, false, true });
    refused(path, "claims 1048576 patches, more than");
    put_claims(path, layouts_of_others[0], 1 << 16, 8, (struct storage){ 2, false, true });
    refused(path, "unsupported compression");
    put_claims(path, layouts_of_others[0], 1 << 16, 8, (struct storage){ 0, true, true });
    refused(path, "unsupported compression");
    unlink(path);
    free(path);
}

/* As CLAM and h5py store patches with compression="gzip". */
static void deflated_files_are_read(void **state)
{
    (void)state;
    char *path = scratch_path("gzip.h5");
    struct names all[] = { layouts_of_others[0], layouts_of_others[1], layouts_of_others[2], ours };
    for (size_t i = 0; i < 4; i++) {
        struct err err = { 0 };
        struct store *store = NULL;
        uint8_t px[32 * 32 * 3];
        memset(px, 1, sizeof px);
        put_claims(path, all[i], 5, 32, (struct storage){ 1, false, true });
        if (!store_open(path, &store, &err) || !store_read(store, 4, 1, px, &err))
            fail_msg("%s", err.text);
        assert_int_equal(store_patches(store)->n, 5);
        assert_int_equal(px[17] + px[sizeof px - 1], 0);
        store_close(store);
    }
    unlink(path);
    free(path);
}

static void groups_that_share_patches(void **state)
{
    (void)state;
    char *path = scratch_path("groups.h5");
    int64_t groups[] = { 0, 5, 0, 5 };
    put_claims(path, ours, 5, 32, (struct storage){ 1, false, true });
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(h5_put_data(file, "groups", H5T_STD_I64LE, H5T_NATIVE_INT64, 2, (hsize_t[]){ 2, 2 },
                            groups));
    H5Fclose(file);
    refused(path, "group 1 extends past the last patch");
    unlink(path);
    free(path);
}

/* All patches are made of one block, in one group of terabytes. */
static void groups_of_more_than_the_file(void **state)
{
    (void)state;
    char *path = scratch_path("large-group.h5");
    int64_t *corners = calloc(1 << 16, 2 * sizeof *corners), group[] = { 0, 1 << 16 };
    int32_t *blocks = calloc(1 << 16, sizeof *blocks);
    hid_t file = h5_create(path);
    assert_true(h5_put_data(file, "coords", H5T_STD_I64LE, H5T_NATIVE_INT64, 2,
                            (hsize_t[]){ 1 << 16, 2 }, corners));
    assert_true(h5_put_data(file, "patch_blocks", H5T_STD_I32LE, H5T_NATIVE_INT32, 2,
                            (hsize_t[]){ 1 << 16, 1 }, blocks));
    assert_true(h5_put_data(file, "groups", H5T_STD_I64LE, H5T_NATIVE_INT64, 2, (hsize_t[]){ 1, 2 },
                            group));
    put_chunked(file, "blocks", H5T_STD_U8LE, 4, (hsize_t[]){ 1, 4096, 4096, 3 },
                (struct storage){ 1, false, true });
    H5Fclose(file);
    refused(path, "group 0 claims more pixels than the file can hold");
    unlink(path);
    free(path);
    free(corners);
    free(blocks);
}

/* A store is one file: it does not make us read others. */
static void links_to_other_files(void **state)
{
    (void)state;
    char *path = scratch_path("linked.h5"), *other = scratch_path("other.h5");
    put_claims(other, layouts_of_others[0], 5, 32, (struct storage){ 1, false, true });
    hid_t file = h5_create(path);
    put_chunked(file, "imgs", H5T_STD_U8LE, 4, (hsize_t[]){ 5, 32, 32, 3 },
                (struct storage){ 1, false, true });
    assert_true(H5Lcreate_external(other, "coords", file, "coords", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    refused(path, "no dataset 'coords'");
    unlink(path);
    unlink(other);
    free(path);
    free(other);
}

/* The heap of texts, damaged in one place: HDF5 crashes on a size beyond it, and never returns from
 * a free one of 0. */
static void texts_that_are_damaged(void **state)
{
    (void)state;
    static const struct {
        int place; /* behind the signature of the heap */
        uint8_t value;
    } damage[] = { { 16 + 8 + 6, 1 }, { 8 + 3, 1 }, { 16, 0 } };
    char *path = scratch_path("texts.h5"), *bytes = NULL;
    alarm(60);
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        put_claims(path, layouts_of_others[0], 5, 32, (struct storage){ 1, false, true });
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        assert_true(h5_put_text(file, "slide", "a text") && H5Fclose(file) >= 0);
        struct store *store = NULL;
        assert_true(store_open(path, &store, NULL));
        assert_string_equal(store_facts(store)->slide, "a text");
        store_close(store);
        size_t size = 0;
        assert_true(file_read(path, 1 << 20, &bytes, &size, NULL));
        char *heap = memmem(bytes, size, "GCOL", 4);
        assert_non_null(heap);
        heap[damage[i].place] = (char)damage[i].value;
        if (i == 2) /* the first object is free, of no size */
            memset(heap + 16, 0, 16);
        FILE *stream = fopen(path, "wb");
        assert_true(stream && fwrite(bytes, 1, size, stream) == size && fclose(stream) == 0);
        free(bytes);
        refused(path, "its texts are damaged");
    }
    alarm(0);
    unlink(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* first: once a store was opened, HDF5 makes no such links */
        cmocka_unit_test(links_to_other_files),
        cmocka_unit_test(chunks_that_are_not_there),
        cmocka_unit_test(chunks_that_are_nearly_nothing),
        cmocka_unit_test(deflated_files_are_read),
        cmocka_unit_test(groups_that_share_patches),
        cmocka_unit_test(groups_of_more_than_the_file),
        cmocka_unit_test(texts_that_are_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
