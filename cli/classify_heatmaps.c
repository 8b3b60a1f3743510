/* classify_heatmaps.c: `microtome classify features` and `lesions`: heatmaps -> a table of
 * features, heatmaps -> lists of lesions. Slides are processed in parallel and written in order.
 */
#include <stdlib.h>
#include "base/claim.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/classify.h"
#include "verdict/features.h"
#include "verdict/heat_cohort.h"
#include "verdict/lesion_finder.h"

/* What is found on the slides of a cohort. */
struct heat_run {
    struct app *app;
    const struct classify_options *o;
    struct heat_cohort cohort;
    double (*values)[FEATURES_MOST]; /* [cohort.n] */
    int64_t *lesions;                /* [cohort.n] */
};

static bool find(struct heat_run *run, char *const *paths, int n_paths, const char *label,
                 heat_work_fn work, struct err *err)
{
    const struct ctx *ctx = &run->app->ctx;
    if (!heat_cohort_find(paths, n_paths, ctx, &run->cohort, err))
        return false;
    run->values = calloc(run->cohort.n + 1, sizeof *run->values);
    run->lesions = calloc(run->cohort.n + 1, sizeof *run->lesions);
    return ((run->values && run->lesions) || err_memory(err, "the list of heatmaps")) &&
           heat_cohort_each(&run->cohort, run->o->class_name, label, work, run, ctx, err);
}

/* ok: everything was found and printed. */
static bool finish(struct heat_run *run, bool ok, struct err *err)
{
    ok = ok && heat_cohort_end(&run->cohort, &run->app->ctx, err);
    heat_cohort_free(&run->cohort);
    free(run->values);
    free(run->lesions);
    return ok;
}

static bool compute_features(void *arg, size_t i, const struct heatmap *heatmap,
                             const struct heat_field *field, struct heat_slide *slide,
                             struct err *err)
{
    (void)heatmap, (void)slide;
    const struct heat_run *run = arg;
    return feature_sets[run->o->set]->compute(field, run->o->threshold, run->values[i], err);
}

static void write_features(const struct heat_run *run, FILE *out)
{
    const struct feature_set *set = feature_sets[run->o->set];
    fputs("slide", out);
    for (int k = 0; k < set->n; k++)
        fprintf(out, ",%s", set->names[k]);
    fputc('\n', out);
    for (size_t i = 0; i < run->cohort.n; i++) {
        if (run->cohort.slides[i].failed)
            continue;
        csv_write_cell(out, run->cohort.slides[i].slide);
        for (int k = 0; k < set->n; k++)
            fprintf(out, ",%.10g", run->values[i][k]);
        fputc('\n', out);
    }
}

/* Failed slides, by folder. */
static void json_failed(const struct heat_run *run, struct json_out *json)
{
    json_out_array(json, "failed");
    for (size_t i = 0; i < run->cohort.n; i++)
        if (run->cohort.slides[i].failed) {
            json_out_object_line(json, NULL);
            json_out_text(json, "heatmap", run->cohort.slides[i].folder);
            json_out_text(json, "error", run->cohort.slides[i].err.text);
            json_out_close_object(json);
        }
    json_out_close_array(json);
}

static void json_features(const struct heat_run *run, struct json_out *json, size_t i)
{
    const struct feature_set *set = feature_sets[run->o->set];
    json_out_object_line(json, "features");
    for (int k = 0; k < set->n; k++)
        json_out_real(json, set->names[k], run->values[i][k]);
    json_out_close_object(json);
}

static void json_lesions(const struct heat_run *run, struct json_out *json, size_t i)
{
    json_out_int(json, "lesions", run->lesions[i]);
}

static void print_json(const struct heat_run *run,
                       void (*put)(const struct heat_run *run, struct json_out *json, size_t i))
{
    struct json_out json;
    json_out_begin(&json, run->app->out);
    json_out_object(&json, NULL);
    json_out_array(&json, "slides");
    for (size_t i = 0; i < run->cohort.n; i++)
        if (!run->cohort.slides[i].failed) {
            json_out_object_line(&json, NULL);
            json_out_text(&json, "slide", run->cohort.slides[i].slide);
            put(run, &json, i);
            json_out_close_object(&json);
        }
    json_out_close_array(&json);
    json_failed(run, &json);
    json_out_close_object(&json);
    json_out_end(&json);
}

bool classify_features(struct app *app, const void *options, char *const *paths, int n_paths,
                       struct err *err)
{
    const struct classify_options *o = options;
    struct heat_run run = { .app = app, .o = o };
    struct file_out file;
    bool ok = find(&run, paths, n_paths, "features", compute_features, err);
    if (ok && o->output) {
        ok = file_out_open(&file, o->output, err);
        if (ok)
            write_features(&run, file.stream);
        ok = ok && file_out_commit(&file, err);
    } else if (ok && !o->json) {
        write_features(&run, app->out);
    }
    if (ok && o->json)
        print_json(&run, json_features);
    return finish(&run, ok, err);
}

static bool find_lesions(void *arg, size_t i, const struct heatmap *heatmap,
                         const struct heat_field *field, struct heat_slide *slide, struct err *err)
{
    const struct heat_run *run = arg;
    const struct classify_options *o = run->o;
    struct lesion_rules rules = { .method = (enum lesion_method)o->method,
                                  .threshold = o->threshold,
                                  .open_um = o->open_um,
                                  .close_um = o->close_um,
                                  .stop = o->stop,
                                  .radius_um = o->radius_um };
    struct lesion_list list = { 0 };
    char *path = text_format("%s/%s.csv", o->output, slide->slide);
    bool ok = (path || err_memory(err, slide->folder)) &&
              lesions_find(heatmap_info(heatmap), field, &rules, &list, &slide->assumed_mpp, err) &&
              lesions_write(path, &list, err);
    run->lesions[i] = list.n;
    lesions_free(&list);
    free(path);
    return ok;
}

bool classify_lesions(struct app *app, const void *options, char *const *paths, int n_paths,
                      struct err *err)
{
    const struct classify_options *o = options;
    struct heat_run run = { .app = app, .o = o };
    if (!o->output)
        return err_set(err, ERR_USAGE, "lesions needs -o FOLDER for the lists");
    struct claim *claim = NULL;
    bool ok = file_make_folder(o->output, err) && claim_take(o->output, &claim, err) &&
              find(&run, paths, n_paths, "lesions", find_lesions, err);
    if (ok && o->json)
        print_json(&run, json_lesions);
    for (size_t i = 0; ok && !o->json && i < run.cohort.n; i++)
        if (!run.cohort.slides[i].failed)
            fprintf(app->out, "%s: %lld lesion%s\n", run.cohort.slides[i].slide,
                    (long long)run.lesions[i], run.lesions[i] == 1 ? "" : "s");
    claim_release(claim);
    return finish(&run, ok, err);
}
