/* submit.c: cluster_submit (submit.h). */
#include "cluster/submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/claim.h"
#include "base/divide.h"
#include "base/file.h"
#include "base/console.h"
#include "cluster/pack.h"
#include "cluster/shell.h"
#include "base/text.h"

#define MASTER_TIME_S 3600 /* of the job that only submits */

struct work {
    const struct task_list *list;
    const struct cluster_options *options;
    const struct scheduler *scheduler;
    struct site site;
    struct submission submission;
    struct packed packed;
    int64_t max_array, time_s;
    int64_t ranks; /* of a task */
    bool saves;    /* tasks save when warned, and their jobs are queued again */
    bool single;   /* one job; else arrays */
};

static char *in_tasks(const struct work *work, const char *name, const char *extension)
{
    return text_format("%s/tasks/%s-%lld%s", work->list->folder, name,
                       (long long)work->submission.number, extension);
}

/* "apptainer exec x.sif microtome", quoted. */
static bool script_program(FILE *script, const struct site *site, struct err *err)
{
    char self[4096] = "microtome";
    if (!site->container && !site->program) {
        ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
        if (length < 0)
            return err_errno(err, "/proc/self/exe", "read");
        self[length] = 0;
    }
    if (site->container)
        fprintf(script, "%s ", site->container);
    shell_quote(script, site->program ? site->program : self);
    return true;
}

/* Modules and setup lines. */
static void script_setup(FILE *script, const struct site *site)
{
    for (size_t i = 0; i < site->modules.n; i++)
        fprintf(script, "module load %s\n", site->modules.items[i]);
    for (size_t i = 0; i < site->setup.n; i++)
        fprintf(script, "%s\n", site->setup.items[i]);
}

/* runs: tasks, that is; else it only submits or merges. */
static void write_head(FILE *script, const struct work *work, const char *log_name, int64_t time_s,
                       bool runs)
{
    char log[4200];
    snprintf(log, sizeof log, "%s/tasks/log/%s.log", work->list->folder, log_name);
    struct job_request job = { .name = work->submission.name,
                               .log = log,
                               .options = work->options,
                               .site = &work->site,
                               .time_s = time_s,
                               .warned = runs && work->saves,
                               .ranks = runs && work->ranks > 1 ? work->ranks : 1 };
    fputs("#!/bin/bash\n", script);
    work->scheduler->directives(script, &job);
    for (size_t i = 0; i < work->site.flags.n; i++)
        fprintf(script, "%s %s\n", work->scheduler->mark, work->site.flags.items[i]);
}

static void write_tasks_folder(FILE *script, const struct work *work)
{
    fputs("tasks=", script);
    shell_quote(script, work->list->folder);
    fputs("/tasks\n", script);
}

/* Nodes that cannot see the folder report it, wherever their output goes. */
static void write_check(FILE *script)
{
    fputs("[ -e \"$tasks/list.csv\" ] || {\n"
          "    echo \"$(hostname): $tasks not found; results must be on a file system shared by "
          "all nodes\" >&2\n"
          "    exit 71\n"
          "}\n",
          script);
}

static void write_setup(FILE *script, const struct work *work)
{
    write_tasks_folder(script, work);
    fprintf(script, "export MICROTOME_SUBMISSION=%s\n", work->submission.name);
    write_check(script);
    script_setup(script, &work->site);
}

/* "microtome task FOLDER" */
static bool write_task(FILE *script, const struct work *work, struct err *err)
{
    if (!script_program(script, &work->site, err))
        return false;
    fputs(" task ", script);
    shell_quote(script, work->list->folder);
    return true;
}

/* After a command in the background: waits for it, hands on the warning about the time limit, and
 * has the job queued again if the command has saved and exits with 75. indent: of every line. */
static void write_waiting(FILE *script, const struct work *work, const char *indent)
{
    static const char *const before[] = {
        "child=$!",
        "trap 'kill -TERM $child' TERM USR1",
        "wait $child",
        "code=$?",
        "while [ $code -gt 128 ] && kill -0 $child 2>/dev/null; do",
        "    wait $child",
        "    code=$?",
        "done",
        "if [ $code -eq 75 ]; then",
        "    trap - TERM USR1",
    };
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        fprintf(script, "%s%s\n", indent, before[i]);
    fprintf(script, "%s    %s\n%s    exit $code\n%sfi\n", indent, work->scheduler->requeue, indent,
            indent);
}

