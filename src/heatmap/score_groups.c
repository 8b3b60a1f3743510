/* score_groups.c: see score_groups.h. */
#include "heatmap/score_groups.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "base/console.h"
#include "heatmap/cover.h"
#include "heatmap/scorer.h"
#include "base/clock.h"

enum pending_state { BLOCK_EMPTY, BLOCK_READING, BLOCK_READY, BLOCK_TAKEN };

/* One block on its way from the slide to its part. */
struct pending_block {
    int64_t block, group;  /* in the partition; index in run->groups */
    int64_t width, height; /* cells it is computed with */
    bool streamed;         /* its pixels are read tile by tile */
    enum pending_state state;
    struct image region;
    bool ok;
    struct err err;
    float *scores;
};

/* Blocks of one shape after another, so that a worker makes few plans; large ones first, so that
 * all workers end at about the same time. */
static int by_shape(const void *a_, const void *b_)
{
    const struct pending_block *a = a_, *b = b_;
    int64_t a_area = a->width * a->height, b_area = b->width * b->height;
    if (a_area != b_area)
        return a_area > b_area ? -1 : 1;
    if (a->width != b->width)
        return a->width > b->width ? -1 : 1;
    return (a->block > b->block) - (a->block < b->block);
}

struct job {
    const struct score_groups *run;
    const struct ctx *ctx;
    struct pending_block *pending;
    int64_t n_pending, taken, ahead;
    int64_t *first_pending, *left; /* [n_groups] */
    struct scorer **scorers;       /* [workers] */
    int stream_threads;            /* for each block that is streamed */
    struct predict_times times;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool closing;
};

/* Part of the region of a block, at (x, y) of it. */
static bool read_part(struct job *job, const struct partition_block *block, int64_t x, int64_t y,
                      int64_t width, int64_t height, struct image *out, struct err *err)
{
    const struct heatmap_info *info = &job->run->partition->info;
    int64_t before = job->run->ensemble->before;
    double began = clock_monotonic_s();
    bool ok = specimen_read(
        job->run->specimen, info->origin_x + block->column * info->stride - before + x,
        info->origin_y + block->row * info->stride - before + y, width, height, out, err);
    double read = clock_monotonic_s();
    if (ok)
        specimen_normalise(job->run->specimen, out);
    double done = clock_monotonic_s();
    pthread_mutex_lock(&job->mutex);
    job->times.read_s += read - began;
    job->times.normalise_s += done - read;
    pthread_mutex_unlock(&job->mutex);
    return ok;
}

static void read_region(struct job *job, struct pending_block *pending_block, struct image *out)
{
    const struct ensemble *e = job->run->ensemble;
    const struct partition_block *block = &job->run->partition->blocks[pending_block->block];
    pending_block->ok =
        read_part(job, block, 0, 0, ensemble_region(e, pending_block->width),
                  ensemble_region(e, pending_block->height), out, &pending_block->err);
}

/* Reads blocks ahead of their use, but not too many. */
static void *reader_main(void *argument)
{
    struct job *job = argument;
    pthread_mutex_lock(&job->mutex);
    for (int64_t i = 0; i < job->n_pending && !job->closing; i++) {
        struct pending_block *pending_block = &job->pending[i];
        while (i >= job->taken + job->ahead && !job->closing)
            pthread_cond_wait(&job->changed, &job->mutex);
        if (job->closing || pending_block->state != BLOCK_EMPTY || pending_block->streamed)
            continue;
        pending_block->state = BLOCK_READING;
        pthread_mutex_unlock(&job->mutex);
        read_region(job, pending_block, &pending_block->region);
        pthread_mutex_lock(&job->mutex);
        pending_block->state = BLOCK_READY;
        pthread_cond_broadcast(&job->changed);
    }
    pthread_mutex_unlock(&job->mutex);
    return NULL;
}

