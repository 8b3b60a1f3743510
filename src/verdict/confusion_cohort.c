/* confusion_cohort.c: see confusion_cohort.h. */
#include "verdict/confusion_cohort.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/console.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/names.h"
#include "verdict/heat_field.h"
#include "verdict/slide_table.h"

#define BAND_BYTES (INT64_C(16) << 20)

struct work {
    const struct truth_list *truth;
    const struct confusion_rules *rules;
    const struct ctx *ctx;
    size_t n_scores;          /* of a cell: one per class, or a single one */
    int of_place[TRUTH_NONE]; /* the class of a place in the class map */
    struct confusion_cohort *out;
};

/* --- classes --- */

/* A single score is one class against the rest. */
static bool take_classes(struct work *work, const struct class_list *scores, struct err *err)
{
    struct class_list classes = { 0 };
    const char *rest = "normal";
    bool ok = scores->n > 1 || class_list_add(&classes, rest, strlen(rest), err);
    for (size_t i = 0; ok && i < scores->n; i++)
        ok = class_list_add(&classes, scores->names[i], strlen(scores->names[i]), err);
    ok = ok && confusion_new(&classes, &work->out->confusion, err);
    class_list_free(&classes);
    work->n_scores = scores->n;
    return ok;
}

/* Where the classes of the truth are among those of the heatmaps. */
static bool match_classes(struct work *work, struct err *err)
{
    const struct class_map *map = work->truth->class_map;
    const struct class_list *classes = &work->out->confusion.classes;
    for (int place = 0; place < class_map_n(map); place++) {
        char names[300];
        work->of_place[place] = class_list_find_name(classes, class_map_class(map, place));
        if (work->of_place[place] < 0 && class_map_is_plain(map) && classes->n == 2) {
            int other = class_list_find_name(classes, class_map_class(map, 1 - place));
            work->of_place[place] = other < 0 ? place : 1 - other; /* a class by another name */
        }
        if (work->of_place[place] < 0)
            return err_set(
                err, ERR_FORMAT,
                "class '%s' of the truth is not a class of the scores (%s); map drawn "
                "names to these classes, exclusion or ignore with --class-map",
                class_map_class(map, place),
                names_join((const char *const *)classes->names, classes->n, names, sizeof names));
    }
    return true;
}

/* The classes of a slide's scores: those of the first slide. */
static bool check_classes(struct work *work, const char *slide, const struct class_list *scores,
                          struct err *err)
{
    const struct class_list *classes = &work->out->confusion.classes;
    if (!work->n_scores)
        return (scores->n > 0 || err_set(err, ERR_FORMAT, "%s: no scores of classes", slide)) &&
               take_classes(work, scores, err) && match_classes(work, err);
    bool same = scores->n == work->n_scores;
    for (size_t i = 0; same && i < scores->n; i++)
        same = strcmp(scores->names[i], classes->names[classes->n - scores->n + i]) == 0;
    return same || err_set(err, ERR_FORMAT,
                           "slide '%s' has other classes than the first one; evaluate the results "
                           "of one model at a time",
                           slide);
}

/* --- one slide --- */

static int called_class(const struct work *work, const float *scores)
{
    int best = 0;
    if (work->out->confusion.classes.n == 2)
        return scores[work->n_scores - 1] >= (float)work->rules->threshold;
    for (size_t k = 1; k < work->n_scores; k++)
        best = scores[k] > scores[best] ? (int)k : best;
    return best;
}

/* place: the true class, or TRUTH_NONE. */
static void count(struct work *work, struct confusion_slide *slide, const float *scores, int place)
{
    const bool scored = !isnan(scores[0]);
    slide->unlabelled += scored && place == TRUTH_NONE;
    slide->unscored +=
        !scored && place != TRUTH_NONE && place != class_map_unlabelled(work->truth->class_map);
    if (!scored || place == TRUTH_NONE)
        return;
    const int truth = work->of_place[place], called = called_class(work, scores);
    confusion_add(&work->out->confusion, truth, called, 1);
    slide->counted++;
    slide->right += truth == called;
}

