/* submission.c: what a submission asks for, its record, and waiting for its end (submit.h). */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/file.h"
#include "base/json_file.h"
#include "base/json.h"
#include "base/console.h"
#include "cluster/submit.h"
#include "base/text.h"
#include "base/clock.h"

#define LOOK_EVERY_S 5    /* at the scheduler */
#define LEAVE_WITHIN_S 20 /* what schedulers take to forget a job that has ended */
#define STAT_PER_S 2000.0 /* files that waiting may look at, so that it is no load */
#define GONE_LOOKS 3      /* looks without any job of ours until they count as gone */

bool submission_read(const struct task_list *list, struct submission *out)
{
    *out = (struct submission){ 0 };
    char *path = text_format("%s/tasks/submission.json", list->folder);
    const char *scheduler = "", *name = "";
    json_int_t number = 0, tasks = 0, jobs = 0, arrays = 0, time_s = 0;
    json_t *root = path ? json_file_read(path, 1 << 16, NULL) : NULL;
    bool there =
        root && json_unpack(root, "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:F}", "scheduler",
                            &scheduler, "name", &name, "number", &number, "tasks", &tasks, "jobs",
                            &jobs, "arrays", &arrays, "time_s", &time_s, "at", &out->at) == 0;
    there = there && scheduler_named(scheduler) && strlen(name) < JOB_NAME;
    if (there) {
        snprintf(out->scheduler, sizeof out->scheduler, "%s", scheduler);
        snprintf(out->name, sizeof out->name, "%s", name);
        out->number = number;
        out->tasks = tasks;
        out->jobs = jobs;
        out->arrays = arrays;
        out->time_s = time_s;
    }
    json_decref(root);
    free(path);
    return there;
}

bool submission_write(const struct task_list *list, const struct submission *submission,
                      struct err *err)
{
    struct file_out out;
    if (!file_out_open_in(&out, list->folder, "tasks/submission.json", err))
        return false;
    struct json_out json;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "scheduler", submission->scheduler);
    json_out_text(&json, "name", submission->name);
    json_out_int(&json, "number", submission->number);
    json_out_int(&json, "tasks", submission->tasks);
    json_out_int(&json, "jobs", submission->jobs);
    json_out_int(&json, "arrays", submission->arrays);
    json_out_int(&json, "time_s", submission->time_s);
    json_out_real(&json, "at", submission->at);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

/* A name that no other submission has: folder, number, time, process and host. */
static void make_name(const struct task_list *list, int64_t number, char out[JOB_NAME])
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    char host[256] = "", text[600];
    gethostname(host, sizeof host - 1);
    snprintf(text, sizeof text, "%.200s %lld %s %ld %.6f", list->folder, (long long)number, host,
             (long)getpid(), clock_now_s());
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    snprintf(out, JOB_NAME, "mt%08x", (unsigned)(hash ^ (hash >> 32)));
}

bool submission_begin(const struct task_list *list, const struct scheduler *scheduler,
                      struct submission *out, struct err *err)
{
    struct submission last;
    struct job_counts counts = { 0 };
    bool before = submission_read(list, &last);
    if (before && !scheduler_named(last.scheduler)->look(last.name, &counts, err))
        return false;
    if (counts.waiting + counts.running + counts.held > 0)
        return err_set(err, ERR_IO,
                       "%s: jobs of an earlier submission are in the queue (%s: %lld waiting, %lld "
                       "running, %lld held); wait for them, or run 'microtome cancel %s' first",
                       list->folder, last.name, (long long)counts.waiting,
                       (long long)counts.running, (long long)counts.held, list->folder);
    *out = (struct submission){ .number = before ? last.number + 1 : 1, .at = clock_now_s() };
    snprintf(out->scheduler, sizeof out->scheduler, "%s", scheduler->name);
    make_name(list, out->number, out->name);
    return true;
}

static int64_t count_complete(const struct task_list *list)
{
    int64_t n = 0;
    for (int64_t i = 0; i < list->n; i++)
        n += task_complete(list, &list->items[i]);
    return n;
}

/* The jobs are gone and the last one left no result. */
static bool without_word(const struct task_list *list, const struct submission *submission,
                         struct err *err)
{
    for (int64_t i = 0; i < list->n; i++) {
        struct task_record record;
        record_read(list, list->items[i].id, &record);
        if (strcmp(record.submission, submission->name) == 0)
            return err_set(err, ERR_MISSING,
                           "%s: the jobs have ended, but the last one did not merge the results "
                           "(was it cancelled?); run the same command again to do the rest",
                           list->folder);
    }
    return err_set(err, ERR_MISSING,
                   "%s: the jobs have ended and no task started: can the nodes see this folder and "
                   "the program? Results must be on a file system shared by all nodes; the jobs' "
                   "logs are in %s/tasks/log",
                   list->folder, list->folder);
}

