/* extract.c: one slide: tissue, annotation, the list of patches, stains, and the pass that fills
 * the store. Each step frees what later steps do not need. */
#include "patch/extract.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/console.h"
#include "base/version.h"
#include "patch/annotations.h"
#include "patch/pass.h"
#include "patch/sampling.h"
#include "patch/stain_sample.h"
#include "tissue/quality.h"
#include "base/text.h"

struct work {
    const struct slide_entry *entry;
    const struct extract_options *options;
    const struct ctx *ctx;
    struct slide *slide;
    struct raster raster;
    struct tissue_mask mask;
    struct tissue_sums *sums;
    struct annotation *annotation; /* NULL: none */
    bool annotated;                /* there was one */
    int8_t slide_label;
    float slide_target;       /* of --target column:NAME */
    char inputs[INPUTS_ROOM]; /* when the work began */
    struct patch_list patches;
    float *fractions; /* [patches, classes]; NULL: not stored */
    struct stain_fit source;
    struct stain_transform *transform; /* NULL: stains stay as they are */
};

char *extract_options_text(const struct extract_options *o)
{
    char omitted[QUALITY_TEXT_ROOM];
    quality_text(o->omit, omitted);
    char *how = o->per_class ? text_format("random=%lld", (long long)o->per_class)
                             : text_format("dense stride=%lld", (long long)o->grid.stride);
    char *text =
        how ? text_format(
                  "%s patch=%lld margin=%lld mpp=%g level=%d slide-mpp=%g method=%s "
                  "tissue-fraction=%g annotations=%s label-rule=%s white=%g black=%g "
                  "stain=%s template=%s seed=%lld group=%lld layout=%s%s%s%s%s%s%s%s%s%s%s%s%s%s",
                  how, (long long)o->grid.tile, (long long)o->grid.margin, o->raster.mpp,
                  o->raster.level, o->slide_mpp, tissue_method_names[o->tissue_method],
                  o->min_tissue, o->annotations ? "folder" : "none",
                  label_rule_names[o->label_rule], o->max_white, o->max_black,
                  stain_method_names[o->stain], o->stain_template ? "given" : "built-in",
                  (long long)o->seed, (long long)o->group, store_layout_names[o->layout],
                  o->class_map ? " class-map=" : "", class_map_text(o->class_map),
                  o->target.kind ? " target=" : "", o->target.text,
                  o->label_column ? " label-column=" : "", o->label_column ? o->label_column : "",
                  o->survival_time[0] ? " survival=" : "", o->survival_time,
                  o->survival_time[0] ? "," : "", o->survival_event, o->omit ? " omit=" : "",
                  omitted, o->icc ? " icc=srgb" : "")
            : NULL;
    free(how);
    return text;
}

static bool omit_bad_areas(struct work *work, struct err *err)
{
    const struct slide_level *whole = slide_info(work->slide)->levels;
    unsigned kinds = work->options->omit;
    struct quality_map quality = { 0 };
    if (!kinds)
        return true;
    bool ok = quality_find(work->slide, &work->mask, kinds, work->ctx, &quality, err);
    if (ok)
        quality_omit(&quality, kinds, whole->width, whole->height, &work->mask);
    quality_free(&quality);
    return ok;
}

/* What the list of patches and the fit of stains need; a slide may have none (work->mask). */
static bool find_tissue(struct work *work, struct err *err)
{
    slide_warn(work->slide, work->ctx->console);
    struct tissue_options tissue = tissue_defaults();
    tissue.method = work->options->tissue_method;
    if (!tissue_find(work->slide, &tissue, work->ctx, &work->mask, err))
        return false;
    if (work->mask.mpp <= 0 && (tissue.method != TISSUE_NONE || work->options->omit))
        console_warn(work->ctx->console, "%s: no um/px; tissue sizes assume %g um/px",
                     work->entry->path, TISSUE_ASSUMED_MPP);
    if (work->mask.tissue_px == 0 && work->annotation && annotation_regions(work->annotation) > 0)
        return err_set(err, ERR_MISSING,
                       "%s: no tissue found, but the annotation marks %s; try another --method",
                       work->entry->path,
                       class_map_is_plain(work->options->class_map) ? "tumour" : "regions");
    bool ok = omit_bad_areas(work, err) && tissue_sums_new(&work->mask, &work->sums, err);
    image_free(&work->mask.overview);
    return ok;
}

