/* cmd_status.c: microtome status: what is done, failed and left in a run or a cluster's task list.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/json.h"
#include "cli/cluster.h"
#include "cli/status.h"
#include "cluster/folder_status.h"
#include "cluster/status.h"
#include "sweep/sweep_status.h"

#define WATCH_S 2
#define MAX_ROWS 40 /* of slides that are not done yet, on paper; --json has all */

struct status_args {
    struct common_options common;
    bool watch, json;
};

#define AT(field) offsetof(struct status_args, field)

static const struct arg args[] = {
    { .name = "watch",
      .letter = 'w',
      .type = ARG_FLAG,
      .offset = AT(watch),
      .help = "refresh until the jobs have ended" },
    FLAG_ARG("json", json, "print JSON"),
    COMMON_ARGS,
};

static void print_counts(FILE *out, const char *name, const struct slide_status *slide)
{
    fprintf(out, "%-32s %8lld %8lld %8lld %8lld %8lld\n", name, (long long)slide->tasks,
            (long long)slide->done, (long long)slide->running, (long long)slide->failed,
            (long long)slide->left);
}

static void print_failed(FILE *out, const struct task_list *list, const struct status *status)
{
    for (int64_t i = 0; i < status->n_failed; i++) {
        const struct failed_task *failed = &status->failed[i];
        fprintf(out, "\ntask %lld, %s, failed on %s (%lld tries): %s\n", (long long)failed->id,
                failed->slide, failed->record.host, (long long)failed->record.attempts,
                failed->record.error);
        if (failed->log)
            fprintf(out, "  %s/tasks/%s ends:\n", list->folder, failed->record.log);
        for (const char *line = failed->log; line && *line;) {
            size_t length = strcspn(line, "\n");
            fprintf(out, "    %.*s\n", (int)length, line);
            line += length + (line[length] == '\n');
        }
    }
}

static void print_end(FILE *out, const struct task_list *list, const struct status *status)
{
    if (status->rate_per_s > 0)
        fprintf(out, "\n%.3g tasks/s", status->rate_per_s);
    if (status->left_s > 0) {
        char left[32];
        time_print((int64_t)status->left_s, left);
        fprintf(out, ", about %s left", left);
    }
    if (status->submitted && status->asked)
        fprintf(out, "\n%s (%s): %lld jobs waiting, %lld running, %lld held in an error state",
                scheduler_named(status->submission.scheduler)->title, status->submission.name,
                (long long)status->jobs.waiting, (long long)status->jobs.running,
                (long long)status->jobs.held);
    else if (status->submitted)
        fprintf(out, "\n%s does not respond here; this is from the files alone",
                scheduler_named(status->submission.scheduler)->title);
    if (status->claimed)
        fprintf(out, "\nprocess %ld on %s has used the folder since %s", status->holder.pid,
                status->holder.host, status->holder.since);
    fprintf(out, "\nlogs: %s/tasks/log\n", list->folder);
    if (status->finished)
        fprintf(out, "finished: %s\n", status->ok ? "all results are merged" : status->word);
    else if (status->all.failed > 0)
        fputs("run the same command again to do only what is missing\n", out);
}

static void print_text(FILE *out, const struct task_list *list, const struct status *status)
{
    int64_t rows = 0;
    fprintf(out, "%-32s %8s %8s %8s %8s %8s\n", list->kind, "tasks", "done", "running", "failed",
            "left");
    for (int64_t i = 0; i < status->n_slides; i++) {
        const struct slide_status *slide = &status->slides[i];
        bool shown =
            status->n_slides <= MAX_ROWS || (slide->done < slide->tasks && rows < MAX_ROWS);
        if (shown)
            print_counts(out, slide->slide, slide);
        rows += shown;
    }
    if (rows < status->n_slides)
        fprintf(out, "(%lld more slides)\n", (long long)(status->n_slides - rows));
    print_counts(out, "all", &status->all);
    print_failed(out, list, status);
    print_end(out, list, status);
}

