/* cmd_predict.c: microtome predict: slides and a network -> heatmaps. */
#include <stdlib.h>
#include <string.h>
#include "base/claim.h"
#include "base/file.h"
#include "base/json.h"
#include "base/report.h"
#include "cli/cluster.h"
#include "heatmap/predict.h"

struct predict_args {
    struct common_options common;
    const char *output, *network, *weights, *tissue, *stain_template, *exports, *class_name;
    struct arg_texts models;
    bool tta, overwrite, json, fast;
    int64_t stride, init_seed, classes, check_windows, seed, memory_mb, group_mpx, tile;
    double mpp, slide_mpp, mpp_tolerance, tissue_fraction, threshold;
    int mode, calibrate, method, stain, kernels;
    struct cluster_options cluster;
};

extern const struct command cmd_predict;

#define OPTION(field) .offset = offsetof(struct predict_args, field)

static const char *const kernel_names[] = { "auto", "direct", NULL };

static const struct arg args[] = {
    { .name = "model",
      .letter = 'm',
      .type = ARG_TEXTS,
      OPTION(models),
      .value = "FILE",
      .help = "safetensors with a config.json beside it, an ONNX file, or a folder of these; given "
              "more than once, scores are averaged" },
    { .name = "network",
      .type = ARG_TEXT,
      OPTION(network),
      .value = "NAME",
      .help = "a network of the zoo instead; 'microtome model list' names them" },
    { .name = "weights",
      .type = ARG_TEXT,
      OPTION(weights),
      .value = "FILE",
      .help = "safetensors for --network; without it weights are drawn from --init-seed" },
    { .name = "init-seed",
      .type = ARG_INT,
      OPTION(init_seed),
      .value = "N",
      .initial = "0",
      .max = 9e15,
      .help = "seed of drawn weights, for benchmarks" },
    { .name = "classes",
      .type = ARG_INT,
      OPTION(classes),
      .value = "N",
      .initial = "2",
      .min = 1,
      .max = 4096,
      .help = "classes of a network with drawn weights" },
    { .name = "output",
      .letter = 'o',
      .type = ARG_TEXT,
      OPTION(output),
      .value = "DIR",
      .required = true,
      .help = "folder for run.json, slides.csv and a folder for each slide" },
    { .name = "stride",
      .type = ARG_INT,
      OPTION(stride),
      .value = "PX",
      .initial = "16",
      .min = 1,
      .max = 65536,
      .help = "pixels between scores, at the resolution of the model" },
    { .name = "mode",
      .type = ARG_CHOICE,
      OPTION(mode),
      .value = "NAME",
      .initial = "auto",
      .choices = predict_mode_names,
      .help = "every window by itself, or dense: overlapping windows share their work; auto is "
              "dense where that is exact" },
    { .name = "calibrate",
      .type = ARG_CHOICE,
      OPTION(calibrate),
      .value = "NAME",
      .initial = "none",
      .choices = predict_calibration_names,
      .help = "map the dense logits of a padded network onto those of windows" },
    { .name = "check-windows",
      .type = ARG_INT,
      OPTION(check_windows),
      .value = "N",
      .initial = "256",
      .min = 4,
      .max = 1000000,
      .help = "random windows on which a dense run of a padded network is compared with windows" },
    { .name = "seed",
      .type = ARG_INT,
      OPTION(seed),
      .value = "S",
      .initial = "0",
      .max = 9e15,
      .help = "same seed, same windows of that comparison" },
    { .name = "mpp",
      .type = ARG_REAL,
      OPTION(mpp),
      .value = "UM",
      .min = 0.01,
      .max = 1000,
      .help = "resolution in um/px; what the model was made for if not given" },
    { .name = "mpp-tolerance",
      .type = ARG_REAL,
      OPTION(mpp_tolerance),
      .value = "F",
      .initial = "0.2",
      .max = 100,
      .help = "by which share a model's um/px may be missed" },
    SLIDE_MPP_ARG(struct predict_args, slide_mpp),
    { .name = "method",
      .type = ARG_CHOICE,
      OPTION(method),
      .value = "NAME",
      .initial = "fda",
      .choices = tissue_method_names,
      .help = "how tissue is found" },
    { .name = "tissue",
      .type = ARG_TEXT,
      OPTION(tissue),
      .value = "DIR",
      .help = "folder of <slide>_mask.png, as microtome tissue writes them, instead" },
    { .name = "tissue-fraction",
      .type = ARG_REAL,
      OPTION(tissue_fraction),
      .value = "F",
      .initial = "0.05",
      .max = 1,
      .help = "least share of tissue in a cell of the heatmap" },
    { .name = "stain",
      .type = ARG_CHOICE,
      OPTION(stain),
      .value = "NAME",
      .initial = "none",
      .choices = stain_method_names,
      .help = "normalise the stains of each slide" },
    { .name = "template",
      .type = ARG_TEXT,
      OPTION(stain_template),
      .value = "PNG",
      .help = "what stains are normalised to, instead of the built-in template" },
    { .name = "tta",
      .type = ARG_FLAG,
      OPTION(tta),
      .help = "average the scores of the eight ways to turn and mirror a window" },
    { .name = "kernels",
      .type = ARG_CHOICE,
      OPTION(kernels),
      .value = "WHICH",
      .initial = "auto",
      .choices = kernel_names,
      .help = "3x3 convolutions as is fastest, or direct: slower, the last digits nearer to the "
              "truth" },
    { .name = "fast",
      .type = ARG_FLAG,
      OPTION(fast),
      .help = "let 3x3 convolutions have Winograd tiles of 6x6: faster on large blocks, less "
              "exact" },
    { .name = "memory",
      .type = ARG_INT,
      OPTION(memory_mb),
      .value = "MB",
      .initial = "1800",
      .min = 64,
      .max = 1e7,
      .help = "memory that a run may take, whatever the slides' size; less makes smaller blocks" },
    { .name = "group",
      .type = ARG_INT,
      OPTION(group_mpx),
      .value = "MPX",
      .initial = "64",
      .min = 1,
      .max = 1e9,
      .help = "megapixels that pass through the network in one task" },
    { .name = "export",
      .type = ARG_TEXT,
      OPTION(exports),
      .value = "LIST",
      .initial = "all",
      .help =
          "further outputs, with commas between them: all, none, or some of ome-tiff, tiles-csv, "
          "tiles-geojson, regions and overlay" },
    { .name = "threshold",
      .type = ARG_REAL,
      OPTION(threshold),
      .value = "P",
      .initial = "0.5",
      .max = 1,
      .help = "of the regions that are outlined" },
    { .name = "class",
      .type = ARG_TEXT,
      OPTION(class_name),
      .value = "NAME",
      .help = "class of the regions and the overlay; the last if not given, and regions of each of "
              "more than two" },
    { .name = "tile",
      .type = ARG_INT,
      OPTION(tile),
      .value = "PX",
      .max = 65536,
      .help = "side of a tile in tiles.csv and tiles.geojson, in steps of the stride; the model's "
              "window if not given" },
    { .name = "overwrite",
      .type = ARG_FLAG,
      OPTION(overwrite),
      .help = "make existing heatmaps again" },
    { .name = "json", .type = ARG_FLAG, OPTION(json), .help = "print the result as JSON" },
    CLUSTER_ARGS(struct predict_args),
    CLUSTER_ARRAY_ARGS(struct predict_args),
    COMMON_ARGS(struct predict_args),
};

