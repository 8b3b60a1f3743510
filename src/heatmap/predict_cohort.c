/* predict_cohort.c: predict_cohort (predict.h): one slide after another; existing heatmaps are
 * kept, failures are recorded. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "base/run_each.h"
#include "heatmap/predict_state.h"

#define ROW_BYTES (INT64_C(4) << 20)

struct cohort {
    const struct predict_request *request;
    const struct ctx *ctx;
    struct predict *predict;
    struct predict_row *rows;
};

/* Mean and highest score of the main class. */
static bool summarise(const struct heatmap *heatmap, struct predict_row *row, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(heatmap);
    int64_t step = heatmap_rows_in(info, ROW_BYTES), cells = step * info->width;
    float *rows = malloc((size_t)(cells * info->n_classes) * sizeof *rows);
    bool ok = rows || err_memory(err, "a heatmap");
    double sum = 0;
    row->max = 0;
    for (int64_t y = 0; ok && y < info->height; y += step) {
        int64_t n = info->height - y < step ? info->height - y : step;
        ok = heatmap_read_rows(heatmap, y, n, rows, err);
        for (int64_t k = 0; ok && k < n * info->width; k++) {
            double p = rows[k * info->n_classes + heatmap_main_class(info)];
            if (!isnan(p))
                sum += p, row->max = fmax(row->max, p);
        }
    }
    row->scored = info->scored;
    row->width = info->width;
    row->height = info->height;
    row->mean = info->scored > 0 ? sum / (double)info->scored : NAN;
    if (info->scored == 0) {
        row->state = RUN_NO_TISSUE;
        row->max = NAN;
    }
    free(rows);
    return ok;
}

static bool make_slide(void *arg, size_t i, struct err *err)
{
    const struct cohort *cohort = arg;
    struct predict *predict = cohort->predict;
    struct predict_row *row = &cohort->rows[i];
    const struct run_outcome *tasks = cohort->request->tasks;
    const char *path = cohort->request->slides->entries[i].path;
    struct predict_slide slide;
    bool ok = predict_enter(predict, i, &slide, err);
    row->state = slide.state == PREDICT_DONE ? RUN_KEPT : RUN_DONE;
    if (slide.state == PREDICT_MISSING && tasks && tasks[i].error)
        ok = err_set(err, ERR_MISSING, "%s", tasks[i].error);
    if (slide.state == PREDICT_DONE && !file_exists(path))
        console_warn(cohort->ctx->console, "%s: not found; its heatmap is kept unchecked", path);
    if (ok && slide.state != PREDICT_DONE) {
        ok = predict_partition(predict, &slide, cohort->ctx, err) &&
             (slide.state == PREDICT_SCORED || predict_groups(predict, &slide, cohort->ctx, err)) &&
             predict_finish(predict, &slide, cohort->ctx, err);
        row->blocks = slide.partition.n_blocks;
    }
    ok = ok && summarise(slide.heatmap, row, err);
    if (ok && predict->whole && row->scored > 0)
        ok = predict_whole_read(predict, slide.folder, &row->score, err);
    predict_leave(&slide);
    return ok;
}

static void tell_slide(void *arg, size_t i, const struct err *why, struct run_item *item)
{
    const struct cohort *cohort = arg;
    const struct slide_entry *entry = &cohort->request->slides->entries[i];
    const struct run_outcome *tasks = cohort->request->tasks;
    struct predict_row *row = &cohort->rows[i];
    item->name = entry->name;
    item->path = entry->path;
    if (tasks) {
        item->seconds += tasks[i].seconds;
        item->cpu_s = tasks[i].cpu_s;
    }
    if (why) {
        row->state = RUN_FAILED;
        return;
    }
    item->state = row->state;
    item->facts[item->n_facts++] = (struct run_fact){ "blocks", (double)row->blocks };
    item->facts[item->n_facts++] = (struct run_fact){ "width", (double)row->width };
    item->facts[item->n_facts++] = (struct run_fact){ "height", (double)row->height };
    item->facts[item->n_facts++] = (struct run_fact){ "scored", (double)row->scored };
    item->facts[item->n_facts++] = (struct run_fact){ "mean", row->mean };
    item->facts[item->n_facts++] = (struct run_fact){ "max", row->max };
    if (cohort->predict->whole)
        item->facts[item->n_facts++] = (struct run_fact){ "score", row->score };
}

bool predict_prepare(const struct predict_request *request, struct predict *predict,
                     struct err *err)
{
    bool ok = true;
    if (request->overwrite)
        predict_forget_check(predict);
    for (size_t i = 0; ok && i < request->slides->n; i++) {
        ok = request->overwrite ? predict_clear(predict, i, err) : predict_refuse(predict, i, err);
        predict->prepared[i] = ok;
    }
    return ok && predict_same_check(predict, err);
}

bool predict_cohort(const struct predict_request *request, const struct ctx *ctx,
                    struct predict_row *rows, size_t *n_rows, struct predict_times *times,
                    struct err *err)
{
    struct run *run = NULL;
    struct cohort cohort = { .request = request, .ctx = ctx, .rows = rows };
    struct run_each each = {
        .n = request->slides->n, .make = make_slide, .tell = tell_slide, .arg = &cohort
    };
    *n_rows = 0;
    for (size_t i = 0; i < request->slides->n; i++)
        rows[i] = (struct predict_row){ .slide = request->slides->entries[i].name, .score = NAN };
    bool ok =
        file_make_folder(request->folder, err) &&
        run_begin(request->folder, request->slides->n, request->argc, request->argv, &run, err) &&
        predict_open(&request->options, request->slides, request->folder, ctx, &cohort.predict,
                     err) &&
        (request->tasks || predict_prepare(request, cohort.predict, err)) &&
        run_each(run, &each, ctx, n_rows, err);
    if (cohort.predict)
        *times = predict_times(cohort.predict);
    predict_close(cohort.predict);
    run_free(run);
    return ok;
}
