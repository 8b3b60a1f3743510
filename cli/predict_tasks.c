/* predict_tasks.c: microtome predict on a cluster: a task is a group of blocks of a slide. */
#include <stdlib.h>
#include "base/console.h"
#include "cli/predict.h"
#include "base/text.h"

struct predict_work {
    struct predict_request request;
    struct predict *predict;    /* NULL until the first task */
    struct predict_slide slide; /* of the last task; its folder NULL: none yet */
};

static void tasks_close(void *state)
{
    struct predict_work *work = state;
    predict_leave(&work->slide);
    predict_close(work->predict);
}

static bool tasks_open(const struct task_given *given, const struct ctx *ctx, struct err *err)
{
    (void)ctx;
    struct predict_work *work = given->state;
    work->request.slides = given->slides;
    work->request.folder = given->list->folder;
    work->request.argc = given->list->argc;
    work->request.argv = given->list->argv;
    return predict_args_options(given->options, &work->request.options, err);
}

static bool tasks_score(const struct task_given *given, const struct task *task, const char *path,
                        const struct ctx *ctx, struct err *err)
{
    (void)path; /* in place: it is where the group's part goes */
    struct predict_work *work = given->state;
    struct predict_request *request = &work->request;
    size_t slide = 0;
    if (!task_given_slide(given, task, &slide, err))
        return false;
    if (!work->predict &&
        !predict_open(&request->options, given->slides, request->folder, ctx, &work->predict, err))
        return false;
    if (!work->slide.folder || slide != work->slide.index) {
        predict_leave(&work->slide);
        if (!predict_enter(work->predict, slide, &work->slide, err) ||
            !predict_partition(work->predict, &work->slide, ctx, err)) {
            predict_leave(&work->slide);
            return false;
        }
    }
    if (task->part >= work->slide.partition.n_groups)
        return err_set(err, ERR_FORMAT, "%s: has no group %lld; submit again", task->slide,
                       (long long)task->part);
    return predict_group(work->predict, &work->slide, task->part, ctx, err);
}

static bool tasks_stitch(const struct task_given *given, const struct task_end *ends,
                         const struct ctx *ctx, FILE *out, struct err *err)
{
    struct predict_work *work = given->state;
    struct run_outcome *tasks = task_given_outcomes(given, ends, err);
    struct predict_row *rows = calloc(given->slides->n + 1, sizeof *rows);
    struct predict_times times = { 0 };
    size_t n_rows = 0;
    bool ok = tasks && (rows || err_memory(err, "the slides"));
    work->request.tasks = tasks;
    ok = ok && predict_cohort(&work->request, ctx, rows, &n_rows, &times, err);
    predict_args_print(given->options, out, rows, n_rows, &times);
    free(tasks);
    free(rows);
    return ok;
}

static bool list_groups(const struct predict_slide *slide, const char *name, struct task_list *list,
                        struct err *err)
{
    const struct partition *partition = &slide->partition;
    char *whole = text_format("%s/heatmap.json", name);
    bool ok = whole || err_memory(err, "the task list");
    for (int64_t group = 0; ok && group < partition->n_groups; group++) {
        char *file = part_path(name, group);
        ok = file ? list_add(list, name, group, (double)partition->groups[group].cost, file, whole,
                             partition->info.inputs, err)
                  : err_memory(err, "the task list");
        free(file);
    }
    free(whole);
    return ok;
}

/* One slide's groups. None are listed for a slide that is done; one that cannot be planned is
 * reported now and recorded at the end. */
static bool list_slide(struct predict *predict, size_t index, const char *name,
                       const struct ctx *ctx, struct task_list *list, struct err *err)
{
    struct predict_slide slide;
    struct err why = { 0 };
    bool ok = true, entered = predict_enter(predict, index, &slide, &why);
    if (slide.state == PREDICT_DONE || slide.state == PREDICT_SCORED) {
        ok = true;
    } else if (entered && predict_partition(predict, &slide, ctx, &why)) {
        ok = list_groups(&slide, name, list, err);
    } else if (why.kind == ERR_STOPPED) {
        *err = why;
        ok = false;
    } else {
        console_warn(ctx->console, "%s", why.text);
    }
    predict_leave(&slide);
    return ok;
}

/* Slides are planned by this process and scored by jobs. */
static bool tasks_list(const void *given, const struct ctx *ctx, struct task_list *list,
                       struct err *err)
{
    const struct predict_request *request = given;
    struct predict *predict = NULL;
    bool ok =
        predict_open(&request->options, request->slides, request->folder, ctx, &predict, err) &&
        predict_prepare(request, predict, err);
    console_begin(ctx->console, "planning", (int64_t)request->slides->n, "slides");
    for (size_t i = 0; ok && i < request->slides->n; i++) {
        ok = ctx_stopped(ctx)
                 ? err_stopped(err)
                 : list_slide(predict, i, request->slides->entries[i].name, ctx, list, err);
        console_advance(ctx->console, 1);
    }
    console_end(ctx->console);
    predict_close(predict);
    return ok;
}

const struct task_kind predict_tasks = {
    .command = &cmd_predict.spec,
    .options_size = sizeof(struct predict_args),
    .state_size = sizeof(struct predict_work),
    .keeps_slides = true,
    .in_place = true,
    .list = tasks_list,
    .open = tasks_open,
    .run = tasks_score,
    .finish = tasks_stitch,
    .close = tasks_close,
};
