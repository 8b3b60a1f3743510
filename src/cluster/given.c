/* given.c: what the tasks of one process share (tasks.h): the command line and the slides that the
 * list was made with, and the kind's state. */
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "cluster/tasks.h"

struct task_parsed {
    char **argv; /* which options and operands point into */
    void *options;
    struct args_result operands;
    struct slide_list slides;
};

static char *slides_path(const struct task_list *list)
{
    return text_format("%s/tasks/slides.csv", list->folder);
}

bool task_slides_save(const struct task_list *list, const struct slide_list *slides,
                      struct err *err)
{
    char *path = slides_path(list);
    bool ok = path ? slide_list_save(slides, path, err) : err_memory(err, "the task list");
    free(path);
    return ok;
}

static bool load_slides(const struct task_list *list, struct slide_list *out, struct err *err)
{
    char *path = slides_path(list);
    bool ok = path ? slide_list_load(path, out, err) : err_memory(err, "the tasks");
    free(path);
    return ok;
}

static bool parse(const struct task_list *list, const struct task_kind *kind,
                  struct task_parsed *out, struct err *err)
{
    out->argv = calloc((size_t)list->argc + 1, sizeof *out->argv);
    out->options = calloc(1, kind->options_size);
    if (!out->argv || !out->options)
        return err_memory(err, "options");
    memcpy(out->argv, list->argv, (size_t)list->argc * sizeof *out->argv); /* parsing reorders it */
    return args_parse(kind->command, list->argc - 1, out->argv + 1, out->options, &out->operands,
                      err);
}

bool task_given_open(const struct task_list *list, const struct task_kind *kind,
                     const struct ctx *ctx, struct task_given *out, struct err *err)
{
    struct task_parsed *parsed = calloc(1, sizeof *parsed);
    *out = (struct task_given){ .list = list, .parsed = parsed };
    if (!parsed)
        return err_memory(err, "the tasks");
    if (kind->state_size > 0 && !(out->state = calloc(1, kind->state_size)))
        return err_memory(err, "the tasks");
    out->operands = &parsed->operands;
    out->slides = &parsed->slides;
    if (!parse(list, kind, parsed, err) ||
        (kind->keeps_slides && !load_slides(list, &parsed->slides, err)))
        return false;
    out->options = parsed->options;
    return !kind->open || kind->open(out, ctx, err);
}

void task_given_close(const struct task_kind *kind, struct task_given *given)
{
    if (given->state && kind->close)
        kind->close(given->state);
    free(given->state);
    if (given->parsed) {
        slide_list_free(&given->parsed->slides);
        free(given->parsed->options);
        free(given->parsed->argv);
    }
    free(given->parsed);
    *given = (struct task_given){ 0 };
}

bool task_given_slide(const struct task_given *given, const struct task *task, size_t *out,
                      struct err *err)
{
    for (size_t i = 0; i < given->slides->n; i++)
        if (strcmp(given->slides->entries[i].name, task->slide) == 0) {
            *out = i;
            return true;
        }
    return err_set(err, ERR_FORMAT, "%s: not in tasks/slides.csv; submit again", task->slide);
}

struct run_outcome *task_given_outcomes(const struct task_given *given, const struct task_end *ends,
                                        struct err *err)
{
    const struct task_list *list = given->list;
    struct run_outcome *outcomes = calloc(given->slides->n + 1, sizeof *outcomes);
    size_t slide = 0;
    bool ok = outcomes || err_memory(err, "the slides");
    for (int64_t i = 0; ok && i < list->n; i++) {
        ok = task_given_slide(given, &list->items[i], &slide, err);
        if (!ok)
            break;
        outcomes[slide].seconds += ends[i].seconds;
        outcomes[slide].cpu_s += ends[i].cpu_s;
        if (!outcomes[slide].error)
            outcomes[slide].error = ends[i].error;
    }
    if (!ok) {
        free(outcomes);
        outcomes = NULL;
    }
    return outcomes;
}
