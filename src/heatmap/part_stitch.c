/* part_stitch.c: parts -> the heatmap, some rows at a time. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "heatmap/part_file.h"
#include "base/text.h"

#define PIECE (1 << 16)

struct stitch {
    const char *folder;
    const struct partition *partition;
    float *rows; /* [n_rows, width, classes] */
    int64_t first_row, n_rows;
};

static bool open_part(const struct stitch *stitch, int64_t group, char **path, FILE **out,
                      struct err *err)
{
    *path = part_path(stitch->folder, group);
    if (!*path)
        return err_memory(err, stitch->folder);
    *out = fopen(*path, "rb");
    return *out ? true : err_errno(err, *path, "open");
}

/* Whole, undamaged and of this partition. */
static bool check_part(const struct stitch *stitch, int64_t group, struct err *err)
{
    unsigned char piece[PIECE];
    char *path = NULL;
    FILE *stream = NULL;
    uint64_t sum = PART_HASH_BEGIN, wanted = 0;
    int64_t rest = part_bytes(stitch->partition, group) - (int64_t)sizeof sum;
    bool ok = open_part(stitch, group, &path, &stream, err);
    bool whole = ok && part_exists(stitch->folder, stitch->partition, group);
    while (whole && rest > 0) {
        size_t want = rest < PIECE ? (size_t)rest : PIECE, got = fread(piece, 1, want, stream);
        sum = part_hash(sum, piece, got);
        whole = got == want;
        rest -= (int64_t)got;
    }
    whole = whole && fread(&wanted, sizeof wanted, 1, stream) == 1 && wanted == sum;
    if (ok && !whole) {
        ok = err_set(err, ERR_FORMAT,
                     "%s: damaged, or from another plan; it was removed: run again to recompute it",
                     path);
        unlink(path);
    }
    if (stream)
        fclose(stream);
    free(path);
    return ok;
}

/* The rows of one block that are wanted now; `offset` is where its scores begin. */
static bool copy_block(const struct stitch *stitch, const struct partition_block *block,
                       FILE *stream, int64_t offset, const char *path, struct err *err)
{
    const struct heatmap_info *info = &stitch->partition->info;
    int64_t first = block->row > stitch->first_row ? block->row : stitch->first_row;
    int64_t end = block->row + block->height, stop = stitch->first_row + stitch->n_rows;
    end = end < stop ? end : stop;
    size_t floats = (size_t)(block->width * info->n_classes);
    if (first >= end)
        return true;
    offset += (first - block->row) * (int64_t)(floats * sizeof(float));
    if (fseeko(stream, offset, SEEK_SET) != 0)
        return err_errno(err, path, "read");
    for (int64_t row = first; row < end; row++) {
        float *to = stitch->rows +
                    ((row - stitch->first_row) * info->width + block->column) * info->n_classes;
        if (fread(to, sizeof(float), floats, stream) != floats)
            return err_errno(err, path, "read");
    }
    return true;
}

static bool group_is_near(const struct stitch *stitch, int64_t group)
{
    const struct partition_group *g = &stitch->partition->groups[group];
    for (int64_t k = 0; k < g->n; k++) {
        const struct partition_block *block = &stitch->partition->blocks[g->first + k];
        if (block->row < stitch->first_row + stitch->n_rows &&
            block->row + block->height > stitch->first_row)
            return true;
    }
    return false;
}

static bool copy_group(const struct stitch *stitch, int64_t group, struct err *err)
{
    const struct partition_group *g = &stitch->partition->groups[group];
    char *path = NULL;
    FILE *stream = NULL;
    bool ok = open_part(stitch, group, &path, &stream, err);
    int64_t offset = (int64_t)sizeof(struct part_header);
    for (int64_t k = 0; ok && k < g->n; k++) {
        ok =
            copy_block(stitch, &stitch->partition->blocks[g->first + k], stream, offset, path, err);
        offset += part_block_floats(stitch->partition, g->first + k) * (int64_t)sizeof(float);
    }
    if (stream)
        fclose(stream);
    free(path);
    return ok;
}

static bool stitch_rows(struct stitch *stitch, struct heatmap_writer *writer, const struct ctx *ctx,
                        struct err *err)
{
    const struct heatmap_info *info = &stitch->partition->info;
    int64_t room = stitch->n_rows;
    bool ok = true;
    for (int64_t row = 0; ok && row < info->height; row += room) {
        stitch->first_row = row;
        stitch->n_rows = info->height - row < room ? info->height - row : room;
        for (int64_t i = 0; i < stitch->n_rows * info->width * info->n_classes; i++)
            stitch->rows[i] = NAN;
        for (int64_t group = 0; ok && group < stitch->partition->n_groups; group++)
            ok = !group_is_near(stitch, group) || copy_group(stitch, group, err);
        ok = ok && heatmap_write_rows(writer, stitch->rows, stitch->n_rows, err);
        if (ok && ctx_stopped(ctx))
            ok = err_stopped(err);
    }
    return ok;
}

void part_remove_all(const char *folder)
{
    char *parts = text_format("%s/parts", folder);
    DIR *listing = parts ? opendir(parts) : NULL;
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        if (strstr(entry->d_name, ".scores"))
            unlinkat(dirfd(listing), entry->d_name, 0);
    if (listing)
        closedir(listing);
    if (parts)
        rmdir(parts);
    free(parts);
}

bool part_stitch(const char *folder, const struct partition *partition, int64_t memory_bytes,
                 const struct ctx *ctx, struct err *err)
{
    struct stitch stitch = { .folder = folder, .partition = partition };
    struct heatmap_writer *writer = NULL;
    bool ok = true;
    for (int64_t group = 0; ok && group < partition->n_groups; group++)
        ok = check_part(&stitch, group, err);
    stitch.n_rows = heatmap_rows_in(&partition->info, memory_bytes);
    if (ok) {
        size_t floats = (size_t)(stitch.n_rows * partition->info.width * partition->info.n_classes);
        stitch.rows = malloc(floats * sizeof *stitch.rows);
        ok = stitch.rows || err_memory(err, "rows of a heatmap");
    }
    ok = ok && heatmap_create(folder, &partition->info, &writer, err);
    if (ok && !stitch_rows(&stitch, writer, ctx, err)) {
        heatmap_discard(writer);
        ok = false;
    } else if (ok) {
        ok = heatmap_commit(writer, err);
    }
    free(stitch.rows);
    if (ok)
        part_remove_all(folder);
    return ok;
}
