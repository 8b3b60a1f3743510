/* trainer_ranks.c: collective operations of the trainers on all ranks (trainer.h): they find their
 * places in the grid, check that all have the same inputs, share gradients and batch norm's
 * statistics, gather predictions, and broadcast what the first rank read.
 * Whether to go on, stop or fail is agreed on by all ranks. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "base/file.h"
#include "base/console.h"
#include "base/identity.h"
#include "base/rng.h"
#include "train/heads.h"
#include "train/objectives.h"
#include "train/peers.h"
#include "train/staged.h"

#define LOOK_AT_ORIGINS 16

bool trainer_leads(const struct trainer *trainer)
{
    return trainer->request->ranks->rank == 0;
}

bool trainer_agree(const struct trainer *trainer, bool ok, struct err *err)
{
    return ranks_agree(trainer->request->ranks, ok, NULL, err);
}

bool trainer_lead(const struct trainer *trainer, trainer_write_fn write, struct err *err)
{
    return trainer_agree(trainer, !trainer_leads(trainer) || write(trainer, err), err);
}

static bool check_bands(const struct train_config *config, struct err *err)
{
    if (config->data.slides.n == 0 ||
        (config->train.memory != MEMORY_STREAM && config->train.memory != MEMORY_AUTO))
        return err_set(err, ERR_USAGE,
                       "parallel.bands: %lld: only whole slides (data.slides) with train.memory: "
                       "stream or auto can be divided into bands; use 1",
                       (long long)config->parallel[GRID_BANDS]);
    return !config->ranks.compress ||
           err_set(err, ERR_USAGE, "ranks.compress: cannot be used with parallel.bands; omit it");
}

static bool check_sequence(const struct train_config *config, struct err *err)
{
    return !config->sequence || config->parallel[GRID_HEADS] > 1 || config->pipeline.automatic ||
           err_set(err, ERR_USAGE,
                   "parallel.sequence: tokens are divided among the ranks of parallel.heads, which "
                   "is 1; set that, or omit it");
}

bool trainer_axes(const struct train_config *config, struct err *err)
{
    return config_check_parallel(config, err) && config_check_space(config, err) &&
           config_check_heads(config, err) && check_sequence(config, err) &&
           (config->parallel[GRID_BANDS] == 1 || check_bands(config, err));
}

bool trainer_place(struct trainer *trainer, struct err *err)
{
    struct rank_grid *grid = &trainer->grid;
    int64_t asked[GRID_AXES];
    int extent[GRID_AXES];
    config_grid(trainer->config, asked);
    bool ok = trainer_axes(trainer->config, err) &&
              config_extents(trainer->config, trainer->request->ranks->size, extent, err);
    if (!trainer_agree(trainer, ok, err) ||
        !rank_grid_new(trainer->request->ranks, asked, grid, err))
        return false;
    bool divided = grid->extent[GRID_BANDS] > 1 || grid->extent[GRID_SPACE] > 1;
    trainer->weight_ranks = divided ? trainer->request->ranks : trainer->data_ranks;
    trainer->sample_ranks = trainer->data_ranks;
    trainer->bands = peers_of_ranks(&grid->group[GRID_BANDS]);
    trainer_space_place(trainer);
    return !config_staged(trainer->config) || trainer_stages_place(trainer, err);
}

/* --- the same on all ranks --- */

static uint64_t mix(uint64_t hash, uint64_t with)
{
    struct rng rng = rng_new(hash, with, 0);
    return rng_u64(&rng);
}

/* The program's own file: another version or another build shows. */
static bool hash_program(uint64_t *hash, struct err *err)
{
    static const char path[] = "/proc/self/exe";
    unsigned char part[1 << 16];
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return err_errno(err, path, "open");
    uLong crc = crc32(0, NULL, 0);
    uint64_t size = 0;
    for (size_t n; (n = fread(part, 1, sizeof part, stream)) > 0; size += n)
        crc = crc32(crc, part, (uInt)n);
    bool ok = !ferror(stream) || err_errno(err, path, "read");
    fclose(stream);
    *hash = mix(crc, size);
    return ok;
}

static bool hash_pixels(const struct dataset *dataset, int64_t sample, uint64_t *hash,
                        struct err *err)
{
    struct image patch = { 0 };
    uint8_t *group = NULL;
    bool ok = true;
    if (dataset_in_group(dataset, sample)) {
        group = malloc((size_t)dataset_group_bytes(dataset, sample));
        ok = group ? dataset_read_group(dataset, sample, group, err)
                   : err_memory(err, "a group of patches");
    }
    ok = ok && dataset_read(dataset, sample, group, &patch, err);
    if (ok)
        *hash = mix(*hash, crc32(0, patch.px, (uInt)(patch.width * patch.height * 3)));
    image_free(&patch);
    free(group);
    return ok;
}

