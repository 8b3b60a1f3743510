/* predict.c: opens a prediction: models, resolution, mode, memory. See predict.h. */
#include "heatmap/predict.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/pool.h"
#include "base/console.h"
#include "heatmap/model_window.h"
#include "heatmap/part_file.h"
#include "heatmap/predict_state.h"
#include "net/model/model_name.h"
#include "tissue/quality.h"
#include "base/text.h"

#define BASE_BYTES (INT64_C(300) << 20)  /* besides workers: overview, mask, decoded tiles, rows */
#define FIRST_BYTES (INT64_C(100) << 20) /* of these at least, beside the models: libraries too */
#define MUCH_BYTES (INT64_C(500) << 20)  /* with less, fewer decoded tiles of a slide are kept */
#define DEFAULT_GROUP_COST (INT64_C(64) << 20)
#define DEFAULT_CHECK_WINDOWS 256

const char *const predict_mode_names[] = { "auto", "dense", "window", "whole", NULL };
const char *const predict_stream_names[] = { "auto", "always", "never", NULL };
const char *const predict_calibration_names[] = { "none", "affine", NULL };

struct predict_options predict_defaults(void)
{
    return (struct predict_options){ .stride = 16,
                                     .level = -1,
                                     .stain = PREDICT_STAIN_OF_MODEL,
                                     .mpp_tolerance = 0.2,
                                     .min_tissue = 0.05,
                                     .memory_bytes = PREDICT_MEMORY_BYTES,
                                     .group_cost = DEFAULT_GROUP_COST,
                                     .check_windows = DEFAULT_CHECK_WINDOWS,
                                     .export = export_defaults() };
}

/* The um/px that the models were made for; 0 where none says so. */
static bool models_mpp(const struct ensemble *e, double *out, struct err *err)
{
    *out = 0;
    for (int i = 0; i < e->n; i++) {
        double mpp = e->models[i].model->config.spacing_um_px;
        if (mpp > 0 && *out > 0 && fabs(mpp / *out - 1) > 0.01)
            return err_set(err, ERR_USAGE,
                           "%s expects %g um/px, another model %g; averaged models must expect the "
                           "same resolution",
                           e->models[i].model->name, mpp, *out);
        *out = mpp > 0 ? mpp : *out;
    }
    return true;
}

static bool choose_mpp(struct predict *predict, const struct ctx *ctx, struct err *err)
{
    const struct predict_options *options = predict->options;
    double made_for = 0;
    if (!models_mpp(&predict->ensemble, &made_for, err))
        return false;
    if (options->mpp > 0 && made_for > 0 &&
        fabs(options->mpp / made_for - 1) > options->mpp_tolerance)
        return err_set(err, ERR_USAGE,
                       "--mpp %g: the model expects %g um/px; omit --mpp, use a model for %g, or "
                       "allow the difference with --mpp-tolerance %.2g",
                       options->mpp, made_for, options->mpp,
                       ceil(100 * fabs(options->mpp / made_for - 1)) / 100);
    predict->expected_mpp = options->mpp > 0 ? options->mpp : made_for;
    predict->raster.mpp = options->level < 0 ? predict->expected_mpp : 0;
    predict->raster.mpp_tolerance = options->mpp_tolerance;
    predict->raster.level = options->level < 0 ? 0 : options->level;
    bool scaled = predict->whole && predict->ensemble.models[0].model->config.whole.set;
    if (predict->raster.mpp <= 0 && options->level < 0 && !scaled)
        console_note(ctx->console, "neither the model nor --mpp specifies um/px; using level 0");
    return true;
}

/* The class that exports shall show must be one: better said now than after hours. */
static bool check_class(const struct predict *predict, struct err *err)
{
    const struct model_config *config = &predict->ensemble.models[0].model->config;
    struct heatmap_info info = { .n_classes = config->num_classes,
                                 .class_names = config->class_names };
    int64_t class_index;
    return heatmap_find_class(&info, predict->options->export.class_name, &class_index, err) ||
           err_prefix(err, "the model");
}