/* The truth of a slide; *skipped: it has none, which is allowed. */
static bool open_truth(struct work *work, const struct annotation_slide *slide,
                       struct truth_source *out, bool *skipped, struct err *err)
{
    const struct truth_entry *entry = NULL;
    *out = (struct truth_source){ 0 };
    if (!truth_list_entry(work->truth, slide->name, work->rules->allow_missing, &entry, skipped,
                          err))
        return false;
    work->out->left_out += *skipped;
    return *skipped || truth_source_open(entry ? entry->path : NULL, slide, work->truth->class_map,
                                         work->rules->downsample, out, err);
}

static bool new_slide(struct work *work, const char *name, struct confusion_slide **out,
                      struct err *err)
{
    *out = &work->out->slides[work->out->n];
    (*out)->slide = strdup(name);
    work->out->n += (*out)->slide != NULL;
    return (*out)->slide || err_memory(err, name);
}

static bool count_cells(struct work *work, const struct heatmap *heatmap,
                        const struct truth_source *truth, struct confusion_slide *slide,
                        struct err *err)
{
    const struct heatmap_info *info = heatmap_info(heatmap);
    const int64_t band = heatmap_rows_in(info, BAND_BYTES);
    float *scores = malloc((size_t)(band * info->width * info->n_classes) * sizeof *scores);
    bool ok = scores || err_memory(err, info->slide);
    for (int64_t row = 0; ok && row < info->height; row += band) {
        int64_t n = info->height - row < band ? info->height - row : band;
        struct image rows = { 0 };
        ok = (!ctx_stopped(work->ctx) || err_stopped(err)) &&
             heatmap_read_rows(heatmap, row, n, scores, err) &&
             truth_source_classes(truth, info, row, n, &rows, err);
        for (int64_t i = 0; ok && i < n * info->width; i++)
            count(work, slide, scores + i * info->n_classes, rows.px[i]);
        image_free(&rows);
    }
    free(scores);
    return ok;
}

static bool do_heatmap(struct work *work, const char *folder, struct err *err)
{
    struct heatmap *heatmap = NULL;
    if (!heatmap_open(folder, &heatmap, err))
        return false;
    const struct heatmap_info *info = heatmap_info(heatmap);
    const struct class_list classes = { info->class_names, (size_t)info->n_classes };
    const struct annotation_slide named = { info->slide, info->width_l0, info->height_l0 };
    struct confusion_slide *slide = NULL;
    struct truth_source truth = { 0 };
    bool skipped = false;
    bool ok = heatmap_need_scores(info, "evaluate confusion", err) &&
              check_classes(work, info->slide, &classes, err) &&
              open_truth(work, &named, &truth, &skipped, err);
    if (ok && !skipped)
        ok = new_slide(work, info->slide, &slide, err) &&
             count_cells(work, heatmap, &truth, slide, err);
    truth_source_close(&truth);
    heatmap_close(heatmap);
    return ok;
}

/* --- tables of tiles --- */

static const char *const box_columns[4] = { "minx", "miny", "width", "height" };

bool confusion_is_tiles(const char *path)
{
    struct csv csv;
    if (file_is_folder(path) || !csv_read(path, &csv, NULL))
        return false;
    bool all = true;
    for (int i = 0; i < 4; i++)
        all = all && csv_column(&csv, box_columns[i]) >= 0;
    csv_free(&csv);
    return all;
}

/* "a/test_001.csv" and "a/test_001/tiles.csv" -> "test_001"; the caller's. */
static char *tiles_slide(const char *path)
{
    char *copy = strdup(path);
    char *slash = copy ? strrchr(copy, '/') : NULL;
    if (slash && strcasecmp(slash, "/tiles.csv") == 0)
        *slash = 0;
    char *name = copy ? strdup(slide_table_name(copy)) : NULL;
    free(copy);
    return name;
}

