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

/* A store of another resolution; of a slide, raster_open sees to it. */
static bool check_mpp(const struct predict *predict, const char *path,
                      const struct specimen *specimen, struct err *err)
{
    double wanted = predict->raster.mpp, tolerance = predict->options->mpp_tolerance;
    double mpp = specimen->raster.mpp;
    if (specimen->store && wanted > 0 && mpp > 0 && fabs(mpp / wanted - 1) > tolerance)
        return err_set(err, ERR_USAGE,
                       "%s: its patches have %g um/px, but the model expects %g; extract with "
                       "--mpp %g, or allow the difference with --mpp-tolerance",
                       path, mpp, wanted, wanted);
    return true;
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
                      struct specimen *out, struct err *err)
{
    const struct predict_options *options = predict->options;
    const struct slide_entry *entry = &predict->slides->entries[slide];
    if (!specimen_open(entry, options->slide_mpp, &predict->raster, out, err))
        return false;
    out->min_tissue = options->min_tissue;
    bool ok = check_mpp(predict, entry->path, out, err);
    if (ok && out->store)
        ok = predict_check_store(predict, entry->path, &out->stored, err);
    ok = ok && specimen_find_tissue(out, options->tissue_method, mask, err);
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
    bool usual =
        !predict->options->tissue && predict->options->tissue_method == tissue_defaults().method;
    return (stain_sample_fit(method, specimen->slide, usual ? &specimen->mask : NULL,
                             STAIN_BAND_BYTES, ctx, out, err) &&
            stain_transform_new(out, &predict->target, &specimen->transform, err)) ||
           err_prefix(err, slide_info(specimen->slide)->path);
}

/* inputs: of before the specimen was opened, so that a file that is replaced from then on is
 * noticed.
 */
static bool describe(const struct predict *predict, size_t slide, const struct specimen *specimen,
                     const char *inputs, struct heatmap_info *out, struct err *err)
{
    const struct ensemble *e = &predict->ensemble;
    const struct slide_entry *entry = &predict->slides->entries[slide];
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
        .mode = e->dense ? "dense" : "window",
        .models = predict->model_names,
        .model_hash = predict->model_hash,
        .options = predict->options_text,
        .check = predict->check,
        .raw = predict->raw,
    };
    info.path = file_absolute(entry->path);
    if (!info.path)
        return err_memory(err, entry->path);
    snprintf(info.inputs, sizeof info.inputs, "%s", inputs);
    bool ok = heatmap_info_copy(&info, out, err);
    free(info.path);
    return ok;
}

static bool make_partition(struct predict *predict, size_t slide, const char *folder,
                           const struct ctx *ctx, struct err *err)
{
    struct specimen specimen;
    struct partition partition = { 0 };
    char inputs[INPUTS_ROOM], *given = NULL, *mask = in_folder(folder, "tissue.png");
    bool ok = mask || err_memory(err, folder);
    ok = ok && predict_inputs(predict, slide, inputs, err) &&
         predict_given_mask(predict, slide, &given, err) &&
         predict_specimen(predict, slide, given, &specimen, err);
    free(given);
    if (!ok) {
        free(mask);
        return false;
    }
    if (specimen.slide)
        slide_warn_mpp(specimen.slide, ctx->console);
    bool tissue = specimen_has_tissue(&specimen); /* without it: a heatmap without scores */
    ok = (!tissue || predict_check(predict, true, ctx, err)) &&
         describe(predict, slide, &specimen, inputs, &partition.info, err);
    if (ok && tissue)
        ok = predict_fit_stain(predict, &specimen, ctx, &partition.info.stain, err) &&
             cover_make(&specimen, &predict->ensemble, &partition, err);
    if (ok && !tissue) /* whatever slide came before it */
        partition.info.check = partition.info.raw = (struct heatmap_check){ 0 };
    if (ok && tissue && partition.n_blocks == 0)
        ok = err_set(
            err, ERR_MISSING,
            "%s: no cell of the heatmap has enough tissue; lower --tissue-fraction or --stride",
            partition.info.path);
    ok = ok && file_make_folder(folder, err) &&
         (specimen.store || image_write_png(mask, &specimen.mask.mask, err)) &&
         partition_write(folder, &partition, predict->options->group_cost, err);
    partition_free(&partition);
    specimen_close(&specimen);
    free(mask);
    return ok;
}

bool predict_partition(struct predict *predict, size_t slide, const struct ctx *ctx,
                       struct partition *out, struct err *err)
{
    char *folder = predict_folder(predict, slide);
    char *path = folder ? in_folder(folder, "plan.json") : NULL;
    bool ok = path || err_memory(err, "a slide's folder");
    if (ok && !file_exists(path))
        ok = make_partition(predict, slide, folder, ctx, err);
    ok = ok && partition_read(folder, out, err);
    if (ok && !predict_same(predict, slide, path, &out->info, err)) {
        ok = false;
        partition_free(out);
    }
    free(folder);
    free(path);
    return ok;
}

