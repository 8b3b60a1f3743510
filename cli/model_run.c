/* model_run.c: `microtome model run`: the scores of patches, printed or as a table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "base/console.h"
#include "cli/model.h"
#include "prepare/whole_run.h"
#include "train/score.h"

struct printing {
    struct app *app;
    const struct model_args *given;
    const struct model_config *config;
    struct json_out json;
    struct file_out table;
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
    json_out_object_line(json, "scores");
    for (int64_t i = 0; i < to->config->num_classes; i++)
        json_out_real(json, to->config->class_names[i], row->scores[i]);
    json_out_close_object(json);
    json_out_close_object(json);
}

static void put_line(FILE *stream, const struct model_config *config, const struct score_row *row)
{
    fputs(row->name, stream);
    for (int64_t i = 0; i < config->num_classes; i++)
        fprintf(stream, "  %s %.9g", config->class_names[i], row->scores[i]);
    fputc('\n', stream);
}

/* A bad patch is named and skipped; the rest is done. */
static bool put_row(void *arg, const struct score_row *row, struct err *err)
{
    (void)err;
    struct printing *to = arg;
    if (row->problem) {
        bool named = strstr(row->problem, row->name) != NULL;
        console_warn(to->app->ctx.console, "%s%s%s", named ? "" : row->name, named ? "" : ": ",
                     row->problem);
        to->failed++;
        return true;
    }
    to->scored++;
    if (to->given->output)
        score_put_row(to->table.stream, to->config, row);
    else if (to->given->json)
        put_json(to, row);
    else
        put_line(to->app->out, to->config, row);
    return true;
}

static bool begin(struct printing *to, struct err *err)
{
    const char *output = to->given->output;
    if (output) {
        if (strcmp(file_extension(output), ".csv") != 0)
            return err_set(err, ERR_USAGE, "--output: 'run' writes a table: FILE.csv, not '%s'",
                           output);
        if (file_exists(output) && !to->given->overwrite)
            return err_set(err, ERR_USAGE, "%s: is there already; pass --overwrite to replace it",
                           output);
        if (!file_out_open(&to->table, output, err))
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
    if (!file_out_commit(&to->table, err))
        return false;
    if (!to->given->json) {
        fprintf(to->app->out, "%lld patches scored: %s\n", (long long)to->scored, output);
        return true;
    }
    json_out_begin(&to->json, to->app->out);
    json_out_object(&to->json, NULL);
    json_out_int(&to->json, "scored", to->scored);
    json_out_int(&to->json, "failed", to->failed);
    json_out_text(&to->json, "table", output);
    json_out_close_object(&to->json);
    json_out_end(&to->json);
    return true;
}

bool model_run_patches(struct app *app, const struct model_args *given, const struct model *model,
                       char **paths, int n_paths, struct err *err)
{
    struct printing to = { .app = app, .given = given, .config = &model->config };
    struct score_request request = { .model = model,
                                     .paths = paths,
                                     .n_paths = (size_t)n_paths,
                                     .tta = given->tta,
                                     .any_stain = given->any_stain };
    if (!begin(&to, err))
        return false;
    if (!score_run(&request, &app->ctx, put_row, &to, err)) {
        if (given->output)
            file_out_discard(&to.table);
        return false;
    }
    if (!end(&to, err))
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
    struct printing to = { .app = app, .given = given, .config = &model->config };
    struct whole_request request = whole_request_of(given, model);
    if (!model_check_memory(given, err))
        return false;
    if (given->tta)
        return err_set(err, ERR_USAGE, "--tta: not with --memory stream");
    if (given->layer)
        return run_layer(app, given, model, paths, n_paths, err);
    double *scores = calloc((size_t)model->config.num_classes, sizeof *scores);
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
    return ok && end(&to, err);
}
