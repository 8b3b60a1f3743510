/* record.c: see record.h. */
#include "cluster/record.h"

#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json_file.h"
#include "base/json.h"
#include "base/text.h"

#define MAX_RECORD_BYTES (1 << 16)
#define LIMIT_SLACK_S 60 /* schedulers warn so long before the limit, or let it pass by so much */

const char *const task_state_names[] = { "left", "running", "done", "failed", "stopped", NULL };

static void write_fields(FILE *stream, const struct task_record *record)
{
    struct json_out json;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "state", task_state_names[record->state]);
    json_out_real(&json, "began", record->began);
    json_out_real(&json, "ended", record->ended);
    json_out_real(&json, "cpu_s", record->cpu_s);
    json_out_real(&json, "job_began", record->job_began);
    json_out_int(&json, "limit_s", record->limit_s);
    json_out_int(&json, "job_tasks", record->job_tasks);
    json_out_int(&json, "threads", record->threads);
    json_out_int(&json, "attempts", record->attempts);
    json_out_text(&json, "submission", record->submission);
    json_out_text(&json, "host", record->host);
    json_out_int(&json, "pid", record->pid);
    json_out_text(&json, "log", record->log);
    json_out_text(&json, "error", record->error);
    json_out_close_object(&json);
    json_out_end(&json);
}

/* Not synced: it is a hint. */
bool record_write(const struct task_list *list, int64_t id, const struct task_record *record,
                  struct err *err)
{
    char *path = text_format("%s/tasks/record/%lld.json", list->folder, (long long)id);
    struct file_out out;
    bool ok = path ? file_out_open(&out, path, err) : err_memory(err, "a task's record");
    free(path);
    if (!ok)
        return false;
    write_fields(out.stream, record);
    return file_out_rename(&out, err);
}

static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text);
}

static enum task_state state_named(const char *name)
{
    for (int i = 0; task_state_names[i]; i++)
        if (strcmp(task_state_names[i], name) == 0)
            return (enum task_state)i;
    return TASK_LEFT;
}

void record_read(const struct task_list *list, int64_t id, struct task_record *out)
{
    *out = (struct task_record){ 0 };
    char *path = text_format("%s/tasks/record/%lld.json", list->folder, (long long)id);
    const char *state = "", *submission = "", *host = "", *log = "", *error = "";
    json_int_t limit_s = 0, job_tasks = 0, threads = 0, attempts = 0, pid = 0;
    json_t *root = path ? json_file_read(path, MAX_RECORD_BYTES, NULL) : NULL;
    if (root &&
        json_unpack(root, "{s:s, s:F, s:F, s?F, s:F, s:I, s:I, s:I, s:I, s?s, s:s, s:I, s:s, s:s}",
                    "state", &state, "began", &out->began, "ended", &out->ended, "cpu_s",
                    &out->cpu_s, "job_began", &out->job_began, "limit_s", &limit_s, "job_tasks",
                    &job_tasks, "threads", &threads, "attempts", &attempts, "submission",
                    &submission, "host", &host, "pid", &pid, "log", &log, "error", &error) == 0) {
        out->state = state_named(state);
        out->limit_s = limit_s;
        out->job_tasks = job_tasks;
        out->threads = threads;
        out->attempts = attempts;
        out->pid = (long)pid;
        copy_text(out->submission, sizeof out->submission, submission);
        copy_text(out->host, sizeof out->host, host);
        copy_text(out->log, sizeof out->log, log);
        copy_text(out->error, sizeof out->error, error);
    } else {
        *out = (struct task_record){ 0 };
    }
    json_decref(root);
    free(path);
}

bool record_out_of_time(const struct task_record *record)
{
    int64_t slack_s = record->limit_s / 4 < LIMIT_SLACK_S ? record->limit_s / 4 : LIMIT_SLACK_S;
    return record->state == TASK_STOPPED && record->limit_s > 0 && record->job_began > 0 &&
           record->ended - record->job_began >= (double)(record->limit_s - slack_s);
}