/* The pixels of a block: read ahead, or read now; none of one that is streamed. */
static bool take_region(struct job *job, struct pending_block *pending_block, struct image *out,
                        struct err *err)
{
    pthread_mutex_lock(&job->mutex);
    bool read_now = pending_block->state == BLOCK_EMPTY;
    while (pending_block->state == BLOCK_READING)
        pthread_cond_wait(&job->changed, &job->mutex);
    pending_block->state = BLOCK_TAKEN;
    job->taken++;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->mutex);
    if (pending_block->streamed)
        return true;
    if (read_now)
        read_region(job, pending_block, &pending_block->region);
    *out = pending_block->region;
    pending_block->region = (struct image){ 0 };
    if (!pending_block->ok && err)
        *err = pending_block->err;
    return pending_block->ok;
}

static bool write_group(struct job *job, int64_t group, struct err *err)
{
    const struct score_groups *run = job->run;
    int64_t number = run->groups[group], n = run->partition->groups[number].n;
    struct pending_block *pending = job->pending + job->first_pending[group];
    const float **scores = malloc((size_t)n * sizeof *scores);
    if (!scores)
        return err_memory(err, "a group's scores");
    for (int64_t k = 0; k < n; k++)
        scores[pending[k].block - run->partition->groups[number].first] = pending[k].scores;
    double began = clock_monotonic_s();
    bool ok = part_write(run->folder, run->partition, number, scores, err);
    double seconds = clock_monotonic_s() - began;
    free(scores);
    for (int64_t k = 0; k < n; k++) {
        free(pending[k].scores);
        pending[k].scores = NULL;
    }
    pthread_mutex_lock(&job->mutex);
    job->times.write_s += seconds;
    pthread_mutex_unlock(&job->mutex);
    return ok;
}

/* The pixels of a block that is streamed. */
struct streamed_pixels {
    struct job *job;
    const struct partition_block *block;
};

static bool read_pixels(void *arg, int64_t x, int64_t y, int64_t width, int64_t height,
                        struct image *out, struct err *err)
{
    const struct streamed_pixels *from = arg;
    return ctx_stopped(from->job->ctx)
               ? err_stopped(err)
               : read_part(from->job, from->block, x, y, width, height, out, err);
}

static bool score_block(struct job *job, struct pending_block *pending_block,
                        const struct image *region, int worker, struct err *err)
{
    const struct score_groups *run = job->run;
    const struct partition_block *block = &run->partition->blocks[pending_block->block];
    int64_t cells = block->width * block->height;
    bool *wanted = malloc((size_t)cells * sizeof *wanted);
    pending_block->scores =
        malloc((size_t)(cells * run->ensemble->n_classes) * sizeof *pending_block->scores);
    if (!job->scorers[worker])
        job->scorers[worker] = scorer_new(run->ensemble);
    bool ok =
        (wanted && pending_block->scores && job->scorers[worker]) || err_memory(err, "a block");
    double began = clock_monotonic_s();
    if (ok) {
        cover_wanted(run->specimen, run->ensemble, block, wanted);
        struct scorer_block shape = { block->width, block->height, wanted };
        struct streamed_pixels from = { job, block };
        struct scorer_pixels pixels = { &from, read_pixels };
        ok = pending_block->streamed
                 ? scorer_stream(job->scorers[worker], &pixels, &shape, job->stream_threads,
                                 pending_block->scores, err)
                 : scorer_run(job->scorers[worker], region, &shape, pending_block->scores, err);
    }
    double seconds = clock_monotonic_s() - began;
    free(wanted);
    pthread_mutex_lock(&job->mutex);
    job->times.compute_s += seconds;
    pthread_mutex_unlock(&job->mutex);
    return ok;
}

