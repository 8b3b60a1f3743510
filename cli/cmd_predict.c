/* cmd_predict.c: microtome predict: slides and a network -> heatmaps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "cli/predict.h"
#include "tissue/quality.h"
#include "train/score_recordings.h"
#include "train/score_texts.h"

#define AT(field) offsetof(struct predict_args, field)

/* "auto", then the methods. */
static const char *const stain_names[] = {
    "auto", "none", "reinhard", "macenko", "vahadane", NULL
};
static const char *const kernel_names[] = { "auto", "direct", NULL };
/* As in enum export_regions_rule. */
static const char *const region_rule_names[] = { "auto", "threshold", "winner", NULL };

static const struct arg args[] = {
    { .name = "model",
      .letter = 'm',
      .type = ARG_TEXTS,
      .offset = AT(models),
      .value = "FILE",
      .help = "safetensors with a config.json beside it, an ONNX file, or a folder with one of "
              "these; if given more than once, scores are averaged" },
    NETWORK_ARGS,
    OUTPUT_ARG("folder for run.json, slides.csv and a folder for each slide"),
    INT_ARG("stride", stride, "PX", "16", 1, 65536,
            "pixels between scores, at the resolution of the model"),
    CHOICE_ARG(
        "mode", mode, "NAME", "auto", predict_mode_names,
        "window: each window separately; dense: overlapping windows share their work; whole: "
        "the slide is one image, as in a training on slides; auto: whole if the model was "
        "trained so, otherwise dense where that is exact"),
    CHOICE_ARG("map", map, "NAME", "auto", whole_map_names,
               "with --mode whole, what the heatmap shows: cam, the scores of the logits of each "
               "cell; gradcam, the evidence for each class; auto: cam where the network has it"),
    CHOICE_ARG(
        "stream", stream, "WHICH", "auto", predict_stream_names,
        "with --mode dense: large blocks are computed tile by tile, so that no work is done "
        "twice within one: auto, for padded networks where that is less work; always; never"),
    CHOICE_ARG("calibrate", calibrate, "NAME", "none", predict_calibration_names,
               "map the dense logits of a padded network to window logits"),
    INT_ARG("check-windows", check_windows, "N", "256", 4, 1000000,
            "random windows for comparing dense and window scores of a padded network"),
    INT_ARG("seed", seed, "S", "0", 0, 9e15, "same seed, same windows in that comparison"),
    REAL_ARG("mpp", mpp, "UM", NULL, 0.01, 1000,
             "resolution in um/px; default: what the model expects"),
    REAL_ARG("mpp-tolerance", mpp_tolerance, "F", "0.2", 0, 100,
             "how far um/px may be from what the model expects, as a fraction of it"),
    { .name = "level",
      .type = ARG_INT,
      .offset = AT(level),
      .value = "N",
      .initial = "-1",
      .min = -1,
      .max = 63,
      .excludes = "mpp",
      .help = "score the pixels of this level as they are; 0 is the finest, -1: the best level, "
              "resampled to the model's um/px" },
    SLIDE_MPP_ARG,
    ICC_ARG,
    CACHE_ARG(CACHE_IN_RESULTS),
    CHOICE_ARG("method", method, "NAME", "process", tissue_method_names,
               "how tissue is found; none: all of the slide is tissue"),
    TEXT_ARG("tissue", tissue, "DIR", NULL,
             "folder with <slide>_mask.png as written by 'microtome tissue', instead of --method"),
    REAL_ARG("tissue-fraction", tissue_fraction, "F", "0.05", 0, 1,
             "minimum fraction of tissue in a cell of the heatmap"),
    OMIT_ARG,
    CHOICE_ARG(
        "stain", stain, "NAME", "auto", stain_names,
        "normalise the stains of each slide; auto: as in the model's training, or none if unknown"),
    TEXT_ARG(
        "template", stain_template, "PNG", NULL,
        "image to normalise the stains to, instead of the model's target or the built-in template"),
    FLAG_ARG("any-stain", any_stain,
             "allow --stain, --template and patch stores that differ from the model's training"),
    SCORES_ARG,
    FLAG_ARG("tta", tta, "average the scores of the eight ways to turn and mirror a window"),
    CHOICE_ARG("kernels", kernels, "WHICH", "auto", kernel_names,
               "how convolutions are computed: auto, whichever is fastest, or direct, which is "
               "slower but more accurate in the last digits"),
    FLAG_ARG("fast", fast,
             "allow 6x6 Winograd tiles for 3x3 convolutions: faster on large blocks, less exact"),
    INT_ARG("memory", memory_mb, "MB", "1800", 64, 1e7,
            "memory limit of a run, including libraries and models, for slides of any size; less "
            "memory means smaller blocks"),
    INT_ARG("group", group_mpx, "MPX", "64", 1, 1e9, "megapixels of network input per task"),
    TEXT_ARG("export", exports, "LIST", "all",
             "additional outputs, separated by commas: all, none, or any of ome-tiff, tiles-csv, "
             "tiles-geojson, regions and overlay"),
    CHOICE_ARG("regions", regions, "RULE", "auto", region_rule_names,
               "which regions are outlined: threshold, where a score reaches --threshold; winner, "
               "where a class has the highest score, without overlaps; auto: winner if there are "
               "more than two classes and no --class, otherwise threshold"),
    REAL_ARG("threshold", threshold, "P", "0.5", 0, 1,
             "minimum score of the regions outlined by threshold"),
    TEXT_ARG("class", class_name, "NAME", NULL,
             "class of the regions and the overlay; default: the last one of two, all of more"),
    INT_ARG("tile", tile, "PX", NULL, 0, 65536,
            "side of a tile in tiles.csv and tiles.geojson, rounded up to a multiple of the "
            "stride; default: the model's window"),
    FLAG_ARG("overwrite", overwrite, "replace existing heatmaps"),
    FLAG_ARG("json", json, "print the result as JSON"),
    CLUSTER_ARGS,
    CLUSTER_ARRAY_ARGS,
    COMMON_ARGS,
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
            return err_set(err, ERR_USAGE, "--export: no output is called '%.*s'; choose from %s",
                           (int)length, list, names);
        }
        while (before < n && out[before] != exporters[i])
            before++;
        if (before == n) /* a name given twice counts once */
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
        out->models[out->n_models++] =
            (struct model_source){ .file = given->models.items[i],
                                   .outputs = (enum model_outputs)given->scores };
    if (given->network)
        out->models[out->n_models++] =
            (struct model_source){ .network = given->network,
                                   .weights = given->weights,
                                   .init_seed = (uint64_t)given->init_seed,
                                   .classes = given->classes,
                                   .outputs = (enum model_outputs)given->scores };
    return true;
}

