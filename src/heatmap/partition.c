/* partition.c: plan.json and the parts; see partition.h. A part is a header, then for every block
 * of the group its scores, then a checksum of all that; all offsets follow from the partition. */
#include "heatmap/partition.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "heatmap/heatmap_json.h"
#include "heatmap/part_file.h"
#include "base/text.h"

#define MAX_GROUP_FLOATS                                                                           \
    (INT64_C(8) << 20) /* scores of a group are in memory until it is written */

void partition_free(struct partition *partition)
{
    heatmap_info_free(&partition->info);
    free(partition->blocks);
    free(partition->groups);
    *partition = (struct partition){ 0 };
}

/* A block as plan.json has it: column, row, width, height, cost, and 1 if it is streamed; otherwise
 * nothing, as before there were such blocks. */
#define BLOCK_NUMBERS 6

static int block_numbers(const struct partition_block *b, int64_t out[BLOCK_NUMBERS])
{
    const int64_t all[] = { b->column, b->row, b->width, b->height, b->cost, 1 };
    memcpy(out, all, sizeof all);
    return b->streamed ? BLOCK_NUMBERS : BLOCK_NUMBERS - 1;
}

static uint64_t hash_partition(const struct partition *partition)
{
    const struct heatmap_info *info = &partition->info;
    int64_t facts[] = { info->width, info->height, info->n_classes, info->stride,
                        partition->n_groups };
    uint64_t hash = part_hash(PART_HASH_BEGIN, info->options, strlen(info->options));
    hash = part_hash(hash, info->slide, strlen(info->slide));
    hash = part_hash(hash, info->inputs, strlen(info->inputs));
    hash = part_hash(hash, facts, sizeof facts);
    for (int64_t i = 0; i < partition->n_blocks; i++) {
        const struct partition_block *b = &partition->blocks[i];
        int64_t numbers[BLOCK_NUMBERS], n = block_numbers(b, numbers);
        hash = part_hash(hash, numbers, (size_t)n * sizeof *numbers);
    }
    return part_hash(hash, partition->groups,
                     (size_t)partition->n_groups * sizeof *partition->groups);
}

static bool make_groups(struct partition *partition, int64_t group_cost, struct err *err)
{
    partition->groups = calloc((size_t)partition->n_blocks + 1, sizeof *partition->groups);
    if (!partition->groups)
        return err_memory(err, "the groups of a slide");
    int64_t total = 0, floats = 0;
    for (int64_t i = 0; i < partition->n_blocks; i++)
        total += partition->blocks[i].cost;
    int64_t n = (total + group_cost - 1) / group_cost; /* as equal as blocks allow */
    int64_t target = n > 0 ? (total + n - 1) / n : 1;
    struct partition_group *group = NULL;
    for (int64_t i = 0; i < partition->n_blocks; i++) {
        const struct partition_block *block = &partition->blocks[i];
        int64_t add = block->width * block->height * partition->info.n_classes;
        bool full = group &&
                    (2 * group->cost + block->cost > 2 * target || floats + add > MAX_GROUP_FLOATS);
        if (!group || full) {
            group = &partition->groups[partition->n_groups++];
            *group = (struct partition_group){ .first = i };
            floats = 0;
        }
        group->n++;
        group->cost += block->cost;
        floats += add;
    }
    return true;
}

static void put_numbers(struct json_out *json, const int64_t *values, int n)
{
    json_out_array_line(json, NULL);
    for (int i = 0; i < n; i++)
        json_out_int(json, NULL, values[i]);
    json_out_close_array(json);
}