/* Names, labels and sides of all samples, and the pixels of a few, spread over the origins. */
static bool hash_data(const struct trainer *trainer, uint64_t *hash, struct err *err)
{
    const struct dataset *dataset = &trainer->dataset;
    int64_t looks = dataset->n_origins < LOOK_AT_ORIGINS ? dataset->n_origins : LOOK_AT_ORIGINS;
    bool ok = true;
    *hash = trainer->data_hash; /* of slides and tables it has the contents */
    for (int64_t i = 0; ok && !config_whole(trainer->config) && i < looks &&
                        dataset->n_samples > 0 && !dataset->texts && !dataset->recordings;
         i++)
        ok = hash_pixels(dataset, i * dataset->n_samples / looks, hash, err);
    return ok;
}

static uint64_t hash_weights(const struct trainer *trainer)
{
    return graph_hash(trainer->learnt, IDENTITY_HASH_BEGIN, true);
}

bool trainer_check_program(const struct trainer *trainer, struct err *err)
{
    struct ranks *ranks = trainer->request->ranks;
    uint64_t program = 0;
    if (ranks->size == 1)
        return true;
    char *config = config_text(trainer->config);
    bool ok = config ? hash_program(&program, err) : err_memory(err, "the config");
    ok = trainer_agree(trainer, ok, err) && ranks_same(ranks, program, "code", err) &&
         ranks_same(ranks, rng_hash(config), "settings", err) &&
         ranks_same(ranks, (uint64_t)trainer->threads, "threads", err);
    free(config);
    return ok;
}

bool trainer_check_data(const struct trainer *trainer, struct err *err)
{
    struct ranks *ranks = trainer->request->ranks;
    uint64_t data = 0;
    if (ranks->size == 1)
        return true;
    return trainer_agree(trainer, hash_data(trainer, &data, err), err) &&
           ranks_same(ranks, data, "data", err) &&
           ranks_same(trainer->weight_ranks, hash_weights(trainer), "starting weights", err);
}

bool trainer_check_weights(const struct trainer *trainer, struct err *err)
{
    struct ranks *ranks = trainer->weight_ranks;
    return (ranks->size == 1 || ranks_same(ranks, hash_weights(trainer), "weights", err)) &&
           trainer_heads_same(trainer, err);
}

bool trainer_count_waiting(const struct trainer *trainer, struct err *err)
{
    return !trainer->buckets || buckets_count_waiting(trainer->buckets, trainer->weight_ranks, err);
}

bool trainer_tell(const struct trainer *trainer, struct err *err)
{
    const struct runner_kind *kind = trainer->train->kind;
    return !kind->tell || kind->tell(trainer->train, err);
}

/* --- gradients --- */

static int64_t count_buffers(const struct graph *graph)
{
    int64_t count = 0;
    for (value_id v = 0; v < graph->n_values; v++)
        if (graph->values[v].kind == VALUE_BUFFER)
            count += shape_count(&graph->values[v].shape);
    return count;
}

const struct plan_peers *trainer_peers(struct trainer *trainer)
{
    if (!trainer->config->ranks.sync_bn)
        return NULL;
    trainer->peers = peers_of_ranks(trainer->data_ranks);
    return &trainer->peers;
}

bool trainer_share_new(struct trainer *trainer, struct err *err)
{
    const struct graph *graph = trainer->learnt;
    int64_t n = 0, count = 0, *at = calloc((size_t)graph->n_values + 1, sizeof *at);
    bool *whole = calloc((size_t)graph->n_values + 1, sizeof *whole);
    if (trainer->weight_ranks->size == 1) {
        free(at);
        free(whole);
        return true;
    }
    bool same = trainer->config->ranks.sync_bn || trainer->kind == &runner_slides ||
                trainer->data_ranks->size == 1 || trainer->config->network.norm == NORM_FROZEN ||
                config_private(trainer->config); /* on all ranks already */
    if (trainer->statistics_shares || !same)
        trainer->n_statistics = count_buffers(graph);
    trainer->statistics = calloc((size_t)trainer->n_statistics + 1, sizeof *trainer->statistics);
    bool ok = (at && whole && trainer->statistics) || err_memory(err, "gradient buckets");
    for (value_id v = 0; ok && v < graph->n_values; v++) {
        if (graph->values[v].kind != VALUE_PARAMETER)
            continue;
        whole[n] = graph->values[v].shape.rank < 2;
        at[n++] = count;
        count += shape_count(&graph->values[v].shape);
    }
    if (ok)
        at[n] = count;
    ok = ok && buckets_new(at, n, trainer->config->ranks.bucket_mb << 20, &trainer->buckets, err) &&
         trainer_compress_new(trainer, at, whole, n, err);
    free(at);
    free(whole);
    return ok;
}

