/* predict_slide.c: one slide: its partition, its groups, its heatmap and exports. See predict.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/file.h"
#include "base/console.h"
#include "heatmap/cover.h"
#include "heatmap/heatmap_json.h"
#include "heatmap/predict_state.h"
#include "heatmap/score_groups.h"
#include "patch/stain_sample.h"
#include "tissue/cohort.h"
#include "base/text.h"
#include "base/clock.h"

#define STITCH_BYTES (INT64_C(64) << 20)
#define IMAGE_SHARE 16  /* a plain image in memory takes at most this part of --memory */
#define WRITING_SHARE 8 /* stitching and exporters take at most this part of --memory */
#define STAIN_BAND_BYTES (INT64_C(96) << 20)

static int64_t at_most(int64_t bytes, int64_t limit)
{
    return bytes < limit ? bytes : limit;
}

char *predict_folder(const struct predict *predict, size_t slide)
{
    return text_format("%s/%s", predict->folder, predict->slides->entries[slide].name);
}

static char *in_folder(const char *folder, const char *name)
{
    return text_format("%s/%s", folder, name);
}

/* A store, or a level, of another resolution; otherwise raster_open sees to it. */
static bool check_mpp(const struct predict *predict, const char *path,
                      const struct specimen *specimen, struct err *err)
{
    double wanted = predict->expected_mpp, tolerance = predict->options->mpp_tolerance;
    double mpp = specimen->raster.mpp;
    if (!(wanted > 0 && mpp > 0) || fabs(mpp / wanted - 1) <= tolerance)
        return true;
    if (specimen->store)
        return err_set(err, ERR_USAGE,
                       "%s: its patches have %g um/px, but the model expects %g; extract with "
                       "--mpp %g, or allow the difference with --mpp-tolerance",
                       path, mpp, wanted, wanted);
    if (predict->options->level >= 0)
        return err_set(err, ERR_USAGE,
                       "%s: level %d has %g um/px, but the model expects %g; omit --level to "
                       "resample, or allow the difference with --mpp-tolerance",
                       path, predict->options->level, mpp, wanted);
    return true;
}

struct slide_access predict_access(const struct predict *predict)
{
    const struct predict_options *options = predict->options;
    return (struct slide_access){ .mpp = options->slide_mpp,
                                  .cache = options->cache,
                                  .image_bytes = options->memory_bytes / IMAGE_SHARE,
                                  .results = predict->folder,
                                  .icc = options->icc };
}

bool predict_given_mask(const struct predict *predict, size_t slide, char **out, struct err *err)
{
    const char *name = predict->slides->entries[slide].name;
    *out = NULL;
    if (!predict->options->tissue)
        return true;
    *out = text_format("%s/%s_mask.png", predict->options->tissue, name);
    if (!*out)
        return err_memory(err, name);
    if (tissue_check_slide(*out, predict->slides->entries[slide].path, err))
        return true;
    free(*out);
    *out = NULL;
    return false;
}

bool predict_specimen(const struct predict *predict, size_t slide, const char *mask,
                      const struct ctx *ctx, struct specimen *out, struct err *err)
{
    const struct predict_options *options = predict->options;
    const struct slide_entry *entry = &predict->slides->entries[slide];
    struct slide_access access = predict_access(predict);
    if (!specimen_open(entry, &access, &predict->raster, out, err))
        return false;
    out->min_tissue = options->min_tissue;
    bool ok = check_mpp(predict, entry->path, out, err);
    if (ok && out->store)
        ok = predict_check_store(predict, entry->path, &out->stored, err);
    ok = ok && specimen_find_tissue(out, predict->method, mask, ctx, err);
    if (!ok)
        specimen_close(out);
    return ok;
}