/* Scores all of these groups. */
static bool score(struct predict *predict, size_t slide, const struct partition *partition,
                  const int64_t *groups, int64_t n_groups, const struct ctx *ctx, struct err *err)
{
    char *folder = predict_folder(predict, slide);
    char *mask = folder ? in_folder(folder, "tissue.png") : NULL;
    struct specimen specimen = { 0 };
    bool ok = mask || err_memory(err, "a slide's folder");
    ok = ok && predict_check(predict, true, ctx, err) && /* check.json may have been removed */
         predict_specimen(predict, slide, mask, &specimen, err);
    if (ok && partition->info.stain.method != STAIN_NONE)
        ok =
            stain_transform_new(&partition->info.stain, &predict->target, &specimen.transform, err);
    struct score_groups run = { .ensemble = &predict->ensemble,
                                .specimen = &specimen,
                                .partition = partition,
                                .folder = folder,
                                .groups = groups,
                                .n_groups = n_groups,
                                .workers = predict->workers };
    ok = ok && score_groups(&run, ctx, &predict->times, err);
    if (ok && !predict_hold(predict, slide, partition, err)) {
        ok = false; /* some of the pixels may be another slide's */
        for (int64_t i = 0; i < n_groups; i++)
            part_remove(folder, groups[i]);
    }
    specimen_close(&specimen);
    free(folder);
    free(mask);
    return ok;
}

bool predict_group(struct predict *predict, size_t slide, const struct partition *partition,
                   int64_t group, const struct ctx *ctx, struct err *err)
{
    char *folder = predict_folder(predict, slide);
    if (!folder)
        return err_memory(err, "a slide's folder");
    bool there = part_exists(folder, partition, group);
    free(folder);
    return there || score(predict, slide, partition, &group, 1, ctx, err);
}

bool predict_groups(struct predict *predict, size_t slide, const struct partition *partition,
                    const struct ctx *ctx, struct err *err)
{
    char *folder = predict_folder(predict, slide);
    int64_t *missing = malloc((size_t)(partition->n_groups + 1) * sizeof *missing), n = 0,
            blocks = 0;
    bool ok = (folder && missing) || err_memory(err, "a slide's groups");
    for (int64_t group = 0; ok && group < partition->n_groups; group++)
        if (!part_exists(folder, partition, group)) {
            missing[n++] = group;
            blocks += partition->groups[group].n;
        }
    console_begin(ctx->console, partition->info.slide, blocks, "blocks");
    ok = ok && (n == 0 || score(predict, slide, partition, missing, n, ctx, err));
    console_end(ctx->console);
    free(folder);
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
    exports_remove(folder);
    part_remove_all(folder);
    free(folder);
    return true;
}

static bool write_exports(struct predict *predict, size_t slide, const char *folder,
                          const struct ctx *ctx, struct err *err)
{
    const struct slide_entry *entry = &predict->slides->entries[slide];
    const struct predict_options *options = predict->options;
    struct heatmap *heatmap = NULL;
    struct slide *pixels = NULL;
    bool store = specimen_is_store(entry->path);
    bool ok = heatmap_open(folder, &heatmap, err) &&
              (store || slide_open_entry(entry, options->slide_mpp, &pixels, err));
    struct export_options export = options->export;
    export.memory_bytes = at_most(export.memory_bytes, options->memory_bytes / WRITING_SHARE);
    struct export_request request = { heatmap, pixels, &export };
    ok = ok && exports_write(folder, options->exports, &request, ctx, err);
    slide_close(pixels);
    heatmap_close(heatmap);
    return ok;
}

bool predict_finish(struct predict *predict, size_t slide, const struct partition *partition,
                    const struct ctx *ctx, struct err *err)
{
    char *folder = predict_folder(predict, slide);
    if (!folder)
        return err_memory(err, "a slide's folder");
    double began = clock_monotonic_s();
    enum predict_state state = predict_look(predict, slide);
    bool ok = state == PREDICT_SCORED || state == PREDICT_DONE ||
              (predict_hold(predict, slide, partition, err) &&
               part_stitch(folder, partition,
                           at_most(STITCH_BYTES, predict->options->memory_bytes / WRITING_SHARE),
                           ctx, err));
    ok = ok && (state == PREDICT_DONE || write_exports(predict, slide, folder, ctx, err));
    if (ok)
        part_remove_all(folder); /* where a run was killed between the heatmap and this */
    predict->times.write_s += clock_monotonic_s() - began;
    free(folder);
    return ok;
}
