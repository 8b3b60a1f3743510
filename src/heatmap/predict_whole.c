/* predict_whole.c: slides that a network takes whole: one block, one task, one pass. Beside the
 * heatmap there is DIR/<slide>/slide.json, the scores of the slide. See predict_state.h. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/console.h"
#include "base/divide.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/text.h"
#include "heatmap/cover.h"
#include "heatmap/heatmap_json.h"
#include "heatmap/predict_state.h"

static const struct model *the_model(const struct predict *predict)
{
    return predict->ensemble.models[0].model;
}

/* How slides are read, before stains and masks. */
static bool image_options(const struct predict *predict, struct slide_image_options *out,
                          struct err *err)
{
    const struct model_config *config = &the_model(predict)->config;
    double mpp = predict->options->mpp;
    if (config->whole.set) {
        if (!slide_image_of_model(config, out, err))
            return err_prefix(err, the_model(predict)->name);
        out->mpp = mpp > 0 ? mpp : out->mpp;
    } else {
        *out = slide_image_defaults();
        out->mpp = mpp > 0 ? mpp : config->spacing_um_px;
        memcpy(out->mean, config->mean, sizeof out->mean);
        memcpy(out->std, config->std, sizeof out->std);
    }
    out->mpp_tolerance = predict->options->mpp_tolerance;
    return true;
}

static bool check_options(const struct predict *predict, struct err *err)
{
    const struct predict_options *options = predict->options;
    if (options->n_models > 1)
        return err_set(err, ERR_USAGE, "--mode whole: one model at a time; pass one --model");
    if (options->tta)
        return err_set(err, ERR_USAGE, "--mode whole: omit --tta, which is for windows");
    if (options->level >= 0)
        return err_set(
            err, ERR_USAGE,
            "--mode whole: omit --level; --mpp sets another resolution than the model's");
    for (size_t i = 0; i < predict->slides->n; i++)
        if (specimen_is_store(predict->slides->entries[i].path))
            return err_set(err, ERR_USAGE,
                           "%s: a patch store is not a whole slide; use --mode window or dense",
                           predict->slides->entries[i].path);
    return true;
}

bool predict_choose_whole(struct predict *predict, struct err *err)
{
    const struct predict_options *options = predict->options;
    bool trained = the_model(predict)->config.whole.set;
    struct slide_image_options image;
    predict->method = options->tissue_method;
    if (options->mode != PREDICT_WHOLE && !(options->mode == PREDICT_AUTO && trained))
        return options->map == WHOLE_AUTO ||
               err_set(err, ERR_USAGE, "--map: only for --mode whole");
    if (!check_options(predict, err) || !image_options(predict, &image, err))
        return false;
    if (options->tissue_method == tissue_defaults().method)
        predict->method = image.method;
    return whole_open(the_model(predict), options->map, &predict->whole, err);
}

char *predict_whole_words(const struct predict *predict)
{
    struct slide_image_options image;
    if (!image_options(predict, &image, NULL))
        return NULL;
    return text_format("whole map=%s memory=%" PRId64 " long-side=%" PRId64 " margin=%g%s",
                       whole_map_names[whole_map_of(predict->whole)], predict->whole_bytes >> 20,
                       image.mpp > 0 ? 0 : image.long_side_px, image.margin_um,
                       image.background ? " background=kept" : "");
}

static bool open_image(const struct predict *predict, const struct predict_slide *slide,
                       const char *mask, const struct stain_fit *stain, const struct ctx *ctx,
                       struct slide_image **out, struct err *err)
{
    struct slide_image_options options;
    struct slide_access access = predict_access(predict);
    if (!image_options(predict, &options, err))
        return false;
    options.mask = mask;
    options.cache_bytes = (size_t)predict->tiles_bytes;
    if (stain && stain->method != STAIN_NONE) {
        options.target = predict->target;
        options.fitted = *stain;
    }
    return slide_image_open(&predict->slides->entries[slide->index], &access, &options, ctx, out,
                            err);
}

bool predict_whole_place(const struct predict *predict, struct predict_slide *slide,
                         const char *mask, const struct ctx *ctx, struct partition_block *out,
                         struct err *err)
{
    struct slide_image *image = NULL;
    struct specimen *specimen = slide->specimen;
    const int64_t stride = predict->ensemble.stride;
    if (!open_image(predict, slide, mask, NULL, ctx, &image, err))
        return false;
    const struct slide_image_facts *facts = slide_image_facts(image);
    slide_image_warn(image, ctx->console);
    struct raster_request request = { .downsample = facts->downsample };
    bool ok = raster_open(specimen->slide, &request, &specimen->raster, err);
    specimen->raster.mpp = facts->mpp;
    out->column = facts->x / stride;
    out->row = facts->y / stride;
    out->width = ceil_div(facts->x + facts->width, stride) - out->column;
    out->height = ceil_div(facts->y + facts->height, stride) - out->row;
    out->cost = facts->width * facts->height;
    slide_image_close(image);
    return ok;
}