bool partition_write(const char *folder, struct partition *partition, int64_t group_cost,
                     struct err *err)
{
    struct file_out out;
    struct json_out json;
    if (!make_groups(partition, group_cost, err) ||
        !file_out_open_in(&out, folder, "plan.json", err))
        return false;
    partition->hash = hash_partition(partition);
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    heatmap_json_put(&json, &partition->info);
    json_out_array(&json, "blocks");
    for (int64_t i = 0; i < partition->n_blocks; i++) {
        int64_t numbers[BLOCK_NUMBERS];
        int n = block_numbers(&partition->blocks[i], numbers);
        put_numbers(&json, numbers, n);
    }
    json_out_close_array(&json);
    json_out_array(&json, "groups"); /* first block, blocks */
    for (int64_t i = 0; i < partition->n_groups; i++)
        put_numbers(&json, (int64_t[]){ partition->groups[i].first, partition->groups[i].n }, 2);
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

static bool get_numbers(const json_t *list, int64_t *values, size_t n)
{
    bool ok = json_array_size(list) == n;
    for (size_t i = 0; ok && i < n; i++) {
        const json_t *value = json_array_get(list, i);
        ok = json_is_integer(value) && json_integer_value(value) >= 0;
        values[i] = json_integer_value(value);
    }
    return ok;
}

static bool get_blocks(const json_t *list, struct partition *partition)
{
    size_t n = json_array_size(list);
    partition->blocks = calloc(n + 1, sizeof *partition->blocks);
    bool ok = partition->blocks && json_is_array(list);
    for (size_t i = 0; ok && i < n; i++) {
        int64_t v[BLOCK_NUMBERS];
        const json_t *block = json_array_get(list, i);
        bool streamed = json_array_size(block) == BLOCK_NUMBERS;
        ok = get_numbers(block, v, streamed ? BLOCK_NUMBERS : BLOCK_NUMBERS - 1) &&
             (!streamed || v[5] == 1) && v[2] > 0 && v[3] > 0 && v[2] <= partition->info.width &&
             v[3] <= partition->info.height && v[0] <= partition->info.width - v[2] &&
             v[1] <= partition->info.height - v[3];
        if (ok)
            partition->blocks[partition->n_blocks++] =
                (struct partition_block){ v[0], v[1], v[2], v[3], v[4], streamed };
    }
    return ok;
}

/* Groups follow each other and hold all blocks. */
static bool get_groups(const json_t *list, struct partition *partition)
{
    size_t n = json_array_size(list);
    partition->groups = calloc(n + 1, sizeof *partition->groups);
    bool ok = partition->groups && json_is_array(list);
    int64_t next = 0;
    for (size_t i = 0; ok && i < n; i++) {
        int64_t v[2];
        ok = get_numbers(json_array_get(list, i), v, 2) && v[0] == next && v[1] > 0 &&
             v[1] <= partition->n_blocks - next;
        if (!ok)
            break;
        struct partition_group *group = &partition->groups[partition->n_groups++];
        *group = (struct partition_group){ .first = v[0], .n = v[1] };
        for (int64_t k = 0; k < v[1]; k++)
            group->cost += partition->blocks[next + k].cost;
        next += v[1];
    }
    return ok && next == partition->n_blocks;
}

bool partition_read(const char *folder, struct partition *out, struct err *err)
{
    *out = (struct partition){ 0 };
    json_t *object = NULL;
    char *path = text_format("%s/plan.json", folder);
    bool ok = path || err_memory(err, folder);
    ok = ok && heatmap_json_load(path, &object, err) &&
         heatmap_json_get(object, path, &out->info, err);
    const char *bad = NULL;
    if (ok && !get_blocks(json_object_get(object, "blocks"), out))
        bad = "blocks";
    if (ok && !bad && !get_groups(json_object_get(object, "groups"), out))
        bad = "groups";
    if (bad)
        ok = err_set(err, ERR_FORMAT, "%s: the value of '%s' is invalid; remove the file", path,
                     bad);
    if (ok)
        out->hash = hash_partition(out);
    else
        partition_free(out);
    json_decref(object);
    free(path);
    return ok;
}

char *part_path(const char *folder, int64_t group)
{
    return text_format("%s/parts/%06lld.scores", folder, (long long)group);
}

void part_remove(const char *folder, int64_t group)
{
    char *path = part_path(folder, group);
    if (path)
        unlink(path);
    free(path);
}

int64_t part_block_floats(const struct partition *partition, int64_t block)
{
    return partition->blocks[block].width * partition->blocks[block].height *
           partition->info.n_classes;
}

int64_t part_bytes(const struct partition *partition, int64_t group)
{
    int64_t floats = 0;
    for (int64_t k = 0; k < partition->groups[group].n; k++)
        floats += part_block_floats(partition, partition->groups[group].first + k);
    return (int64_t)sizeof(struct part_header) + floats * (int64_t)sizeof(float) +
           (int64_t)sizeof(uint64_t);
}

struct part_header part_header(const struct partition *partition, int64_t group)
{
    return (
        struct part_header){ .magic = PART_MAGIC, .partition = partition->hash, .group = group };
}

bool part_exists(const char *folder, const struct partition *partition, int64_t group)
{
    struct part_header found, wanted = part_header(partition, group);
    struct stat status;
    char *path = part_path(folder, group);
    FILE *stream = path ? fopen(path, "rb") : NULL;
    free(path);
    if (!stream)
        return false;
    bool ok = fread(&found, sizeof found, 1, stream) == 1 &&
              memcmp(&found, &wanted, sizeof found) == 0 && fstat(fileno(stream), &status) == 0 &&
              status.st_size == part_bytes(partition, group);
    fclose(stream);
    return ok;
}

/* Under a name of this process, then renamed: two machines at the same group, as after one that was
 * only thought lost, do not write to one file. */
static bool open_own(const char *folder, int64_t group, char **own, struct file_out *out,
                     struct err *err)
{
    char host[256] = "", *parts = text_format("%s/parts", folder);
    gethostname(host, sizeof host - 1);
    *own = text_format("%s/parts/%06lld.scores.%s.%ld", folder, (long long)group, host,
                       (long)getpid());
    bool ok = (parts && *own) || err_memory(err, folder);
    ok = ok && file_make_folder(parts, err) && file_out_open(out, *own, err);
    free(parts);
    return ok;
}

bool part_write(const char *folder, const struct partition *partition, int64_t group,
                const float *const *scores, struct err *err)
{
    struct file_out out;
    char *own = NULL, *path = part_path(folder, group);
    bool ok = path ? open_own(folder, group, &own, &out, err) : err_memory(err, folder);
    if (ok) {
        struct part_header header = part_header(partition, group);
        uint64_t sum = part_hash(PART_HASH_BEGIN, &header, sizeof header);
        fwrite(&header, sizeof header, 1, out.stream);
        for (int64_t k = 0; k < partition->groups[group].n; k++) {
            size_t n = (size_t)part_block_floats(partition, partition->groups[group].first + k);
            sum = part_hash(sum, scores[k], n * sizeof(float));
            fwrite(scores[k], sizeof(float), n, out.stream);
        }
        fwrite(&sum, sizeof sum, 1, out.stream);
        ok = file_out_commit(&out, err);
    }
    if (ok && rename(own, path) != 0) {
        ok = err_errno(err, path, "rename into place");
        unlink(own);
    }
    free(own);
    free(path);
    return ok;
}
