/* cluster.c: see cluster.h. */
#include "cli/cluster.h"

#include <stdlib.h>
#include <string.h>
#include "base/claim.h"
#include "base/file.h"
#include "base/text.h"

extern const struct task_kind extract_tasks, predict_tasks, train_tasks;

const struct task_kind *const task_kinds[] = { &extract_tasks, &predict_tasks, &train_tasks, NULL };

bool cluster_parse(const struct task_list *list, const struct command *command,
                   struct cluster_given *out, struct err *err)
{
    out->argv = calloc((size_t)list->argc + 1, sizeof *out->argv);
    out->options = calloc(1, command->options_size);
    if (!out->argv || !out->options)
        return err_memory(err, "options");
    memcpy(out->argv, list->argv, (size_t)list->argc * sizeof *out->argv); /* parsing reorders it */
    return args_parse(&command->spec, list->argc - 1, out->argv + 1, out->options, &out->operands,
                      err);
}

void cluster_given_free(struct cluster_given *given)
{
    free(given->options);
    free(given->argv);
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

static char *slides_path(const char *folder)
{
    return text_format("%s/tasks/slides.csv", folder);
}

bool cluster_begin(const struct task_list *list, const struct slide_list *slides,
                   struct claim **claim, struct err *err)
{
    char *folder = text_format("%s/tasks", list->folder), *path = slides_path(list->folder);
    bool ok = (folder && path) || err_memory(err, "the task list");
    ok = ok && claim_take(list->folder, claim, err) && cluster_check_idle(list->folder, err) &&
         file_make_folder(folder, err) && slide_list_save(slides, path, err);
    free(folder);
    free(path);
    return ok;
}

bool cluster_slides(const struct task_list *list, struct slide_list *out, struct err *err)
{
    char *path = slides_path(list->folder);
    bool ok = path ? slide_list_load(path, out, err) : err_memory(err, "the tasks");
    free(path);
    return ok;
}