bool predict_fit_stain(const struct predict *predict, struct specimen *specimen,
                       const struct ctx *ctx, struct stain_fit *out, struct err *err)
{
    enum stain_method method = predict->target.method;
    *out = (struct stain_fit){ .method = STAIN_NONE };
    if (method == STAIN_NONE || specimen->store)
        return true;
    bool usual = !predict->options->tissue && !predict->options->omit &&
                 predict->method == tissue_defaults().method;
    return (stain_sample_fit(method, specimen->slide, usual ? &specimen->mask : NULL,
                             STAIN_BAND_BYTES, ctx, out, err) &&
            stain_transform_new(out, &predict->target, &specimen->transform, err)) ||
           err_prefix(err, slide_info(specimen->slide)->path);
}

static bool describe(const struct predict *predict, const struct predict_slide *slide,
                     struct heatmap_info *out, struct err *err)
{
    const struct ensemble *e = &predict->ensemble;
    const struct slide_entry *entry = &predict->slides->entries[slide->index];
    const struct specimen *specimen = slide->specimen;
    struct heatmap_info info = {
        .slide = entry->name,
        .width_l0 = specimen->width_l0,
        .height_l0 = specimen->height_l0,
        .mpp_l0 = specimen->mpp_l0,
        .mpp = specimen->raster.mpp,
        .downsample = specimen->raster.downsample,
        .stride = e->stride,
        .origin_x = e->stride / 2,
        .origin_y = e->stride / 2,
        .window = e->models[0].window,
        .width = ceil_div(specimen->raster.width, e->stride),
        .height = ceil_div(specimen->raster.height, e->stride),
        .n_classes = e->n_classes,
        .class_names = e->models[0].model->config.class_names,
        .mode = predict->whole ? "whole"
                : e->dense     ? "dense"
                               : "window",
        .models = predict->model_names,
        .model_hash = predict->model_hash,
        .options = predict->options_text,
        .check = predict->check,
        .raw = predict->raw,
    };
    if (model_predicts_number(e->models[0].model)) {
        const struct model_target *target = &e->models[0].model->config.target;
        info.number = (struct heatmap_number){ .min = target->min, .max = target->max };
        snprintf(info.number.unit, sizeof info.number.unit, "%s", target->unit);
    }
    info.path = file_absolute(entry->path);
    if (!info.path)
        return err_memory(err, entry->path);
    snprintf(info.inputs, sizeof info.inputs, "%s", slide->inputs);
    bool ok = heatmap_info_copy(&info, out, err);
    free(info.path);
    return ok;
}

/* Opens the slide, unless it is. mask and ctx as of predict_specimen. */
static bool open_specimen(const struct predict *predict, struct predict_slide *slide,
                          const char *mask, const struct ctx *ctx, struct err *err)
{
    if (slide->specimen)
        return true;
    struct specimen *specimen = malloc(sizeof *specimen);
    bool ok = specimen ? predict_specimen(predict, slide->index, mask, ctx, specimen, err)
                       : err_memory(err, slide->folder);
    if (ok)
        slide->specimen = specimen;
    else
        free(specimen);
    return ok;
}

/* Inputs are looked at before the slide is opened, so that a file that is replaced from then on is
 * noticed. */
static bool open_new(const struct predict *predict, struct predict_slide *slide,
                     const struct ctx *ctx, struct err *err)
{
    const struct predict_options *options = predict->options;
    char *given = NULL;
    bool ok = (slide->inputs[0] || predict_inputs(predict, slide->index, slide->inputs, err)) &&
              predict_given_mask(predict, slide->index, &given, err) &&
              open_specimen(predict, slide, given, ctx, err) &&
              specimen_omit(slide->specimen, predict->method, options->omit, ctx, err);
    free(given);
    return ok;
}

/* The tissue for those who score, in other processes too. */
static bool keep_tissue(const struct predict_slide *slide, const char *mask, struct err *err)
{
    return file_make_folder(slide->folder, err) &&
           (slide->specimen->store || image_write_png(mask, &slide->specimen->mask.mask, err));
}

