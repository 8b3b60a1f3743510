/* classify_heatmaps.c: `microtome classify features` and `lesions`: heatmaps -> a table of
 * features, heatmaps -> lists of lesions. Slides are processed in parallel and written in order.
 */
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/claim.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/console.h"
#include "cli/classify.h"
#include "tissue/tissue.h"
#include "verdict/features.h"
#include "verdict/lesion_finder.h"
#include "base/text.h"

const char *const lesion_method_names[] = { "components", "nms", NULL };

/* One slide's share of the work. */
struct heat_task {
    const char *folder;
    char *slide; /* the caller's to free */
    double values[FEATURES_MOST];
    int64_t lesions;
    bool assumed_mpp, no_tissue;
    struct err err;
    bool failed;
};

struct heat_run {
    struct app *app;
    const struct classify_options *o;
    struct heat_task *tasks; /* [n] */
    char **folders;
    size_t n;
    bool (*work)(const struct heat_run *run, struct heat_task *task, struct heatmap *heatmap,
                 const struct heat_field *field, struct err *err);
};

static bool do_slide(const struct heat_run *run, struct heat_task *task, struct err *err)
{
    struct heatmap *heatmap = NULL;
    struct heat_field field = { 0 };
    int64_t class_index = 0;
    bool ok = heatmap_open(task->folder, &heatmap, err) &&
              heat_class(heatmap, run->o->class_name, &class_index, err) &&
              heat_field_read(heatmap, class_index, &field, err);
    if (ok) {
        task->slide = strdup(heatmap_info(heatmap)->slide);
        task->no_tissue = heatmap_info(heatmap)->scored == 0;
        ok = (task->slide || err_memory(err, task->folder)) &&
             run->work(run, task, heatmap, &field, err);
    }
    free(field.values);
    heatmap_close(heatmap);
    return ok;
}

static bool do_task(void *arg, int64_t index, int worker, struct err *err)
{
    (void)worker, (void)err;
    const struct heat_run *run = arg;
    struct heat_task *task = &run->tasks[index];
    task->folder = run->folders[index];
    task->failed = !do_slide(run, task, &task->err);
    console_advance(run->app->ctx.console, 1);
    return true;
}

/* A slide that fails does not stop the others; failed slides are named at the end. If all fail, the
 * error is that of the first. */
static bool run_all(struct heat_run *run, char *const *paths, int n_paths, const char *label,
                    struct err *err)
{
    size_t unfinished = 0;
    if (!heat_list(paths, n_paths, &run->folders, &run->n, &unfinished, err))
        return false;
    if (unfinished > 0)
        console_warn(run->app->ctx.console, "slides skipped because they have no heatmap yet: %zu",
                     unfinished);
    run->tasks = calloc(run->n, sizeof *run->tasks);
    if (!run->tasks)
        return err_memory(err, "the list of heatmaps");
    console_begin(run->app->ctx.console, label, (int64_t)run->n, "slides");
    bool ok = pool_for(run->app->ctx.pool, (int64_t)run->n, do_task, run, run->app->ctx.stop, err);
    console_end(run->app->ctx.console);
    size_t failed = 0;
    for (size_t i = 0; ok && i < run->n; i++)
        failed += run->tasks[i].failed;
    if (ok && failed == run->n)
        ok =
            err_set(err, run->tasks[0].err.kind, "%s: %s", run->folders[0], run->tasks[0].err.text);
    return ok;
}

static bool finish(struct heat_run *run, bool ok, struct err *err)
{
    size_t failed = 0, empty = 0;
    bool assumed = false;
    for (size_t i = 0; ok && i < run->n; i++) {
        failed += run->tasks[i].failed;
        assumed = assumed || run->tasks[i].assumed_mpp;
        empty += run->tasks[i].no_tissue;
        if (run->tasks[i].failed)
            console_warn(run->app->ctx.console, "%s: %s", run->tasks[i].folder,
                         run->tasks[i].err.text);
    }
    if (assumed)
        console_warn(run->app->ctx.console, "heatmaps without um/px: sizes assume %.2f um/px",
                     TISSUE_ASSUMED_MPP);
    if (empty > 0)
        console_warn(run->app->ctx.console,
                     "slides without tissue: %zu; they count as without tumour", empty);
    if (ok && failed > 0)
        ok = err_set(err, ERR_FORMAT, "%zu of %zu slides failed", failed, run->n);
    for (size_t i = 0; run->tasks && i < run->n; i++)
        free(run->tasks[i].slide);
    free(run->tasks);
    folder_names_free(run->folders, run->n);
    return ok;
}