static bool write_array(const struct work *work, FILE *script, struct err *err)
{
    write_head(script, work, work->scheduler->log_signs, work->submission.time_s, true);
    fprintf(script,
            "# One element of the array: runs the tasks on its line of jobs-%lld.txt. Tasks whose "
            "file\n# exists are skipped, so it can be run again at any time.\n",
            (long long)work->submission.number);
    write_setup(script, work);
    if (!work->saves)
        fputs("trap : USR1 # warns of the time limit: for the program, not for this shell\n",
              script);
    fprintf(script, "line=$((${MICROTOME_OFFSET:-0} + %s))\n", work->scheduler->element);
    fprintf(script,
            "export MICROTOME_JOB_BEGAN=$(date +%%s) MICROTOME_TIME_LIMIT=%lld \\\n"
            "    MICROTOME_LOG=\"log/%s.log\"\n",
            (long long)work->submission.time_s, work->scheduler->log_shell);
    fprintf(script, "for attempt in $(seq 0 %lld); do\n    ", (long long)work->options->retries);
    if (!write_task(script, work, err))
        return false;
    fprintf(script,
            " --threads %lld \\\n        $(sed -n \"${line}p\" \"$tasks/jobs-%lld.txt\")%s\n",
            (long long)work->options->cpus, (long long)work->submission.number,
            work->saves ? " &" : "");
    if (work->saves)
        write_waiting(script, work, "    ");
    else
        fputs("    code=$?\n", script);
    fputs("    case $code in 0 | 2 | 130) break ;; esac # done, usage error, stopped: no retry\n"
          "done\n"
          "exit $code\n",
          script);
    return true;
}

static bool write_last(const struct work *work, FILE *script, struct err *err)
{
    char log[64];
    snprintf(log, sizeof log, "last-%lld", (long long)work->submission.number);
    write_head(script, work, log, work->submission.time_s, false);
    fputs("# Runs when all elements have ended, successfully or not: merges the results; if any "
          "are\n# missing, reports them and exits with 1.\n",
          script);
    write_setup(script, work);
    if (!write_task(script, work, err))
        return false;
    fprintf(script, " --threads %lld --finish\n", (long long)work->options->cpus);
    return true;
}

/* The program runs in the background of the shell, which passes on the warning about the time
 * limit. */
static bool write_single(const struct work *work, FILE *script, struct err *err)
{
    char log[64];
    snprintf(log, sizeof log, "job-%lld", (long long)work->submission.number);
    write_head(script, work, log, work->submission.time_s, true);
    fputs("# Warned before its time is up, the program saves and exits with 75; then the job is\n# "
          "requeued and continues from there.\n",
          script);
    write_setup(script, work);
    fprintf(script,
            "export MICROTOME_JOB_BEGAN=$(date +%%s) MICROTOME_TIME_LIMIT=%lld "
            "MICROTOME_LOG=log/%s.log\n",
            (long long)work->submission.time_s, log);
    if (!write_task(script, work, err))
        return false;
    fprintf(script, " --threads %lld 1 &\n", (long long)work->options->cpus);
    write_waiting(script, work, "");
    if (!write_task(script, work, err))
        return false;
    fputs(" --finish\n", script);
    return true;
}

static bool write_submit(const struct work *work, FILE *script, struct err *err)
{
    (void)err;
    char log[64];
    snprintf(log, sizeof log, "submit-%lld", (long long)work->submission.number);
    write_head(script, work, log, work->submission.time_s > 0 ? MASTER_TIME_S : 0, false);
    fprintf(script,
            "# Submits the tasks as arrays of at most %lld elements, and the last job.\nset -eu\n",
            (long long)work->max_array);
    write_tasks_folder(script, work);
    work->scheduler->submit_functions(script, work->options, work->submission.number);
    for (int64_t done = 0; done < work->packed.n_jobs; done += work->max_array) {
        int64_t left = work->packed.n_jobs - done;
        fprintf(script, "submit_array %lld %lld\n", (long long)done,
                (long long)(left < work->max_array ? left : work->max_array));
    }
    fputs("submit_last\n", script);
    return true;
}

static bool write_jobs(const struct work *work, FILE *stream, struct err *err)
{
    (void)err;
    for (int64_t job = 0; job < work->packed.n_jobs; job++)
        for (int64_t i = work->packed.first[job]; i < work->packed.first[job + 1]; i++)
            fprintf(stream, "%lld%c", (long long)work->packed.ids[i],
                    i + 1 < work->packed.first[job + 1] ? ' ' : '\n');
    return true;
}

