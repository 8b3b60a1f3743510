/* cmd_tune.c: microtome tune: which group size a file system reads fastest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/claim.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/app.h"
#include "patch/tune.h"
#include "plot/curves.h"
#include "base/text.h"

#define MAX_SIZES 16

struct tune_args {
    struct common_options common;
    const char *output;
    int64_t patches, patch, seed;
    bool json;
};

#define AT(field) offsetof(struct tune_args, field)

static const struct arg args[] = {
    OUTPUT_ARG("folder on the file system to measure; receives tune.csv, tune.svg and tune.png"),
    INT_ARG("patches", patches, "N", "400", 2, 100000, "patches to store and read"),
    INT_ARG("patch", patch, "PX", "448", 16, 4096, "width and height of a patch"),
    INT_ARG("seed", seed, "S", "0", 0, 9e15, "same seed, same patches"),
    FLAG_ARG("json", json, "print the result as JSON"),
    COMMON_ARGS,
};

static void print_table(FILE *out, const struct tune_row *rows, int64_t n)
{
    fprintf(out, "%8s %10s %18s %20s\n", "group", "MB", "whole group MB/s", "patch by patch MB/s");
    for (int64_t i = 0; i < n; i++)
        fprintf(out, "%8lld %10.1f %18.1f %20.1f\n", (long long)rows[i].group, rows[i].group_mb,
                rows[i].whole_mb_per_s, rows[i].single_mb_per_s);
    fprintf(out, "extract --group %lld is the smallest group read at 95 %% of the best speed\n",
            (long long)tune_suggest(rows, n));
}

static void print_json(FILE *out, const struct tune_row *rows, int64_t n)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    json_out_int(&json, "suggested_group", tune_suggest(rows, n));
    json_out_array(&json, "groups");
    for (int64_t i = 0; i < n; i++) {
        json_out_object_line(&json, NULL);
        json_out_int(&json, "group", rows[i].group);
        json_out_real(&json, "mb", rows[i].group_mb);
        json_out_real(&json, "whole_mb_per_s", rows[i].whole_mb_per_s);
        json_out_real(&json, "single_mb_per_s", rows[i].single_mb_per_s);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

static bool write_csv(const char *path, const struct tune_row *rows, int64_t n, struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    fputs("group,mb,whole_mb_per_s,single_mb_per_s\n", out.stream);
    for (int64_t i = 0; i < n; i++)
        fprintf(out.stream, "%lld,%.3f,%.3f,%.3f\n", (long long)rows[i].group, rows[i].group_mb,
                rows[i].whole_mb_per_s, rows[i].single_mb_per_s);
    return file_out_commit(&out, err);
}

static bool write_files(const char *folder, const struct tune_row *rows, int64_t n, struct err *err)
{
    double x[MAX_SIZES], whole[MAX_SIZES], single[MAX_SIZES];
    for (int64_t i = 0; i < n; i++) {
        x[i] = (double)rows[i].group;
        whole[i] = rows[i].whole_mb_per_s;
        single[i] = rows[i].single_mb_per_s;
    }
    const struct curve curves[] = { { "whole group", whole, false },
                                    { "patch by patch", single, true } };
    const struct curve_panel panel = { .title = "MB/s", .curves = curves, .n_curves = 2 };
    char *csv = text_format("%s/tune.csv", folder), *svg = text_format("%s/tune.svg", folder),
         *png = text_format("%s/tune.png", folder);
    bool ok = (csv && svg && png) || err_memory(err, folder);
    ok = ok && write_csv(csv, rows, n, err) &&
         curves_write(svg, png, "reading speed by group size", "patches per group", x, n, &panel, 1,
                      NAN, err);
    free(csv);
    free(svg);
    free(png);
    return ok;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct tune_args *given = options;
    struct slide_list slides = { 0 };
    struct claim *claim = NULL;
    struct tune_row rows[MAX_SIZES];
    int64_t sizes[MAX_SIZES], n = 0;
    for (int64_t size = 1; n < MAX_SIZES - 1 && size < given->patches; size *= 3)
        sizes[n++] = size;
    sizes[n++] = given->patches;
    bool ok = slide_list_read(operands->operands, operands->n_operands, &slides, err) &&
              file_make_folder(given->output, err) && claim_take(given->output, &claim, err);
    if (ok && slides.n == 0)
        ok = err_set(err, ERR_USAGE, "no slide to take patches from");
    struct tune_request request = { .folder = given->output,
                                    .patches = given->patches,
                                    .patch = given->patch,
                                    .sizes = sizes,
                                    .n_sizes = n,
                                    .seed = given->seed };
    if (ok) {
        request.slide = &slides.entries[0];
        ok =
            tune_groups(&request, &app->ctx, rows, err) && write_files(given->output, rows, n, err);
    }
    if (ok && given->json)
        print_json(app->out, rows, n);
    else if (ok)
        print_table(app->out, rows, n);
    claim_release(claim);
    slide_list_free(&slides);
    return ok;
}

const struct command cmd_tune = {
    .spec = { .name = "tune",
              .summary = "find the group size that a file system reads fastest",
              .operands = "SLIDES...",
              .min_operands = 1,
              .max_operands = 1000000,
              .description =
                  "Stores random patches of the first slide in groups of several sizes (extract "
                  "--layout fda), reads them back, both a whole group at a time and patch by "
                  "patch, and suggests a size for extract --group. -o must be a folder on the file "
                  "system that the stores will be on. Before each reading, the system is asked to "
                  "drop the file from its cache. " SLIDES_ARE,
              .example = "microtome tune slides.csv -o /scratch/tune",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct tune_args),
    .run = run,
};