bool trainer_share_budget(struct trainer *trainer, struct err *err)
{
    int64_t most = -(int64_t)trainer->plan_budget;
    if (!ranks_most(trainer->request->ranks, &most, 1, err))
        return false;
    trainer->plan_budget = (size_t)-most;
    return true;
}

bool trainer_share_parts(struct trainer *trainer, struct err *err)
{
    int ranks = trainer->weight_ranks->size;
    int64_t count = graph_parameter_count(trainer->learnt);
    if (ranks == 1 || !trainer->config->ranks.shard_optimizer)
        return true;
    trainer->parts = calloc((size_t)ranks + 1, sizeof *trainer->parts);
    for (int r = 0; trainer->parts && r <= ranks; r++)
        trainer->parts[r] = count * r / ranks;
    return trainer->parts || err_memory(err, "the optimizer");
}

/* Copies all weights, as the flat vector that gradients are, to it or from it. */
static void move_weights(struct graph *graph, float *flat, bool back)
{
    for (value_id v = 0; v < graph->n_values; v++) {
        if (graph->values[v].kind != VALUE_PARAMETER)
            continue;
        size_t count = (size_t)shape_count(&graph->values[v].shape);
        float *data = graph_data(graph, v);
        memcpy(back ? data : flat, back ? flat : data, count * sizeof *data);
        flat += count;
    }
}

bool trainer_share_weights(struct trainer *trainer, float *gradients, struct err *err)
{
    move_weights(trainer->learnt, gradients, false);
    if (!ranks_gather_parts(trainer->weight_ranks, gradients, trainer->parts, err))
        return false;
    move_weights(trainer->learnt, gradients, true);
    return true;
}

/* Copies batch norm's statistics out or back, as a mean over the ranks: each rank's share of them,
 * where ranks see different micro-batches; else all of them, divided on the way back. Of what has
 * no share nothing comes back. */
static void move_statistics(struct trainer *trainer, bool back)
{
    float *place = trainer->statistics;
    float even = (float)(1.0 / trainer->weight_ranks->size);
    const float *shares = trainer->statistics_shares;
    for (value_id v = 0; v < trainer->learnt->n_values; v++) {
        const struct value *value = &trainer->learnt->values[v];
        if (value->kind != VALUE_BUFFER)
            continue;
        int64_t count = shape_count(&value->shape);
        float *data = graph_data(trainer->learnt, v);
        float out = shares ? shares[v] : 1, in = shares ? 1 : even;
        for (int64_t i = 0; i < count && out > 0; i++)
            *(back ? &data[i] : &place[i]) = back ? place[i] * in : data[i] * out;
        place += count;
    }
}

void trainer_share_begin(struct trainer *trainer)
{
    if (!trainer->buckets)
        return;
    buckets_begin(trainer->buckets, trainer->gradients);
    trainer->statistics_sent = false;
}

/* Before the gradients: they come from the forward pass. */
static bool send_statistics(struct trainer *trainer, struct err *err)
{
    if (trainer->statistics_sent || trainer->n_statistics == 0)
        return true;
    trainer->statistics_sent = true;
    move_statistics(trainer, false);
    return ranks_start_sum(trainer->weight_ranks, trainer->statistics, trainer->n_statistics, err);
}

static void on_gradient(void *arg, value_id parameter, float *gradient, int64_t count)
{
    struct trainer *trainer = arg;
    (void)parameter, (void)count;
    buckets_ready(trainer->buckets, trainer->weight_ranks, gradient - trainer->gradients);
}

bool trainer_share_backward(struct trainer *trainer, struct plan *plan, bool last, struct err *err)
{
    bool overlap = trainer->buckets && last && trainer->config->ranks.overlap && !trainer->sparse;
    if (overlap && !send_statistics(trainer, err))
        return false;
    plan_on_gradient(plan, overlap ? on_gradient : NULL, trainer);
    return plan_backward(plan, err);
}

void trainer_share_complete(struct trainer *trainer, int64_t begin, int64_t end)
{
    if (trainer->buckets && trainer->config->ranks.overlap)
        buckets_ready_range(trainer->buckets, trainer->weight_ranks, begin, end);
}