typedef bool (*writer)(const struct work *work, FILE *stream, struct err *err);

static bool write_one(const struct work *work, const char *name, const char *extension,
                      writer write, struct err *err)
{
    struct file_out out;
    char *path = in_tasks(work, name, extension);
    bool ok = path ? file_out_open(&out, path, err) : err_memory(err, name);
    free(path);
    if (!ok)
        return false;
    if (!write(work, out.stream, err)) {
        file_out_discard(&out);
        return false;
    }
    return file_out_commit(&out, err);
}

static bool write_scripts(const struct work *work, struct err *err)
{
    if (work->single)
        return write_one(work, "job", ".sh", write_single, err);
    return write_one(work, "jobs", ".txt", write_jobs, err) &&
           write_one(work, "array", ".sh", write_array, err) &&
           write_one(work, "last", ".sh", write_last, err) &&
           write_one(work, "submit", ".sh", write_submit, err);
}

static bool print_scripts(const struct work *work, FILE *out, struct err *err)
{
    static const char *const many[] = { "submit", "array", "last" }, *const one[] = { "job" };
    const char *const *names = work->single ? one : many;
    bool ok = true;
    for (size_t i = 0; ok && i < (work->single ? 1 : 3); i++) {
        char *text = NULL, *path = in_tasks(work, names[i], ".sh");
        ok = path ? file_read(path, 64 << 20, &text, NULL, err) : err_memory(err, names[i]);
        if (ok)
            fprintf(out, "==> %s <==\n%s\n", path, text);
        free(text);
        free(path);
    }
    if (ok)
        fprintf(out, "%lld tasks in %lld jobs; to submit by hand: %s %s/tasks/%s-%lld.sh\n",
                (long long)work->submission.tasks, (long long)work->submission.jobs,
                work->submission.arrays == 1 && !work->single ? "bash"
                : work->options->on == 1                      ? "sbatch"
                                                              : "qsub",
                work->list->folder, names[0], (long long)work->submission.number);
    return ok;
}

/* A task that ran out of its job's time gets a separate job next time; if it already had one, it
 * needs more time. */
static bool look_at_times(const struct work *work, const int64_t *ids, int64_t n, bool *alone,
                          struct err *err)
{
    int64_t limit = work->submission.time_s;
    for (int64_t i = 0; i < n; i++) {
        struct task_record record;
        record_read(work->list, ids[i], &record);
        if (!record_out_of_time(&record))
            continue;
        alone[i] = record.job_tasks > 1;
        if (!alone[i] && limit > 0 && limit <= record.limit_s)
            return err_set(err, ERR_USAGE,
                           "--time: task %lld (%s) did not finish within %lld s; pass a longer "
                           "--time, or make the tasks smaller",
                           (long long)ids[i], work->list->items[ids[i] - 1].slide,
                           (long long)record.limit_s);
    }
    return true;
}

/* What is not complete, as jobs. */
static bool pack_missing(struct work *work, struct err *err)
{
    const struct task_list *list = work->list;
    int64_t n = 0, *ids = calloc((size_t)list->n + 1, sizeof *ids);
    bool *alone = calloc((size_t)list->n + 1, sizeof *alone);
    bool ok = (ids && alone) || err_memory(err, "the task list");
    for (int64_t i = 0; ok && i < list->n; i++)
        if (!task_complete(list, &list->items[i]))
            ids[n++] = list->items[i].id;
    ok = ok && look_at_times(work, ids, n, alone, err) &&
         pack_tasks(list, ids, n, alone, work->options->jobs, &work->packed, err);
    work->submission.tasks = n;
    work->submission.jobs = ok ? work->packed.n_jobs : 0;
    work->submission.arrays = ok ? ceil_div(work->packed.n_jobs, work->max_array) : 0;
    free(ids);
    free(alone);
    return ok;
}

/* A program's words as one line. */
static void flatten(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != '\n')
            *to++ = *from;
        else if (from[1] && to > text)
            *to++ = ' ';
    *to = 0;
}

static bool submit(const struct work *work, struct err *err)
{
    char *script = in_tasks(work, work->single ? "job" : "submit", ".sh");
    struct said said = { 0 };
    struct err why = { 0 };
    bool ok = script || err_memory(err, "the submission");
    if (ok && (work->submission.arrays > 1 || work->single)) {
        ok = work->scheduler->submit(script, &why);
        flatten(why.text);
        if (!ok)
            work->scheduler->explain(why.text, work->options, err);
    } else if (ok) {
        ok = shell_run((char *[]){ "bash", script, NULL }, &said, err);
        char *text = ok && said.errors[0] ? said.errors : said.out;
        if (ok && said.code != 0) {
            flatten(text);
            ok = work->scheduler->explain(text, work->options, err);
            work->scheduler->cancel(work->submission.name, NULL); /* of what had been taken */
        }
    }
    said_free(&said);
    free(script);
    return ok;
}

