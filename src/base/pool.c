/* pool.c: see pool.h. One mutex, one queue of jobs, two conditions. */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t work_came; /* a job was queued, or the pool closes */
    pthread_cond_t work_done; /* a piece ended */
    struct pool_job *first;
    bool closing;
    int n_workers;
    int n_started;
    pthread_t threads[];
};

struct worker_start {
    struct pool *pool;
    int worker;
};

static bool job_has_pieces(const struct pool_job *job)
{
    if (job->stop && atomic_load_explicit(job->stop, memory_order_relaxed))
        return false;
    return job->next < job->count && job->failed_index == job->count;
}

/* Runs one piece; the mutex is held on entry and on return. */
static void run_piece(struct pool *pool, struct pool_job *job, int worker)
{
    int64_t index = job->next++;
    job->running++;
    pthread_mutex_unlock(&pool->mutex);
    struct err err = { 0 };
    bool ok = job->fn(job->arg, index, worker, &err);
    pthread_mutex_lock(&pool->mutex);
    job->running--;
    if (!ok && index < job->failed_index) {
        job->failed_index = index;
        job->err = err;
    }
    pthread_cond_broadcast(&pool->work_done);
}

static struct pool_job *find_job(struct pool *pool)
{
    for (struct pool_job *job = pool->first; job; job = job->later)
        if (job_has_pieces(job))
            return job;
    return NULL;
}

static void *worker_main(void *argument)
{
    struct worker_start start = *(struct worker_start *)argument;
    free(argument);
    struct pool *pool = start.pool;
    pthread_mutex_lock(&pool->mutex);
    while (!pool->closing) {
        struct pool_job *job = find_job(pool);
        if (job)
            run_piece(pool, job, start.worker);
        else
            pthread_cond_wait(&pool->work_came, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

int pool_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

struct pool *pool_new(int threads)
{
    int n_workers = threads > 0 ? threads : pool_processors();
    struct pool *pool = calloc(1, sizeof *pool + (size_t)n_workers * sizeof(pthread_t));
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work_came, NULL);
    pthread_cond_init(&pool->work_done, NULL);
    pool->n_workers = n_workers;
    for (int worker = 1; worker < n_workers; worker++) {
        struct worker_start *start = malloc(sizeof *start);
        if (!start)
            break;
        *start = (struct worker_start){ pool, worker };
        if (pthread_create(&pool->threads[pool->n_started], NULL, worker_main, start) != 0) {
            free(start);
            break; /* fewer threads than requested still do all the work */
        }
        pool->n_started++;
    }
    return pool;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work_came);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->n_started; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->work_came);
    pthread_cond_destroy(&pool->work_done);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

int pool_workers(const struct pool *pool)
{
    return pool->n_workers;
}

void pool_start(struct pool *pool, struct pool_job *job, int64_t count, pool_fn fn, void *arg,
                const atomic_bool *stop)
{
    *job = (struct pool_job){
        .fn = fn, .arg = arg, .count = count, .failed_index = count, .stop = stop
    };
    pthread_mutex_lock(&pool->mutex);
    struct pool_job **end = &pool->first;
    while (*end)
        end = &(*end)->later;
    *end = job;
    pthread_cond_broadcast(&pool->work_came);
    pthread_mutex_unlock(&pool->mutex);
}

bool pool_join(struct pool *pool, struct pool_job *job, struct err *err)
{
    pthread_mutex_lock(&pool->mutex);
    while (job_has_pieces(job) || job->running > 0) {
        if (job_has_pieces(job))
            run_piece(pool, job, 0);
        else
            pthread_cond_wait(&pool->work_done, &pool->mutex);
    }
    struct pool_job **link = &pool->first;
    while (*link != job)
        link = &(*link)->later;
    *link = job->later;
    pthread_mutex_unlock(&pool->mutex);
    if (job->failed_index < job->count) {
        if (err)
            *err = job->err;
        return false;
    }
    return job->next == job->count ? true : err_stopped(err);
}

bool pool_for(struct pool *pool, int64_t count, pool_fn fn, void *arg, const atomic_bool *stop,
              struct err *err)
{
    struct pool_job job;
    pool_start(pool, &job, count, fn, arg, stop);
    return pool_join(pool, &job, err);
}