/* Does the slide list say the same about tumour as the drawing? */
static bool check_tumour(const struct work *work, const char *path, struct err *err)
{
    const struct class_map *map = work->options->class_map;
    int tumor = class_map_place(map, "tumor"), label = work->slide_label;
    double x0, y0, x1, y1;
    bool drawn = annotation_class_bounds(work->annotation, tumor, &x0, &y0, &x1, &y1);
    bool without = label >= 0 && label == class_map_place(map, "normal");
    bool with = class_map_is_plain(map) ? label > 0 : tumor >= 0 && label == tumor;
    if (drawn ? !without : !with)
        return true;
    return err_set(err, ERR_FORMAT,
                   "%s: has %s, but the slide list says '%s'; correct one of them, or pass "
                   "--label-rule slide or none",
                   path, drawn ? "tumour regions" : "no tumour region", work->entry->label);
}

/* A drawing that lies outside belongs to another slide or level: taken as it is, it would make all
 * of this slide normal. */
static bool check_annotation(const struct work *work, const char *path, struct err *err)
{
    const struct slide_level *whole = slide_info(work->slide)->levels;
    double x0, y0, x1, y1, width = (double)whole->width, height = (double)whole->height;
    const char *name = NULL;
    int64_t ignored = annotation_ignored(work->annotation, &name);
    if (ignored > 0)
        console_warn(work->ctx->console,
                     "%s: annotations that are not areas are ignored: %lld; the first is '%s'",
                     path, (long long)ignored, name);
    int64_t repaired = annotation_repaired(work->annotation);
    if (repaired > 0)
        console_warn(work->ctx->console, "%s: self-intersecting regions that were repaired: %lld",
                     path, (long long)repaired);
    if (!check_tumour(work, path, err))
        return false;
    if (!annotation_bounds(work->annotation, &x0, &y0, &x1, &y1))
        return true;
    if (x1 <= 0 || y1 <= 0 || x0 >= width || y0 >= height)
        return err_set(err, ERR_FORMAT,
                       "%s: is outside the slide (x %.0f to %.0f, y %.0f to %.0f; the slide is "
                       "%.0f x %.0f px); correct it, or pass --label-rule none",
                       path, x0, x1, y0, y1, width, height);
    if (x0 < -1 || y0 < -1 || x1 > width + 1 || y1 > height + 1)
        console_warn(work->ctx->console,
                     "%s: extends beyond the slide; does it belong to this slide?", path);
    return true;
}

static bool read_annotation(struct work *work, struct err *err)
{
    enum label_rule rule = work->options->label_rule;
    const struct class_map *map = work->options->class_map;
    if (!label_of_text(work->entry->label, map, &work->slide_label)) {
        if (rule == LABEL_SLIDE)
            return err_set(
                err, ERR_FORMAT, "%s: label '%s' is not %s", work->entry->name, work->entry->label,
                class_map_is_plain(map) ? "a number, tumor or normal; for other classes, "
                                          "pass --class-map '{classes: [A, B]}'"
                                        : "one of the classes of --class-map");
        work->slide_label = PATCH_UNLABELED;
    }
    if (rule == LABEL_SLIDE && work->slide_label == PATCH_UNLABELED)
        return err_set(err, ERR_MISSING,
                       "%s: no label in the slide list; --label-rule slide requires one",
                       work->entry->name);
    char *path = NULL;
    if (rule > LABEL_CENTER)
        return true;
    if (!annotations_path(work->entry, work->options->annotations, &path, err))
        return false;
    const struct slide_level *whole = slide_info(work->slide)->levels;
    struct annotation_slide slide = { work->entry->name, whole->width, whole->height };
    bool ok =
        !path || (annotation_read(path, &slide, work->options->class_map, &work->annotation, err) &&
                  check_annotation(work, path, err));
    if (ok && !path && work->slide_label >= 0 && work->slide_label != class_map_unlabelled(map))
        console_warn(work->ctx->console,
                     "%s: labelled '%s' but has no annotation; its patches have no label",
                     work->entry->name, work->entry->label);
    work->annotated = ok && path;
    free(path);
    return ok;
}

static struct labeler make_labeler(const struct work *work)
{
    return (struct labeler){ .rule = work->options->label_rule,
                             .map = work->options->class_map,
                             .annotation = work->annotation,
                             .slide_label = work->slide_label,
                             .tile = work->options->grid.tile,
                             .margin = work->options->grid.margin,
                             .target = work->options->target,
                             .slide_target = work->slide_target };
}

static struct screen make_screen(const struct work *work)
{
    return (struct screen){ .max_white = work->options->max_white,
                            .max_black = work->options->max_black,
                            .tile = work->options->grid.tile,
                            .margin = work->options->grid.margin,
                            .band_bytes = work->options->band_bytes };
}

