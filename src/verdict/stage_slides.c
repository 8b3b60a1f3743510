/* stage_slides.c: see stage_slides.h. */
#include "verdict/stage_slides.h"

#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/pool.h"
#include "tissue/morphology.h"
#include "tissue/tissue.h"
#include "verdict/froc.h"
#include "verdict/heat_cohort.h"
#include "verdict/slide_table.h"
#include "verdict/stage_table.h"
#include "verdict/truth_mask.h"

enum stage_source stage_source_of(char *const *paths, int n_paths)
{
    char **names = NULL;
    size_t n = 0, unfinished = 0;
    struct csv csv;
    if (!file_is_folder(paths[0])) {
        bool listed = csv_read(paths[0], &csv, NULL);
        bool truth = listed && csv_column(&csv, "annotation") >= 0 && csv_column(&csv, "type") < 0;
        if (listed)
            csv_free(&csv);
        return truth ? STAGE_OF_TRUTH : STAGE_OF_TABLE;
    }
    if (heat_list(paths, n_paths, &names, &n, &unfinished, NULL)) {
        folder_names_free(names, n);
        return STAGE_OF_HEATMAPS;
    }
    if (unfinished > 0 || !folder_names(paths[0], truth_endings, &names, &n, NULL))
        return STAGE_OF_HEATMAPS;
    folder_names_free(names, n);
    return n > 0 ? STAGE_OF_TRUTH : STAGE_OF_HEATMAPS;
}

static bool new_slides(struct staged_cohort *out, size_t n, struct err *err)
{
    *out = (struct staged_cohort){ .slides = calloc(n + 1, sizeof *out->slides), .n = n };
    return out->slides || err_memory(err, "the slides");
}

/* Sizes and type from a mask of tumour. */
static bool measure(struct staged_slide *slide, const struct image *mask, const float *values,
                    double um_per_px, const struct size_rules *rules, struct err *err)
{
    if (!lesion_sizes_of_mask(mask, values, um_per_px, rules, &slide->lesions, err))
        return false;
    slide->measured = true;
    slide->type = lesion_sizes_type(&slide->lesions);
    slide->diameter_um = slide->lesions.n > 0 ? slide->lesions.items[0].diameter_um : 0;
    return true;
}

/* --- heatmaps --- */

struct heat_work {
    const struct stage_rules *rules;
    struct staged_cohort *out;
};

static bool measure_heatmap(void *arg, size_t i, const struct heatmap *heatmap,
                            const struct heat_field *field, struct heat_slide *slide,
                            struct err *err)
{
    const struct heat_work *work = arg;
    const struct heatmap_info *info = heatmap_info(heatmap);
    const float threshold = (float)work->rules->threshold;
    struct staged_slide *staged = &work->out->slides[i];
    struct image mask;
    slide->assumed_mpp = !(info->mpp > 0);
    const double mpp = info->mpp > 0 ? info->mpp : TISSUE_ASSUMED_MPP * info->downsample;
    const double cell_um = mpp * (double)info->stride;
    if (!image_new(&mask, field->width, field->height, 1, err))
        return false;
    for (int64_t k = 0; k < field->width * field->height; k++)
        mask.px[k] = field->values[k] > threshold ? 255 : 0;
    staged->downsample_l0 = info->downsample * (double)info->stride;
    bool ok = morphology_open(&mask, work->rules->open_um / cell_um, err) &&
              measure(staged, &mask, field->values, cell_um, &work->rules->sizes, err);
    image_free(&mask);
    return ok;
}

static int by_slide(const void *a, const void *b)
{
    return strcmp(((const struct staged_slide *)a)->slide, ((const struct staged_slide *)b)->slide);
}

static bool check_twice(struct staged_cohort *out, struct err *err)
{
    if (out->n > 1)
        qsort(out->slides, out->n, sizeof *out->slides, by_slide);
    for (size_t i = 1; i < out->n; i++)
        if (by_slide(&out->slides[i - 1], &out->slides[i]) == 0)
            return err_set(err, ERR_USAGE, "slide '%s' has two heatmaps; name only one of them",
                           out->slides[i].slide);
    return true;
}

