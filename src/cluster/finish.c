/* finish.c: tasks_finish (tasks.h): counts what all tasks left, merges it and reports it. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "base/json_file.h"
#include "base/json.h"
#include "cluster/tasks.h"
#include "base/text.h"
#include "base/clock.h"

#define STATED 5 /* missing tasks that are named in the error */
#define OLD_WORK_S (24 * 3600)

static int by_time(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return x[0] != y[0] ? (x[0] > y[0] ? 1 : -1) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* The most tasks that ran at once. edges [2n, 2]: time, and +1 or -1. */
static int64_t most_at_once(double (*edges)[2], int64_t n)
{
    int64_t now = 0, most = 0;
    qsort(edges, (size_t)n, sizeof *edges, by_time);
    for (int64_t i = 0; i < n; i++) {
        now += edges[i][1] > 0 ? 1 : -1;
        most = now > most ? now : most;
    }
    return most;
}

static void count(const struct task_list *list, const struct task_record *records,
                  double (*edges)[2], struct account *out)
{
    double first = 0, last = 0;
    int64_t n_edges = 0;
    *out = (struct account){ .tasks = list->n };
    for (int64_t i = 0; i < list->n; i++) {
        const struct task_record *record = &records[i];
        out->complete += task_complete(list, &list->items[i]);
        if (record->state != TASK_DONE)
            continue;
        out->serial_s += record->ended - record->began;
        first = n_edges == 0 || record->began < first ? record->began : first;
        last = record->ended > last ? record->ended : last;
        edges[n_edges][0] = record->began, edges[n_edges++][1] = 1;
        edges[n_edges][0] = record->ended, edges[n_edges++][1] = -1;
    }
    out->workers = most_at_once(edges, n_edges);
    out->parallel_s = last - first;
    out->speed_up = out->parallel_s > 0 ? out->serial_s / out->parallel_s : 0;
    out->efficiency = out->workers > 0 ? out->speed_up / (double)out->workers : 0;
}

static const char *why_missing(struct task_record *record)
{
    if (record_out_of_time(record))
        return "its job reached its time limit; pass a longer --time";
    if (record->error[0])
        return record->error;
    return record->state == TASK_LEFT ? "did not start"
                                      : "ended without a message (killed, or its node was lost)";
}

/* "3 of 12 tasks have no result: 4 (slide_a): did not start; ..." */
static bool state_missing(const struct task_list *list, const struct task_end *ends,
                          const struct account *account, struct err *err)
{
    char text[700] = "";
    size_t used = 0;
    int64_t stated = 0;
    for (int64_t i = 0; i < list->n && stated < STATED && used < sizeof text; i++) {
        if (ends[i].complete)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "\n  task %lld, %s: %.200s",
                                 (long long)list->items[i].id, list->items[i].slide, ends[i].error);
        stated++;
    }
    return err_set(
        err, ERR_MISSING,
        "%lld of %lld tasks have no result; run the same command again to do only these:%s%s",
        (long long)(account->tasks - account->complete), (long long)account->tasks, text,
        account->tasks - account->complete > stated ? "\n  ..." : "");
}

/* What killed tasks left behind; what may still be written to is young. */
static void clear_work(const struct task_list *list, bool all_there)
{
    char *folder = text_format("%s/tasks/work", list->folder);
    DIR *dir = folder ? opendir(folder) : NULL;
    struct stat status;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &status, 0) == 0 &&
            (all_there || clock_now_s() - (double)status.st_mtime > OLD_WORK_S))
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    free(folder);
}

static bool write_finished(const struct task_list *list, const char *submission,
                           const struct account *account, bool ok, const char *text,
                           struct err *err)
{
    struct file_out out;
    if (!file_out_open_in(&out, list->folder, "tasks/finished.json", err))
        return false;
    struct json_out json;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "submission", submission);
    json_out_bool(&json, "ok", ok);
    json_out_text(&json, "text", text);
    json_out_real(&json, "at", clock_now_s());
    json_out_int(&json, "tasks", account->tasks);
    json_out_int(&json, "complete", account->complete);
    json_out_real(&json, "serial_s", account->serial_s);
    json_out_real(&json, "parallel_s", account->parallel_s);
    json_out_int(&json, "workers", account->workers);
    json_out_real(&json, "speed_up", account->speed_up);
    json_out_real(&json, "efficiency", account->efficiency);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