/* Regions of a number would be those of an arbitrary threshold. */
static bool choose_exports(struct predict *predict, struct err *err)
{
    const struct predict_options *options = predict->options;
    const struct model *model = predict->ensemble.models[0].model;
    size_t n = 0;
    for (size_t i = 0; options->exports[i]; i++) {
        bool fits = !options->exports[i]->needs_scores || !model_predicts_number(model);
        if (!fits && !options->all_exports)
            return err_set(err, ERR_USAGE,
                           "--export %s: %s predicts a number (%s), not the score of a class",
                           options->exports[i]->name, model->name, model->config.target.name);
        if (fits)
            predict->exports[n++] = options->exports[i];
    }
    return true;
}

/* Says, and notes for the record, what is unusual about the outputs of the models. */
static bool look_at_outputs(struct predict *predict, const struct ctx *ctx, struct err *err)
{
    const struct ensemble *e = &predict->ensemble;
    bool all_usual = true, calibrated = predict->options->calibration == CALIBRATE_AFFINE;
    char *words = strdup("");
    for (int i = 0; words && i < e->n; i++) {
        const struct model *model = e->models[i].model;
        char text[MODEL_OUTPUTS_TEXT], *longer = NULL;
        bool usual = true;
        model_outputs_text(model, text, &usual);
        if (!usual)
            console_note(ctx->console, "%s: %s", model->name, text);
        all_usual = all_usual && usual;
        longer = text_format("%s%s%s", words, i ? "+" : "", model_outputs_word(model));
        free(words);
        words = longer;
        if (calibrated && model->rule == SCORE_AS_IS) {
            free(words);
            return err_set(
                err, ERR_USAGE,
                "--calibrate affine: %s gives probabilities, but calibration requires logits",
                model->name);
        }
    }
    predict->outputs = words && !all_usual ? text_format(" scores=%s", words) : strdup("");
    free(words);
    return predict->outputs || err_memory(err, "the models");
}

static bool name_models(struct predict *predict, struct err *err)
{
    const struct ensemble *e = &predict->ensemble;
    struct model_window window;
    uint64_t hash = PART_HASH_BEGIN;
    for (int i = 0; i < e->n; i++) {
        char *name = model_full_name(&predict->options->models[i], e->models[i].model);
        char *joined = predict->model_names && name
                           ? text_format("%s + %s", predict->model_names, name)
                       : name ? strdup(name)
                              : NULL;
        free(predict->model_names), free(name);
        predict->model_names = joined;
        if (!joined)
            return err_memory(err, "the models");
        if (!model_window_of(e->models[i].model, &window, err))
            return false;
        hash = model_window_hash(hash, e->models[i].model, &window);
    }
    predict->model_hash = text_format("%016" PRIx64, hash);
    return (predict->model_names && predict->model_hash) || err_memory(err, "the models");
}

/* A number for each px of the window method and one of the dense method, to compare. */
static double saved_factor(const struct ensemble *e)
{
    int64_t window = e->models[0].window, stride = e->stride, halo = e->models[0].halo;
    double block = 2048, cells = floor((block - (double)(window + 2 * halo)) / (double)stride) + 1;
    return (double)(window * window) * cells * cells / (block * block);
}

static bool choose_mode(struct predict *predict, const struct ctx *ctx, bool *dense,
                        struct err *err)
{
    const struct ensemble *e = &predict->ensemble;
    const char *reason = "";
    bool exact = ensemble_exact(e, &reason);
    *dense = predict->options->mode == PREDICT_DENSE;
    if (predict->options->mode == PREDICT_WINDOW || predict->whole)
        return true;
    const char *why_not = "";
    bool shares = ensemble_shares(e, &why_not);
    if (*dense && !shares)
        return err_set(err, ERR_USAGE, "--mode dense: %s: %s; use --mode %s", predict->model_names,
                       why_not, e->models[0].model->config.whole.set ? "whole" : "window");
    if (*dense)
        return true;
    *dense = exact && e->stride < e->models[0].window;
    if (exact)
        return true;
    if (shares)
        console_note(
            ctx->console,
            "%s: every window is computed separately because a dense run is not exact (%s). "
            "--mode dense would pass about 1/%.0f of the pixels through the network and "
            "first measure the difference on %lld random windows",
            predict->model_names, reason, fmax(1, saved_factor(e)),
            (long long)predict->options->check_windows);
    else
        console_note(ctx->console, "%s: windows cannot share work: %s", predict->model_names,
                     why_not);
    return true;
}

