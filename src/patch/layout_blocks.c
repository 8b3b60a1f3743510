/* layout_blocks.c: our own layout. Every pixel is stored once: /blocks [M, b, b, 3] and, for every
 * patch, which blocks it is made of: /patch_blocks [N, k * k]. */
#include <stdlib.h>
#include <string.h>
#include "patch/layout.h"

static bool list_units(struct layout_writer *writer, struct err *err)
{
    const struct store_facts *facts = writer->request->facts;
    int64_t block = facts->patch;
    if (facts->stride > 0) /* 0: drawn at random, on no grid */
        block = units_block_size(facts->patch, facts->stride);
    return units_of_blocks(writer->request->patches, facts->patch, block, &writer->units, err);
}

static bool put_patch_blocks(const struct layout_writer *writer)
{
    const struct units *units = &writer->units;
    int64_t n = writer->request->patches->n, k = units->per_side;
    hsize_t dims[2] = { (hsize_t)n, (hsize_t)(k * k) };
    if (units->of_patch)
        return h5_put_data(writer->file, "patch_blocks", H5T_STD_I32LE, H5T_NATIVE_INT32, 2, dims,
                           units->of_patch);
    int32_t *same = malloc((size_t)(n + 1) * sizeof *same);
    if (!same)
        return false;
    for (int64_t i = 0; i < n; i++)
        same[i] = (int32_t)i;
    bool ok =
        h5_put_data(writer->file, "patch_blocks", H5T_STD_I32LE, H5T_NATIVE_INT32, 2, dims, same);
    free(same);
    return ok;
}

static bool create(struct layout_writer *writer)
{
    const struct units *units = &writer->units;
    hid_t blocks;
    int64_t offset;
    bool ok = layout_put_lists(writer) && put_patch_blocks(writer) &&
              layout_reserve(writer->file, "blocks", units->n, units->size, &blocks, &offset);
    if (!ok)
        return false;
    for (int64_t i = 0; i < units->n; i++)
        writer->offsets[i] = offset + i * layout_unit_bytes(units->size);
    return H5Dclose(blocks) >= 0;
}

static bool recognise(hid_t file)
{
    return h5_has(file, "blocks") && h5_has(file, "patch_blocks");
}

static bool get_patch_blocks(struct layout_reader *reader, struct err *err)
{
    hsize_t wanted[2] = { (hsize_t)reader->patches.n, 0 }, dims[2];
    if (reader->patches.n == 0)
        return true;
    if (!h5_check(reader->file, reader->path, "patch_blocks", 2, wanted, dims, err))
        return false;
    hsize_t k = 1;
    while (k * k < dims[1] && k < 1 << 15)
        k++;
    if (k * k != dims[1])
        return err_set(err, ERR_FORMAT, "%s: %llu blocks do not make a square patch", reader->path,
                       (unsigned long long)dims[1]);
    reader->patch_px = (int64_t)k * reader->block_px;
    int64_t n = reader->patches.n * (int64_t)dims[1];
    reader->patch_blocks = malloc((size_t)n * sizeof *reader->patch_blocks);
    if (!reader->patch_blocks)
        return err_memory(err, reader->path);
    if (!h5_read(reader->file, reader->path, "patch_blocks", H5T_NATIVE_INT32, reader->patch_blocks,
                 err))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (reader->patch_blocks[i] < 0 || reader->patch_blocks[i] >= reader->n_blocks)
            return err_set(err, ERR_FORMAT, "%s: a patch refers to block %d of %lld", reader->path,
                           reader->patch_blocks[i], (long long)reader->n_blocks);
    return true;
}

static bool open_blocks(struct layout_reader *reader, struct err *err)
{
    hsize_t wanted[4] = { 0, 0, 0, 3 }, dims[4];
    if (!h5_check(reader->file, reader->path, "blocks", 4, wanted, dims, err))
        return false;
    if (dims[1] != dims[2] || dims[1] == 0 || dims[1] > 1 << 16)
        return err_set(err, ERR_FORMAT, "%s: its blocks are not square", reader->path);
    reader->n_blocks = (int64_t)dims[0];
    reader->block_px = reader->patch_px = (int64_t)dims[1];
    if (!layout_get_lists(reader, err) || !get_patch_blocks(reader, err))
        return false;
    reader->dataset = H5Dopen2(reader->file, "blocks", H5P_DEFAULT);
    return reader->dataset >= 0 ? true : h5_fail(err, reader->path, "read");
}