/* The cells that are scored. */
static bool cover(struct predict *predict, struct predict_slide *slide,
                  const struct partition_block *whole, struct err *err)
{
    struct partition *partition = &slide->partition;
    if (!predict->whole)
        return cover_make(slide->specimen, &predict->ensemble, partition, err);
    partition->blocks = malloc(sizeof *partition->blocks);
    if (!partition->blocks)
        return err_memory(err, slide->folder);
    partition->blocks[0] = *whole;
    partition->n_blocks = 1;
    return true;
}

static bool make_partition(struct predict *predict, struct predict_slide *slide,
                           const struct ctx *ctx, struct err *err)
{
    struct partition *partition = &slide->partition;
    struct partition_block whole = { 0 };
    if (!open_new(predict, slide, ctx, err))
        return false;
    struct specimen *specimen = slide->specimen;
    char *mask = in_folder(slide->folder, "tissue.png");
    if (specimen->slide)
        slide_warn(specimen->slide, ctx->console);
    bool tissue = specimen_has_tissue(specimen); /* without it: a heatmap without scores */
    bool ok = mask || err_memory(err, slide->folder);
    if (ok && tissue && predict->whole)
        ok = keep_tissue(slide, mask, err) &&
             predict_whole_place(predict, slide, mask, ctx, &whole, err);
    ok = ok && (!tissue || predict_check(predict, true, ctx, err)) &&
         describe(predict, slide, &partition->info, err);
    if (ok && tissue)
        ok = predict_fit_stain(predict, specimen, ctx, &partition->info.stain, err) &&
             cover(predict, slide, &whole, err);
    if (ok && !tissue) /* whatever slide came before it */
        partition->info.check = partition->info.raw = (struct heatmap_check){ 0 };
    if (ok && tissue && partition->n_blocks == 0)
        ok = err_set(
            err, ERR_MISSING,
            "%s: no cell of the heatmap has enough tissue; lower --tissue-fraction or --stride",
            partition->info.path);
    ok = ok && keep_tissue(slide, mask, err) &&
         partition_write(slide->folder, partition, predict->options->group_cost, err);
    free(mask);
    return ok;
}

bool predict_partition(struct predict *predict, struct predict_slide *slide, const struct ctx *ctx,
                       struct err *err)
{
    char *path = in_folder(slide->folder, "plan.json");
    bool ok = path || err_memory(err, "a slide's folder");
    if (ok && file_exists(path))
        ok = partition_read(slide->folder, &slide->partition, err) &&
             predict_same(predict, slide, path, &slide->partition.info, err);
    else if (ok)
        ok = make_partition(predict, slide, ctx, err);
    if (!ok) {
        partition_free(&slide->partition);
        slide->partition = (struct partition){ 0 };
    }
    free(path);
    return ok;
}

/* A slide whose partition was read, with the mask of the one who made it. */
static bool open_again(const struct predict *predict, struct predict_slide *slide, struct err *err)
{
    if (slide->specimen)
        return true;
    char *mask = in_folder(slide->folder, "tissue.png");
    const struct stain_fit *stain = &slide->partition.info.stain;
    bool ok = (mask || err_memory(err, "a slide's folder")) &&
              open_specimen(predict, slide, mask, NULL, err) &&
              (stain->method == STAIN_NONE ||
               stain_transform_new(stain, &predict->target, &slide->specimen->transform, err));
    free(mask);
    return ok;
}

/* Scores all of these groups. */
static bool score(struct predict *predict, struct predict_slide *slide, const int64_t *groups,
                  int64_t n_groups, const struct ctx *ctx, struct err *err)
{
    bool ok = predict_check(predict, true, ctx, err) && /* check.json may have been removed */
              open_again(predict, slide, err);
    struct score_groups job = { .ensemble = &predict->ensemble,
                                .specimen = slide->specimen,
                                .partition = &slide->partition,
                                .folder = slide->folder,
                                .groups = groups,
                                .n_groups = n_groups,
                                .workers = predict->workers };
    ok = ok && (predict->whole ? predict_whole_score(predict, slide, ctx, err)
                               : score_groups(&job, ctx, &predict->times, err));
    slide->held = ok && predict_hold(predict, slide, err);
    for (int64_t i = 0; ok && !slide->held && i < n_groups; i++)
        part_remove(slide->folder, groups[i]); /* some of the pixels may be another slide's */
    return slide->held;
}