/* Drops what does not pass the screen. */
static bool screen_list(struct work *work, struct err *err)
{
    struct screen screen = make_screen(work);
    if (screen.max_white >= 1 && screen.max_black >= 1)
        return true;
    struct patch_list *patches = &work->patches;
    bool *keep = calloc((size_t)patches->n + 1, sizeof *keep);
    if (!keep)
        return err_memory(err, "patches to examine");
    bool ok =
        screen_patches(&screen, &work->raster, patches->items, patches->n, keep, work->ctx, err);
    int64_t kept = 0;
    for (int64_t i = 0; ok && i < patches->n; i++)
        if (keep[i])
            patches->items[kept++] = patches->items[i];
    patches->n = ok ? kept : patches->n;
    free(keep);
    return ok;
}

/* How much of each tile every class covers, for layouts that have a place for it. */
static bool measure_classes(struct work *work, const struct labeler *labeler, struct err *err)
{
    const struct extract_options *options = work->options;
    if (class_map_is_plain(options->class_map) || !label_by_annotation(labeler) ||
        (options->layout != STORE_BLOCKS && options->layout != STORE_CLAM))
        return true;
    size_t n = (size_t)work->patches.n * (size_t)class_map_n(options->class_map);
    work->fractions = malloc((n + 1) * sizeof *work->fractions);
    return (work->fractions || err_memory(err, "the fractions of classes")) &&
           label_fractions(labeler, &work->raster, &work->patches, work->fractions, work->ctx, err);
}

static bool refuse_empty_list(const struct work *work, struct err *err)
{
    bool omitted = class_map_unlabelled(work->options->class_map) < 0;
    if (work->annotation && omitted && annotation_regions(work->annotation) == 0)
        return err_set(
            err, ERR_MISSING,
            "%s: the annotation has no region of a class, and tissue that nobody drew on "
            "is omitted; omit the slide as well, or set unlabelled in --class-map",
            work->entry->path);
    return err_set(err, ERR_MISSING,
                   "%s: no patch qualifies; lower --tissue-fraction or raise --white",
                   work->entry->path);
}

static bool list_patches(struct work *work, struct err *err)
{
    const struct extract_options *options = work->options;
    struct labeler labeler = make_labeler(work);
    bool ok;
    if (options->per_class > 0) {
        struct sampling sampling = { .slide = work->entry->name,
                                     .seed = (uint64_t)options->seed,
                                     .per_class = options->per_class,
                                     .min_tissue = options->min_tissue,
                                     .all_tissue = options->omit != 0,
                                     .labeler = labeler,
                                     .screen = make_screen(work) };
        ok = (sampling_fits(&sampling, &work->raster, &work->mask, err) ||
              err_prefix(err, work->entry->path)) &&
             sampling_list(&sampling, &work->raster, &work->mask, work->sums, &work->patches,
                           work->ctx, err);
    } else {
        ok = grid_list(&options->grid, &work->raster, work->sums, options->min_tissue,
                       &work->patches, err) &&
             label_list(&labeler, &work->raster, &work->patches, work->ctx, err) &&
             screen_list(work, err);
    }
    ok = ok && (work->patches.n > 0 || refuse_empty_list(work, err));
    return ok && measure_classes(work, &labeler, err);
}

static bool fit_stains(struct work *work, const struct stain_fit *target, struct err *err)
{
    const struct extract_options *options = work->options;
    if (options->stain == STAIN_NONE)
        return true;
    bool usual = options->tissue_method == tissue_defaults().method && !options->omit;
    return (stain_sample_fit(options->stain, work->slide, usual ? &work->mask : NULL,
                             options->band_bytes, work->ctx, &work->source, err) &&
            stain_transform_new(&work->source, target, &work->transform, err)) ||
           err_prefix(err, work->entry->path);
}

