/* explain_tasks.c: microtome explain on a cluster. map: a task makes the maps of a group of images,
 * or the stitched maps of one slide's lesions; the end merges them. A task's file only says that it
 * is done: what it made is in the subjects' folders. concepts: all of it is one task. */
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "base/identity.h"
#include "base/text.h"
#include "cli/explain.h"

extern const struct task_kind explain_tasks;

/* --- listing --- */

/* "groups/map_<first>_<hash>.txt": other subjects or options, another name. The caller's. */
static char *group_file(const struct map_run *run, int64_t first, int64_t end)
{
    uint64_t hash = IDENTITY_HASH_BEGIN;
    for (int64_t i = first; i < end; i++) {
        char *line = map_identity(run, &run->subjects->items[i]);
        if (!line)
            return NULL;
        hash = identity_hash(hash, line, strlen(line) + 1);
        free(line);
    }
    return text_format("groups/map_%lld_%016llx.txt", (long long)first, (unsigned long long)hash);
}

static bool list_group(const struct map_run *run, int64_t first, int64_t end,
                       struct task_list *list, struct err *err)
{
    const struct subject *subject = &run->subjects->items[first];
    char *file = group_file(run, first, end);
    bool done = true;
    for (int64_t i = first; i < end; i++)
        done = done && map_done(run, &run->subjects->items[i]);
    if (file && !done) /* one that failed is tried again */
        file_remove_in(list->folder, file);
    bool ok = file ? list_add(list, subject->name, first, (double)(end - first), file, "",
                              subject->inputs, err)
                   : err_memory(err, "the task list");
    free(file);
    return ok;
}

/* Stitched maps know by themselves whether they are there. */
static bool list_lesions(const struct map_run *run, struct task_list *list, struct err *err)
{
    const struct subjects *subjects = run->subjects;
    bool stitched = false, ok = true;
    for (int i = 0; i < run->n_columns; i++)
        stitched = stitched || run->columns[i].stitched;
    for (int64_t i = 0, next; ok && stitched && i < subjects->n_areas; i = next) {
        int32_t source = subjects->areas[i].source;
        double cost = 0;
        for (next = i; next < subjects->n_areas && subjects->areas[next].source == source; next++) {
            const struct subject_area *a = &subjects->areas[next];
            double windows = (double)((a->right - a->left) * (a->bottom - a->top)) /
                             (double)(run->window.window * run->window.window);
            cost += 4 * windows + 1;
        }
        uint64_t hash = identity_hash(IDENTITY_HASH_BEGIN, run->options, strlen(run->options));
        char *file = text_format("groups/lesions_%d_%016llx.txt", source, (unsigned long long)hash);
        ok = file ? list_add(list, "lesions", source, cost, file, "", "", err)
                  : err_memory(err, "the task list");
        free(file);
    }
    return ok;
}

/* "groups/concepts_<hash>.txt"; the caller's. */
static char *study_file(const struct concept_study *study)
{
    uint64_t hash = identity_hash(IDENTITY_HASH_BEGIN, study->line, strlen(study->line));
    return text_format("groups/concepts_%016llx.txt", (unsigned long long)hash);
}

static bool list_study(const struct explain_job *job, const struct ctx *ctx, struct task_list *list,
                       struct err *err)
{
    struct concept_session session;
    bool ok = concept_session_open(job->given, job->operands, job->n_operands, list->argc,
                                   list->argv, ctx, &session, err);
    char *results = ok ? concept_results_path(list->folder) : NULL;
    char *file = ok ? study_file(&session.study) : NULL;
    if (file && results && (job->given->overwrite || !file_exists(results)))
        file_remove_in(list->folder, file);
    ok = ok && (file && results ? list_add(list, "concepts", 0, 1, file, "", "", err)
                                : err_memory(err, "the task list"));
    free(file);
    free(results);
    concept_session_close(&session);
    return ok;
}

static bool tasks_list(const void *request, const struct ctx *ctx, struct task_list *list,
                       struct err *err)
{
    const struct explain_job *job = request;
    struct map_session session;
    int64_t group = job->given->group;
    if (strcmp(job->action, "concepts") == 0)
        return list_study(job, ctx, list, err);
    bool ok = map_session_open(job->given, job->operands, job->n_operands, ctx, &session, err) &&
              map_prepare(session.run, err);
    for (int64_t i = 0; ok && i < session.subjects.n; i += group) {
        int64_t end = i + group < session.subjects.n ? i + group : session.subjects.n;
        ok = list_group(session.run, i, end, list, err);
    }
    ok = ok && list_lesions(session.run, list, err);
    map_session_close(&session);
    return ok;
}