static bool choose_exports(const char *list, const struct exporter **out, struct err *err)
{
    size_t n = 0;
    bool all = strcmp(list, "all") == 0;
    if (strcmp(list, "none") == 0)
        return true;
    for (size_t i = 0; all && exporters[i]; i++)
        out[n++] = exporters[i];
    while (!all && *list) {
        size_t length = strcspn(list, ","), i = 0, before = 0;
        while (exporters[i] && (strlen(exporters[i]->name) != length ||
                                strncmp(exporters[i]->name, list, length) != 0))
            i++;
        if (!exporters[i]) {
            char names[256] = "all, none";
            for (i = 0; exporters[i]; i++) {
                size_t used = strlen(names);
                snprintf(names + used, sizeof names - used, ", %s", exporters[i]->name);
            }
            return err_set(err, ERR_USAGE, "--export: there is no '%.*s'; there are %s",
                           (int)length, list, names);
        }
        while (before < n && out[before] != exporters[i])
            before++;
        if (before == n) /* a name given twice is given once */
            out[n++] = exporters[i];
        list += length + (list[length] == ',');
    }
    return true;
}

static bool choose_models(const struct predict_args *given, struct predict_options *out,
                          struct err *err)
{
    if ((given->models.n > 0) == (given->network != NULL))
        return err_set(err, ERR_USAGE, "pass --model FILE, or --network NAME");
    if (given->models.n > PREDICT_MAX_MODELS)
        return err_set(err, ERR_USAGE, "--model: at most %d models can be averaged",
                       PREDICT_MAX_MODELS);
    for (size_t i = 0; i < given->models.n; i++)
        out->models[out->n_models++] = (struct model_source){ .file = given->models.items[i] };
    if (given->network)
        out->models[out->n_models++] =
            (struct model_source){ .network = given->network,
                                   .weights = given->weights,
                                   .init_seed = (uint64_t)given->init_seed,
                                   .classes = given->classes };
    return true;
}

