/* run_groups.c: see run_groups.h. */
#include "heatmap/run_groups.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "base/console.h"
#include "heatmap/cover.h"
#include "heatmap/scorer.h"
#include "base/clock.h"

enum slot_state { SLOT_EMPTY, SLOT_READING, SLOT_READY, SLOT_TAKEN };

/* One block on its way from the slide to its part. */
struct slot {
    int64_t block, group;  /* in the plan; index in run->groups */
    int64_t width, height; /* cells it is computed with */
    enum slot_state state;
    struct image region;
    bool ok;
    struct err err;
    float *scores;
};

/* Blocks of one shape after another, so that a worker makes few plans; large ones first, so that
 * all workers end at about the same time. */
static int by_shape(const void *a_, const void *b_)
{
    const struct slot *a = a_, *b = b_;
    int64_t a_area = a->width * a->height, b_area = b->width * b->height;
    if (a_area != b_area)
        return a_area > b_area ? -1 : 1;
    if (a->width != b->width)
        return a->width > b->width ? -1 : 1;
    return (a->block > b->block) - (a->block < b->block);
}

struct job {
    const struct run_groups *run;
    const struct ctx *ctx;
    struct slot *slots;
    int64_t n_slots, taken, ahead;
    int64_t *first_slot, *left; /* [n_groups] */
    struct scorer **scorers;    /* [workers] */
    struct predict_times times;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool closing;
};

static void read_region(struct job *job, struct slot *slot, struct image *out)
{
    const struct ensemble *e = job->run->ensemble;
    const struct part_block *block = &job->run->plan->blocks[slot->block];
    const struct heatmap_info *info = &job->run->plan->info;
    int64_t x = info->origin_x + block->column * info->stride - e->before;
    int64_t y = info->origin_y + block->row * info->stride - e->before;
    double began = clock_monotonic_s();
    slot->ok = source_read(job->run->source, x, y, ensemble_region(e, slot->width),
                           ensemble_region(e, slot->height), out, &slot->err);
    double read = clock_monotonic_s();
    if (slot->ok)
        source_normalise(job->run->source, out);
    double done = clock_monotonic_s();
    pthread_mutex_lock(&job->mutex);
    job->times.read_s += read - began;
    job->times.normalise_s += done - read;
    pthread_mutex_unlock(&job->mutex);
}

/* Reads blocks ahead of their use, but not too many. */
static void *reader_main(void *argument)
{
    struct job *job = argument;
    pthread_mutex_lock(&job->mutex);
    for (int64_t i = 0; i < job->n_slots && !job->closing; i++) {
        struct slot *slot = &job->slots[i];
        while (i >= job->taken + job->ahead && !job->closing)
            pthread_cond_wait(&job->changed, &job->mutex);
        if (job->closing || slot->state != SLOT_EMPTY)
            continue;
        slot->state = SLOT_READING;
        pthread_mutex_unlock(&job->mutex);
        read_region(job, slot, &slot->region);
        pthread_mutex_lock(&job->mutex);
        slot->state = SLOT_READY;
        pthread_cond_broadcast(&job->changed);
    }
    pthread_mutex_unlock(&job->mutex);
    return NULL;
}

/* The pixels of a block: read ahead, or read now. */
static bool take_region(struct job *job, struct slot *slot, struct image *out, struct err *err)
{
    pthread_mutex_lock(&job->mutex);
    bool read_now = slot->state == SLOT_EMPTY;
    while (slot->state == SLOT_READING)
        pthread_cond_wait(&job->changed, &job->mutex);
    slot->state = SLOT_TAKEN;
    job->taken++;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->mutex);
    if (read_now)
        read_region(job, slot, &slot->region);
    *out = slot->region;
    slot->region = (struct image){ 0 };
    if (!slot->ok && err)
        *err = slot->err;
    return slot->ok;
}

static bool write_group(struct job *job, int64_t group, struct err *err)
{
    const struct run_groups *run = job->run;
    int64_t number = run->groups[group], n = run->plan->groups[number].n;
    struct slot *slots = job->slots + job->first_slot[group];
    const float **scores = malloc((size_t)n * sizeof *scores);
    if (!scores)
        return err_memory(err, "a group's scores");
    for (int64_t k = 0; k < n; k++)
        scores[slots[k].block - run->plan->groups[number].first] = slots[k].scores;
    double began = clock_monotonic_s();
    bool ok = part_write(run->folder, run->plan, number, scores, err);
    double seconds = clock_monotonic_s() - began;
    free(scores);
    for (int64_t k = 0; k < n; k++) {
        free(slots[k].scores);
        slots[k].scores = NULL;
    }
    pthread_mutex_lock(&job->mutex);
    job->times.write_s += seconds;
    pthread_mutex_unlock(&job->mutex);
    return ok;
}