bool predict_args_options(const struct predict_args *given, struct predict_options *out,
                          struct err *err)
{
    *out = predict_defaults();
    out->mode = (enum predict_mode)given->mode;
    out->map = (enum whole_map)given->map;
    out->calibration = (enum predict_calibration)given->calibrate;
    out->stream = (enum predict_stream)given->stream;
    out->stride = given->stride;
    out->mpp = given->mpp;
    out->mpp_tolerance = given->mpp_tolerance;
    out->slide_mpp = given->slide_mpp;
    out->level = (int)given->level;
    out->cache = given->cache;
    out->tissue_method = (enum tissue_method)given->method;
    out->tissue = given->tissue;
    out->min_tissue = given->tissue_fraction;
    out->stain = given->stain > 0 ? given->stain - 1 : PREDICT_STAIN_OF_MODEL;
    out->any_stain = given->any_stain;
    out->stain_template = given->stain_template;
    out->tta = given->tta;
    out->direct = given->kernels == 1;
    out->fast = given->fast;
    out->memory_bytes = given->memory_mb << 20;
    out->group_cost = given->group_mpx << 20;
    out->check_windows = given->check_windows;
    out->seed = (uint64_t)given->seed;
    out->export.threshold = given->threshold;
    out->export.regions = (enum export_regions_rule)given->regions;
    out->export.tile_px = given->tile;
    out->export.class_name = given->class_name;
    if (out->direct && out->fast)
        return err_set(err, ERR_USAGE, "--fast and --kernels direct cannot be combined");
    if (given->stain_template && out->stain <= STAIN_NONE)
        return err_set(err, ERR_USAGE,
                       "--template: pass --stain reinhard, macenko or vahadane too");
    if (given->stream != PREDICT_STREAM_AUTO && given->mode != PREDICT_DENSE)
        return err_set(err, ERR_USAGE, "--stream: only for --mode dense");
    if (given->calibrate != CALIBRATE_NONE && given->mode != PREDICT_DENSE)
        return err_set(err, ERR_USAGE, "--calibrate: only for --mode dense");
    if (given->calibrate != CALIBRATE_NONE && given->check_windows < PREDICT_LEAST_FITTED)
        return err_set(err, ERR_USAGE,
                       "--calibrate: requires at least --check-windows %d: half of them for the "
                       "fit, half for its evaluation",
                       PREDICT_LEAST_FITTED);
    out->icc = given->icc;
    out->all_exports = strcmp(given->exports, "all") == 0;
    if (given->omit && !quality_parse(given->omit, "omit", &out->omit, err))
        return false;
    return choose_models(given, out, err) && choose_exports(given->exports, out->exports, err);
}