/* Sums what is left to sum. Parts of an image have parts of its gradient, but all of its loss. The
 * statistics of stages come last: gradients of one may be complete before another has run. */
static bool share_sums(struct trainer *trainer, bool ok, double sums[2], struct err *err)
{
    if (trainer->sparse)
        return send_statistics(trainer, err) && trainer_compress_sum(trainer, ok, sums, err);
    if (trainer->buckets &&
        ((!trainer->staged && !send_statistics(trainer, err)) ||
         !buckets_finish(trainer->buckets, trainer->weight_ranks, err) ||
         !send_statistics(trainer, err) || !ranks_finish(trainer->weight_ranks, RANKS_ALL, err)))
        return false;
    return ranks_sum_reals(trainer->sample_ranks, sums, 2, err);
}

bool trainer_share_finish(struct trainer *trainer, bool ok, double sums[2], struct err *err)
{
    struct err problem = { 0 };
    trainer->stop = ctx_stopped(trainer->ctx);
    if (trainer->request->ranks->size == 1 || trainer->torn)
        return ok;
    bool sent = share_sums(trainer, ok, sums, &problem);
    sent = trainer_heads_sum(trainer, sent ? &problem : NULL) && sent; /* others may wait for it */
    if (ok && !sent && err)
        *err = problem;
    if (!ranks_agree(trainer->request->ranks, ok && sent, &trainer->stop, err))
        return false;
    if (trainer->n_statistics > 0)
        move_statistics(trainer, true);
    return true;
}

/* --- predictions --- */

bool trainer_gather(const struct trainer *trainer, const struct predictions *mine,
                    struct predictions *all, struct err *err)
{
    return predictions_gather(trainer->sample_ranks, mine, all, err);
}

bool trainer_share_row(const struct trainer *trainer, struct epoch_row *row, struct err *err)
{
    return ranks_broadcast(trainer->request->ranks, row, sizeof *row, 0, err);
}

/* --- what the first rank read --- */

bool trainer_share_text(const struct trainer *trainer, const char *mine, char **out,
                        struct err *err)
{
    struct ranks *ranks = trainer->request->ranks;
    int64_t size = mine ? (int64_t)strlen(mine) + 1 : 0;
    *out = NULL;
    if (!ranks_broadcast(ranks, &size, sizeof size, 0, err))
        return false;
    if (size == 0)
        return true;
    *out = calloc((size_t)size, 1);
    if (!trainer_agree(trainer, *out || err_memory(err, "a checkpoint"), err))
        return false;
    if (mine)
        memcpy(*out, mine, (size_t)size);
    return ranks_broadcast(ranks, *out, (size_t)size, 0, err);
}

bool trainer_arrays_gather(const struct trainer *trainer, struct trainer_arrays *arrays,
                           struct err *err)
{
    if (trainer->staged)
        return staged_gather(trainer, arrays, err);
    if (trainer->heads)
        return heads_gather(trainer, arrays, err);
    const int64_t *parts = trainer->parts;
    bool ok = true;
    for (int i = 0; ok && i < arrays->n_whole; i++) {
        struct state_array own = optimizer_array(trainer->optimizer, i);
        memcpy(arrays->whole[i] + parts[trainer->weight_ranks->rank], own.data,
               (size_t)own.count * sizeof *own.data);
        ok = ranks_gather_parts(trainer->weight_ranks, arrays->whole[i], parts, err);
    }
    return ok;
}

bool trainer_arrays_take(const struct trainer *trainer, const struct trainer_arrays *arrays,
                         struct err *err)
{
    if (trainer->staged)
        return staged_take(trainer, arrays, err);
    if (trainer->heads)
        return true; /* with trainer_share_arrays */
    for (int i = 0; i < arrays->n_whole; i++) {
        struct state_array own = optimizer_array(trainer->optimizer, i);
        memcpy(own.data, arrays->whole[i] + trainer->parts[trainer->weight_ranks->rank],
               (size_t)own.count * sizeof *own.data);
    }
    return true;
}

bool trainer_share_arrays(const struct trainer *trainer, const struct trainer_arrays *arrays,
                          struct err *err)
{
    bool ok = true;
    if (trainer->heads)
        return heads_take(trainer, arrays, err);
    for (size_t i = 0; ok && i < arrays->n; i++)
        ok = ranks_broadcast(trainer->request->ranks, arrays->items[i].data,
                             (size_t)arrays->items[i].count * sizeof(float), 0, err);
    return ok;
}
