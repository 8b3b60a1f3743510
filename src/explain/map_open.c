/* map_open.c: opens a run of maps: its columns, workers and the line it is known by (map.h). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "explain/inside.h"
#include "explain/map_work.h"

const char *const map_stitching_names[] = { "auto", "all", "none", NULL };

/* --- names --- */

/* The texts between commas, without those that occur before: *out [*n], the caller's. */
static bool split(const char *list, char ***out, int *n, struct err *err)
{
    *n = 0;
    *out = calloc(strlen(list) + 2, sizeof **out);
    bool ok = *out || err_memory(err, "the methods");
    while (ok) {
        size_t length = strcspn(list, ",");
        bool known = false;
        char *text = strndup(list, length);
        ok = text || err_memory(err, "the methods");
        for (int i = 0; ok && i < *n; i++)
            known = known || strcmp((*out)[i], text) == 0;
        if (ok && !known)
            (*out)[(*n)++] = text;
        else
            free(text);
        if (!list[length])
            break;
        list += length + 1;
    }
    return ok;
}

static void free_texts(char **texts, int n)
{
    for (int i = 0; texts && i < n; i++)
        free(texts[i]);
    free(texts);
}

static bool stitches(const struct map_request *request, const struct explainer *explainer)
{
    bool one_pass =
        explainer->maps == MAPS_LAYER && !explainer->forward_only && !explainer->input_gradient;
    return request->stitching == STITCH_ALL ||
           (request->stitching == STITCH_AUTO && request->pick == PICK_LESIONS && one_pass);
}

static bool add_column(struct map_run *run, const struct explainer *explainer, int layer,
                       const char *layer_name, struct err *err)
{
    if (run->n_columns == MAP_MOST_COLUMNS)
        return err_set(err, ERR_USAGE, "more than %d maps of each image; name fewer methods",
                       MAP_MOST_COLUMNS);
    struct map_column *column = &run->columns[run->n_columns++];
    *column = (struct map_column){ .explainer = explainer,
                                   .layer = layer,
                                   .layer_name = strdup(layer_name),
                                   .stitched = stitches(run->request, explainer) };
    column->name = layer >= 0 && run->n_layers > 1
                       ? text_format("%s_%s", explainer->name, layer_name)
                       : strdup(explainer->name);
    for (char *at = column->name; at && *at; at++) /* names of layers may be anything */
        if (*at == '/' || *at == '\\' || iscntrl((unsigned char)*at))
            *at = '_';
    if (!column->name || !column->layer_name)
        return err_memory(err, "the methods");
    for (int i = 0; i + 1 < run->n_columns; i++)
        if (strcmp(run->columns[i].name, column->name) == 0)
            return err_set(err, ERR_USAGE,
                           "--layer: '%s' and '%s' would both be written to %s.npy; name one of "
                           "them",
                           run->columns[i].layer_name, layer_name, column->name);
    return true;
}

/* The last spatial layer becomes a layer like others: it is the same for images of all sizes. */
static bool name_layer(struct map_run *run, int layer, const char *name, struct err *err)
{
    if (run->layers[layer][0])
        return true;
    free(run->layers[layer]);
    run->layers[layer] = strdup(name);
    return run->layers[layer] || err_memory(err, "the layers");
}

/* Can the network be looked at in this way? The probe is made once for all columns that need it. */
static bool check_method(struct map_run *run, const struct explainer *explainer, struct err *err)
{
    struct map_worker *worker = &run->workers[0];
    struct probe *probe = map_probe(run, worker, explainer, err);
    if (!probe)
        return false;
    if (explainer->maps == MAPS_INPUT)
        return (!explainer->check || explainer->check(&worker->settings, probe, -1, err)) &&
               add_column(run, explainer, -1, "", err);
    for (int i = 0; i < run->n_layers; i++)
        if (!name_layer(run, i, probe_layer(probe, i)->name, err) ||
            !probe_need_spatial(probe, i, err) ||
            (explainer->check && !explainer->check(&worker->settings, probe, i, err)) ||
            !add_column(run, explainer, i, probe_layer(probe, i)->name, err))
            return false;
    return true;
}

static bool choose_columns(struct map_run *run, struct err *err)
{
    char **methods = NULL;
    int n = 0;
    bool ok = split(run->request->layers ? run->request->layers : "", &run->layers, &run->n_layers,
                    err) &&
              split(run->request->methods, &methods, &n, err);
    if (ok && run->n_layers > PROBE_MOST_LAYERS)
        ok = err_set(err, ERR_USAGE, "--layer: names more than %d layers", PROBE_MOST_LAYERS);
    for (int i = 0; ok && i < n; i++) {
        const struct explainer *explainer = explainer_find(methods[i], err);
        ok = explainer && check_method(run, explainer, err);
    }
    free_texts(methods, n);
    return ok;
}