static bool make_options(const struct predict_args *given, struct predict_options *out,
                         struct err *err)
{
    *out = predict_defaults();
    out->mode = (enum predict_mode)given->mode;
    out->calibration = (enum predict_calibration)given->calibrate;
    out->stride = given->stride;
    out->mpp = given->mpp;
    out->mpp_tolerance = given->mpp_tolerance;
    out->slide_mpp = given->slide_mpp;
    out->tissue_method = (enum tissue_method)given->method;
    out->tissue = given->tissue;
    out->min_tissue = given->tissue_fraction;
    out->stain = (enum stain_method)given->stain;
    out->stain_template = given->stain_template;
    out->tta = given->tta;
    out->direct = given->kernels == 1;
    out->fast = given->fast;
    out->memory_bytes = given->memory_mb << 20;
    out->group_cost = given->group_mpx << 20;
    out->check_windows = given->check_windows;
    out->seed = (uint64_t)given->seed;
    out->export.threshold = given->threshold;
    out->export.tile_px = given->tile;
    out->export.class_name = given->class_name;
    if (out->direct && out->fast)
        return err_set(err, ERR_USAGE, "--fast: --kernels direct excludes it");
    if (given->stain_template && given->stain == STAIN_NONE)
        return err_set(err, ERR_USAGE,
                       "--template: pass --stain reinhard, macenko or vahadane too");
    if (given->calibrate != CALIBRATE_NONE && given->mode != PREDICT_DENSE)
        return err_set(err, ERR_USAGE, "--calibrate: only --mode dense needs it");
    return choose_models(given, out, err) && choose_exports(given->exports, out->exports, err);
}

static const char *state_name(enum run_state state)
{
    return state == RUN_DONE ? "done" : state == RUN_KEPT ? "kept" : "failed";
}

static void print_rows(FILE *stream, const struct predict_row *rows, size_t n)
{
    fprintf(stream, "%-32s %8s %8s %12s %8s %8s  %s\n", "slide", "width", "height", "scored",
            "mean", "max", "state");
    for (size_t i = 0; i < n; i++)
        fprintf(stream, "%-32s %8lld %8lld %12lld %8.4f %8.4f  %s\n", rows[i].slide,
                (long long)rows[i].width, (long long)rows[i].height, (long long)rows[i].scored,
                rows[i].mean, rows[i].max, state_name(rows[i].state));
}