static bool compute_features(const struct heat_run *run, struct heat_task *task,
                             struct heatmap *heatmap, const struct heat_field *field,
                             struct err *err)
{
    (void)heatmap;
    return feature_sets[run->o->set]->compute(field, run->o->threshold, task->values, err);
}

static void write_features(const struct heat_run *run, FILE *out)
{
    const struct feature_set *set = feature_sets[run->o->set];
    fputs("slide", out);
    for (int k = 0; k < set->n; k++)
        fprintf(out, ",%s", set->names[k]);
    fputc('\n', out);
    for (size_t i = 0; i < run->n; i++) {
        if (run->tasks[i].failed)
            continue;
        csv_write_cell(out, run->tasks[i].slide);
        for (int k = 0; k < set->n; k++)
            fprintf(out, ",%.10g", run->tasks[i].values[k]);
        fputc('\n', out);
    }
}

/* Failed slides, by folder. */
static void json_failed(const struct heat_run *run, struct json_out *json)
{
    json_out_array(json, "failed");
    for (size_t i = 0; i < run->n; i++)
        if (run->tasks[i].failed) {
            json_out_object_line(json, NULL);
            json_out_text(json, "heatmap", run->tasks[i].folder);
            json_out_text(json, "error", run->tasks[i].err.text);
            json_out_close_object(json);
        }
    json_out_close_array(json);
}

static void json_features(const struct heat_run *run, struct json_out *json, size_t i)
{
    const struct feature_set *set = feature_sets[run->o->set];
    json_out_object_line(json, "features");
    for (int k = 0; k < set->n; k++)
        json_out_real(json, set->names[k], run->tasks[i].values[k]);
    json_out_close_object(json);
}

static void json_lesions(const struct heat_run *run, struct json_out *json, size_t i)
{
    json_out_int(json, "lesions", run->tasks[i].lesions);
}

static void print_json(const struct heat_run *run,
                       void (*put)(const struct heat_run *run, struct json_out *json, size_t i))
{
    struct json_out json;
    json_out_begin(&json, run->app->out);
    json_out_object(&json, NULL);
    json_out_array(&json, "slides");
    for (size_t i = 0; i < run->n; i++)
        if (!run->tasks[i].failed) {
            json_out_object_line(&json, NULL);
            json_out_text(&json, "slide", run->tasks[i].slide);
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
    struct heat_run run = { .app = app, .o = o, .work = compute_features };
    struct file_out file;
    bool ok = run_all(&run, paths, n_paths, "features", err);
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

static bool find_lesions(const struct heat_run *run, struct heat_task *task,
                         struct heatmap *heatmap, const struct heat_field *field, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(heatmap);
    const struct classify_options *o = run->o;
    task->assumed_mpp = !(info->mpp > 0);
    double mpp = info->mpp > 0 ? info->mpp : TISSUE_ASSUMED_MPP * info->downsample;
    double cell_um = mpp * (double)info->stride;
    struct lesion_list list = { 0 };
    char *path = text_format("%s/%s.csv", o->output, info->slide);
    bool ok = path || err_memory(err, task->folder);
    if (ok && o->method == LESIONS_COMPONENTS)
        ok = lesions_by_components(field, o->threshold, o->open_um / cell_um, o->close_um / cell_um,
                                   &list, err);
    else if (ok)
        ok = lesions_by_suppression(field, o->stop, o->radius_um / cell_um, &list, err);
    if (ok) {
        lesions_place(&list, info);
        task->lesions = list.n;
        ok = lesions_write(path, &list, err);
    }
    lesions_free(&list);
    free(path);
    return ok;
}

bool classify_lesions(struct app *app, const void *options, char *const *paths, int n_paths,
                      struct err *err)
{
    const struct classify_options *o = options;
    struct heat_run run = { .app = app, .o = o, .work = find_lesions };
    if (!o->output)
        return err_set(err, ERR_USAGE, "lesions needs -o FOLDER for the lists");
    struct claim *claim = NULL;
    bool ok = file_make_folder(o->output, err) && claim_take(o->output, &claim, err) &&
              run_all(&run, paths, n_paths, "lesions", err);
    if (ok && o->json)
        print_json(&run, json_lesions);
    for (size_t i = 0; ok && !o->json && i < run.n; i++)
        if (!run.tasks[i].failed)
            fprintf(app->out, "%s: %lld lesion%s\n", run.tasks[i].slide,
                    (long long)run.tasks[i].lesions, run.tasks[i].lesions == 1 ? "" : "s");
    claim_release(claim);
    return finish(&run, ok, err);
}