static bool name_cohort(struct predict *predict, struct err *err)
{
    uint64_t hash = PART_HASH_BEGIN;
    for (size_t i = 0; i < predict->slides->n; i++) {
        const char *name = predict->slides->entries[i].name;
        hash = part_hash(hash, name, strlen(name) + 1);
    }
    predict->cohort_hash = text_format("%016" PRIx64, hash);
    return predict->cohort_hash || err_memory(err, "the slides");
}

/* A calibration is fitted to the slides of the list: with others, scores are others. */
static bool describe(struct predict *predict, struct err *err)
{
    const struct predict_options *o = predict->options;
    const struct ensemble *e = &predict->ensemble;
    const char *reason;
    char omitted[QUALITY_TEXT_ROOM];
    quality_text(o->omit, omitted);
    bool fitted = o->calibration == CALIBRATE_AFFINE && !ensemble_exact(e, &reason);
    char streamed[80] = "";
    if (e->stream.tile > 0)
        snprintf(streamed, sizeof streamed, " stream=%s tile=%lld task=%lld",
                 predict_stream_names[o->stream], (long long)e->stream.tile,
                 (long long)(o->group_cost >> 20));
    char *how = predict->whole ? predict_whole_words(predict)
                : e->dense
                    ? text_format("dense block=%lld halo=%lld%s calibrate=%s%s%s windows=%lld/%llu",
                                  (long long)e->block, (long long)e->models[0].halo, streamed,
                                  predict_calibration_names[o->calibration],
                                  fitted ? " cohort=" : "", fitted ? predict->cohort_hash : "",
                                  (long long)o->check_windows, (unsigned long long)o->seed)
                    : text_format("window batch=%lld", (long long)e->batch);
    char level[24] = "";
    if (o->level >= 0)
        snprintf(level, sizeof level, " level=%d", o->level);
    if (how)
        predict->options_text = text_format(
            "%s stride=%lld models=%s mpp=%g slide-mpp=%g method=%s tissue=%s tissue-fraction=%g "
            "stain=%s template=%s tta=%d%s%s%s%s%s%s",
            how, (long long)o->stride, predict->model_hash, predict->raster.mpp, o->slide_mpp,
            tissue_method_names[predict->method], o->tissue ? "given" : "found", o->min_tissue,
            stain_method_names[predict->target.method], predict->template_name, o->tta,
            e->direct ? " kernels=direct"
            : o->fast ? " kernels=fast"
                      : "",
            predict->outputs, level, o->omit ? " omit=" : "", omitted, o->icc ? " icc=srgb" : "");
    free(how);
    return predict->options_text || err_memory(err, "the options");
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of `memory`, what is kept for all but workers; `parameters` of it are the models'. */
static int64_t base_of(int64_t memory, int64_t parameters)
{
    return at_least(at_most(BASE_BYTES, memory / 3), at_most(FIRST_BYTES, memory / 4) + parameters);
}

static bool too_little(int64_t memory, int64_t least, int64_t parameters, struct err *err)
{
    int64_t beside = least + parameters; /* so that base_of it is left out */
    least = at_least(least + at_most(BASE_BYTES, least / 2),
                     beside + at_most(FIRST_BYTES, beside / 3 + 1));
    return err_set(
        err, ERR_USAGE,
        "--memory: %lld MB is not enough, even with the smallest blocks; pass at least %lld",
        (long long)(memory >> 20), (long long)(least >> 20) + 1);
}

/* Which blocks of a dense run are streamed. What an exact network computes twice is little. */
static bool choose_stream(struct predict *predict, int64_t bytes, struct err *err)
{
    struct ensemble *e = &predict->ensemble;
    enum predict_stream stream = predict->options->stream;
    const char *reason = "";
    struct err why = { 0 };
    bool always = stream == PREDICT_STREAM_ALWAYS;
    if (!e->dense || stream == PREDICT_STREAM_NEVER || (!always && ensemble_exact(e, &reason)))
        return true;
    bool can = ensemble_choose_stream(e, predict->options->group_cost, bytes, &why);
    e->stream.always = always;
    if (can && (!always || e->stream.tile > 0))
        return true;
    if (!can && why.kind != ERR_USAGE) {
        *err = why;
        return false;
    }
    e->stream.tile = 0;
    if (always && can)
        return err_set(err, ERR_USAGE,
                       "--stream always: --memory %lld is not enough for the smallest tiles; raise "
                       "it, or use --stream auto",
                       (long long)(predict->options->memory_bytes >> 20));
    return !always || err_set(err, ERR_USAGE, "--stream always: %s", why.text);
}

static bool choose_memory(struct predict *predict, bool dense, const struct ctx *ctx,
                          struct err *err)
{
    int64_t memory = predict->options->memory_bytes;
    struct ensemble *e = &predict->ensemble;
    int64_t parameters = ensemble_parameter_bytes(e), base = base_of(memory, parameters);
    e->direct = predict->options->direct;
    e->fast = predict->options->fast;
    if (predict->whole) { /* which has its own copy of the parameters */
        predict->tiles_bytes = (int64_t)SLIDE_IMAGE_CACHE_BYTES / (memory < MUCH_BYTES ? 4 : 1);
        predict->other_bytes = FIRST_BYTES + 2 * parameters + predict->tiles_bytes;
        predict->whole_bytes = at_least(memory - predict->other_bytes, 1);
        return true;
    }
    if (!ensemble_choose(e, dense, predict->options->tta, memory - base, err))
        return e->least_bytes > 0 ? too_little(memory, e->least_bytes, parameters, err) : false;
    if (e->direct && !predict->options->direct)
        console_note(ctx->console,
                     "--memory is too small for Winograd convolutions; using direct ones");
    if (!choose_stream(predict, memory - base, err))
        return false;
    int64_t workers = (memory - base - e->shared_bytes) / e->worker_bytes;
    predict->workers = workers > 1024 ? 1024 : (int)workers;
    int threads = pool_workers(ctx->pool);
    if (threads > predict->workers)
        console_note(ctx->console, "--memory allows %d of %d threads to compute, %.0f MB each",
                     predict->workers, threads, (double)e->worker_bytes / 1e6);
    return true;
}

static bool open_models(struct predict *predict, struct err *err)
{
    const struct predict_options *options = predict->options;
    struct model *models[PREDICT_MAX_MODELS] = { 0 };
    bool ok =
        options->n_models > 0 || err_set(err, ERR_USAGE, "pass --model FILE, or --network NAME");
    for (int i = 0; ok && i < options->n_models; i++)
        ok = model_open_classifier(&options->models[i], &models[i], err);
    ok = ok && ensemble_init(&predict->ensemble, models, options->n_models, options->stride, err);
    for (int i = 0; i < options->n_models; i++)
        model_close(models[i]);
    return ok;
}

bool predict_open(const struct predict_options *options, const struct slide_list *slides,
                  const char *folder, const struct ctx *ctx, struct predict **out, struct err *err)
{
    struct predict *predict = calloc(1, sizeof *predict);
    if (!predict)
        return err_memory(err, "the prediction");
    predict->options = options;
    predict->slides = slides;
    predict->folder = strdup(folder);
    predict->prepared = calloc(slides->n + 1, sizeof *predict->prepared);
    bool dense = false;
    bool ok = (predict->folder && predict->prepared) || err_memory(err, "the prediction");
    ok = ok && file_make_folder(folder, err) && open_models(predict, err) &&
         predict_choose_whole(predict, err) && check_class(predict, err) &&
         choose_exports(predict, err) && look_at_outputs(predict, ctx, err) &&
         choose_mpp(predict, ctx, err) && name_models(predict, err) &&
         choose_mode(predict, ctx, &dense, err) && choose_memory(predict, dense, ctx, err) &&
         predict_choose_stain(predict, ctx, err) && name_cohort(predict, err) &&
         describe(predict, err) && predict_check(predict, false, ctx, err);
    if (ok)
        *out = predict;
    else
        predict_close(predict);
    return ok;
}

void predict_close(struct predict *predict)
{
    if (!predict)
        return;
    whole_close(predict->whole);
    ensemble_free(&predict->ensemble);
    free(predict->folder);
    free(predict->prepared);
    free(predict->model_names);
    free(predict->model_hash);
    free(predict->outputs);
    free(predict->cohort_hash);
    free(predict->options_text);
    free(predict);
}

struct predict_times predict_times(const struct predict *predict)
{
    return predict->times;
}