static void print_json(FILE *stream, const struct predict_row *rows, size_t n,
                       const struct predict_times *times)
{
    struct json_out json;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_array(&json, "slides");
    for (size_t i = 0; i < n; i++) {
        json_out_object_line(&json, NULL);
        json_out_text(&json, "slide", rows[i].slide);
        json_out_text(&json, "state", state_name(rows[i].state));
        json_out_int(&json, "width", rows[i].width);
        json_out_int(&json, "height", rows[i].height);
        json_out_int(&json, "blocks", rows[i].blocks);
        json_out_int(&json, "scored", rows[i].scored);
        json_out_real(&json, "mean", rows[i].mean);
        json_out_real(&json, "max", rows[i].max);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_object_line(&json, "seconds"); /* summed over threads */
    json_out_real(&json, "read", times->read_s);
    json_out_real(&json, "normalise", times->normalise_s);
    json_out_real(&json, "compute", times->compute_s);
    json_out_real(&json, "write", times->write_s);
    json_out_close_object(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

/* --- on a cluster: a task is a group of blocks of a slide --- */

struct predict_work {
    struct predict_args *given;
    char **argv;
    struct slide_list slides;
    struct predict_request request;
    struct predict *predict; /* NULL until the first task */
    struct part_plan plan;   /* of slide `at` */
    size_t at;
};

static void tasks_close(void *state)
{
    struct predict_work *work = state;
    part_plan_free(&work->plan);
    predict_close(work->predict);
    slide_list_free(&work->slides);
    free(work->given);
    free(work->argv);
    free(work);
}

static bool tasks_open(const struct task_list *list, const struct ctx *ctx, void **state,
                       struct err *err)
{
    (void)ctx;
    struct predict_work *work = calloc(1, sizeof *work);
    char *slides = cluster_slides_path(list->folder);
    void *options = NULL;
    struct args_result operands;
    bool ok = (work && slides) || err_memory(err, "the tasks");
    ok = ok && cluster_parse(list, &cmd_predict, &options, &operands, &work->argv, err);
    if (work)
        work->given = options;
    ok = ok && make_options(work->given, &work->request.options, err) &&
         slide_list_load(slides, &work->slides, err);
    free(slides);
    if (ok) {
        work->request.slides = &work->slides;
        work->request.folder = list->folder;
        work->request.argc = list->argc;
        work->request.argv = list->argv;
        *state = work;
    } else if (work) {
        tasks_close(work);
    }
    return ok;
}

static bool find_slide(const struct slide_list *slides, const char *name, size_t *out,
                       struct err *err)
{
    for (size_t i = 0; i < slides->n; i++)
        if (strcmp(slides->entries[i].name, name) == 0) {
            *out = i;
            return true;
        }
    return err_set(err, ERR_FORMAT, "%s: is not in tasks/slides.csv; submit again", name);
}

static bool tasks_score(void *state, const struct task *task, const char *path,
                        const struct ctx *ctx, struct err *err)
{
    (void)path; /* in place: it is where the group's part goes */
    struct predict_work *work = state;
    struct predict_request *request = &work->request;
    size_t slide = 0;
    if (!find_slide(&work->slides, task->slide, &slide, err))
        return false;
    if (!work->predict &&
        !predict_open(&request->options, &work->slides, request->folder, ctx, &work->predict, err))
        return false;
    if (work->plan.n_groups == 0 || slide != work->at) {
        part_plan_free(&work->plan);
        work->plan = (struct part_plan){ 0 };
        if (!predict_plan(work->predict, slide, ctx, &work->plan, err))
            return false;
        work->at = slide;
    }
    if (task->part >= work->plan.n_groups)
        return err_set(err, ERR_FORMAT, "%s: has no group %lld; submit again", task->slide,
                       (long long)task->part);
    return predict_group(work->predict, slide, &work->plan, task->part, ctx, err);
}

static bool tasks_stitch(void *state, const struct task_list *list, const struct task_end *ends,
                         const struct ctx *ctx, FILE *out, struct err *err)
{
    struct predict_work *work = state;
    struct predict_task *tasks = calloc(work->slides.n + 1, sizeof *tasks);
    struct predict_row *rows = calloc(work->slides.n + 1, sizeof *rows);
    struct predict_times times = { 0 };
    size_t n_rows = 0, slide = 0;
    bool ok = (tasks && rows) || err_memory(err, "the slides");
    for (int64_t i = 0; ok && i < list->n; i++) {
        ok = find_slide(&work->slides, list->items[i].slide, &slide, err);
        tasks[slide].seconds += ends[i].seconds;
        tasks[slide].cpu_s += ends[i].cpu_s;
        if (!tasks[slide].error)
            tasks[slide].error = ends[i].error;
    }
    work->request.tasks = tasks;
    ok = ok && predict_cohort(&work->request, ctx, rows, &n_rows, &times, err);
    if (n_rows > 0 && work->given->json)
        print_json(out, rows, n_rows, &times);
    else if (n_rows > 0)
        print_rows(out, rows, n_rows);
    free(tasks);
    free(rows);
    return ok;
}

const struct task_kind predict_tasks = {
    .name = "predict",
    .open = tasks_open,
    .run = tasks_score,
    .in_place = true,
    .finish = tasks_stitch,
    .close = tasks_close,
};

/* One slide's groups. Of a slide that is done nothing is listed; one that cannot be planned is told
 * now and recorded at the end. */
static bool list_groups(struct predict *predict, size_t slide,
                        const struct predict_request *request, const struct ctx *ctx,
                        struct task_list *list, struct err *err)
{
    const char *name = request->slides->entries[slide].name;
    struct part_plan plan = { 0 };
    struct err why = { 0 };
    enum predict_state state = predict_look(predict, slide);
    if (state == PREDICT_DONE || state == PREDICT_SCORED)
        return true;
    if (!predict_plan(predict, slide, ctx, &plan, &why)) {
        if (why.kind == ERR_STOPPED)
            *err = why;
        else
            report_warn(ctx->report, "%s", why.text);
        return why.kind != ERR_STOPPED;
    }
    char *whole = file_format("%s/heatmap.json", name);
    bool ok = whole || err_memory(err, "the task list");
    for (int64_t group = 0; ok && group < plan.n_groups; group++) {
        char *file = part_path(name, group);
        ok = file ? list_add(list, name, group, (double)plan.groups[group].cost, file, whole, err)
                  : err_memory(err, "the task list");
        free(file);
    }
    free(whole);
    part_plan_free(&plan);
    return ok;
}

/* Slides are planned here, by this process; scored by jobs. */
static bool list_slides(const struct predict_request *request, const struct ctx *ctx,
                        struct task_list *list, struct err *err)
{
    struct predict *predict = NULL;
    bool ok =
        predict_open(&request->options, request->slides, request->folder, ctx, &predict, err) &&
        predict_prepare(request, predict, err);
    report_begin(ctx->report, "planning", (int64_t)request->slides->n, "slides");
    for (size_t i = 0; ok && i < request->slides->n; i++) {
        ok = ctx_stopped(ctx) ? err_stopped(err) : list_groups(predict, i, request, ctx, list, err);
        report_advance(ctx->report, 1);
    }
    report_end(ctx->report);
    predict_close(predict);
    return ok;
}

static bool run_on_cluster(struct app *app, const struct predict_args *given,
                           const struct predict_request *request, struct err *err)
{
    struct task_list list = { 0 };
    struct claim *claim = NULL;
    struct cluster_options cluster = given->cluster;
    cluster.memory_mb = (double)given->memory_mb * 1.1 + 200; /* program and libraries */
    bool ok = list_new(given->output, "predict", app->argc, app->argv, &list, err) &&
              cluster_begin(&list, request->slides, &claim, err) &&
              list_slides(request, &app->ctx, &list, err);
    if (ok)
        ok = cluster_submit(&list, &predict_tasks, &cluster, claim, &app->ctx, app->out, err);
    else
        claim_release(claim);
    list_free(&list);
    return ok;
}

static bool run_here(struct app *app, const struct predict_args *given,
                     const struct predict_request *request, struct err *err)
{
    struct predict_times times = { 0 };
    size_t n_rows = 0;
    struct predict_row *rows = calloc(request->slides->n + 1, sizeof *rows);
    bool ok = cluster_check_idle(given->output, err);
    ok = ok && (rows ? predict_cohort(request, &app->ctx, rows, &n_rows, &times, err)
                     : err_memory(err, "the slides"));
    if (n_rows > 0 && given->json)
        print_json(app->out, rows, n_rows, &times);
    else if (n_rows > 0)
        print_rows(app->out, rows, n_rows);
    free(rows);
    return ok;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct predict_args *given = options;
    struct slide_list slides = { 0 };
    struct predict_request request = { .slides = &slides,
                                       .folder = given->output,
                                       .overwrite = given->overwrite,
                                       .argc = app->argc,
                                       .argv = app->argv };
    bool ok = cluster_check(&given->cluster, err) && make_options(given, &request.options, err) &&
              slide_list_read(operands->operands, operands->n_operands, &slides, err);
    if (ok && given->cluster.on > 0)
        ok = run_on_cluster(app, given, &request, err);
    else if (ok)
        ok = run_here(app, given, &request, err);
    slide_list_free(&slides);
    return ok;
}

const struct command cmd_predict = {
    .spec = { .name = "predict",
              .summary = "map a network's scores onto slides",
              .operands = "SLIDES...",
              .min_operands = 1,
              .max_operands = 1000000,
              .description =
                  "Runs a network over the tissue of each slide and writes a heatmap: the scores "
                  "of "
                  "the windows centred on every so-many-th pixel. Networks without zero padding, "
                  "such as scan_base, are run densely over large blocks, which gives the same "
                  "scores for a hundredth of the work; for others that is an approximation that is "
                  "measured first (--mode dense). " SLIDES_ARE
                  " Patch stores of microtome extract --dense are taken as well. An interrupted "
                  "run continues, complete slides are kept, and those that cannot be read are "
                  "recorded in slides.csv and skipped. The same options give the same bytes, on "
                  "any number of threads.",
              .example = "microtome predict slides.csv -o heatmaps --model run1/model.safetensors\n"
                         "microtome predict a.tif -o heatmaps --model googlenet.onnx --mode dense "
                         "--calibrate affine --stride 64",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct predict_args),
    .run = run,
};
