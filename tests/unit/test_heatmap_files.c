/* test_heatmap_files.c: heatmap files, and parts and their stitching. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/identity.h"
#include "base/pool.h"
#include "heatmap/partition.h"
#include "tests/unit/support/cohort.h"
#include "tests/unit/support/heatmaps.h"
#include "base/text.h"

static void files_hold_what_was_written(void **state)
{
    (void)state;
    struct err err = { 0 };
    char *folder = cohort_folder("heatmap_files"), *names[] = { "normal", "tumor" };
    struct heatmap_info info = { .slide = "a",
                                 .path = "a.tiff",
                                 .width_l0 = 100,
                                 .height_l0 = 50,
                                 .mpp_l0 = 0.25,
                                 .mpp = 0.5,
                                 .downsample = 2,
                                 .stride = 8,
                                 .origin_x = 4,
                                 .origin_y = 4,
                                 .window = 32,
                                 .width = 7,
                                 .height = 4,
                                 .n_classes = 2,
                                 .class_names = names,
                                 .mode = "dense",
                                 .models = "m",
                                 .model_hash = "0",
                                 .options = "o",
                                 .check = { 5, 0.5, 0.1, 0.2, 0.3, 0.4 } };
    float rows[4 * 7 * 2], back[2 * 7 * 2];
    for (int i = 0; i < 56; i++)
        rows[i] = i % 10 < 2 ? NAN : (float)i;
    struct heatmap_writer *writer = NULL;
    assert_true(heatmap_create(folder, &info, &writer, &err));
    assert_true(heatmap_write_rows(writer, rows, 3, &err));
    assert_true(heatmap_write_rows(writer, rows + 42, 1, &err));
    assert_false(heatmap_write_rows(writer, rows, 1, &err)); /* one too many */
    assert_true(heatmap_commit(writer, &err));
    struct heatmap *heatmap = NULL;
    if (!heatmap_open(folder, &heatmap, &err))
        fail_msg("%s", err.text);
    const struct heatmap_info *read = heatmap_info(heatmap);
    assert_int_equal(read->scored, 28 - 6);
    assert_string_equal(read->class_names[1], "tumor");
    assert_true(read->check.windows == 5 && read->check.p95 == 0.2 && read->raw.windows == 0);
    assert_true(heatmap_read_rows(heatmap, 2, 2, back, &err));
    assert_memory_equal(back, rows + 28, sizeof back);
    assert_false(heatmap_read_rows(heatmap, 3, 2, back, &err));
    struct heatmap_cell cell = heatmap_cell(read, 6, 3);
    assert_true(cell.x_l0 == 96 && cell.width_l0 == 4 && cell.y_l0 == 48 && cell.height_l0 == 2);
    heatmap_close(heatmap);
    char *npy = text_format("%s/heatmap.npy", folder);
    assert_int_equal(truncate(npy, 128 + 200), 0);
    assert_false(heatmap_open(folder, &heatmap, &err));
    assert_non_null(strstr(err.text, "is truncated"));
    free(npy);
    free(folder);
}

/* A part that was changed on the disk is named and removed. */
static void check_damage(const char *folder, const struct partition *partition,
                         const float *const *scores, const struct ctx *ctx)
{
    struct err err = { 0 };
    assert_true(part_write(folder, partition, 0, scores, &err));
    char *part = part_path(folder, 0);
    FILE *stream = fopen(part, "r+b");
    fseek(stream, 60, SEEK_SET);
    fputc('x', stream);
    fclose(stream);
    assert_false(part_stitch(folder, partition, 1000, ctx, &err));
    assert_non_null(strstr(err.text, "000000.scores: damaged"));
    assert_false(part_exists(folder, partition, 0));
    assert_false(part_stitch(folder, partition, 1000, ctx, &err)); /* missing */
    free(part);
}

