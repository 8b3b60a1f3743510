/* classify_train.c: `microtome classify train` and `apply`: tables of features -> a forest, and a
 * forest over tables of features -> scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/classify.h"
#include "verdict/feature_table.h"
#include "verdict/forest_grid.h"

#define SHOWN 10 /* features in the text output */

/* "100,500" -> numbers. */
static bool parse_values(const char *option, const char *text, int64_t low, int64_t high,
                         struct grid_values *out, struct err *err)
{
    const char *at = text;
    for (out->n = 0; out->n < GRID_MOST_VALUES;) {
        char *end = NULL;
        long long value = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',') || value < low || value > high)
            return err_set(err, ERR_USAGE,
                           "--%s '%s' is not a whole number from %lld to %lld, or a "
                           "comma-separated list of them",
                           option, text, (long long)low, (long long)high);
        out->items[out->n++] = value;
        if (!*end)
            return true;
        at = end + 1;
    }
    return err_set(err, ERR_USAGE, "--%s: more than %d values", option, GRID_MOST_VALUES);
}

static bool parse_grid(const struct classify_options *o, struct forest_grid *grid, struct err *err)
{
    *grid =
        (struct forest_grid){ .base = { .bootstrap = !o->no_bootstrap, .seed = (uint64_t)o->seed },
                              .folds = o->folds };
    return parse_values("trees", o->trees, 1, 100000, &grid->trees, err) &&
           parse_values("depth", o->depth, 0, 1000, &grid->depth, err) &&
           parse_values("split-features", o->split_features, 0, 100000, &grid->split_features,
                        err) &&
           parse_values("min-leaf", o->min_leaf, 1, 1000000, &grid->min_leaf, err);
}

/* 0 means what the word says. */
static const char *number_or(int64_t number, const char *word, char out[24])
{
    if (number == 0)
        return word;
    snprintf(out, 24, "%lld", (long long)number);
    return out;
}

static void json_point(void *arg, const struct grid_point *point)
{
    struct json_out *json = arg;
    json_out_object_line(json, NULL);
    json_out_int(json, "trees", point->options.trees);
    json_out_int(json, "depth", point->options.depth);
    json_out_int(json, "split_features", point->options.split_features);
    json_out_int(json, "min_leaf", point->options.min_leaf);
    json_out_real(json, "auc", point->auc);
    json_out_real(json, "sd", point->deviation);
    json_out_close_object(json);
}

static void print_point(void *arg, const struct grid_point *point)
{
    const struct forest_options *options = &point->options;
    char depth[24], features[24];
    fprintf(arg, "%5lld  %9s  %14s  %8lld  %.4f (sd %.4f)\n", (long long)options->trees,
            number_or(options->depth, "unlimited", depth),
            number_or(options->split_features, "sqrt", features), (long long)options->min_leaf,
            point->auc, point->deviation);
}

/* Prints the combinations, if there are several, as they are judged. */
static bool choose(struct app *app, const struct forest_grid *grid, const struct forest_data *data,
                   struct json_out *json, struct forest_options *best, struct err *err)
{
    bool many = forest_grid_size(grid) > 1;
    if (!json->stream) {
        if (many)
            fputs("trees      depth  split-features  min-leaf  cross-validated AUC\n", app->out);
        return forest_grid_search(grid, data, &app->ctx, print_point, app->out, best, err);
    }
    if (many)
        json_out_array(json, "grid");
    bool ok = forest_grid_search(grid, data, &app->ctx, json_point, json, best, err);
    if (many)
        json_out_close_array(json);
    return ok;
}

static void print_forest(FILE *out, const struct feature_table *table, const struct forest *forest)
{
    int64_t positives = 0;
    for (int64_t i = 0; i < table->n; i++)
        positives += table->positive[i];
    fprintf(out, "%lld slides (%lld positive), %lld features\n", (long long)table->n,
            (long long)positives, (long long)table->n_features);
    char depth[24], features[24];
    fprintf(out, "forest: %lld trees, depth %s, split-features %s, min-leaf %lld\n",
            (long long)forest->options.trees, number_or(forest->options.depth, "unlimited", depth),
            number_or(forest->options.split_features, "sqrt", features),
            (long long)forest->options.min_leaf);
    if (isfinite(forest->oob_auc))
        fprintf(out, "out-of-bag AUC: %.4f (%lld slides)\n", forest->oob_auc,
                (long long)forest->oob_rows);
    fputs("importance  feature\n", out);
    double below = INFINITY;
    int64_t last = -1;
    for (int shown = 0; shown < SHOWN && shown < forest->n_features; shown++) {
        int64_t next = -1; /* the highest not yet shown; the first of equals */
        for (int64_t i = 0; i < forest->n_features; i++) {
            double value = forest->importances[i];
            bool left = value < below || (value == below && i > last);
            if (left && (next < 0 || value > forest->importances[next]))
                next = i;
        }
        if (next < 0)
            break;
        below = forest->importances[next], last = next;
        fprintf(out, "%10.4f  %s\n", below, forest->names[next]);
    }
}