/* --- tasks --- */

/* Of one of the actions; the other is empty. */
struct explain_state {
    struct map_session map;
    struct concept_session study;
};

static bool is_study(const struct task_given *given)
{
    return strcmp(given->operands->operands[0], "concepts") == 0;
}

static bool tasks_open(const struct task_given *given, const struct ctx *ctx, struct err *err)
{
    struct explain_state *state = given->state;
    char *const *operands = given->operands->operands + 1;
    int n = given->operands->n_operands - 1;
    return is_study(given) ? concept_session_open(given->options, operands, n, given->list->argc,
                                                  given->list->argv, ctx, &state->study, err)
                           : map_session_open(given->options, operands, n, ctx, &state->map, err);
}

static void tasks_close(void *state)
{
    struct explain_state *both = state;
    map_session_close(&both->map);
    concept_session_close(&both->study);
}

static bool run_study(struct concept_session *session, const struct explain_args *options,
                      const struct task *task, const struct ctx *ctx, struct err *err)
{
    bool kept = false;
    char *file = study_file(&session->study);
    bool same = file && strcmp(file, task->file) == 0;
    free(file);
    if (!same)
        return err_set(err, ERR_FORMAT,
                       "the patches, the table or the model changed since the task was submitted; "
                       "submit again");
    return concept_study_make(&session->study, options->overwrite, ctx, &kept, err);
}

static bool run_group(const struct map_session *session, const struct explain_args *options,
                      const struct task *task, const struct ctx *ctx, struct err *err)
{
    int64_t n = session->subjects.n, first = task->part;
    int64_t end = first + options->group < n ? first + options->group : n;
    char *file = first < n ? group_file(session->run, first, end) : NULL;
    bool same = file && strcmp(file, task->file) == 0;
    free(file);
    if (!same)
        return err_set(err, ERR_FORMAT,
                       "%s: the images of this task are others than when it was submitted; submit "
                       "again",
                       task->slide);
    return map_make(session->run, first, end, ctx, err);
}

static bool tasks_run_one(const struct task_given *given, const struct task *task, const char *path,
                          const struct ctx *ctx, struct err *err)
{
    struct explain_state *state = given->state;
    const struct map_session *session = &state->map;
    struct file_out out;
    bool lesions = strcmp(task->slide, "lesions") == 0 &&
                   strncmp(task->file, "groups/lesions_", strlen("groups/lesions_")) == 0;
    bool ok = is_study(given) ? run_study(&state->study, given->options, task, ctx, err)
              : lesions       ? map_stitch(session->run, (int32_t)task->part, ctx, err)
                              : run_group(session, given->options, task, ctx, err);
    if (!ok || !file_out_open(&out, path, err))
        return false;
    fputs("done\n", out.stream);
    return file_out_commit(&out, err);
}

static bool tasks_finish_all(const struct task_given *given, const struct task_end *ends,
                             const struct ctx *ctx, FILE *out, struct err *err)
{
    /* of maps, what is missing is missing in explain.json too */
    const struct explain_state *state = given->state;
    return is_study(given) ? ends[0].complete && concept_session_print(given->options, out, err)
                           : map_session_finish(&state->map, given->options, ctx, out, err);
}

const struct task_kind explain_tasks = {
    .command = &cmd_explain.spec,
    .options_size = sizeof(struct explain_args),
    .state_size = sizeof(struct explain_state),
    .list = tasks_list,
    .open = tasks_open,
    .run = tasks_run_one,
    .finish = tasks_finish_all,
    .close = tasks_close,
};

bool explain_submit(struct app *app, const struct explain_job *job, struct err *err)
{
    const struct explain_args *given = job->given;
    struct task_request tasks = { .kind = &explain_tasks,
                                  .folder = given->output,
                                  .argc = app->argc,
                                  .argv = app->argv,
                                  .request = job,
                                  .options = &given->cluster };
    return cluster_submit(&tasks, &app->ctx, app->out, err);
}