static struct store_facts make_facts(const struct work *work, const struct stain_fit *target,
                                     const char *options_text)
{
    const struct extract_options *options = work->options;
    const struct slide_entry *entry = work->entry;
    const struct slide_info *info = slide_info(work->slide);
    const struct slide_level *level = &info->levels[work->raster.level];
    const char *slash = strrchr(entry->path, '/');
    struct store_facts facts = { .program = "microtome " MICROTOME_VERSION,
                                 .slide = entry->name,
                                 .file = slash ? slash + 1 : entry->path,
                                 .vendor = info->vendor,
                                 .patient = entry->patient,
                                 .node = entry->node,
                                 .center = entry->center,
                                 .split = entry->split,
                                 .slide_label = entry->label,
                                 .mode = options->per_class ? "random" : "dense",
                                 .options = options_text,
                                 .inputs = work->inputs,
                                 .tissue_method = tissue_method_names[options->tissue_method],
                                 .label_rule = label_rule_names[options->label_rule],
                                 .class_map = class_map_text(options->class_map),
                                 .stain_method = stain_method_names[options->stain],
                                 .width_l0 = info->levels[0].width,
                                 .height_l0 = info->levels[0].height,
                                 .level = work->raster.level,
                                 .level_width = level->width,
                                 .level_height = level->height,
                                 .patch = grid_patch(&options->grid),
                                 .tile = options->grid.tile,
                                 .margin = options->grid.margin,
                                 .stride = options->per_class ? 0 : options->grid.stride,
                                 .seed = options->seed,
                                 .mpp_l0 = info->mpp,
                                 .mpp = work->raster.mpp,
                                 .ratio = work->raster.ratio,
                                 .downsample = work->raster.downsample,
                                 .objective = info->objective };
    if (options->stain != STAIN_NONE) {
        memcpy(facts.stain_matrix, work->source.matrix, sizeof facts.stain_matrix);
        memcpy(facts.stain_p99, work->source.concentration_p99, sizeof facts.stain_p99);
        memcpy(facts.stain_lab_mean, work->source.lab_mean, sizeof facts.stain_lab_mean);
        memcpy(facts.stain_lab_std, work->source.lab_std, sizeof facts.stain_lab_std);
        memcpy(facts.target_matrix, target->matrix, sizeof facts.target_matrix);
        memcpy(facts.target_p99, target->concentration_p99, sizeof facts.target_p99);
        memcpy(facts.target_lab_mean, target->lab_mean, sizeof facts.target_lab_mean);
        memcpy(facts.target_lab_std, target->lab_std, sizeof facts.target_lab_std);
    }
    return facts;
}

/* A batch of units on its way from the slide to the store. */
struct fill {
    struct store_writer *writer;
    const struct stain_transform *transform;
    struct console *console;
    uint8_t **targets; /* [batch] */
    int64_t unit_px;   /* pixels of a unit */
};

static bool fill_begin(void *arg, const int64_t *indices, int64_t n, struct err *err)
{
    struct fill *fill = arg;
    for (int64_t k = 0; k < n; k++) {
        fill->targets[k] = store_place(fill->writer, indices[k]);
        if (!fill->targets[k])
            return err_memory(err, "the pixels to be written");
    }
    return true;
}

static uint8_t *fill_where(void *arg, int64_t k, int worker)
{
    (void)worker;
    return ((struct fill *)arg)->targets[k];
}

static void fill_cut(void *arg, int64_t index, uint8_t *px)
{
    (void)index;
    const struct fill *fill = arg;
    if (fill->transform)
        stain_apply(fill->transform, px, fill->unit_px);
}

static bool fill_end(void *arg, int64_t n, struct err *err)
{
    const struct fill *fill = arg;
    console_advance(fill->console, n);
    return store_flush(fill->writer, err);
}

static bool fill_store(struct work *work, struct store_writer *writer, struct err *err)
{
    const struct units *units = store_units(writer);
    struct fill fill = { .writer = writer,
                         .transform = work->transform,
                         .console = work->ctx->console,
                         .unit_px = units->size * units->size };
    struct pass pass = { .raster = &work->raster,
                         .places = units->places,
                         .n = units->n,
                         .size = units->size,
                         .band_bytes = work->options->band_bytes,
                         .batch = store_batch_units(writer),
                         .arg = &fill,
                         .begin = fill_begin,
                         .where = fill_where,
                         .cut = fill_cut,
                         .end = fill_end };
    fill.targets = malloc((size_t)pass.batch * sizeof *fill.targets);
    if (!fill.targets)
        return err_memory(err, "the pixels to be written");
    console_begin(work->ctx->console, work->entry->name, units->n,
                  units->of_patch ? "blocks" : "patches");
    bool ok = pass_run(&pass, work->ctx, err);
    console_end(work->ctx->console);
    free(fill.targets);
    return ok;
}

/* Texts of a store's facts that are made for it. */
struct fact_texts {
    char *options, *class_names, *table, *survival;
};