static bool check_folder(const struct task_list *list, struct err *err)
{
    if (strpbrk(list->folder, "\"'\\%$`\n"))
        return err_set(err, ERR_USAGE,
                       "%s: schedulers interpret some characters of this path (quotes, %%, $); "
                       "choose a plainer name",
                       list->folder);
    return true;
}

static void say_next(const struct work *work, const struct ctx *ctx)
{
    const struct submission *submission = &work->submission;
    console_note(ctx->console,
                 "%lld tasks in %lld jobs were submitted to %s under the name %s%s.\n"
                 "  progress: microtome status %s\n  cancel:   microtome cancel %s\n"
                 "  logs:     %s/tasks/log",
                 (long long)submission->tasks, (long long)submission->jobs, work->scheduler->title,
                 submission->name,
                 submission->arrays > 1 ? ", through a master job that submits the arrays" : "",
                 work->list->folder, work->list->folder, work->list->folder);
}

/* Writes the list and what to do, and hands it to the scheduler. *any: there was something to do.
 */
static bool hand_over(struct work *work, bool *any, struct err *err)
{
    const struct cluster_options *options = work->options;
    bool ok = check_folder(work->list, err) &&
              (!options->time || time_parse(options->time, &work->time_s, err)) &&
              site_read(options->site, &work->site, err) &&
              work->scheduler->max_array(&work->max_array, err) &&
              submission_begin(work->list, work->scheduler, &work->submission, err) &&
              list_write(work->list, err);
    work->submission.time_s = work->time_s;
    ok = ok && pack_missing(work, err);
    *any = ok && work->packed.n_jobs > 0;
    if (*any) /* the name is on disk before any job: should we be killed here, it finds them */
        ok = write_scripts(work, err) && submission_write(work->list, &work->submission, err) &&
             (options->dry_run || submit(work, err));
    return ok;
}

static bool submit_list(const struct task_list *list, const struct task_request *request,
                        struct claim *claim, const struct ctx *ctx, FILE *out, struct err *err)
{
    const struct cluster_options *options = request->options;
    struct work work = { .list = list,
                         .options = options,
                         .scheduler = schedulers[options->on - 1],
                         .saves = request->kind->saves,
                         .single = request->kind->saves && list->n == 1,
                         .ranks = request->ranks };
    struct submission last;
    bool any = false, ok = hand_over(&work, &any, err);
    claim_release(claim);
    if (ok && !any) {
        console_note(ctx->console, "%s: all %lld tasks are complete; nothing submitted",
                     list->folder, (long long)list->n);
        ok = tasks_finish(list, request->kind, submission_read(list, &last) ? last.name : "", ctx,
                          out, err);
    } else if (ok && options->dry_run) {
        ok = print_scripts(&work, out, err);
    } else if (ok) {
        say_next(&work, ctx);
        if (options->wait)
            ok = submission_wait(list, &work.submission, ctx, out, err);
    }
    packed_free(&work.packed);
    site_free(&work.site);
    return ok;
}

/* Claims the folder, checks that no jobs use it, and keeps the slides for the tasks. */
static bool begin(const struct task_request *request, const struct task_list *list,
                  struct claim **claim, struct err *err)
{
    char *folder = text_format("%s/tasks", list->folder);
    bool ok = (folder || err_memory(err, "the task list")) &&
              claim_take(list->folder, claim, err) && cluster_check_idle(list->folder, err) &&
              file_make_folder(folder, err) &&
              (!request->kind->keeps_slides || task_slides_save(list, request->slides, err));
    free(folder);
    return ok;
}

bool cluster_submit(const struct task_request *request, const struct ctx *ctx, FILE *out,
                    struct err *err)
{
    struct task_list list = { 0 };
    struct claim *claim = NULL;
    bool ok = list_new(request->folder, request->kind->command->name, request->argc, request->argv,
                       &list, err) &&
              begin(request, &list, &claim, err) &&
              request->kind->list(request->request, ctx, &list, err);
    if (ok)
        ok = submit_list(&list, request, claim, ctx, out, err);
    else
        claim_release(claim);
    list_free(&list);
    return ok;
}