static bool cell_number(const struct csv *csv, size_t row, int column, double *out, struct err *err)
{
    const char *cell = csv_cell(csv, row, column);
    char *end = NULL;
    *out = strtod(cell, &end);
    return (end != cell && !*end && isfinite(*out)) ||
           err_set(err, ERR_FORMAT, "%s:%d: column '%s': '%.60s' %s", csv->path, csv->lines[row],
                   csv->names[column], cell, csv_no_number(cell, "is not a finite number"));
}

/* The columns of a table of tiles: where they are, then the scores. */
struct tile_columns {
    int box[4], scores[CLASS_LIST_MOST];
};

static bool find_columns(const struct csv *csv, const struct class_list *classes,
                         struct tile_columns *out, struct err *err)
{
    for (int i = 0; i < 4; i++)
        if ((out->box[i] = csv_column(csv, box_columns[i])) < 0)
            return err_set(err, ERR_FORMAT,
                           "%s:1: no column '%s'; a table of tiles has minx, miny, width, height "
                           "and prob_<class>",
                           csv->path, box_columns[i]);
    return class_list_columns(classes, csv, out->scores, err);
}

static bool count_tiles(struct work *work, const struct csv *csv,
                        const struct tile_columns *columns, const struct truth_source *truth,
                        struct confusion_slide *slide, struct err *err)
{
    float *scores = calloc(work->n_scores + 1, sizeof *scores);
    bool ok = scores || err_memory(err, csv->path);
    for (size_t row = 0; ok && row < csv->n_rows; row++) {
        double box[4], value = 0;
        for (int i = 0; ok && i < 4; i++)
            ok = cell_number(csv, row, columns->box[i], &box[i], err);
        for (size_t k = 0; ok && k < work->n_scores; k++) {
            ok = cell_number(csv, row, columns->scores[k], &value, err);
            scores[k] = (float)value;
        }
        if (ok)
            count(work, slide, scores,
                  truth_source_tile(truth, box[0], box[1], box[2], box[3], work->rules->tile));
    }
    free(scores);
    return ok;
}

static bool do_tiles(struct work *work, const char *path, struct err *err)
{
    struct csv csv;
    struct class_list classes = { 0 };
    struct confusion_slide *slide = NULL;
    struct truth_source truth = { 0 };
    struct tile_columns columns;
    bool skipped = false;
    if (!csv_read(path, &csv, err))
        return false;
    char *name = tiles_slide(path);
    const struct annotation_slide named = { .name = name };
    bool ok = (name || err_memory(err, path)) && class_list_of_columns(&csv, &classes, err) &&
              find_columns(&csv, &classes, &columns, err) &&
              (check_classes(work, name, &classes, err) || err_prefix(err, path)) &&
              open_truth(work, &named, &truth, &skipped, err);
    if (ok && !skipped)
        ok = new_slide(work, name, &slide, err) &&
             count_tiles(work, &csv, &columns, &truth, slide, err);
    truth_source_close(&truth);
    class_list_free(&classes);
    free(name);
    csv_free(&csv);
    return ok;
}

/* --- a class map from the scores --- */

/* {classes: ["a", "b"]}, which is YAML; the caller's. */
static char *classes_yaml(const struct class_list *classes)
{
    json_t *names = json_array(), *map = json_object();
    bool ok = names && map;
    for (size_t i = 0; ok && i < classes->n; i++)
        ok = json_array_append_new(names, json_string(classes->names[i])) == 0;
    ok = ok && json_object_set(map, "classes", names) == 0;
    char *text = ok ? json_dumps(map, JSON_COMPACT) : NULL;
    json_decref(names), json_decref(map);
    return text;
}

static bool map_of_classes(const struct class_list *classes, struct class_map **out,
                           struct err *err)
{
    if (classes->n <= 2)
        return true;
    char *text = classes_yaml(classes);
    bool ok = text ? class_map_parse(text, out, err) : err_memory(err, "the classes");
    free(text);
    return ok;
}