/* A part that cannot be put into its place leaves nothing beside it. */
static void check_blocked(const char *folder, const struct partition *partition,
                          const float *const *scores)
{
    struct err err = { 0 };
    char *part = part_path(folder, 0), *all = text_format("%s/parts/*", folder);
    glob_t found = { 0 };
    assert_true(file_make_folder(part, &err));
    assert_false(part_write(folder, partition, 0, scores, &err));
    assert_non_null(strstr(err.text, "cannot rename into place"));
    assert_int_equal(glob(all, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    globfree(&found);
    assert_int_equal(rmdir(part), 0);
    free(part), free(all);
}

/* heatmap.npy with cells of several parts where they belong; its bytes are the caller's. */
static char *check_npy(const char *folder, size_t *size)
{
    struct err err = { 0 };
    char *npy = text_format("%s/heatmap.npy", folder), *bytes = NULL;
    assert_true(file_read(npy, 1 << 20, &bytes, size, &err));
    assert_int_equal(*size, 128 + 25 * 20 * 3 * 4);
    const float *cells = (const float *)(bytes + 128);
    assert_true(cells[(3 * 25 + 8) * 3 + 1] == 1000 + (1 * 9 + 1) * 3 + 1);
    assert_true(cells[(19 * 25 + 24) * 3] == 4000 + 4 * 3 && isnan(cells[5 * 3]));
    free(npy);
    return bytes;
}

static void write_parts(const char *folder, const struct partition *partition,
                        const float *const *scores)
{
    struct err err = { 0 };
    for (int64_t g = partition->n_groups - 1; g >= 0; g--) {
        assert_false(part_exists(folder, partition, g));
        assert_true(part_write(folder, partition, g, scores + partition->groups[g].first, &err));
        assert_true(part_exists(folder, partition, g));
    }
}

/* Blocks of all kinds of places, in groups; rows come together whatever the memory. */
static void parts_are_stitched(void **state)
{
    (void)state;
    struct err err = { 0 };
    char *folder = cohort_folder("heatmap_parts"), *names[] = { "a", "b", "c" };
    struct heatmap_info info = heatmaps_facts("a", 400, 320, 3); /* 25 x 20 cells */
    info.class_names = names;
    static const struct partition_block blocks[] = {
        { 0, 0, 5, 3, 10, false },  { 7, 2, 9, 4, 30, false },  { 16, 0, 9, 7, 20, false },
        { 3, 8, 10, 12, 50, true }, { 20, 19, 5, 1, 9, false },
    };
    struct partition made = { .info = info }, partition;
    made.n_blocks = 5;
    made.blocks = malloc(sizeof blocks);
    memcpy(made.blocks, blocks, sizeof blocks);
    assert_true(partition_write(folder, &made, 40, &err));
    if (!partition_read(folder, &partition, &err))
        fail_msg("%s", err.text);
    assert_true(partition.hash == made.hash && partition.n_groups == made.n_groups &&
                partition.n_groups > 1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(partition.blocks[i].streamed, blocks[i].streamed);
    float *scores[5];
    for (int i = 0; i < 5; i++) {
        scores[i] = malloc((size_t)(blocks[i].width * blocks[i].height * 3) * sizeof(float));
        for (int64_t k = 0; k < blocks[i].width * blocks[i].height * 3; k++)
            scores[i][k] = (float)(1000 * i + k);
    }
    struct pool *pool = pool_new(1);
    struct ctx ctx = { .pool = pool };
    char *before = NULL;
    for (int64_t memory = 1; memory <= 1 << 20; memory = memory == 1 ? 1000 : memory * 1024) {
        write_parts(folder, &partition, (const float *const *)scores);
        if (!part_stitch(folder, &partition, memory, &ctx, &err))
            fail_msg("%s", err.text);
        size_t size = 0;
        char *now = check_npy(folder, &size);
        if (before)
            assert_memory_equal(before, now, size);
        free(before);
        before = now;
    }
    check_blocked(folder, &partition, (const float *const *)scores);
    check_damage(folder, &partition, (const float *const *)scores, &ctx);
    for (int i = 0; i < 5; i++)
        free(scores[i]);
    made.info = (struct heatmap_info){ 0 }; /* literals */
    partition_free(&made);
    partition_free(&partition);
    pool_free(pool);
    free(before), free(folder);
}

/* Without streamed blocks a plan has the hash that it had before there were any: its parts count.
 */
static void plans_know_their_parts(void **state)
{
    (void)state;
    struct err err = { 0 };
    char *folder = cohort_folder("heatmap_plan"), *names[] = { "a", "b", "c" };
    struct heatmap_info info = heatmaps_facts("a", 400, 320, 3);
    info.class_names = names;
    int64_t numbers[] = { 0, 0, 5, 3, 10, 7, 2, 9, 4, 30 }, groups[] = { 0, 2, 40 };
    int64_t facts[] = { info.width, info.height, info.n_classes, info.stride, 1 };
    struct partition made = { .info = info, .n_blocks = 2 };
    made.blocks = calloc(2, sizeof *made.blocks);
    made.blocks[0] = (struct partition_block){ .width = 5, .height = 3, .cost = 10 };
    made.blocks[1] = (struct partition_block){ 7, 2, 9, 4, 30, false };
    assert_true(partition_write(folder, &made, 1000, &err));
    uint64_t hash = identity_hash(IDENTITY_HASH_BEGIN, info.options, strlen(info.options));
    hash = identity_hash(hash, info.slide, strlen(info.slide));
    hash = identity_hash(hash, info.inputs, strlen(info.inputs));
    hash = identity_hash(hash, facts, sizeof facts);
    hash = identity_hash(hash, numbers, sizeof numbers);
    assert_true(made.hash == identity_hash(hash, groups, sizeof groups));
    uint64_t before = made.hash;
    made.blocks[1].streamed = true;
    free(made.groups);
    made.n_groups = 0;
    assert_true(partition_write(folder, &made, 1000, &err));
    assert_true(made.hash != before);
    made.info = (struct heatmap_info){ 0 }; /* literals */
    partition_free(&made);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_hold_what_was_written),
        cmocka_unit_test(parts_are_stitched),
        cmocka_unit_test(plans_know_their_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