/* Puts a block's pixels at place j of a patch. */
static void paste(const struct layout_reader *reader, const uint8_t *block, int64_t j,
                  uint8_t *patch)
{
    int64_t b = reader->block_px, k = reader->patch_px / b, row = 3 * reader->patch_px;
    uint8_t *to = patch + (j / k * b) * row + (j % k) * b * 3;
    for (int64_t y = 0; y < b; y++)
        memcpy(to + y * row, block + y * b * 3, (size_t)(b * 3));
}

/* The lowest and the highest block of patches [first, first + n). */
static void block_range(const struct layout_reader *reader, int64_t first, int64_t n, int64_t *low,
                        int64_t *high)
{
    int64_t k = reader->patch_px / reader->block_px;
    const int32_t *blocks = reader->patch_blocks + first * k * k;
    *low = *high = blocks[0];
    for (int64_t i = 1; i < n * k * k; i++) {
        *low = blocks[i] < *low ? blocks[i] : *low;
        *high = blocks[i] > *high ? blocks[i] : *high;
    }
}

/* One read of the range of blocks that the patches share, then cut from memory. */
static bool read_range(struct layout_reader *reader, int64_t first, int64_t n, int64_t low,
                       int64_t n_blocks, uint8_t *out, struct err *err)
{
    int64_t k = reader->patch_px / reader->block_px, bytes = layout_unit_bytes(reader->block_px);
    uint8_t *blocks = malloc((size_t)(n_blocks * bytes));
    if (!blocks)
        return err_memory(err, reader->path);
    bool ok =
        h5_read_rows(reader->dataset, reader->path, H5T_NATIVE_UINT8, low, n_blocks, blocks, err);
    for (int64_t i = 0; ok && i < n; i++)
        for (int64_t j = 0; j < k * k; j++)
            paste(reader, blocks + (reader->patch_blocks[(first + i) * k * k + j] - low) * bytes, j,
                  out + i * layout_unit_bytes(reader->patch_px));
    free(blocks);
    return ok;
}

/* One patch whose blocks lie far apart: block by block. */
static bool read_one(struct layout_reader *reader, int64_t patch, uint8_t *out, struct err *err)
{
    int64_t k = reader->patch_px / reader->block_px;
    uint8_t *block = malloc((size_t)layout_unit_bytes(reader->block_px));
    if (!block)
        return err_memory(err, reader->path);
    bool ok = true;
    for (int64_t j = 0; ok && j < k * k; j++) {
        ok = h5_read_rows(reader->dataset, reader->path, H5T_NATIVE_UINT8,
                          reader->patch_blocks[patch * k * k + j], 1, block, err);
        if (ok)
            paste(reader, block, j, out);
    }
    free(block);
    return ok;
}

/* Patches of a group share a range of blocks; where the range holds much that they do not need,
 * halves do better. */
static bool read_patches(struct layout_reader *reader, int64_t first, int64_t n, uint8_t *out,
                         struct err *err)
{
    if (n == 0)
        return true;
    int64_t k = reader->patch_px / reader->block_px, low, high;
    block_range(reader, first, n, &low, &high);
    int64_t n_blocks = high - low + 1;
    if (k == 1 && n == 1)
        return h5_read_rows(reader->dataset, reader->path, H5T_NATIVE_UINT8, low, 1, out, err);
    if (n_blocks <= 2 * n * k)
        return read_range(reader, first, n, low, n_blocks, out, err);
    if (n == 1)
        return read_one(reader, first, out, err);
    int64_t half = n / 2;
    return read_patches(reader, first, half, out, err) &&
           read_patches(reader, first + half, n - half,
                        out + half * layout_unit_bytes(reader->patch_px), err);
}

const struct layout_ops layout_blocks = { "blocks",  list_units,  create,
                                          recognise, open_blocks, read_patches };