static bool score_block(struct job *job, struct slot *slot, const struct image *region, int worker,
                        struct err *err)
{
    const struct run_groups *run = job->run;
    const struct part_block *block = &run->plan->blocks[slot->block];
    int64_t cells = block->width * block->height;
    bool *wanted = malloc((size_t)cells * sizeof *wanted);
    slot->scores = malloc((size_t)(cells * run->ensemble->n_classes) * sizeof *slot->scores);
    if (!job->scorers[worker])
        job->scorers[worker] = scorer_new(run->ensemble);
    bool ok = (wanted && slot->scores && job->scorers[worker]) || err_memory(err, "a block");
    double began = clock_monotonic_s();
    if (ok) {
        cover_wanted(run->source, run->ensemble, block, wanted);
        struct scorer_block shape = { block->width, block->height, wanted };
        ok = scorer_run(job->scorers[worker], region, &shape, slot->scores, err);
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
    struct slot *slot = &job->slots[index];
    struct image region = { 0 };
    bool ok = take_region(job, slot, &region, err) && score_block(job, slot, &region, worker, err);
    image_free(&region);
    if (!ok)
        return false;
    pthread_mutex_lock(&job->mutex);
    bool last = --job->left[slot->group] == 0;
    pthread_mutex_unlock(&job->mutex);
    ok = !last || write_group(job, slot->group, err);
    console_advance(job->ctx->console, 1);
    return ok;
}

static bool job_begin(struct job *job, int workers, struct err *err)
{
    const struct run_groups *run = job->run;
    for (int64_t g = 0; g < run->n_groups; g++)
        job->n_slots += run->plan->groups[run->groups[g]].n;
    job->ahead = workers + 1;
    job->slots = calloc((size_t)job->n_slots + 1, sizeof *job->slots);
    job->first_slot = calloc((size_t)run->n_groups + 1, sizeof *job->first_slot);
    job->left = calloc((size_t)run->n_groups + 1, sizeof *job->left);
    job->scorers = calloc((size_t)workers, sizeof *job->scorers);
    if (!job->slots || !job->first_slot || !job->left || !job->scorers)
        return err_memory(err, "the blocks of a slide");
    int64_t next = 0;
    for (int64_t g = 0; g < run->n_groups; g++) {
        const struct part_group *group = &run->plan->groups[run->groups[g]];
        job->first_slot[g] = next;
        job->left[g] = group->n;
        for (int64_t k = 0; k < group->n; k++) {
            const struct part_block *block = &run->plan->blocks[group->first + k];
            job->slots[next++] =
                (struct slot){ .block = group->first + k,
                               .group = g,
                               .width = ensemble_size(run->ensemble, block->width),
                               .height = ensemble_size(run->ensemble, block->height) };
        }
        qsort(job->slots + job->first_slot[g], (size_t)group->n, sizeof *job->slots, by_shape);
    }
    return true;
}

static void job_end(struct job *job, int workers)
{
    for (int64_t i = 0; job->slots && i < job->n_slots; i++) {
        image_free(&job->slots[i].region);
        free(job->slots[i].scores);
    }
    for (int i = 0; job->scorers && i < workers; i++)
        scorer_free(job->scorers[i]);
    free(job->slots);
    free(job->first_slot);
    free(job->left);
    free(job->scorers);
}

bool run_groups(const struct run_groups *run, const struct ctx *ctx, struct predict_times *times,
                struct err *err)
{
    struct job job = { .run = run, .ctx = ctx };
    int threads = pool_workers(ctx->pool),
        workers = threads < run->workers ? threads : run->workers;
    malloc_trim(
        0); /* what finding the tissue and the plan took is not to be held beside the workers */
    struct pool *pool = pool_new(workers);
    pthread_t reader;
    if (!pool)
        return err_memory(err, "threads");
    pthread_mutex_init(&job.mutex, NULL);
    pthread_cond_init(&job.changed, NULL);
    bool ok = job_begin(&job, workers, err);
    bool reads = ok && pthread_create(&reader, NULL, reader_main, &job) == 0;
    ok = ok && pool_for(pool, job.n_slots, do_block, &job, ctx->stop, err);
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