static void put_counts(struct json_out *json, const struct slide_status *slide)
{
    json_out_int(json, "tasks", slide->tasks);
    json_out_int(json, "done", slide->done);
    json_out_int(json, "running", slide->running);
    json_out_int(json, "failed", slide->failed);
    json_out_int(json, "left", slide->left);
}

static void put_failed(struct json_out *json, const struct status *status)
{
    json_out_array(json, "failures");
    for (int64_t i = 0; i < status->n_failed; i++) {
        const struct failed_task *failed = &status->failed[i];
        json_out_object_line(json, NULL);
        json_out_int(json, "task", failed->id);
        json_out_text(json, "slide", failed->slide);
        json_out_text(json, "host", failed->record.host);
        json_out_int(json, "attempts", failed->record.attempts);
        json_out_text(json, "error", failed->record.error);
        json_out_text(json, "log", failed->record.log);
        json_out_close_object(json);
    }
    json_out_close_array(json);
}

static void print_json(FILE *out, const struct task_list *list, const struct status *status)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    json_out_text(&json, "command", list->kind);
    json_out_text(&json, "folder", list->folder);
    put_counts(&json, &status->all);
    json_out_real(&json, "tasks_per_s", status->rate_per_s);
    json_out_real(&json, "seconds_left", status->left_s);
    json_out_text(&json, "scheduler", status->submitted ? status->submission.scheduler : NULL);
    json_out_text(&json, "jobs", status->submitted ? status->submission.name : NULL);
    json_out_bool(&json, "scheduler_answers", status->asked);
    json_out_int(&json, "jobs_waiting", status->jobs.waiting);
    json_out_int(&json, "jobs_running", status->jobs.running);
    json_out_int(&json, "jobs_held", status->jobs.held);
    json_out_bool(&json, "finished", status->finished);
    json_out_bool(&json, "ok", status->ok);
    json_out_text(&json, "word", status->word);
    json_out_array(&json, "slides");
    for (int64_t i = 0; i < status->n_slides; i++) {
        json_out_object_line(&json, NULL);
        json_out_text(&json, "slide", status->slides[i].slide);
        put_counts(&json, &status->slides[i]);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    put_failed(&json, status);
    json_out_close_object(&json);
    json_out_end(&json);
}

static void clear_screen(const struct status_args *given)
{
    if (given->watch && !given->json && isatty(STDOUT_FILENO))
        fputs("\033[H\033[2J", stdout); /* home, and clear the screen; app->out would escape it */
}

static bool show(struct app *app, const struct status_args *given, const struct task_list *list,
                 bool *ended, struct err *err)
{
    struct status status;
    if (!status_look(list, &status, err))
        return false;
    clear_screen(given);
    if (given->json)
        print_json(app->out, list, &status);
    else
        print_text(app->out, list, &status);
    *ended = status.finished || (status.asked && status.jobs.running + status.jobs.waiting == 0) ||
             status.all.done == status.all.tasks;
    status_free(&status);
    return fflush(app->out) == 0 || err_errno(err, "standard output", "write");
}

/* --- a run without a cluster --- */

static const char *word_of(const struct folder_status *status)
{
    bool whole = status->left == 0 && status->failed == 0;
    return status->claimed                             ? "running"
           : status->left > 0 && status->ended         ? "stopped"
           : !status->ended && status->units[0] == 'e' ? "running, or ended without a message"
           : !status->ended                            ? "ended without a message"
           : whole                                     ? "done"
                                                       : "done, except what failed";
}

