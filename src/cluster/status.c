/* status.c: see status.h. */
#include "cluster/status.h"

#include <stdlib.h>
#include <string.h>
#include "base/text.h"

#define LOG_LINES 5
#define LOG_BYTES 4000

/* The last lines of a file, the caller's; NULL if it cannot be read. */
static char *last_lines(const char *path)
{
    FILE *stream = fopen(path, "rb");
    char *text = stream ? calloc(LOG_BYTES + 1, 1) : NULL;
    if (text) {
        if (fseek(stream, -LOG_BYTES, SEEK_END) != 0)
            rewind(stream);
        size_t length = fread(text, 1, LOG_BYTES, stream);
        while (length > 0 && text[length - 1] == '\n')
            text[--length] = 0;
        size_t from = length;
        for (int lines = 0; from > 0 && lines < LOG_LINES; from--)
            lines += text[from - 1] == '\n';
        from += from > 0 ? 1 : 0;
        memmove(text, text + from, length - from + 1);
    }
    if (stream)
        fclose(stream);
    return text;
}

static void note_failed(const struct task_list *list, const struct task *task,
                        const struct task_record *record, struct status *status)
{
    if (status->n_failed == STATUS_FAILED)
        return;
    struct failed_task *failed = &status->failed[status->n_failed++];
    *failed = (struct failed_task){ .id = task->id, .slide = task->slide, .record = *record };
    char *path = record->log[0] && !strstr(record->log, "..")
                     ? text_format("%s/tasks/%s", list->folder, record->log)
                     : NULL;
    failed->log = path ? last_lines(path) : NULL;
    free(path);
}

static struct slide_status *slide_of(struct status *status, const struct task *task)
{
    struct slide_status *last = status->n_slides ? &status->slides[status->n_slides - 1] : NULL;
    if (last && strcmp(last->slide, task->slide) == 0) /* tasks of a slide follow each other */
        return last;
    last = &status->slides[status->n_slides++];
    last->slide = task->slide;
    return last;
}

static void count_task(struct slide_status *slide, enum task_state state)
{
    slide->tasks++;
    slide->done += state == TASK_DONE;
    slide->running += state == TASK_RUNNING;
    slide->failed += state == TASK_FAILED;
    slide->left += state == TASK_LEFT;
}

struct progress {
    double cost_done, cost_left; /* of what ended since the submission; of what is not done */
    int64_t ended;
    double first, last; /* when the first of them started and the last ended */
};

static enum task_state look_at(const struct task_list *list, const struct task *task, bool dead,
                               struct status *status, struct progress *progress)
{
    struct task_record record;
    record_read(list, task->id, &record);
    if (task_complete(list, task)) {
        if (record.state == TASK_DONE && status->submitted &&
            strcmp(record.submission, status->submission.name) == 0) {
            bool first = progress->ended++ == 0;
            progress->first =
                first || record.began < progress->first ? record.began : progress->first;
            progress->cost_done += task->cost;
            progress->last = record.ended > progress->last ? record.ended : progress->last;
        }
        return TASK_DONE;
    }
    progress->cost_left += task->cost;
    if (record.state == TASK_RUNNING && !dead)
        return TASK_RUNNING;
    if (record.state == TASK_LEFT)
        return TASK_LEFT;
    if (record.state == TASK_RUNNING || record.state == TASK_DONE) {
        record.state = TASK_FAILED;
        snprintf(record.error, sizeof record.error,
                 "ended without a message: killed, or lost with its "
                 "node");
    } else if (record_out_of_time(&record)) {
        snprintf(record.error, sizeof record.error,
                 "its job reached its time limit of %lld s; pass a longer --time",
                 (long long)record.limit_s);
    }
    note_failed(list, task, &record, status);
    return TASK_FAILED;
}

bool status_look(const struct task_list *list, struct status *out, struct err *err)
{
    *out = (struct status){ .left_s = -1 };
    struct progress progress = { 0 };
    out->slides = calloc((size_t)list->n + 1, sizeof *out->slides);
    if (!out->slides)
        return err_memory(err, "the status");
    out->submitted = submission_read(list, &out->submission);
    out->asked =
        out->submitted &&
        scheduler_named(out->submission.scheduler)->look(out->submission.name, &out->jobs, NULL);
    out->finished = tasks_finished(list, out->submission.name, &out->ok, out->word);
    out->claimed = claim_look(list->folder, &out->holder) && out->holder.alive;
    bool dead = out->finished || (out->asked && out->jobs.running == 0);
    for (int64_t i = 0; i < list->n; i++) {
        const struct task *task = &list->items[i];
        struct slide_status *slide = slide_of(out, task);
        enum task_state state = look_at(list, task, dead, out, &progress);
        count_task(slide, state);
        count_task(&out->all, state);
    }
    double took = progress.last - progress.first;
    if (progress.ended > 0 && took > 0) {
        out->rate_per_s = (double)progress.ended / took;
        if (progress.cost_done > 0 && !dead)
            out->left_s = progress.cost_left * took / progress.cost_done;
    }
    return true;
}

void status_free(struct status *status)
{
    for (int64_t i = 0; i < status->n_failed; i++)
        free(status->failed[i].log);
    free(status->slides);
    *status = (struct status){ 0 };
}