static bool map_of_heatmap(const char *folder, struct class_map **out, struct err *err)
{
    struct heatmap *heatmap = NULL;
    if (!heatmap_open(folder, &heatmap, err))
        return false;
    const struct heatmap_info *info = heatmap_info(heatmap);
    const struct class_list classes = { info->class_names, (size_t)info->n_classes };
    bool ok = map_of_classes(&classes, out, err);
    heatmap_close(heatmap);
    return ok;
}

bool confusion_class_map(char *const *paths, int n_paths, struct class_map **out, struct err *err)
{
    struct class_list classes = { 0 };
    char **folders = NULL;
    size_t n = 0, unfinished = 0;
    struct csv csv;
    *out = NULL;
    if (confusion_is_tiles(paths[0])) {
        bool read = csv_read(paths[0], &csv, err);
        bool ok = read && class_list_of_columns(&csv, &classes, err) &&
                  map_of_classes(&classes, out, err);
        class_list_free(&classes);
        if (read)
            csv_free(&csv);
        return ok;
    }
    bool ok = heat_list(paths, n_paths, &folders, &n, &unfinished, err) &&
              map_of_heatmap(folders[0], out, err);
    folder_names_free(folders, n);
    return ok;
}

/* --- all slides --- */

static const char *slide_of(const void *slides, size_t i)
{
    return ((const struct confusion_slide *)slides)[i].slide;
}

static void warn(const struct work *work)
{
    int64_t unscored = 0;
    for (size_t i = 0; i < work->out->n; i++)
        unscored += work->out->slides[i].unscored;
    if (unscored > 0)
        console_warn(work->ctx->console,
                     "cells of a drawn class that have no score, and are not counted: %lld",
                     (long long)unscored);
    if (work->out->left_out > 0)
        console_warn(work->ctx->console,
                     "slides skipped because they have no truth or no heatmap: %lld",
                     (long long)work->out->left_out);
}

/* Every file of the list with do_one. */
static bool do_list(struct work *work, char *const *paths, size_t n,
                    bool (*do_one)(struct work *work, const char *path, struct err *err),
                    struct err *err)
{
    bool ok = true;
    work->out->slides = calloc(n + 1, sizeof *work->out->slides);
    if (!work->out->slides)
        return err_memory(err, "the list of slides");
    console_begin(work->ctx->console, "confusion", (int64_t)n, "slides");
    for (size_t i = 0; ok && i < n; i++) {
        ok = do_one(work, paths[i], err);
        console_advance(work->ctx->console, 1);
    }
    console_end(work->ctx->console);
    return ok && truth_list_check(work->truth, work->out->slides, work->out->n, slide_of,
                                  work->rules->allow_missing, &work->out->left_out, err);
}

bool confusion_of_slides(char *const *paths, int n_paths, const struct truth_list *truth,
                         const struct confusion_rules *rules, const struct ctx *ctx,
                         struct confusion_cohort *out, struct err *err)
{
    struct work work = { .truth = truth, .rules = rules, .ctx = ctx, .out = out };
    char **folders = NULL;
    size_t n = 0, unfinished = 0;
    bool ok;
    *out = (struct confusion_cohort){ 0 };
    if (confusion_is_tiles(paths[0])) {
        ok = do_list(&work, paths, (size_t)n_paths, do_tiles, err);
    } else {
        ok = heat_list(paths, n_paths, &folders, &n, &unfinished, err);
        if (ok && unfinished > 0)
            console_warn(ctx->console, "slides without a heatmap yet: %zu", unfinished);
        ok = ok && do_list(&work, folders, n, do_heatmap, err);
        folder_names_free(folders, n);
    }
    if (ok)
        warn(&work);
    return ok;
}

void confusion_cohort_free(struct confusion_cohort *cohort)
{
    for (size_t i = 0; i < cohort->n; i++)
        free(cohort->slides[i].slide);
    free(cohort->slides);
    confusion_free(&cohort->confusion);
    *cohort = (struct confusion_cohort){ 0 };
}
