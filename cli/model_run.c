/* model_run.c: `microtome model run`: the scores of patches, printed or as a table; or their
 * features, printed or as an array with a table of what its rows are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "base/console.h"
#include "base/npy.h"
#include "base/text.h"
#include "cli/model.h"
#include "net/model/classifier.h"
#include "prepare/whole_run.h"
#include "train/score.h"

struct printing {
    struct app *app;
    const struct model_args *given;
    const struct model *model;
    const struct model_config *config; /* of the model */
    struct json_out json;
    char *table_path;
    struct file_out table;
    float *features; /* [rows, n_scores], for an array */
    int64_t rows, room;
    int64_t scored, failed;
};

static void put_json(struct printing *to, const struct score_row *row)
{
    struct json_out *json = &to->json;
    json_out_object(json, NULL);
    json_out_text(json, "image", row->name);
    if (row->slide[0]) {
        json_out_text(json, "slide", row->slide);
        json_out_int(json, "x", row->x_l0);
        json_out_int(json, "y", row->y_l0);
    }
    if (row->label >= 0)
        json_out_text(json, "label", to->config->class_names[row->label]);
    if (model_gives_features(to->model)) {
        json_out_array_line(json, "features");
        for (int64_t i = 0; i < to->model->n_scores; i++)
            json_out_real(json, NULL, row->scores[i]);
        json_out_close_array(json);
    } else {
        json_out_object_line(json, "scores");
        for (int64_t i = 0; i < to->config->num_classes; i++)
            json_out_real(json, to->config->class_names[i], row->scores[i]);
        json_out_close_object(json);
    }
    json_out_close_object(json);
}

static void put_line(FILE *stream, const struct model *model, const struct score_row *row)
{
    bool features = model_gives_features(model);
    fputs(row->name, stream);
    for (int64_t i = 0; i < model->n_scores; i++)
        if (features)
            fprintf(stream, " %.9g", row->scores[i]);
        else
            fprintf(stream, "  %s %.9g", model->config.class_names[i], row->scores[i]);
    fputc('\n', stream);
}

/* The next row of the array and of its table; NaN for a patch that failed. */
static bool put_features(struct printing *to, const struct score_row *row, struct err *err)
{
    int64_t n = to->model->n_scores;
    if (to->rows == to->room) {
        int64_t room = 2 * to->room + 64;
        float *larger = reallocarray(to->features, (size_t)(room * n), sizeof *larger);
        if (!larger)
            return err_memory(err, "the features");
        to->features = larger, to->room = room;
    }
    float *out = to->features + n * to->rows++;
    for (int64_t i = 0; i < n; i++)
        out[i] = row->problem ? NAN : (float)row->scores[i];
    score_put_row(to->table.stream, to->config, row);
    return true;
}

/* A bad patch is named and skipped; the rest is done. */
static bool put_row(void *arg, const struct score_row *row, struct err *err)
{
    struct printing *to = arg;
    bool array = to->given->output && model_gives_features(to->model);
    if (array && !put_features(to, row, err))
        return false;
    if (row->problem) {
        bool named = strstr(row->problem, row->name) != NULL;
        console_warn(to->app->ctx.console, "%s%s%s", named ? "" : row->name, named ? "" : ": ",
                     row->problem);
        to->failed++;
        return true;
    }
    to->scored++;
    if (array)
        return true;
    if (to->given->output)
        score_put_row(to->table.stream, to->config, row);
    else if (to->given->json)
        put_json(to, row);
    else
        put_line(to->app->out, to->model, row);
    return true;
}

static bool check_free(const struct printing *to, const char *path, struct err *err)
{
    return !file_exists(path) || to->given->overwrite ||
           err_set(err, ERR_USAGE, "%s: is there already; pass --overwrite to replace it", path);
}

/* The table: --output, or beside FILE.npy. */
static bool open_table(struct printing *to, const char *output, struct err *err)
{
    bool features = model_gives_features(to->model);
    const char *extension = file_extension(output);
    if (features && strcmp(extension, ".npy") != 0)
        return err_set(err, ERR_USAGE,
                       "--output: the features of patches are an array: FILE.npy, not '%s'",
                       output);
    if (!features && strcmp(extension, ".csv") != 0)
        return err_set(err, ERR_USAGE, "--output: 'run' writes a table: FILE.csv, not '%s'",
                       output);
    to->table_path = text_format("%.*s.csv", (int)(extension - output), output);
    if (!to->table_path)
        return err_memory(err, output);
    return check_free(to, output, err) && check_free(to, to->table_path, err) &&
           file_out_open(&to->table, to->table_path, err);
}

static bool begin(struct printing *to, struct err *err)
{
    const char *output = to->given->output;
    if (output) {
        if (!open_table(to, output, err))
            return false;
        score_put_header(to->table.stream, to->config);
    } else if (to->given->json) {
        json_out_begin(&to->json, to->app->out);
        json_out_array(&to->json, NULL);
    }
    return true;
}

