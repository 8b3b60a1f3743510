/* subject.c: what all kinds of subjects share (subject.h). */
#include "explain/subject.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/text.h"
#include "heatmap/heatmap.h"

const char *const subject_pick_names[] = { "strongest", "lesions", "random", NULL };

struct subject *subjects_add(struct subjects *subjects, const char *name, const char *file,
                             const char *slide, struct err *err)
{
    if (!array_grow(&subjects->items, &subjects->room, subjects->n + 1, sizeof *subjects->items,
                    "the list of images", err))
        return NULL;
    struct subject *subject = &subjects->items[subjects->n];
    *subject = (struct subject){
        .name = strdup(name), .file = strdup(file), .slide = strdup(slide), .x_l0 = -1, .y_l0 = -1
    };
    subject->found = NAN;
    subjects->n++;
    if (subject->name && subject->file && subject->slide)
        return subject;
    err_memory(err, "the list of images");
    return NULL;
}

static bool holds_heatmap(const char *folder)
{
    static const char *const files[] = { "heatmap.json", "plan.json" };
    bool found = false;
    for (size_t i = 0; !found && i < sizeof files / sizeof *files; i++) {
        char *path = text_format("%s/%s", folder, files[i]);
        found = path && file_exists(path);
        free(path);
    }
    return found;
}

static bool is_heatmaps(const char *path)
{
    char **names = NULL;
    size_t n = 0;
    bool found = file_is_folder(path) && holds_heatmap(path);
    if (!found && file_is_folder(path) && folder_names(path, NULL, &names, &n, NULL))
        for (size_t i = 0; !found && i < n; i++) {
            char *below = text_format("%s/%s", path, names[i]);
            found = below && holds_heatmap(below);
            free(below);
        }
    folder_names_free(names, n);
    return found;
}

bool subjects_are_heatmaps(char *const *paths, int n_paths)
{
    bool any = false;
    for (int i = 0; i < n_paths; i++)
        any = any || is_heatmaps(paths[i]);
    return any;
}

void subject_name_file(char *name)
{
    for (char *at = name; *at; at++)
        if (*at == '/' || *at == '\\' || iscntrl((unsigned char)*at))
            *at = '_';
    if (name[0] == '.')
        name[0] = '_';
}

static bool is_reserved(const char *name)
{
    static const char *const reserved[] = { "",           "cache",    "tasks",
                                            "maps",       "groups",   "explain.json",
                                            "index.html", "run.json", "redrawn.json" };
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(name, reserved[i]) == 0)
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    const struct subject *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);
    return order ? order : (*x > *y) - (*x < *y);
}

static bool number_names(struct subject **same, int64_t n, struct err *err)
{
    for (int64_t i = 0; i < n; i++) {
        char *longer = text_format("%s~%lld", same[i]->name, (long long)(i + 1));
        if (!longer)
            return err_memory(err, "the list of images");
        free(same[i]->name);
        same[i]->name = longer;
    }
    return true;
}

/* Names that occur twice get a number, in the order of the list. */
static bool make_unique(struct subjects *subjects, struct err *err)
{
    int64_t n = subjects->n, end = 0;
    struct subject **sorted = malloc((size_t)(n + 1) * sizeof *sorted);
    bool ok = sorted || err_memory(err, "the list of images");
    for (int64_t i = 0; ok && i < n; i++) {
        sorted[i] = &subjects->items[i];
        subject_name_file(sorted[i]->name);
    }
    if (ok && n > 1)
        qsort(sorted, (size_t)n, sizeof *sorted, by_name);
    for (int64_t i = 0; ok && i < n; i = end) {
        for (end = i + 1; end < n && strcmp(sorted[end]->name, sorted[i]->name) == 0;)
            end++;
        if (end - i > 1 || is_reserved(sorted[i]->name))
            ok = number_names(sorted + i, end - i, err);
    }
    if (ok && n > 1)
        qsort(sorted, (size_t)n, sizeof *sorted, by_name);
    for (int64_t i = 1; ok && i < n; i++)
        if (strcmp(sorted[i]->name, sorted[i - 1]->name) == 0)
            ok = err_set(err, ERR_USAGE, "%s and %s would both be called %s; rename one",
                         sorted[i - 1]->file, sorted[i]->file, sorted[i]->name);
    free(sorted);
    return ok;
}

bool subjects_find(const struct subject_request *request, const struct ctx *ctx,
                   struct subjects *out, struct err *err)
{
    const struct model_config *config = &request->model->config;
    struct heatmap_info classes = { .n_classes = config->num_classes,
                                    .class_names = config->class_names };
    *out = (struct subjects){ 0 };
    if (!heatmap_find_class(&classes, request->class_name, &out->class_index, err))
        return err_prefix(err, request->model->name);
    bool windows = subjects_are_heatmaps(request->paths, request->n_paths);
    return (windows ? subjects_find_windows(request, ctx, out, err)
                    : subjects_find_images(request, ctx, out, err)) &&
           make_unique(out, err);
}

void subjects_free(struct subjects *subjects)
{
    for (int64_t i = 0; i < subjects->n; i++) {
        free(subjects->items[i].name);
        free(subjects->items[i].file);
        free(subjects->items[i].slide);
    }
    free(subjects->items);
    free(subjects->areas);
    if (subjects->kind)
        subjects->kind->close(subjects->state);
    *subjects = (struct subjects){ 0 };
}

bool subjects_enter(struct subjects *subjects, int32_t source, struct err *err)
{
    return subjects->kind->enter(subjects, source, err);
}

bool subjects_read(struct subjects *subjects, const struct subject *subject, struct image *out,
                   struct err *err)
{
    return subjects->kind->read(subjects, subject, out, err);
}
