/* tasks.c: tasks_run (tasks.h). A task writes to DIR/tasks/work under a name unique to its process
 * and is renamed when complete: two attempts at the same task, e.g. after a node was wrongly
 * thought lost, do not collide. */
#include "cluster/tasks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/pool.h"
#include "base/console.h"
#include "base/text.h"
#include "base/clock.h"

static char *work_path(const struct task_list *list, const struct task *task, const char *host)
{
    return text_format("%s/tasks/work/%lld-%s-%ld%s", list->folder, (long long)task->id, host,
                       (long)getpid(), file_extension(task->file));
}

static bool make_folder_of(const char *path, struct err *err)
{
    char *folder = text_format("%.*s", (int)(strrchr(path, '/') - path), path);
    bool ok = folder ? file_make_folder(folder, err) : err_memory(err, path);
    free(folder);
    return ok;
}

static bool make_file(const struct task_given *given, const struct task_kind *kind,
                      const struct task *task, const char *host, const struct ctx *ctx,
                      struct err *err)
{
    char *work = work_path(given->list, task, host), *path = task_path(given->list, task);
    bool ok = (work && path) || err_memory(err, task->slide);
    ok = ok && make_folder_of(path, err) &&
         kind->run(given, task, kind->in_place ? path : work, ctx, err);
    if (ok && !kind->in_place && rename(work, path) != 0)
        ok = err_errno(err, path, "rename into place");
    if (work && !ok && !kind->in_place)
        unlink(work);
    free(work);
    free(path);
    return ok;
}

/* False where the run must end: stopped, or no record can be written. *made tells of the task. */
static bool run_one(const struct task_given *given, const struct task_kind *kind,
                    const struct task *task, struct task_record *record, const struct ctx *ctx,
                    bool *made, struct err *err)
{
    const struct task_list *list = given->list;
    struct task_record before;
    struct err why = { 0 };
    record_read(list, task->id, &before);
    record->state = TASK_RUNNING;
    record->began = clock_now_s();
    double cpu_s = clock_cpu_s();
    record->cpu_s = before.cpu_s;
    record->ended = 0;
    record->attempts = before.attempts + 1;
    record->error[0] = 0;
    if (!record_write(list, task->id, record, err))
        return false;
    *made = make_file(given, kind, task, record->host, ctx, &why);
    bool stopped = !*made && (why.kind == ERR_STOPPED || why.kind == ERR_REQUEUE);
    record->state = *made ? TASK_DONE : stopped ? TASK_STOPPED : TASK_FAILED;
    record->ended = clock_now_s();
    record->cpu_s += fmax(0, clock_cpu_s() - cpu_s);
    if (!*made)
        snprintf(record->error, sizeof record->error, "%.890s", why.text);
    if (!*made && !stopped)
        console_warn(ctx->console, "task %lld, %s: %s", (long long)task->id, task->slide, why.text);
    if (!record_write(list, task->id, record, err))
        return false;
    if (stopped)
        *err = why;
    return !stopped;
}

bool tasks_run(const struct task_list *list, const struct task_kind *kind, const int64_t *ids,
               int64_t n, const struct task_job *job, const struct ctx *ctx, struct err *err)
{
    struct task_record record = { .job_began = job->began,
                                  .limit_s = job->limit_s,
                                  .job_tasks = n,
                                  .threads = pool_workers(ctx->pool),
                                  .pid = (long)getpid() };
    gethostname(record.host, sizeof record.host - 1);
    snprintf(record.log, sizeof record.log, "%s", job->log);
    snprintf(record.submission, sizeof record.submission, "%s", job->submission);
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 1 || ids[i] > list->n)
            return err_set(err, ERR_USAGE, "%s: no task %lld; the list has tasks 1 to %lld",
                           list->folder, (long long)ids[i], (long long)list->n);
    struct task_given given;
    bool ok = task_given_open(list, kind, ctx, &given, err);
    int64_t failed = 0;
    for (int64_t i = 0; ok && i < n; i++) {
        const struct task *task = &list->items[ids[i] - 1];
        bool made = true;
        if (ctx_stopped(ctx))
            ok = err_stopped(err);
        else if (!task_complete(list, task))
            ok = run_one(&given, kind, task, &record, ctx, &made, err);
        failed += !made;
    }
    task_given_close(kind, &given);
    if (ok && failed > 0)
        ok = err_set(err, ERR_FORMAT, "%lld of %lld tasks failed", (long long)failed, (long long)n);
    return ok;
}