/* With a table, what was done; else the end of the list. */
static bool end(struct printing *to, struct err *err)
{
    const char *output = to->given->output;
    if (!output) {
        if (to->given->json) {
            json_out_close_array(&to->json);
            json_out_end(&to->json);
        }
        return true;
    }
    bool features = model_gives_features(to->model);
    if (features && !npy_write(output, to->features, to->rows, to->model->n_scores, err)) {
        file_out_discard(&to->table);
        return false;
    }
    if (!file_out_commit(&to->table, err))
        return false;
    if (!to->given->json) {
        if (features)
            fprintf(to->app->out, "%lld features of %lld patches: %s, described in %s\n",
                    (long long)to->model->n_scores, (long long)to->scored, output, to->table_path);
        else
            fprintf(to->app->out, "%lld patches scored: %s\n", (long long)to->scored, output);
        return true;
    }
    json_out_begin(&to->json, to->app->out);
    json_out_object(&to->json, NULL);
    json_out_int(&to->json, "scored", to->scored);
    json_out_int(&to->json, "failed", to->failed);
    json_out_text(&to->json, "table", to->table_path);
    if (features)
        json_out_text(&to->json, "features", output);
    json_out_close_object(&to->json);
    json_out_end(&to->json);
    return true;
}

static void release(struct printing *to)
{
    free(to->table_path);
    free(to->features);
}

bool model_run_patches(struct app *app, const struct model_args *given, const struct model *model,
                       char **paths, int n_paths, struct err *err)
{
    struct printing to = { .app = app, .given = given, .model = model, .config = &model->config };
    struct score_request request = { .model = model,
                                     .paths = paths,
                                     .n_paths = (size_t)n_paths,
                                     .tta = given->tta,
                                     .any_stain = given->any_stain };
    bool ok = begin(&to, err);
    if (ok && !score_run(&request, &app->ctx, put_row, &to, err)) {
        if (given->output)
            file_out_discard(&to.table);
        ok = false;
    }
    ok = ok && end(&to, err);
    release(&to);
    if (!ok)
        return false;
    return to.failed == 0 || err_set(err, ERR_FORMAT, "%lld of %lld patches failed",
                                     (long long)to.failed, (long long)(to.failed + to.scored));
}

static struct whole_request whole_request_of(const struct model_args *given,
                                             const struct model *model)
{
    return (struct whole_request){ .model = model,
                                   .layer = given->layer,
                                   .npy = given->layer ? given->output : NULL,
                                   .memory_mb = given->memory_mb,
                                   .tile_px = given->tile_px };
}

/* A layer of one image, in a file. */
static bool run_layer(struct app *app, const struct model_args *given, const struct model *model,
                      char **paths, int n_paths, struct err *err)
{
    struct whole_request request = whole_request_of(given, model);
    struct whole_result result;
    char text[SHAPE_TEXT];
    if (n_paths != 1)
        return err_set(err, ERR_USAGE, "--layer: one image at a time");
    if (!given->output || strcmp(file_extension(given->output), ".npy") != 0)
        return err_set(err, ERR_USAGE, "--layer: pass --output FILE.npy for its numbers");
    if (file_exists(given->output) && !given->overwrite)
        return err_set(err, ERR_USAGE, "%s: is there already; pass --overwrite to replace it",
                       given->output);
    if (!whole_run(&request, paths[0], &app->ctx, NULL, &result, err))
        return false;
    fprintf(app->out, "%s of %lld x %lld px, %s: %s\n", given->layer, (long long)result.width,
            (long long)result.height, shape_text(&result.shape, text), given->output);
    return true;
}

bool model_run_whole(struct app *app, const struct model_args *given, const struct model *model,
                     char **paths, int n_paths, struct err *err)
{
    struct printing to = { .app = app, .given = given, .model = model, .config = &model->config };
    struct whole_request request = whole_request_of(given, model);
    if (!model_check_memory(given, err))
        return false;
    if (given->tta)
        return err_set(err, ERR_USAGE, "--tta: not with --memory stream");
    if (given->layer)
        return run_layer(app, given, model, paths, n_paths, err);
    double *scores = calloc((size_t)model->n_scores, sizeof *scores);
    bool ok = (scores || err_memory(err, model->name)) && begin(&to, err);
    for (int i = 0; ok && i < n_paths; i++) {
        struct whole_result result;
        struct score_row row = { .name = paths[i],
                                 .slide = "",
                                 .patient = "",
                                 .x_l0 = -1,
                                 .y_l0 = -1,
                                 .label = -1,
                                 .scores = scores };
        ok = whole_run(&request, paths[i], &app->ctx, scores, &result, err) &&
             put_row(&to, &row, err);
    }
    free(scores);
    if (!ok && given->output)
        file_out_discard(&to.table);
    ok = ok && end(&to, err);
    release(&to);
    return ok;
}
