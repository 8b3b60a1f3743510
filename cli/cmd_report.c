/* cmd_report.c: microtome report: results of other commands -> one page. */
#include <stddef.h>
#include "base/json.h"
#include "cli/app.h"
#include "report/page.h"

struct options {
    struct common_options common;
    const char *output, *title, *class_map, *label_column;
    bool json;
};

static void print_result(struct app *app, const struct options *o, const struct page_result *result)
{
    if (!o->json) {
        fprintf(
            app->out,
            "%s/index.html: slides: %zu, with a heatmap: %zu, curves: %zu, trained models: %zu, "
            "runs: %zu",
            o->output, result->slides, result->pictured, result->curves, result->trainings,
            result->runs);
        if (result->problems > 0)
            fprintf(app->out, "; problems (listed on the page): %zu", result->problems);
        fputc('\n', app->out);
        return;
    }
    struct json_out json;
    json_out_begin(&json, app->out);
    json_out_object(&json, NULL);
    json_out_int(&json, "slides", (int64_t)result->slides);
    json_out_int(&json, "heatmaps", (int64_t)result->pictured);
    json_out_int(&json, "curves", (int64_t)result->curves);
    json_out_int(&json, "trainings", (int64_t)result->trainings);
    json_out_int(&json, "runs", (int64_t)result->runs);
    json_out_int(&json, "problems", (int64_t)result->problems);
    json_out_close_object(&json);
    json_out_end(&json);
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct options *o = options;
    struct page_request request = { .folders = operands->operands,
                                    .n_folders = operands->n_operands,
                                    .output = o->output,
                                    .title = o->title,
                                    .label_column = o->label_column };
    struct page_result result;
    struct class_map *class_map = NULL;
    if (!class_map_parse(o->class_map, &class_map, err))
        return false;
    request.class_map = class_map;
    bool ok = page_make(&request, &app->ctx, &result, err);
    if (ok)
        print_result(app, o, &result);
    class_map_free(class_map);
    return ok;
}

#define AT(field) offsetof(struct options, field)

static const struct arg args[] = {
    OUTPUT_ARG("folder for the page and its pictures"),
    TEXT_ARG("title", title, "TEXT", "microtome report", "title of the page"),
    TEXT_ARG("label-column", label_column, "NAME", NULL,
             "column with the slides' labels in slide lists and score tables (default: label)"),
    CLASS_MAP_ARG,
    FLAG_ARG("json", json, "print counts of what is on the page as JSON"),
    COMMON_ARGS,
};

const struct command cmd_report = {
    .spec = { .name = "report",
              .summary = "show all results on one page in a browser",
              .operands = "RESULTS...",
              .min_operands = 1,
              .max_operands = 1 << 10,
              .description =
                  "Makes one static page from the results of predict, classify, evaluate and "
                  "train: a table of slides, each slide with its heatmap over and beside it, "
                  "lesions, the areas of more than two classes and the highest-scoring windows, "
                  "ROC "
                  "and FROC curves, confusion matrices, training curves, times and core-hours. "
                  "RESULTS are folders, or folders of such folders; results "
                  "are recognised by their content, and missing ones are omitted. The page needs "
                  "no server and no network: the folder can be copied, zipped and sent.",
              .example = "microtome report results -o report\n"
                         "microtome report heatmaps scores model -o report --title 'Ward 7'",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct options),
    .run = run,
};