static void print_folder(FILE *out, const struct folder_status *status, const char *folder)
{
    char took[32];
    fprintf(out, "%-32s %8s %8s %8s %8s %8s\n", status->command, status->units, "done", "kept",
            "failed", "left");
    fprintf(out, "%-32s %8lld %8lld %8lld %8lld %8lld\n", "all", (long long)status->planned,
            (long long)status->done, (long long)status->kept, (long long)status->failed,
            (long long)status->left);
    if (status->no_tissue > 0)
        fprintf(out, "slides without tissue: %lld\n", (long long)status->no_tissue);
    for (int64_t i = 0; i < status->failed && i < MAX_ROWS; i++)
        fprintf(out, "%s: %s\n", status->failures[i].slide, status->failures[i].error);
    if (status->failed > MAX_ROWS)
        fprintf(out, "(%lld more in %s/slides.csv)\n", (long long)(status->failed - MAX_ROWS),
                folder);
    time_print((int64_t)status->seconds, took);
    fprintf(out, "%s; took %s", word_of(status), took);
    if (!status->ended) {
        char age[32];
        time_print((int64_t)status->age_s, age);
        fprintf(out, " when last updated, %s ago", age);
    }
    fputc('\n', out);
    if (status->claimed)
        fprintf(out, "process %ld on %s has used the folder since %s\n", status->holder.pid,
                status->holder.host, status->holder.since);
    else if (status->left > 0 || status->failed > 0)
        fprintf(out, "run the same command %s to do only what is missing\n",
                status->units[0] == 'e' ? "with --resume" : "again");
}

static void print_folder_json(FILE *out, const struct folder_status *status, const char *folder)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    json_out_text(&json, "command", status->command);
    json_out_text(&json, "folder", folder);
    json_out_text(&json, "units", status->units);
    json_out_int(&json, "planned", status->planned);
    json_out_int(&json, "done", status->done);
    json_out_int(&json, "kept", status->kept);
    json_out_int(&json, "failed", status->failed);
    json_out_int(&json, "no_tissue", status->no_tissue);
    json_out_int(&json, "left", status->left);
    json_out_bool(&json, "running", status->claimed);
    json_out_bool(&json, "ended", status->ended);
    json_out_real(&json, "seconds", status->seconds);
    json_out_text(&json, "word", word_of(status));
    json_out_array(&json, "failures");
    for (int64_t i = 0; i < status->failed; i++) {
        json_out_object_line(&json, NULL);
        json_out_text(&json, "slide", status->failures[i].slide);
        json_out_text(&json, "error", status->failures[i].error);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

static bool show_folder(struct app *app, const struct status_args *given, const char *folder,
                        bool *ended, struct err *err)
{
    struct folder_status status;
    if (sweep_status_exists(folder)) {
        clear_screen(given);
        return status_sweep(app->out, folder, given->json, ended, err) &&
               (fflush(app->out) == 0 || err_errno(err, "standard output", "write"));
    }
    if (!folder_status_look(folder, &status, err))
        return false;
    clear_screen(given);
    (given->json ? print_folder_json : print_folder)(app->out, &status, folder);
    *ended = !status.claimed && (status.ended || status.units[0] == 's');
    folder_status_free(&status);
    return fflush(app->out) == 0 || err_errno(err, "standard output", "write");
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct status_args *given = options;
    const char *folder = operands->operands[0];
    struct task_list list = { 0 };
    bool ended = false, tasks = list_exists(folder), ok = !tasks || list_read(folder, &list, err);
    for (;;) {
        ok = ok && (tasks ? show(app, given, &list, &ended, err)
                          : show_folder(app, given, folder, &ended, err));
        if (!ok || !given->watch || ended || ctx_stopped(&app->ctx))
            break;
        struct timespec pause = { WATCH_S, 0 };
        nanosleep(&pause, NULL);
    }
    list_free(&list);
    return ok;
}

const struct command cmd_status = {
    .spec = { .name = "status",
              .summary = "show the progress of a run",
              .operands = "DIR",
              .min_operands = 1,
              .max_operands = 1,
              .description =
                  "Shows how many slides or epochs are done, kept, failed and left in the results "
                  "folder of extract, tissue, predict or train, and why slides failed; of a sweep, "
                  "every combination. For a "
                  "command run with --on slurm or --on sge: what is done, running, failed and left "
                  "for each slide, the rate and the time left, and the end of the log of a failed "
                  "task. It reads files; the scheduler's information is added if it responds.",
              .example = "microtome status results\nmicrotome status results --watch",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct status_args),
    .run = run,
};