static bool do_block(void *arg, int64_t index, int worker, struct err *err)
{
    struct job *job = arg;
    struct pending_block *pending_block = &job->pending[index];
    struct image region = { 0 };
    bool ok = take_region(job, pending_block, &region, err) &&
              score_block(job, pending_block, &region, worker, err);
    image_free(&region);
    if (!ok)
        return false;
    pthread_mutex_lock(&job->mutex);
    bool last = --job->left[pending_block->group] == 0;
    pthread_mutex_unlock(&job->mutex);
    ok = !last || write_group(job, pending_block->group, err);
    console_advance(job->ctx->console, 1);
    return ok;
}

static bool job_begin(struct job *job, int workers, struct err *err)
{
    const struct score_groups *run = job->run;
    for (int64_t g = 0; g < run->n_groups; g++)
        job->n_pending += run->partition->groups[run->groups[g]].n;
    job->ahead = workers + 1;
    job->pending = calloc((size_t)job->n_pending + 1, sizeof *job->pending);
    job->first_pending = calloc((size_t)run->n_groups + 1, sizeof *job->first_pending);
    job->left = calloc((size_t)run->n_groups + 1, sizeof *job->left);
    job->scorers = calloc((size_t)workers, sizeof *job->scorers);
    if (!job->pending || !job->first_pending || !job->left || !job->scorers)
        return err_memory(err, "the blocks of a slide");
    int64_t next = 0, streamed = 0;
    for (int64_t g = 0; g < run->n_groups; g++) {
        const struct partition_group *group = &run->partition->groups[run->groups[g]];
        job->first_pending[g] = next;
        job->left[g] = group->n;
        for (int64_t k = 0; k < group->n; k++) {
            const struct partition_block *block = &run->partition->blocks[group->first + k];
            streamed += block->streamed;
            job->pending[next++] =
                (struct pending_block){ .block = group->first + k,
                                        .group = g,
                                        .streamed = block->streamed,
                                        .width = ensemble_size(run->ensemble, block->width),
                                        .height = ensemble_size(run->ensemble, block->height) };
        }
        qsort(job->pending + job->first_pending[g], (size_t)group->n, sizeof *job->pending,
              by_shape);
    }
    /* few large blocks: those who would have none help */
    job->stream_threads = streamed > 0 && streamed < workers ? workers / (int)streamed : 1;
    return true;
}

static void job_end(struct job *job, int workers)
{
    for (int64_t i = 0; job->pending && i < job->n_pending; i++) {
        image_free(&job->pending[i].region);
        free(job->pending[i].scores);
    }
    for (int i = 0; job->scorers && i < workers; i++)
        scorer_free(job->scorers[i]);
    free(job->pending);
    free(job->first_pending);
    free(job->left);
    free(job->scorers);
}

bool score_groups(const struct score_groups *run, const struct ctx *ctx,
                  struct predict_times *times, struct err *err)
{
    struct job job = { .run = run, .ctx = ctx };
    int threads = pool_workers(ctx->pool),
        workers = threads < run->workers ? threads : run->workers;
    malloc_trim(0); /* what finding the tissue and the partition took is not to be held beside the
                       workers */
    struct pool *pool = pool_new(workers);
    pthread_t reader;
    if (!pool)
        return err_memory(err, "threads");
    pthread_mutex_init(&job.mutex, NULL);
    pthread_cond_init(&job.changed, NULL);
    bool ok = job_begin(&job, workers, err);
    bool reads = ok && pthread_create(&reader, NULL, reader_main, &job) == 0;
    ok = ok && pool_for(pool, job.n_pending, do_block, &job, ctx->stop, err);
    pthread_mutex_lock(&job.mutex);
    job.closing = true;
    pthread_cond_broadcast(&job.changed);
    pthread_mutex_unlock(&job.mutex);
    if (reads)
        pthread_join(reader, NULL);
    pool_free(pool);
    job_end(&job, workers);
    pthread_cond_destroy(&job.changed);
    pthread_mutex_destroy(&job.mutex);
    times->read_s += job.times.read_s;
    times->normalise_s += job.times.normalise_s;
    times->compute_s += job.times.compute_s;
    times->write_s += job.times.write_s;
    return ok;
}