static bool jobs_gone(const struct scheduler *scheduler, const struct submission *submission,
                      int *looks, bool *held)
{
    struct job_counts counts;
    if (!scheduler->look(submission->name, &counts, NULL)) /* it may be restarting */
        return false;
    *held = counts.held > 0 && counts.waiting == counts.dependent && counts.running == 0;
    *looks = counts.waiting + counts.running + counts.held > 0 ? 0 : *looks + 1;
    return *looks >= GONE_LOOKS;
}

static void print_finished(const struct task_list *list, FILE *out)
{
    char *text = NULL, *path = text_format("%s/tasks/finished.txt", list->folder);
    if (path && file_read(path, 1 << 30, &text, NULL, NULL))
        fputs(text, out);
    free(text);
    free(path);
}

/* The last job has reported; while it is still in the queue the same command would be rejected.
 * Waits briefly until it has left. */
static void let_jobs_leave(const struct scheduler *scheduler, const struct submission *submission,
                           const struct ctx *ctx)
{
    const struct timespec pause = { 0, 250 * 1000 * 1000 };
    for (double until_s = clock_monotonic_s() + LEAVE_WITHIN_S;
         clock_monotonic_s() < until_s && !ctx_stopped(ctx); nanosleep(&pause, NULL)) {
        struct job_counts counts;
        struct err ignored = { 0 };
        if (!scheduler->look(submission->name, &counts, &ignored) ||
            counts.waiting + counts.running + counts.held == 0)
            return;
    }
}

bool submission_wait(const struct task_list *list, const struct submission *submission,
                     const struct ctx *ctx, FILE *out, struct err *err)
{
    const struct scheduler *scheduler = scheduler_named(submission->scheduler);
    double every_s = 0.5 + (double)list->n / STAT_PER_S, looked_s = clock_monotonic_s();
    int64_t shown = count_complete(list);
    int looks = 0;
    bool good = false, held = false, gone = false, ended;
    char text[900];
    console_begin(ctx->console, list->kind, list->n, "tasks");
    console_advance(ctx->console, shown);
    while (!(ended = tasks_finished(list, submission->name, &good, text)) && !gone && !held &&
           !ctx_stopped(ctx)) {
        struct timespec pause = { (time_t)every_s,
                                  (long)(1e9 * (every_s - (double)(time_t)every_s)) };
        nanosleep(&pause, NULL);
        int64_t complete = count_complete(list);
        if (complete > shown)
            console_advance(ctx->console, complete - shown);
        shown = complete > shown ? complete : shown;
        if (clock_monotonic_s() - looked_s >= LOOK_EVERY_S) {
            looked_s = clock_monotonic_s();
            gone = jobs_gone(scheduler, submission, &looks, &held);
        }
    }
    console_end(ctx->console);
    if (ended) {
        let_jobs_leave(scheduler, submission, ctx);
        print_finished(list, out);
        return good || err_set(err, ERR_MISSING, "%s", text);
    }
    if (ctx_stopped(ctx))
        return err_set(err, ERR_STOPPED,
                       "stopped waiting; the jobs continue: see 'microtome status %s', or end them "
                       "with 'microtome cancel %s'",
                       list->folder, list->folder);
    if (held)
        return err_set(err, ERR_MISSING,
                       "%s: the remaining jobs are held in an error state (%s); run 'microtome "
                       "cancel %s', then the same command again",
                       list->folder, submission->name, list->folder);
    return without_word(list, submission, err);
}

bool cluster_check(const struct cluster_options *options, struct err *err)
{
    if (options->on == 0 && (options->dry_run || options->wait || options->partition ||
                             options->account || options->time || options->site))
        return err_set(err, ERR_USAGE,
                       "--dry-run, --wait, --partition, --queue, --account, --time and --site need "
                       "--on slurm or --on sge");
    int64_t time_s, elements; /* what the submission asks again, before the work is planned */
    return options->on == 0 || ((!options->time || time_parse(options->time, &time_s, err)) &&
                                schedulers[options->on - 1]->max_array(&elements, err));
}

bool cluster_check_idle(const char *folder, struct err *err)
{
    struct task_list list = { .folder = (char *)folder };
    struct submission last;
    struct job_counts counts = { 0 };
    bool good = false;
    char text[900];
    if (!submission_read(&list, &last) || tasks_finished(&list, last.name, &good, text))
        return true;
    if (!scheduler_named(last.scheduler)->look(last.name, &counts, NULL))
        return err_set(err, ERR_IO,
                       "%s: jobs (%s) were submitted for this folder, and %s does not respond "
                       "here; if none of them is left, remove %s/tasks/submission.json",
                       folder, last.name, scheduler_named(last.scheduler)->title, folder);
    if (counts.waiting + counts.running == 0)
        return true;
    return err_set(
        err, ERR_IO,
        "%s: %lld jobs are using this folder; wait for them, or run 'microtome cancel %s' first",
        folder, (long long)(counts.waiting + counts.running), folder);
}
