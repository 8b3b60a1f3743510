/* nuclei_tasks.c: microtome nuclei on a cluster: a task is a group of tiles of a slide. */
#include <stdlib.h>
#include "base/console.h"
#include "base/text.h"
#include "cli/nuclei.h"

struct nuclei_work {
    struct nuclei_request request;
    struct nuclei_slide slide; /* of the last task; its entry NULL: none yet */
    struct nuclei_net *net;    /* NULL: none */
};

static void tasks_close(void *state)
{
    struct nuclei_work *work = state;
    nuclei_slide_close(&work->slide);
    nuclei_net_close(work->net);
}

static bool tasks_open(const struct task_given *given, const struct ctx *ctx, struct err *err)
{
    struct nuclei_work *work = given->state;
    work->request.slides = given->slides;
    work->request.folder = given->list->folder;
    work->request.argc = given->list->argc;
    work->request.argv = given->list->argv;
    return nuclei_args_request(given->options, ctx, &work->request, &work->net, err);
}

static bool tasks_make(const struct task_given *given, const struct task *task, const char *path,
                       const struct ctx *ctx, struct err *err)
{
    (void)path; /* in place: it is where the group's part goes */
    struct nuclei_work *work = given->state;
    struct nuclei_slide *slide = &work->slide;
    size_t index = 0;
    if (!task_given_slide(given, task, &index, err))
        return false;
    if (slide->entry != &given->slides->entries[index]) {
        nuclei_slide_close(slide);
        if (!nuclei_slide_open(&work->request.options, &given->slides->entries[index],
                               work->request.folder, ctx, slide, err)) {
            nuclei_slide_close(slide);
            return false;
        }
    }
    if (task->part >= slide->n_groups)
        return err_set(err, ERR_FORMAT, "%s: has no group %lld; submit again", task->slide,
                       (long long)task->part);
    return nuclei_slide_group(slide, task->part, ctx, err);
}

static bool tasks_merge(const struct task_given *given, const struct task_end *ends,
                        const struct ctx *ctx, FILE *out, struct err *err)
{
    struct nuclei_work *work = given->state;
    const struct nuclei_args *options = given->options;
    struct nuclei_printer printer = { .out = out,
                                      .as_json = options->json,
                                      .truth = options->truth != NULL };
    struct run_outcome *tasks = task_given_outcomes(given, ends, err);
    struct nuclei_agreement all = { 0 };
    bool ok = tasks != NULL;
    work->request.tasks = tasks;
    work->request.on_slide = nuclei_print_slide;
    work->request.arg = &printer;
    ok = ok && nuclei_cohort(&work->request, ctx, &all, err);
    nuclei_print_end(&printer, &all);
    free(tasks);
    return ok;
}

static bool list_groups(const struct nuclei_slide *slide, struct task_list *list, struct err *err)
{
    const char *name = slide->entry->name;
    char *whole = text_format("%s_nuclei.json", name);
    bool ok = whole || err_memory(err, "the task list");
    for (int64_t group = 0; ok && group < slide->n_groups; group++) {
        int64_t first, tiles = nuclei_group_tiles(slide, group, &first);
        char *file = nuclei_part_path(name, group);
        ok = file ? list_add(list, name, group, (double)tiles, file, whole, slide->inputs, err)
                  : err_memory(err, "the task list");
        free(file);
    }
    free(whole);
    return ok;
}

/* One slide's groups. None are listed for a slide that is done; one that cannot be opened is
 * reported now and recorded at the end. */
static bool list_slide(const struct nuclei_request *request, size_t index, const struct ctx *ctx,
                       struct task_list *list, struct err *err)
{
    const struct slide_entry *entry = &request->slides->entries[index];
    struct nuclei_summary summary;
    struct nuclei_slide slide;
    struct err why = { 0 };
    bool done = false, ok = true;
    if (!nuclei_slide_done(&request->options, entry, request->folder, &done, &summary, err))
        return false;
    if (done)
        return true;
    if (nuclei_slide_open(&request->options, entry, request->folder, ctx, &slide, &why)) {
        ok = list_groups(&slide, list, err);
    } else if (why.kind == ERR_STOPPED) {
        *err = why;
        ok = false;
    } else {
        console_warn(ctx->console, "%s", why.text);
    }
    nuclei_slide_close(&slide);
    return ok;
}

/* The tissue is found by this process, the nuclei by jobs. */
static bool tasks_list(const void *given, const struct ctx *ctx, struct task_list *list,
                       struct err *err)
{
    const struct nuclei_request *request = given;
    bool ok = nuclei_prepare(request, err);
    console_begin(ctx->console, "planning", (int64_t)request->slides->n, "slides");
    for (size_t i = 0; ok && i < request->slides->n; i++) {
        ok = ctx_stopped(ctx) ? err_stopped(err) : list_slide(request, i, ctx, list, err);
        console_advance(ctx->console, 1);
    }
    console_end(ctx->console);
    return ok;
}

const struct task_kind nuclei_tasks = {
    .command = &cmd_nuclei.spec,
    .options_size = sizeof(struct nuclei_args),
    .state_size = sizeof(struct nuclei_work),
    .keeps_slides = true,
    .in_place = true,
    .list = tasks_list,
    .open = tasks_open,
    .run = tasks_make,
    .finish = tasks_merge,
    .close = tasks_close,
};