/* Slides that were taken whole have a score. */
static bool any_score(const struct predict_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(rows[i].score))
            return true;
    return false;
}

static void print_rows(FILE *stream, const struct predict_row *rows, size_t n)
{
    bool whole = any_score(rows, n);
    fprintf(stream, "%-32s %8s %8s %12s %8s %8s%s  %s\n", "slide", "width", "height", "scored",
            "mean", "max", whole ? "    score" : "", "state");
    for (size_t i = 0; i < n; i++) {
        fprintf(stream, "%-32s %8lld %8lld %12lld", rows[i].slide, (long long)rows[i].width,
                (long long)rows[i].height, (long long)rows[i].scored);
        if (rows[i].state == RUN_NO_TISSUE)
            fprintf(stream, " %8s %8s", "-", "-");
        else
            fprintf(stream, " %8.4f %8.4f", rows[i].mean, rows[i].max);
        if (whole && isnan(rows[i].score))
            fprintf(stream, " %8s", "-");
        else if (whole)
            fprintf(stream, " %8.4f", rows[i].score);
        fprintf(stream, "  %s\n", run_state_names[rows[i].state]);
    }
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
        json_out_text(&json, "state", run_state_names[rows[i].state]);
        json_out_int(&json, "width", rows[i].width);
        json_out_int(&json, "height", rows[i].height);
        json_out_int(&json, "blocks", rows[i].blocks);
        json_out_int(&json, "scored", rows[i].scored);
        json_out_real(&json, "mean", rows[i].mean);
        json_out_real(&json, "max", rows[i].max);
        if (!isnan(rows[i].score))
            json_out_real(&json, "score", rows[i].score);
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

void predict_args_print(const struct predict_args *given, FILE *stream,
                        const struct predict_row *rows, size_t n, const struct predict_times *times)
{
    if (n > 0 && given->json)
        print_json(stream, rows, n, times);
    else if (n > 0)
        print_rows(stream, rows, n);
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
    predict_args_print(given, app->out, rows, n_rows, &times);
    free(rows);
    return ok;
}

static bool run(struct app *app, const void *options, const struct args_result *operands,
                struct err *err)
{
    const struct predict_args *given = options;
    if (given->models.n == 1 && (score_texts_takes(given->models.items[0]) ||
                                 score_recordings_takes(given->models.items[0])))
        return predict_texts(app, given, operands->operands, operands->n_operands, err);
    struct slide_list slides = { 0 };
    struct predict_request request = { .slides = &slides,
                                       .folder = given->output,
                                       .overwrite = given->overwrite,
                                       .argc = app->argc,
                                       .argv = app->argv };
    bool ok = cluster_check(&given->cluster, err) &&
              predict_args_options(given, &request.options, err) &&
              slide_list_read(operands->operands, operands->n_operands, &slides, err);
    struct cluster_options cluster = given->cluster;
    cluster.memory_mb = (double)given->memory_mb * 1.1 + 200; /* program and libraries */
    struct task_request tasks = { .kind = &predict_tasks,
                                  .folder = given->output,
                                  .argc = app->argc,
                                  .argv = app->argv,
                                  .slides = &slides,
                                  .request = &request,
                                  .options = &cluster };
    if (ok && given->cluster.on > 0)
        ok = cluster_submit(&tasks, &app->ctx, app->out, err);
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
                  "of windows centred every --stride pixels. Networks without zero padding, such "
                  "as scan_base, are run densely over large blocks, which gives the same scores "
                  "for a hundredth of the work; for others this is an approximation, which is "
                  "measured first (--mode dense). Networks trained on whole slides take each as "
                  "one "
                  "image and score it too (--mode whole). A model of texts takes a table of texts "
                  "instead (CSV) and writes scores.csv: id, label and score_<class>. " SLIDES_ARE
                  " Patch stores made with 'microtome extract --dense' are accepted as well. Run "
                  "again, an interrupted run continues; complete slides are kept, and those that "
                  "cannot be read are recorded in slides.csv and skipped. The same options give "
                  "the same bytes for any number of threads.",
              .example = "microtome predict slides.csv -o heatmaps --model run1\n"
                         "microtome predict test.csv -o scores --model reports\n"
                         "microtome predict a.tif -o heatmaps --model googlenet.onnx --mode dense "
                         "--calibrate affine --stride 64",
              .args = args,
              .n_args = sizeof args / sizeof *args },
    .options_size = sizeof(struct predict_args),
    .run = run,
};