bool predict_group(struct predict *predict, struct predict_slide *slide, int64_t group,
                   const struct ctx *ctx, struct err *err)
{
    return part_exists(slide->folder, &slide->partition, group) ||
           score(predict, slide, &group, 1, ctx, err);
}

bool predict_groups(struct predict *predict, struct predict_slide *slide, const struct ctx *ctx,
                    struct err *err)
{
    const struct partition *partition = &slide->partition;
    int64_t *missing = malloc((size_t)(partition->n_groups + 1) * sizeof *missing);
    int64_t n = 0, blocks = 0;
    bool ok = missing || err_memory(err, "a slide's groups");
    for (int64_t group = 0; ok && group < partition->n_groups; group++)
        if (!part_exists(slide->folder, partition, group)) {
            missing[n++] = group;
            blocks += partition->groups[group].n;
        }
    console_begin(ctx->console, partition->info.slide, blocks, "blocks");
    ok = ok && (n == 0 || score(predict, slide, missing, n, ctx, err));
    console_end(ctx->console);
    free(missing);
    return ok;
}

bool predict_clear(const struct predict *predict, size_t slide, struct err *err)
{
    char *folder = predict_folder(predict, slide);
    if (!folder)
        return err_memory(err, "a slide's folder");
    file_remove_in(folder, "heatmap.json");
    file_remove_in(folder, "heatmap.npy");
    file_remove_in(folder, "plan.json");
    file_remove_in(folder, "tissue.png");
    file_remove_in(folder, "slide.json");
    exports_remove(folder);
    part_remove_all(folder);
    free(folder);
    return true;
}

static bool write_exports(struct predict *predict, struct predict_slide *slide,
                          const struct ctx *ctx, struct err *err)
{
    const struct slide_entry *entry = &predict->slides->entries[slide->index];
    const struct predict_options *options = predict->options;
    struct slide *opened = NULL; /* where only exports were missing */
    struct slide_access access = predict_access(predict);
    bool ok = slide->specimen || specimen_is_store(entry->path) ||
              slide_open_entry(entry, &access, &opened, err);
    struct export_options export = options->export;
    export.memory_bytes = at_most(export.memory_bytes, options->memory_bytes / WRITING_SHARE);
    struct export_request request = { slide->heatmap,
                                      slide->specimen ? slide->specimen->slide : opened, &export };
    ok = ok && exports_write(slide->folder, predict->exports, &request, ctx, err);
    slide_close(opened);
    return ok;
}

/* The parts -> the heatmap, open. */
static bool stitch(const struct predict *predict, struct predict_slide *slide,
                   const struct ctx *ctx, struct err *err)
{
    int64_t memory = at_most(STITCH_BYTES, predict->options->memory_bytes / WRITING_SHARE);
    return (slide->held || predict_hold(predict, slide, err)) &&
           part_stitch(slide->folder, &slide->partition, memory, ctx, err) &&
           heatmap_open(slide->folder, &slide->heatmap, err);
}

bool predict_finish(struct predict *predict, struct predict_slide *slide, const struct ctx *ctx,
                    struct err *err)
{
    double began = clock_monotonic_s();
    if (slide->specimen)
        specimen_drop_tissue(slide->specimen); /* its memory is the exporters' now */
    bool ok = (slide->heatmap || stitch(predict, slide, ctx, err)) &&
              (slide->state == PREDICT_DONE || write_exports(predict, slide, ctx, err));
    if (ok)
        part_remove_all(slide->folder); /* where a run was killed between the heatmap and this */
    predict->times.write_s += clock_monotonic_s() - began;
    return ok;
}
