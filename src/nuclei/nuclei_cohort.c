/* nuclei_cohort.c: see nuclei_cohort.h. */
#include "nuclei/nuclei_cohort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/console.h"
#include "base/file.h"
#include "base/json.h"
#include "base/label_image.h"
#include "base/pool.h"
#include "base/run_each.h"
#include "base/text.h"

struct cohort {
    const struct nuclei_request *request;
    const struct ctx *ctx;
    bool together;
    struct nuclei_row *rows; /* [slides] */
};

/* Fields of view, each of which keeps one thread busy. */
static bool are_images(const struct slide_list *slides)
{
    for (size_t i = 0; i < slides->n; i++) {
        const char *ending = file_extension(slides->entries[i].path);
        if (strcasecmp(ending, ".png") && strcasecmp(ending, ".jpg") && strcasecmp(ending, ".jpeg"))
            return false;
    }
    return slides->n > 1;
}

bool nuclei_prepare(const struct nuclei_request *request, struct err *err)
{
    bool ok = true, done;
    struct nuclei_summary summary;
    for (size_t i = 0; ok && i < request->slides->n; i++) {
        const struct slide_entry *entry = &request->slides->entries[i];
        if (request->overwrite)
            nuclei_slide_clear(request->folder, entry->name);
        else
            ok = nuclei_slide_done(&request->options, entry, request->folder, &done, &summary, err);
    }
    return ok;
}

/* --- agreement with a truth --- */

/* The file may have been edited or replaced since it was written. */
static bool check_found(const char *path, const struct label_image *image,
                        const struct nuclei_summary *summary, struct err *err)
{
    bool ok = image->width == summary->width && image->height == summary->height;
    for (int64_t i = 0; ok && i < image->width * image->height; i++)
        ok = image->px[i] <= summary->n;
    return ok || err_set(err, ERR_FORMAT,
                         "%s: is not the label image that was written with the other results; "
                         "pass --overwrite to find the nuclei again",
                         path);
}

static bool read_found(const struct nuclei_request *request, const char *name,
                       const struct nuclei_summary *summary, struct nuclei_labels *out,
                       struct err *err)
{
    struct label_image image = { 0 };
    char *path = text_format("%s/%s_labels.png", request->folder, name);
    if (path && !file_exists(path)) {
        free(path);
        path = text_format("%s/%s_labels.npy", request->folder, name);
    }
    bool ok = path || err_memory(err, "file names");
    if (ok && !file_exists(path))
        ok =
            err_set(err, ERR_USAGE,
                    "%s: --truth compares label images, which are written up to 8192 x 8192 px; "
                    "this one would have %lld x %lld px: pass a larger --mpp or cut fields from it",
                    name, (long long)summary->width, (long long)summary->height);
    ok = ok && label_image_read(path, &image, err) && check_found(path, &image, summary, err);
    free(path);
    if (ok)
        *out = (struct nuclei_labels){ image.px, image.width, image.height, (int32_t)summary->n };
    else
        label_image_free(&image);
    return ok;
}

static bool compare(const struct nuclei_request *request, struct nuclei_row *row, struct err *err)
{
    const struct nuclei_summary *s = &row->summary;
    struct nuclei_source_slide slide = { s->width_l0, s->height_l0, s->objective };
    struct nuclei_source *source = NULL;
    struct nuclei_labels truth = { 0 }, found = { 0 };
    char *path = NULL;
    bool ok = nuclei_source_find(request->truth, row->entry->name, &path, err) &&
              nuclei_source_open(path, &slide, &source, err) &&
              read_found(request, row->entry->name, s, &found, err) &&
              nuclei_source_window(source, 0, 0, s->downsample, found.width, found.height, &truth,
                                   NULL, err) &&
              nuclei_agreement_add(&truth, &found, &row->agreement, err);
    nuclei_labels_free(&truth), nuclei_labels_free(&found);
    nuclei_source_free(source);
    free(path);
    return ok;
}

static void put_agreement(struct json_out *json, const struct nuclei_agreement *a)
{
    json_out_int(json, "truth", a->n_truth);
    json_out_int(json, "found", a->n_found);
    json_out_int(json, "matched", a->n_matched);
    json_out_real(json, "f1", nuclei_f1(a));
    json_out_real(json, "aji", nuclei_aji(a));
    json_out_real(json, "pq", nuclei_pq(a));
}

static void add_agreement(const struct nuclei_agreement *one, struct nuclei_agreement *all)
{
    all->n_truth += one->n_truth, all->n_found += one->n_found;
    all->n_matched += one->n_matched, all->matched_iou += one->matched_iou;
    all->intersections += one->intersections, all->unions += one->unions;
}