static void print_account(FILE *stream, const struct account *account)
{
    if (account->serial_s <= 0)
        return;
    fprintf(stream, "%10s %10s %12s %12s %10s %12s\n%10lld %10lld %12.1f %12.1f %10.2f %12.3f\n",
            "tasks", "workers", "serial s", "parallel s", "speed-up", "efficiency",
            (long long)account->complete, (long long)account->workers, account->serial_s,
            account->parallel_s, account->speed_up, account->efficiency);
}

static bool write_text(const struct task_list *list, const char *text, struct err *err)
{
    struct file_out out;
    if (!file_out_open_in(&out, list->folder, "tasks/finished.txt", err))
        return false;
    fputs(text, out.stream);
    return file_out_commit(&out, err);
}

static bool put_together(const struct task_list *list, const struct task_kind *kind,
                         const struct task_end *ends, const struct account *account,
                         const struct ctx *ctx, FILE *out, struct err *err)
{
    struct task_given given;
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return err_memory(err, "the results");
    bool ok = task_given_open(list, kind, ctx, &given, err) &&
              kind->finish(&given, ends, ctx, memory, err);
    task_given_close(kind, &given);
    if (account->complete < account->tasks)
        ok = state_missing(list, ends, account, err);
    print_account(memory, account);
    struct err other = { 0 };
    bool wrote = fclose(memory) == 0 && text;
    if (wrote) {
        fputs(text, out);
        wrote = write_text(list, text, ok ? err : &other);
    }
    free(text);
    return ok && wrote;
}

bool tasks_finish(const struct task_list *list, const struct task_kind *kind,
                  const char *submission, const struct ctx *ctx, FILE *out, struct err *err)
{
    size_t n = (size_t)list->n;
    struct task_record *records = calloc(n + 1, sizeof *records);
    struct task_end *ends = calloc(n + 1, sizeof *ends);
    double(*edges)[2] = calloc(2 * n + 1, sizeof *edges);
    struct account account;
    bool ok = (records && ends && edges) || err_memory(err, "the task list");
    for (size_t i = 0; ok && i < n; i++) {
        record_read(list, list->items[i].id, &records[i]);
        ends[i].complete = task_complete(list, &list->items[i]);
        ends[i].seconds = records[i].state == TASK_DONE ? records[i].ended - records[i].began : 0;
        ends[i].cpu_s = records[i].cpu_s;
        ends[i].error = ends[i].complete ? NULL : why_missing(&records[i]);
    }
    if (ok) {
        struct err why = { 0 };
        count(list, records, edges, &account);
        ok = put_together(list, kind, ends, &account, ctx, out, &why);
        clear_work(list, ok);
        bool wrote = write_finished(list, submission, &account, ok, why.text, err);
        if (wrote && !ok)
            *err = why;
        ok = ok && wrote;
    }
    free(records);
    free(ends);
    free(edges);
    return ok;
}

bool tasks_finished(const struct task_list *list, const char *submission, bool *ok, char text[900])
{
    char *path = text_format("%s/tasks/finished.json", list->folder);
    json_t *root = path ? json_file_read(path, 1 << 16, NULL) : NULL;
    const char *said = "", *name = "";
    int good = 0;
    bool there = root &&
                 json_unpack(root, "{s?s, s:b, s:s}", "submission", &name, "ok", &good, "text",
                             &said) == 0 &&
                 strcmp(name, submission) == 0;
    *ok = there && good;
    snprintf(text, 900, "%s", there ? said : "");
    json_decref(root);
    free(path);
    return there;
}