static bool write_scores(const struct predict *predict, const struct predict_slide *slide,
                         const struct slide_image *image, const struct whole_output *result,
                         const double *scores, struct err *err)
{
    const struct slide_image_facts *facts = slide_image_facts(image);
    const struct model_config *config = &the_model(predict)->config;
    char *path = text_format("%s/slide.json", slide->folder);
    struct file_out out;
    struct json_out json;
    bool ok = path ? file_out_open(&out, path, err) : err_memory(err, slide->folder);
    free(path);
    if (!ok)
        return false;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "slide", slide->partition.info.slide);
    json_out_array_line(&json, "classes");
    for (int64_t c = 0; c < config->num_classes; c++)
        json_out_text(&json, NULL, config->class_names[c]);
    json_out_close_array(&json);
    json_out_array_line(&json, "scores");
    for (int64_t c = 0; c < config->num_classes; c++)
        json_out_real(&json, NULL, scores[c]);
    json_out_close_array(&json);
    json_out_array_line(&json, "logits");
    for (int64_t c = 0; c < config->num_classes; c++)
        json_out_real(&json, NULL, (double)result->logits[c]);
    json_out_close_array(&json);
    json_out_object_line(&json, "image"); /* px at the model's scale */
    json_out_int(&json, "x", facts->x);
    json_out_int(&json, "y", facts->y);
    json_out_int(&json, "width", facts->width);
    json_out_int(&json, "height", facts->height);
    json_out_real(&json, "mpp", facts->mpp);
    json_out_int(&json, "tile_px", result->streamed.tile_px);
    json_out_close_object(&json);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

bool predict_whole_read(const struct predict *predict, const char *folder, double *score,
                        struct err *err)
{
    json_t *object = NULL;
    char *path = text_format("%s/slide.json", folder);
    size_t n = (size_t)the_model(predict)->config.num_classes;
    if (!path)
        return err_memory(err, folder);
    bool ok = heatmap_json_load(path, &object, err);
    const json_t *scores = json_object_get(object, "scores");
    if (ok && (json_array_size(scores) != n || !json_is_number(json_array_get(scores, n - 1))))
        ok = err_set(err, ERR_FORMAT, "%s: is damaged; pass --overwrite", path);
    if (ok)
        *score = json_number_value(json_array_get(scores, n - 1));
    json_decref(object);
    free(path);
    return ok;
}

/* scores [height, width, classes] of the block. */
static bool fill_cells(const struct predict *predict, const struct predict_slide *slide,
                       const struct slide_image_facts *facts, const struct whole_output *result,
                       float *scores, struct err *err)
{
    const struct partition_block *block = &slide->partition.blocks[0];
    const int64_t classes = predict->ensemble.n_classes, stride = predict->ensemble.stride;
    bool *wanted = malloc((size_t)(block->width * block->height) * sizeof *wanted);
    float *logits = malloc((size_t)classes * sizeof *logits);
    double *p = malloc((size_t)classes * sizeof *p);
    bool ok = (wanted && logits && p) || err_memory(err, slide->folder);
    if (ok)
        cover_wanted(slide->specimen, &predict->ensemble, block, wanted);
    for (int64_t i = 0; ok && i < block->width * block->height; i++) {
        double x = ((double)(block->column + i % block->width) + 0.5) * (double)stride;
        double y = ((double)(block->row + i / block->width) + 0.5) * (double)stride;
        if (wanted[i])
            ok = whole_at(predict->whole, result, x - (double)facts->x, y - (double)facts->y,
                          logits, p, err);
        for (int64_t c = 0; c < classes; c++)
            scores[i * classes + c] = wanted[i] ? (float)p[c] : NAN;
    }
    free(wanted), free(logits), free(p);
    return ok;
}

static bool finite_logits(const struct predict *predict, const struct whole_output *result,
                          struct err *err)
{
    for (int64_t c = 0; c < predict->ensemble.n_classes; c++)
        if (!isfinite(result->logits[c]))
            return err_set(err, ERR_FORMAT,
                           "%s: produces scores that are not numbers; are its weights damaged?",
                           the_model(predict)->name);
    return true;
}

static bool run_whole(const struct predict *predict, struct slide_image *image,
                      const struct ctx *ctx, struct whole_output *out, struct err *err)
{
    struct whole_settings settings = { .memory_bytes = predict->whole_bytes,
                                       .other_bytes = predict->other_bytes,
                                       .spill = predict->folder,
                                       .threads = pool_workers(ctx->pool),
                                       .direct = predict->options->direct,
                                       .fast = predict->options->fast };
    return whole_pass(predict->whole, image, &settings, ctx, out, err) ||
           (err->kind == ERR_MEMORY && err_prefix(err, "--memory"));
}

bool predict_whole_score(struct predict *predict, struct predict_slide *slide,
                         const struct ctx *ctx, struct err *err)
{
    const struct partition *partition = &slide->partition;
    const struct partition_block *block = &partition->blocks[0];
    const int64_t classes = predict->ensemble.n_classes;
    struct whole_output result = { 0 };
    struct slide_image *image = NULL;
    double began_s = clock_monotonic_s();
    char *mask = text_format("%s/tissue.png", slide->folder);
    float *scores = malloc((size_t)(block->width * block->height * classes) * sizeof *scores);
    double *whole = malloc((size_t)classes * sizeof *whole);
    bool ok = (mask && scores && whole) || err_memory(err, slide->folder);
    ok = ok && open_image(predict, slide, mask, &partition->info.stain, ctx, &image, err) &&
         run_whole(predict, image, ctx, &result, err) && finite_logits(predict, &result, err) &&
         model_score(the_model(predict), result.logits, whole, err);
    predict->times.compute_s += clock_monotonic_s() - began_s - result.streamed.waited_source_s;
    predict->times.read_s += result.streamed.waited_source_s;
    struct raster_request request = { .downsample = partition->info.downsample };
    ok = ok && raster_open(slide->specimen->slide, &request, &slide->specimen->raster, err) &&
         fill_cells(predict, slide, slide_image_facts(image), &result, scores, err) &&
         write_scores(predict, slide, image, &result, whole, err) &&
         part_write(slide->folder, partition, 0, (const float *const[]){ scores }, err);
    if (ok)
        console_advance(ctx->console, 1);
    slide_image_close(image);
    whole_output_free(&result);
    free(mask), free(scores), free(whole);
    return ok;
}