static bool write_agreement(const struct cohort *cohort, size_t reached,
                            struct nuclei_agreement *all, struct err *err)
{
    struct file_out out;
    struct json_out json;
    if (!file_out_open_in(&out, cohort->request->folder, "agreement.json", err))
        return false;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    json_out_array(&json, "slides");
    for (size_t i = 0; i < reached; i++) {
        const struct nuclei_row *row = &cohort->rows[i];
        if (row->state == RUN_FAILED)
            continue;
        add_agreement(&row->agreement, all);
        json_out_object_line(&json, NULL);
        json_out_text(&json, "slide", row->entry->name);
        put_agreement(&json, &row->agreement);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_object_line(&json, "all");
    put_agreement(&json, all);
    json_out_close_object(&json);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

/* --- slides --- */

static bool make_groups(const struct nuclei_slide *slide, const struct ctx *ctx, struct err *err)
{
    bool ok = true;
    console_begin(ctx->console, slide->entry->name, slide->n_tiles, "tiles");
    for (int64_t group = 0; ok && group < slide->n_groups; group++)
        ok = nuclei_slide_group(slide, group, ctx, err);
    console_end(ctx->console);
    return ok;
}

static bool make_nuclei(const struct cohort *cohort, struct nuclei_row *row, const struct ctx *ctx,
                        struct err *err)
{
    const struct nuclei_request *request = cohort->request;
    struct ctx silent = { .pool = ctx->pool, .stop = ctx->stop };
    struct nuclei_slide slide;
    bool ok = nuclei_slide_open(&request->options, row->entry, request->folder, ctx, &slide, err) &&
              make_groups(&slide, cohort->together ? &silent : ctx, err) &&
              nuclei_slide_merge(&slide, &row->summary, err);
    nuclei_slide_close(&slide);
    return ok;
}

static bool make_slide(void *arg, size_t i, struct err *err)
{
    const struct cohort *cohort = arg;
    const struct nuclei_request *request = cohort->request;
    struct nuclei_row *row = &cohort->rows[i];
    struct pool *alone = cohort->together ? pool_new(1) : NULL;
    struct ctx ctx = *cohort->ctx;
    bool done = false;
    if (cohort->together && !alone)
        return err_memory(err, "a thread");
    if (alone)
        ctx.pool = alone;
    bool ok = nuclei_slide_done(&request->options, row->entry, request->folder, &done,
                                &row->summary, err);
    row->state = done ? RUN_KEPT : RUN_DONE;
    if (ok && !done && request->tasks && request->tasks[i].error)
        ok = err_set(err, ERR_MISSING, "%s", request->tasks[i].error);
    if (ok && !done)
        ok = make_nuclei(cohort, row, &ctx, err);
    if (ok && request->truth)
        ok = compare(request, row, err);
    if (ok && !(row->summary.tissue_mm2 > 0))
        row->state = RUN_NO_TISSUE;
    pool_free(alone);
    return ok;
}

static void tell_slide(void *arg, size_t i, const struct err *why, struct run_item *item)
{
    const struct cohort *cohort = arg;
    const struct nuclei_request *request = cohort->request;
    struct nuclei_row *row = &cohort->rows[i];
    item->name = row->entry->name;
    item->path = row->entry->path;
    if (request->tasks) {
        item->seconds += request->tasks[i].seconds;
        item->cpu_s = request->tasks[i].cpu_s;
    }
    if (why) {
        row->state = RUN_FAILED;
        row->error = why->text;
        row->summary = (struct nuclei_summary){ 0 };
    } else {
        const struct nuclei_summary *s = &row->summary;
        const struct nuclei_agreement *a = &row->agreement;
        const struct run_fact facts[] = {
            { "nuclei", (double)s->n },
            { "tissue_mm2", s->tissue_mm2 },
            { "per_mm2", s->tissue_mm2 > 0 ? (double)s->n / s->tissue_mm2 : NAN },
            { "area_um2_mean", s->mean[NUCLEUS_AREA] },
            { "area_um2_std", s->deviation[NUCLEUS_AREA] },
            { "f1", nuclei_f1(a) },
            { "aji", nuclei_aji(a) },
            { "pq", nuclei_pq(a) },
        };
        item->state = row->state;
        item->n_facts = request->truth ? 8 : 5;
        memcpy(item->facts, facts, item->n_facts * sizeof *facts);
    }
    if (request->on_slide)
        request->on_slide(request->arg, row);
}

bool nuclei_cohort(const struct nuclei_request *request, const struct ctx *ctx,
                   struct nuclei_agreement *all, struct err *err)
{
    size_t n = request->slides->n, reached = 0;
    struct run *run = NULL;
    struct cohort cohort = { .request = request,
                             .ctx = ctx,
                             .together = are_images(request->slides) && !request->options.omit,
                             .rows = calloc(n + 1, sizeof *cohort.rows) };
    struct run_each each = { .n = n,
                             .together = cohort.together,
                             .label = cohort.together ? "nuclei" : NULL,
                             .make = make_slide,
                             .tell = tell_slide,
                             .arg = &cohort };
    *all = (struct nuclei_agreement){ 0 };
    bool ok = cohort.rows || err_memory(err, "the list of slides");
    for (size_t i = 0; ok && i < n; i++)
        cohort.rows[i].entry = &request->slides->entries[i];
    bool begun = ok && file_make_folder(request->folder, err) &&
                 run_begin(request->folder, n, request->argc, request->argv, &run, err) &&
                 (request->tasks || nuclei_prepare(request, err));
    ok = begun && run_each(run, &each, ctx, &reached, err);
    struct err second = { 0 };
    if (begun && request->truth && !write_agreement(&cohort, reached, all, ok ? err : &second))
        ok = false;
    run_free(run);
    free(cohort.rows);
    return ok;
}