static bool make_texts(const struct work *work, const char *path, struct fact_texts *out,
                       struct err *err)
{
    const struct extract_options *options = work->options;
    bool named = !class_map_is_plain(options->class_map) && options->label_rule != LABEL_NONE;
    *out = (struct fact_texts){ .table = extract_table(work->entry, err) };
    if (!out->table)
        return false;
    out->options = extract_options_text(options);
    out->class_names = named ? class_map_json(options->class_map) : strdup("");
    out->survival = options->survival_time[0]
                        ? text_format("%s,%s", options->survival_time, options->survival_event)
                        : strdup("");
    return (out->options && out->class_names && out->survival) || err_memory(err, path);
}

static void free_texts(struct fact_texts *texts)
{
    free(texts->options);
    free(texts->class_names);
    free(texts->table);
    free(texts->survival);
}

/* What the numbers of the patches are. */
static struct store_target name_target(const struct patch_target *target)
{
    if (target->kind == TARGET_NONE)
        return (struct store_target){ NULL, "" };
    return (struct store_target){ target->name, target->kind == TARGET_COLUMN ? "" : "fraction" };
}

static bool write_store(struct work *work, const struct stain_fit *target, const char *path,
                        struct err *err)
{
    struct fact_texts texts;
    if (!make_texts(work, path, &texts, err)) {
        free_texts(&texts);
        return false;
    }
    struct store_facts facts = make_facts(work, target, texts.options);
    facts.class_names = texts.class_names;
    facts.slide_table = texts.table;
    facts.survival_columns = texts.survival;
    struct store_request request = { .layout = work->options->layout,
                                     .target = name_target(&work->options->target),
                                     .class_fractions = work->fractions,
                                     .facts = &facts,
                                     .patches = &work->patches,
                                     .group = work->options->group,
                                     .batch_bytes = work->options->batch_bytes };
    struct store_writer *writer = NULL;
    bool ok = extract_survival(work->entry, work->options, &facts, err) &&
              store_create(path, &request, &writer, err);
    /* Places of one file and pixels of another would make a store of neither. */
    if (ok && !(fill_store(work, writer, err) &&
                extract_check_inputs(work->entry, work->options, work->inputs, err))) {
        store_discard(writer);
        ok = false;
    } else if (ok) {
        ok = store_commit(writer, err);
    }
    free_texts(&texts);
    return ok;
}

static void count_patches(const struct work *work, struct extract_result *out)
{
    int64_t group = work->options->group;
    *out = (struct extract_result){ .patches = work->patches.n,
                                    .mpp = work->raster.mpp,
                                    .annotated = work->annotated };
    extract_count(work->options->class_map, &work->patches, out);
    out->groups = ceil_div(out->patches, group);
    if (work->options->layout == STORE_PROCESS) { /* its groups are of one class each */
        out->groups = ceil_div(out->patches - extract_labelled(out), group);
        for (int i = 0; i < class_map_n(work->options->class_map); i++)
            out->groups += ceil_div(out->per_class[i], group);
    }
}

/* What the list of patches was made from. */
static void forget_masks(struct work *work)
{
    tissue_sums_free(work->sums);
    work->sums = NULL;
    image_free(&work->mask.mask);
    annotation_free(work->annotation);
    work->annotation = NULL;
}

/* The caller's; NULL if no memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? text_format("%.*s", (int)(slash - path), path) : strdup(".");
}

bool extract_slide(const struct slide_entry *entry, const struct extract_options *options,
                   const struct stain_fit *target, const char *path, const struct ctx *ctx,
                   struct extract_result *out, struct err *err)
{
    struct work work = { .entry = entry, .options = options, .ctx = ctx };
    char *folder = folder_of(path);
    struct slide_access access = {
        .mpp = options->slide_mpp, .cache = options->cache, .results = folder, .icc = options->icc
    };
    bool ok = (folder || err_memory(err, path)) &&
              extract_inputs(entry, options, work.inputs, err) &&
              slide_open_entry(entry, &access, &work.slide, err) &&
              raster_open(work.slide, &options->raster, &work.raster, err) &&
              extract_slide_target(entry, options, &work.slide_target, err) &&
              read_annotation(&work, err) && find_tissue(&work, err);
    if (ok && work.mask.tissue_px > 0) /* without tissue: a store without patches */
        ok = list_patches(&work, err) && fit_stains(&work, target, err);
    forget_masks(&work);
    ok = ok && write_store(&work, target, path, err);
    if (ok)
        count_patches(&work, out);
    stain_transform_free(work.transform);
    patch_list_free(&work.patches);
    free(work.fractions);
    tissue_mask_free(&work.mask);
    slide_close(work.slide);
    free(folder);
    return ok;
}