static void json_forest(struct json_out *json, const struct feature_table *table,
                        const struct forest *forest)
{
    json_out_int(json, "slides", table->n);
    json_out_int(json, "trees", forest->options.trees);
    json_out_int(json, "depth", forest->options.depth);
    json_out_int(json, "split_features", forest->options.split_features);
    json_out_int(json, "min_leaf", forest->options.min_leaf);
    json_out_real(json, "oob_auc", forest->oob_auc);
    json_out_int(json, "oob_slides", forest->oob_rows);
    json_out_object(json, "importances");
    for (int64_t i = 0; i < forest->n_features; i++)
        json_out_real(json, forest->names[i], forest->importances[i]);
    json_out_close_object(json);
}

bool classify_train(struct app *app, const void *options, char *const *files, int n_files,
                    struct err *err)
{
    const struct classify_options *o = options;
    struct forest_grid grid;
    struct feature_table table = { 0 };
    struct forest forest = { 0 };
    struct forest_options chosen;
    struct json_out json = { 0 };
    struct feature_request request = { .paths = (const char *const *)files,
                                       .n_paths = (size_t)n_files,
                                       .slide_column = o->slide,
                                       .label_column = o->label,
                                       .positive_word = o->positive,
                                       .truth_path = o->truth,
                                       .ignored = &o->ignored };
    if (!o->output)
        return err_set(err, ERR_USAGE, "train needs -o FILE for the forest");
    if (!parse_grid(o, &grid, err) || !feature_table_read(&request, &table, err))
        return false;
    struct forest_data data = { table.n, table.n_features, table.values, table.positive };
    if (o->json) {
        json_out_begin(&json, app->out);
        json_out_object(&json, NULL);
    }
    bool ok =
        choose(app, &grid, &data, &json, &chosen, err) &&
        forest_train(&data, (const char *const *)table.names, &chosen, &app->ctx, &forest, err) &&
        forest_write(o->output, &forest, err);
    if (ok && o->json)
        json_forest(&json, &table, &forest);
    else if (ok)
        print_forest(app->out, &table, &forest);
    if (o->json) {
        json_out_close_object(&json);
        json_out_end(&json);
    }
    forest_free(&forest);
    feature_table_free(&table);
    return ok;
}

static void write_scores(FILE *out, const struct forest *forest, const struct feature_table *table)
{
    fputs("slide,score\n", out);
    for (int64_t i = 0; i < table->n; i++) {
        csv_write_cell(out, table->slides[i]);
        fprintf(out, ",%.10g\n", forest_score(forest, table->values + i * table->n_features));
    }
}

static void json_scores(FILE *out, const struct forest *forest, const struct feature_table *table)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    json_out_array(&json, "slides");
    for (int64_t i = 0; i < table->n; i++) {
        json_out_object_line(&json, NULL);
        json_out_text(&json, "slide", table->slides[i]);
        json_out_real(&json, "score", forest_score(forest, table->values + i * table->n_features));
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

bool classify_apply(struct app *app, const void *options, char *const *files, int n_files,
                    struct err *err)
{
    const struct classify_options *o = options;
    struct forest forest = { 0 };
    struct feature_table table = { 0 };
    struct file_out file;
    if (!o->model)
        return err_set(err, ERR_USAGE, "apply needs --model FILE, a forest written by train");
    if (!forest_read(o->model, &forest, err))
        return false;
    struct feature_request request = { .paths = (const char *const *)files,
                                       .n_paths = (size_t)n_files,
                                       .slide_column = o->slide,
                                       .names = (const char *const *)forest.names,
                                       .n_names = (size_t)forest.n_features };
    bool ok = feature_table_read(&request, &table, err);
    if (ok && o->output) {
        ok = file_out_open(&file, o->output, err);
        if (ok)
            write_scores(file.stream, &forest, &table);
        ok = ok && file_out_commit(&file, err);
    } else if (ok && !o->json) {
        write_scores(app->out, &forest, &table);
    }
    if (ok && o->json)
        json_scores(app->out, &forest, &table);
    feature_table_free(&table);
    forest_free(&forest);
    return ok;
}
