/* fuzz_store.c: any bytes as a patch store: refused, or a store whose groups cover its patches and
 * can be read in no more memory than the file can hold. Bytes that begin as HDF5 does are the file
 * itself; there HDF5 may crash by itself (it does, on damaged files), so that is tried in a child,
 * and what happens within HDF5 is not ours. Others describe datasets, from which HDF5 makes a file:
 * sizes, types, chunks and filters of any kind in a container that is sound. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "patch/h5.h"
#include "patch/store.h"
#include "tests/fuzz/child.h"
#include "tests/fuzz/files.h"
#include "base/text.h"

#define MOST_BYTES (INT64_C(16) << 20) /* read of one group: larger ones are only counted */
#define MOST_DATASETS 8
#define MOST_RANK 5
#define MOST_WRITTEN (1 << 16) /* bytes of a dataset: larger ones are claimed only */

static void read_all(struct store *store, int64_t file_bytes)
{
    int64_t px = store_patch_px(store), next = 0;
    if (store_patches(store)->n > file_bytes)
        abort();
    for (int64_t g = 0; g < store_n_groups(store); g++) {
        struct store_group group = store_group(store, g);
        int64_t bytes = group.n * px * px * 3;
        if (group.first != next || bytes > 1032 * file_bytes)
            abort();
        next += group.n;
        uint8_t *pixels = bytes <= MOST_BYTES ? malloc((size_t)bytes + 1) : NULL;
        if (pixels)
            store_read(store, group.first, group.n, pixels, NULL);
        free(pixels);
    }
    if (next > store_patches(store)->n)
        abort();
}

static void try_store(void *path)
{
    struct store *store = NULL;
    struct err err = { .kind = ERR_NONE };
    char *bytes = NULL;
    size_t size = 0;
    if (!file_read(path, (size_t)1 << 30, &bytes, &size, NULL))
        return;
    free(bytes);
    if (store_open(path, &store, &err))
        fuzz_taken++, read_all(store, (int64_t)size);
    else if (err.kind == ERR_NONE)
        abort(); /* refused without a word */
    store_close(store);
}

/* --- a description --- */

struct input {
    const uint8_t *bytes;
    size_t size;
};

static uint8_t take(struct input *input)
{
    if (input->size == 0)
        return 0;
    input->size--;
    return *input->bytes++;
}

/* Up to 127 as it is, then powers of two. */
static hsize_t take_size(struct input *input)
{
    uint8_t byte = take(input);
    return byte < 128 ? byte : (hsize_t)1 << (byte - 128) % 64;
}

static hid_t take_type(struct input *input)
{
    const hid_t types[] = { H5T_STD_U8LE,   H5T_STD_I64LE,  H5T_STD_I32LE, H5T_STD_I8LE,
                            H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_STD_U16BE, H5T_C_S1 };
    return types[take(input) % 8];
}

static void set_filters(hid_t create, uint8_t which)
{
    if (which & 1)
        H5Pset_shuffle(create);
    if (which & 2)
        H5Pset_deflate(create, 6);
    if (which & 4)
        H5Pset_filter(create, H5Z_FILTER_DEFLATE, 0, 1, (unsigned[]){ 1 });
    if (which & 8)
        H5Pset_fletcher32(create);
}

/* Contiguous, compact, or chunked with chunks and filters. */
static hid_t take_layout(struct input *input, int rank)
{
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[MOST_RANK];
    switch (take(input) % 4) {
    case 0:
        break;
    case 1:
        H5Pset_layout(create, H5D_COMPACT);
        break;
    default:
        for (int i = 0; i < rank; i++)
            chunk[i] = take_size(input);
        H5Pset_chunk(create, rank, chunk);
        set_filters(create, take(input));
    }
    return create;
}

static void put_dataset(hid_t file, struct input *input)
{
    static const char *const names[] = { "imgs",
                                         "coords",
                                         "labels",
                                         "tissue_fraction",
                                         "groups",
                                         "blocks",
                                         "patch_blocks",
                                         "t1/img",
                                         "t1/coord",
                                         "t1/label",
                                         "t2/img",
                                         "t2/coord",
                                         "tumor/l0/c0/p0/n0/0/patches",
                                         "tumor_fraction",
                                         "normal/a/patches",
                                         "tumor/l0/c0/p0/n0/0/locations",
                                         "normal/a/locations" };
    const char *name = names[take(input) % (sizeof names / sizeof *names)];
    hid_t type = take_type(input);
    int rank = take(input) % (MOST_RANK + 1);
    hsize_t dims[MOST_RANK], bytes = H5Tget_size(type);
    bool small = true;
    for (int i = 0; i < rank; i++) {
        dims[i] = take_size(input);
        small = small && !__builtin_mul_overflow(bytes, dims[i], &bytes) && bytes <= MOST_WRITTEN;
    }
    hid_t create = take_layout(input, rank), link = H5Pcreate(H5P_LINK_CREATE);
    hid_t space = rank ? H5Screate_simple(rank, dims, NULL) : H5Screate(H5S_SCALAR);
    H5Pset_create_intermediate_group(link, 1);
    hid_t set = H5Dcreate2(file, name, type, space, link, create, H5P_DEFAULT);
    if (set >= 0 && small && bytes > 0 && take(input) % 4) {
        char *data = calloc(bytes, 1);
        size_t n = data && bytes < input->size ? bytes : 0;
        memcpy(data, input->bytes, n);
        input->bytes += n, input->size -= n;
        H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
        free(data);
    }
    if (set >= 0)
        H5Dclose(set);
    H5Pclose(create);
    H5Pclose(link);
    H5Sclose(space);
}

static void make_file(const char *path, struct input input)
{
    struct h5_voice voice;
    h5_quiet(&voice);
    hid_t file = h5_create(path);
    uint8_t ours = take(&input);
    if (ours & 1)
        h5_put_text(file, "format", STORE_FORMAT);
    if (ours & 2)
        h5_put_int(file, "version", ours >> 6);
    if (ours & 4)
        h5_put_text(file, "layout", store_layout_names[(ours >> 3) % 4]);
    for (int i = take(&input) % (MOST_DATASETS + 1); i > 0; i--)
        put_dataset(file, &input);
    H5Fclose(file);
    h5_loud(&voice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t signature[] = { 0x89, 'H', 'D', 'F' };
    char *path = text_format("%s/store.h5", fuzz_folder());
    if (!path)
        return 0;
    if (size >= 4 && memcmp(data, signature, 4) == 0) {
        fuzz_write("store.h5", data, size);
        fuzz_in_child(try_store, path, "libhdf5");
    } else {
        make_file(path, (struct input){ data, size });
        try_store(path);
    }
    fuzz_clear();
    free(path);
    return 0;
}
