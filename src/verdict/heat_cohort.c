/* heat_cohort.c: see heat_cohort.h. */
#include "verdict/heat_cohort.h"

#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/folder.h"
#include "base/pool.h"
#include "tissue/tissue.h"

struct each {
    struct heat_cohort *cohort;
    const char *class_name;
    heat_work_fn work;
    void *arg;
    const struct ctx *ctx;
};

bool heat_cohort_find(char *const *paths, int n_paths, const struct ctx *ctx,
                      struct heat_cohort *out, struct err *err)
{
    size_t unfinished = 0;
    *out = (struct heat_cohort){ 0 };
    if (!heat_list(paths, n_paths, &out->folders, &out->n, &unfinished, err))
        return false;
    if (unfinished > 0)
        console_warn(ctx->console, "slides skipped because they have no heatmap yet: %zu",
                     unfinished);
    out->slides = calloc(out->n + 1, sizeof *out->slides);
    for (size_t i = 0; out->slides && i < out->n; i++)
        out->slides[i].folder = out->folders[i];
    return out->slides || err_memory(err, "the list of heatmaps");
}

void heat_cohort_free(struct heat_cohort *cohort)
{
    for (size_t i = 0; cohort->slides && i < cohort->n; i++)
        free(cohort->slides[i].slide);
    free(cohort->slides);
    folder_names_free(cohort->folders, cohort->n);
    *cohort = (struct heat_cohort){ 0 };
}

static bool do_slide(const struct each *each, size_t i, struct heat_slide *slide, struct err *err)
{
    struct heatmap *heatmap = NULL;
    struct heat_field field = { 0 };
    int64_t class_index = 0;
    bool ok = heatmap_open(slide->folder, &heatmap, err) &&
              heat_class(heatmap, each->class_name, &class_index, err) &&
              heat_field_read(heatmap, class_index, &field, err);
    if (ok) {
        slide->slide = strdup(heatmap_info(heatmap)->slide);
        slide->no_tissue = heatmap_info(heatmap)->scored == 0;
        ok = (slide->slide || err_memory(err, slide->folder)) &&
             each->work(each->arg, i, heatmap, &field, slide, err);
    }
    free(field.values);
    heatmap_close(heatmap);
    return ok;
}

static bool do_task(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker, (void)err;
    const struct each *each = arg;
    struct heat_slide *slide = &each->cohort->slides[index];
    slide->failed = !do_slide(each, (size_t)index, slide, &slide->err);
    console_advance(each->ctx->console, 1);
    return true;
}

static size_t count_failed(const struct heat_cohort *cohort)
{
    size_t failed = 0;
    for (size_t i = 0; i < cohort->n; i++)
        failed += cohort->slides[i].failed;
    return failed;
}

/* Why a slide failed, to be printed after *prefix and *colon: the folder, unless the reason begins
 * with it; a slide that is named like the folder is not named again. */
static const char *reason_of(const struct heat_slide *slide, const char **prefix,
                             const char **colon)
{
    const char *why = slide->err.text, *slash = strrchr(slide->folder, '/');
    const char *name = slash ? slash + 1 : slide->folder;
    const size_t length = strlen(name);
    const bool named = strncmp(why, slide->folder, strlen(slide->folder)) == 0 && slash;
    *prefix = named ? "" : slide->folder, *colon = named ? "" : ": ";
    bool again = !named && strncmp(why, name, length) == 0 && strncmp(why + length, ": ", 2) == 0;
    return again ? why + length + 2 : why;
}

bool heat_cohort_each(struct heat_cohort *cohort, const char *class_name, const char *label,
                      heat_work_fn work, void *arg, const struct ctx *ctx, struct err *err)
{
    struct each each = { cohort, class_name, work, arg, ctx };
    console_begin(ctx->console, label, (int64_t)cohort->n, "slides");
    bool ok = pool_for(ctx->pool, (int64_t)cohort->n, do_task, &each, ctx->stop, err);
    console_end(ctx->console);
    if (ok && count_failed(cohort) == cohort->n) {
        const char *prefix, *colon, *why = reason_of(&cohort->slides[0], &prefix, &colon);
        ok = err_set(err, cohort->slides[0].err.kind, "%s%s%s", prefix, colon, why);
    }
    return ok;
}

bool heat_cohort_end(const struct heat_cohort *cohort, const struct ctx *ctx, struct err *err)
{
    size_t failed = count_failed(cohort), empty = 0;
    bool assumed = false;
    for (size_t i = 0; i < cohort->n; i++) {
        const struct heat_slide *slide = &cohort->slides[i];
        assumed = assumed || slide->assumed_mpp;
        empty += slide->no_tissue;
        if (slide->failed) {
            const char *prefix, *colon, *why = reason_of(slide, &prefix, &colon);
            console_warn(ctx->console, "%s%s%s", prefix, colon, why);
        }
    }
    if (assumed)
        console_warn(ctx->console, "heatmaps without um/px: sizes assume %.2f um/px",
                     TISSUE_ASSUMED_MPP);
    if (empty > 0)
        console_warn(ctx->console, "slides without tissue: %zu; they count as without tumour",
                     empty);
    return failed == 0 || err_set(err, ERR_FORMAT, "%zu of %zu slides failed", failed, cohort->n);
}
