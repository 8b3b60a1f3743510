/* train_job.c: see train_job.h. */
#include "tests/unit/support/train_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "base/file.h"
#include "base/pool.h"
#include "train/objectives.h"
#include "base/text.h"

static void stop_at(void *arg, int64_t step)
{
    struct job *job = arg;
    if (job->stop_after > 0 && step >= job->stop_after)
        atomic_store(&job->stop, true);
}

bool run_job(struct job *job, struct train_result *result, struct err *err)
{
    struct train_config config;
    struct ranks ranks = ranks_one();
    struct pool *pool = pool_new(job->threads > 0 ? job->threads : 1);
    struct ctx ctx = { .pool = pool, .stop = &job->stop };
    size_t n = 0;
    while (n < JOB_MAX_SETTINGS && job->settings[n])
        n++;
    *err = (struct err){ 0 };
    atomic_store(&job->stop, false);
    bool ok =
        config_read(NULL, job->settings, n, &config, err) && objective_settle(&config, NULL, err);
    struct train_request request = { .config = &config,
                                     .folder = job->folder,
                                     .resume = job->resume,
                                     .ranks = &ranks,
                                     .on_step = stop_at,
                                     .arg = job };
    ok = ok && train_run(&request, &ctx, result, err);
    config_free(&config);
    pool_free(pool);
    return ok;
}

double job_measure(const struct train_result *result, const struct quality *quality,
                   const char *name)
{
    int i = objective_measure(result->objective, name);
    assert_true(i >= 0);
    return quality->values[i];
}

char *read_in(const char *folder, const char *name, size_t *size)
{
    char *path = text_format("%s/%s", folder, name), *bytes = NULL;
    struct err err = { 0 };
    if (!file_read(path, 1 << 26, &bytes, size, &err))
        fail_msg("%s", err.text);
    free(path);
    return bytes;
}