bool stage_slides_of_heatmaps(char *const *paths, int n_paths, const struct stage_rules *rules,
                              const struct ctx *ctx, struct staged_cohort *out, struct err *err)
{
    struct heat_cohort cohort = { 0 };
    struct heat_work work = { rules, out };
    *out = (struct staged_cohort){ 0 };
    bool ok =
        heat_cohort_find(paths, n_paths, ctx, &cohort, err) && new_slides(out, cohort.n, err) &&
        heat_cohort_each(&cohort, rules->class_name, "stage", measure_heatmap, &work, ctx, err) &&
        heat_cohort_end(&cohort, ctx, err);
    for (size_t i = 0; ok && i < cohort.n; i++) {
        out->slides[i].slide = cohort.slides[i].slide;
        cohort.slides[i].slide = NULL;
    }
    heat_cohort_free(&cohort);
    return ok && check_twice(out, err);
}

/* --- annotations --- */

struct truth_work {
    const struct truth_list *truth;
    const struct stage_rules *rules;
    const struct ctx *ctx;
    struct staged_cohort *out;
};

static bool measure_truth(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker;
    const struct truth_work *work = arg;
    const struct stage_rules *rules = work->rules;
    struct staged_slide *slide = &work->out->slides[index];
    const struct truth_entry *entry = truth_list_find(work->truth, slide->slide);
    const double mpp = rules->mpp > 0            ? rules->mpp
                       : entry && entry->mpp > 0 ? entry->mpp
                                                 : froc_camelyon16().mpp;
    slide->downsample_l0 = rules->downsample;
    slide->measured = true;
    if (entry && entry->path) {
        struct truth_mask mask = { 0 };
        bool ok = truth_mask_read(entry->path, entry->slide, work->truth->class_map,
                                  rules->downsample, 0, &mask, err) &&
                  measure(slide, &mask.mask, NULL, mpp * rules->downsample, &rules->sizes, err);
        slide->origin_x_l0 = (double)mask.origin_x * rules->downsample;
        slide->origin_y_l0 = (double)mask.origin_y * rules->downsample;
        image_free(&mask.mask);
        if (!ok)
            return false;
    }
    console_advance(work->ctx->console, 1);
    return true;
}

/* The names of the slides: those of the list, or of the truth. */
static bool name_slides(const struct truth_list *truth, const char *list_path,
                        const char *slide_column, struct staged_cohort *out, struct err *err)
{
    struct slide_table list = { 0 };
    if (list_path && !slide_table_read(list_path, slide_column, &list, err))
        return false;
    const size_t n = list_path ? list.n : truth->n;
    bool ok = new_slides(out, n, err);
    for (size_t i = 0; ok && i < n; i++) {
        out->slides[i].slide = strdup(list_path ? list.slides[i] : truth->entries[i].slide);
        ok = out->slides[i].slide || err_memory(err, "the slides");
    }
    for (size_t i = 0; ok && list_path && i < truth->n; i++)
        if (slide_table_find(&list, truth->entries[i].slide) < 0)
            ok = err_set(err, ERR_MISSING, "%s: slide '%s' is not in %s; add it there",
                         truth->source, truth->entries[i].slide, list_path);
    slide_table_free(&list);
    return ok;
}

bool stage_slides_of_truth(const struct truth_list *truth, const char *list_path,
                           const char *slide_column, const struct stage_rules *rules,
                           const struct ctx *ctx, struct staged_cohort *out, struct err *err)
{
    struct truth_work work = { truth, rules, ctx, out };
    *out = (struct staged_cohort){ 0 };
    if (!name_slides(truth, list_path, slide_column, out, err))
        return false;
    console_begin(ctx->console, "stage", (int64_t)out->n, "slides");
    bool ok = pool_for(ctx->pool, (int64_t)out->n, measure_truth, &work, ctx->stop, err);
    console_end(ctx->console);
    return ok;
}

/* --- a table --- */

bool stage_slides_of_table(const char *path, struct staged_cohort *out, struct err *err)
{
    struct stage_table table;
    *out = (struct staged_cohort){ 0 };
    if (!stage_table_read(path, &table, err))
        return false;
    bool ok =
        (table.n_slides > 0 ||
         err_set(err, ERR_MISSING, "%s: no rows of slides (negative, itc, micro, macro)", path)) &&
        new_slides(out, table.n_slides, err);
    for (size_t i = 0; ok && i < table.n_slides; i++) {
        out->slides[i].slide = strdup(table.slides[i].name);
        out->slides[i].type = (enum metastasis)table.slides[i].value;
        ok = out->slides[i].slide || err_memory(err, path);
    }
    stage_table_free(&table);
    return ok;
}