/* --- the line --- */

static bool describe(struct map_run *run, struct err *err)
{
    const struct map_request *request = run->request;
    const struct explain_settings *s = &request->method;
    const struct belief_settings *b = &request->belief;
    char *columns = strdup("");
    for (int i = 0; columns && i < run->n_columns; i++) {
        const struct map_column *c = &run->columns[i];
        char *longer = text_format("%s%s%s%s%s", columns, i ? "," : "", c->explainer->name,
                                   c->layer >= 0 ? "@" : "", c->layer_name);
        free(columns);
        columns = longer;
    }
    if (columns)
        run->options = text_format(
            "maps=%s class=%s model=%s seed=%llu hot=%g lime=%lld/%lld smooth=%lld/%g ig=%lld "
            "occlusion=%lld/%lld belief=%lld/%lld%s%s",
            columns, request->model->config.class_names[run->subjects->class_index],
            run->model_hash, (unsigned long long)request->seed, request->hot,
            (long long)s->lime_samples, (long long)s->lime_segments, (long long)s->smooth_samples,
            s->smooth_noise, (long long)s->ig_steps, (long long)s->occlusion_px,
            (long long)s->occlusion_stride_px, (long long)b->steps, (long long)b->random_orders,
            request->inside ? " inside=" : "", request->inside ? request->inside : "");
    free(columns);
    return run->options || err_memory(err, "the options");
}

char *map_identity(const struct map_run *run, const struct subject *subject)
{
    return text_format("%s at=%lld,%lld,%lld of=%s", run->options, (long long)subject->item,
                       (long long)subject->x, (long long)subject->y, subject->inputs);
}

/* --- opening --- */

/* More images at once are no faster, but take memory for each; groups of the probe are full. */
#define IMAGES_PER_THREAD 16

/* As many workers as threads; where there are fewer subjects, each has several. */
static bool make_workers(struct map_run *run, const struct ctx *ctx, struct err *err)
{
    int threads = pool_workers(ctx->pool);
    int64_t n = run->subjects->n_areas > 0 ? threads : run->subjects->n;
    run->n_workers = n < threads ? (int)(n > 1 ? n : 1) : threads;
    run->threads_each = threads / run->n_workers;
    run->workers = calloc((size_t)threads, sizeof *run->workers);
    run->shared = probe_shared_new();
    if (!run->workers || !run->shared)
        return err_memory(err, "the workers");
    for (int i = 0; i < run->n_workers; i++) {
        struct explain_settings *settings = &run->workers[i].settings;
        *settings = run->request->method;
        settings->model = run->request->model;
        settings->height = settings->width = run->window.side;
        settings->threads = run->threads_each;
        if (settings->batch > IMAGES_PER_THREAD * run->threads_each)
            settings->batch = IMAGES_PER_THREAD * run->threads_each;
    }
    return true;
}

bool map_open(const struct map_request *request, struct subjects *subjects, const struct ctx *ctx,
              struct map_run **out, struct err *err)
{
    struct map_run *run = calloc(1, sizeof *run);
    if (!run)
        return err_memory(err, "the maps");
    *run = (struct map_run){ .request = request, .subjects = subjects };
    bool ok = model_window_of(request->model, &run->window, err) &&
              model_hash_text(request->model, run->model_hash, err) &&
              make_workers(run, ctx, err) && choose_columns(run, err) && describe(run, err) &&
              (!request->inside || inside_new(request->inside, &run->inside, err)) &&
              file_make_folder(request->folder, err);
    if (ok)
        *out = run;
    else
        map_close(run);
    return ok;
}

void map_close(struct map_run *run)
{
    if (!run)
        return;
    for (int i = 0; run->workers && i < run->n_workers; i++)
        for (int k = 0; k < MAP_PROBES; k++)
            probe_free(run->workers[i].probes[k]);
    probe_shared_free(run->shared);
    for (int i = 0; i < run->n_columns; i++) {
        free(run->columns[i].name);
        free(run->columns[i].layer_name);
    }
    free_texts(run->layers, run->n_layers);
    inside_free(run->inside);
    free(run->workers);
    free(run->options);
    free(run);
}
