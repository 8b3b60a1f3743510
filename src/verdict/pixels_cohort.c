/* pixels_cohort.c: see pixels_cohort.h. */
#include "verdict/pixels_cohort.h"

#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/folder.h"

struct work {
    const struct truth_list *truth;
    const struct pixel_rules *rules;
    const struct ctx *ctx;
    struct pixel_counts one, all;
    struct pixel_cohort *out;
};

static struct pixel_row row_of(char *slide, const struct pixel_counts *counts)
{
    return (struct pixel_row){ slide, counts->scored, counts->tumour, pixel_measures(counts) };
}

static bool do_slide(struct work *work, struct heatmap *heatmap, struct err *err)
{
    const struct pixel_rules *rules = work->rules;
    const char *slide = heatmap_info(heatmap)->slide;
    const struct truth_entry *entry = NULL;
    bool skipped = false;
    int64_t class_index = 0;
    if (!truth_list_entry(work->truth, slide, rules->allow_missing, &entry, &skipped, err))
        return false;
    work->out->left_out += skipped;
    if (skipped)
        return true;
    pixel_counts_clear(&work->one);
    if (!heat_class(heatmap, rules->class_name, &class_index, err) ||
        !pixel_counts_add(heatmap, class_index, entry ? entry->path : NULL, work->truth->class_map,
                          rules->downsample, rules->threshold, work->ctx, &work->one, err))
        return false;
    pixel_counts_join(&work->all, &work->one);
    work->out->rows[work->out->n] = row_of(strdup(slide), &work->one);
    return work->out->rows[work->out->n++].slide || err_memory(err, slide);
}

static const char *slide_of(const void *rows, size_t i)
{
    return ((const struct pixel_row *)rows)[i].slide;
}

static bool do_all(struct work *work, char *const *paths, int n_paths, struct err *err)
{
    char **folders = NULL;
    size_t n = 0, unfinished = 0;
    if (!heat_list(paths, n_paths, &folders, &n, &unfinished, err))
        return false;
    work->out->rows = calloc(n + 1, sizeof *work->out->rows);
    bool ok = work->out->rows || err_memory(err, "the list of heatmaps");
    if (unfinished > 0)
        console_warn(work->ctx->console, "slides without a heatmap yet: %zu", unfinished);
    console_begin(work->ctx->console, "pixels", (int64_t)n, "slides");
    for (size_t i = 0; ok && i < n; i++) {
        struct heatmap *heatmap = NULL;
        ok = heatmap_open(folders[i], &heatmap, err) && do_slide(work, heatmap, err);
        heatmap_close(heatmap);
        console_advance(work->ctx->console, 1);
    }
    console_end(work->ctx->console);
    folder_names_free(folders, n);
    ok = ok && truth_list_check(work->truth, work->out->rows, work->out->n, slide_of,
                                work->rules->allow_missing, &work->out->left_out, err);
    if (ok)
        work->out->rows[work->out->n] = row_of(NULL, &work->all);
    if (ok && work->out->left_out > 0)
        console_warn(work->ctx->console,
                     "slides skipped because they have no truth or no heatmap: %lld",
                     (long long)work->out->left_out);
    return ok;
}

bool pixels_of_folders(char *const *paths, int n_paths, const struct truth_list *truth,
                       const struct pixel_rules *rules, const struct ctx *ctx,
                       struct pixel_cohort *out, struct err *err)
{
    *out = (struct pixel_cohort){ 0 };
    struct work work = { .truth = truth, .rules = rules, .ctx = ctx, .out = out };
    bool ok = pixel_counts_new(&work.one, err) && pixel_counts_new(&work.all, err) &&
              do_all(&work, paths, n_paths, err);
    pixel_counts_free(&work.one);
    pixel_counts_free(&work.all);
    return ok;
}

void pixel_cohort_free(struct pixel_cohort *cohort)
{
    for (size_t i = 0; i < cohort->n; i++)
        free(cohort->rows[i].slide);
    free(cohort->rows);
    *cohort = (struct pixel_cohort){ 0 };
}
