/* results.c: walks through the folders (results.h). */
#include "report/results.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/file.h"
#include "base/text.h"

#define MOST_DEPTH 2
#define MOST_PROBLEMS 50

bool results_room(void *array, size_t n, int64_t *room, size_t size, struct err *err)
{
    return array_grow(array, room, (int64_t)n + 1, size, "the results", err);
}

bool results_problem(struct results *results, const char *text, struct err *err)
{
    struct result_list *list = &results->problems;
    if (list->n == MOST_PROBLEMS)
        return true; /* the first ones are enough */
    if (!results_room(&list->items, list->n, &list->room, sizeof *list->items, err))
        return false;
    list->items[list->n] = strdup(text);
    return list->items[list->n++] ? true : err_memory(err, "the results");
}

struct result_slide *results_slide(struct results *results, const char *name)
{
    for (size_t i = 0; i < results->n_slides; i++)
        if (strcmp(results->slides[i].name, name) == 0)
            return &results->slides[i];
    if (!results_room(&results->slides, results->n_slides, &results->slides_room,
                      sizeof *results->slides, NULL))
        return NULL;
    struct result_slide *slide = &results->slides[results->n_slides];
    *slide = (struct result_slide){
        .name = strdup(name), .label = strdup(""), .score = NAN, .tissue_mm2 = NAN, .seconds = NAN
    };
    results->n_slides++;
    return slide->name && slide->label ? slide : NULL;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool take_heatmap(struct results *results, const char *folder, const char *name,
                         struct err *err)
{
    struct result_slide *slide = results_slide(results, name);
    if (!slide)
        return err_memory(err, folder);
    free(slide->heatmap);
    slide->heatmap = strdup(folder);
    return slide->heatmap || err_memory(err, folder);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

bool results_take_concepts(struct results *results, const char *folder, const char *path,
                           struct err *err)
{
    struct err why = { 0 };
    if (!results_room(&results->concepts, results->n_concepts, &results->concepts_room,
                      sizeof *results->concepts, err))
        return false;
    struct result_concepts *concepts = &results->concepts[results->n_concepts];
    *concepts = (struct result_concepts){ .folder = strdup(folder) };
    if (!concepts->folder)
        return err_memory(err, "the results");
    if (concept_results_read(path, &concepts->results, &why)) {
        results->n_concepts++;
        return true;
    }
    concept_results_free(&concepts->results);
    free(concepts->folder);
    return results_problem(results, why.text, err);
}

/* Tables of patches, which are no tables of slides. */
static bool beside_concepts(const char *folder)
{
    char *path = text_format("%s/concepts.json", folder);
    bool beside = path && file_exists(path);
    free(path);
    return beside;
}

static bool take_file(struct results *results, const char *folder, const char *name,
                      const char *path, struct err *err)
{
    if (strcmp(name, "metrics.csv") == 0)
        return results_take_training(results, folder, err);
    if (strcmp(name, "run.json") == 0)
        return results_take_run(results, folder, err);
    if (strcmp(name, "sweep.csv") == 0)
        return results_take_sweep(results, folder, err);
    if (strcmp(name, "concepts.json") == 0)
        return results_take_concepts(results, folder, path, err);
    if (ends_with(name, ".csv") && !beside_concepts(folder))
        return results_take_table(results, path, err);
    return true;
}

static bool same_folder(const char *a, const char *b)
{
    char *real_a = realpath(a, NULL), *real_b = b ? realpath(b, NULL) : NULL;
    bool same = real_a && real_b && strcmp(real_a, real_b) == 0;
    free(real_a);
    free(real_b);
    return same;
}

/* A complete training of a sweep in this folder: of these only `best`, a link, is shown. */
static bool is_combination(const char *folder, const char *name)
{
    char *sweep = text_format("%s/sweep.csv", folder);
    char *result = text_format("%s/%s/result.json", folder, name);
    bool is =
        sweep && result && strcmp(name, "best") != 0 && file_exists(sweep) && file_exists(result);
    free(sweep);
    free(result);
    return is;
}

/* What is below has been summarised; the stitched maps there are no heatmaps of scores. */
static bool is_explained(const char *folder)
{
    char *path = text_format("%s/explain.json", folder);
    bool is = path && file_exists(path);
    free(path);
    return is;
}

static bool visit(struct results *results, const char *folder, const char *except, int depth,
                  struct err *err)
{
    struct dirent **entries = NULL;
    if (same_folder(folder, except))
        return true;
    if (is_explained(folder))
        return results_take_explain(results, folder, err);
    int n = scandir(folder, &entries, is_visible, by_name);
    if (n < 0)
        return err_errno(err, folder, "read");
    bool ok = true;
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        char *path = ok ? text_format("%s/%s", folder, name) : NULL;
        char *facts = path ? text_format("%s/heatmap.json", path) : NULL;
        if (ok && !facts)
            ok = err_memory(err, folder);
        else if (ok && file_exists(facts))
            ok = take_heatmap(results, path, name, err);
        else if (ok && file_is_folder(path))
            ok = depth == MOST_DEPTH || is_combination(folder, name) ||
                 visit(results, path, except, depth + 1, err);
        else if (ok)
            ok = take_file(results, folder, name, path, err);
        free(facts);
        free(path);
        free(entries[i]);
    }
    free(entries);
    return ok;
}

static int by_slide_name(const void *a, const void *b)
{
    return strcmp(((const struct result_slide *)a)->name, ((const struct result_slide *)b)->name);
}

static void free_slide(struct result_slide *slide)
{
    free(slide->name);
    free(slide->path);
    free(slide->heatmap);
    free(slide->label);
    free(slide->annotation);
    free(slide->lesions);
    free(slide->error);
    results_free_whys(slide);
}

/* A slide list may name slides without results, such as those used for training. */
static void drop_bare_slides(struct results *results)
{
    size_t kept = 0;
    for (size_t i = 0; i < results->n_slides; i++) {
        struct result_slide *slide = &results->slides[i];
        if (slide->heatmap || slide->error || slide->lesions || isfinite(slide->score) ||
            slide->n_whys > 0)
            results->slides[kept++] = *slide;
        else
            free_slide(slide);
    }
    results->n_slides = kept;
}

bool results_read(char *const *folders, int n_folders, const char *except, const char *label_column,
                  struct results *out, struct err *err)
{
    *out = (struct results){ .label_column = label_column ? label_column : "label" };
    bool ok = true;
    for (int i = 0; ok && i < n_folders; i++) {
        if (!file_is_folder(folders[i]))
            ok = err_set(err, ERR_USAGE, "%s: not a folder of results", folders[i]);
        else if (same_folder(folders[i], except))
            ok = err_set(err, ERR_USAGE,
                         "%s: the page needs a separate folder; choose another one for -o",
                         folders[i]);
        else
            ok = visit(out, folders[i], except, 0, err);
    }
    if (ok) {
        drop_bare_slides(out);
        if (out->n_slides > 1)
            qsort(out->slides, out->n_slides, sizeof *out->slides, by_slide_name);
    }
    if (ok && out->n_slides == 0 && out->n_trainings == 0 && out->n_sweeps == 0 &&
        out->n_curves == 0 && out->n_confusions == 0 && out->n_concepts == 0)
        ok = err_set(
            err, ERR_MISSING,
            "%s: no results in this folder: no heatmaps (predict), slide scores "
            "(classify), curves (evaluate --plot or --points), training run (train), maps of "
            "slides or concepts (explain)",
            folders[0]);
    if (ok && label_column && !out->has_labels)
        ok = err_set(err, ERR_MISSING, "--label-column: no table of slides has a column '%s'%s%s%s",
                     label_column, out->slide_columns[0] ? " (columns of the last one: " : "",
                     out->slide_columns, out->slide_columns[0] ? ")" : "");
    if (!ok)
        results_free(out);
    return ok;
}

void results_free(struct results *results)
{
    for (size_t i = 0; i < results->n_slides; i++)
        free_slide(&results->slides[i]);
    for (size_t i = 0; i < results->n_runs; i++) {
        struct result_run *run = &results->runs[i];
        free(run->folder), free(run->command), free(run->version), free(run->began);
        free(run->arguments), free(run->state);
    }
    for (size_t i = 0; i < results->n_trainings; i++) {
        free(results->trainings[i].folder);
        free(results->trainings[i].network);
        csv_free(&results->trainings[i].metrics);
    }
    for (size_t i = 0; i < results->n_sweeps; i++) {
        free(results->sweeps[i].folder);
        csv_free(&results->sweeps[i].table);
    }
    for (size_t i = 0; i < results->n_curves; i++) {
        free(results->curves[i].name);
        free(results->curves[i].x); /* y is the second half */
    }
    for (size_t i = 0; i < results->n_concepts; i++) {
        free(results->concepts[i].folder);
        concept_results_free(&results->concepts[i].results);
    }
    free(results->concepts);
    for (size_t i = 0; i < results->n_confusions; i++) {
        free(results->confusions[i].name);
        confusion_free(&results->confusions[i].matrix);
    }
    for (size_t i = 0; i < results->problems.n; i++)
        free(results->problems.items[i]);
    free(results->slides), free(results->runs), free(results->trainings), free(results->curves);
    free(results->sweeps), free(results->confusions);
    free(results->problems.items);
    *results = (struct results){ 0 };
}
