/* score.c: see score.h. Every worker has a plan of one image and one thread: a patch's scores do
 * not depend on its neighbours or on the number of threads. */
#include "train/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/pool.h"
#include "base/console.h"
#include "net/model/classifier.h"
#include "net/model/model_run.h"
#include "net/plan/shared_weights.h"
#include "patch/patch.h"
#include "train/model_patches.h"

#define CHUNK_FOR_EACH 16 /* patches of a chunk, for each worker */

struct worker {
    struct model_run run;
    float *plain;   /* [3, height, width] of the run; NULL without tta */
    double *scores; /* [classes] of one way */
};

struct scoring {
    const struct score_request *request;
    const struct ctx *ctx;
    struct model_patches patches;
    struct plan_weights *weights; /* shared by all workers */
    struct worker *workers;
    int n_workers, threads_each;
    uint8_t *group; /* pixels of the store's group that is in memory */
    int32_t group_origin, group_number;
    int64_t first, n;     /* the chunk */
    double *scores;       /* [chunk, classes] */
    struct err *problems; /* [chunk] */
};

/* --- setting up --- */

static bool open_all(struct scoring *s, struct err *err)
{
    const struct score_request *request = s->request;
    int64_t classes = model_count(request->model);
    if (!model_patches_open(request->model, request->paths, request->n_paths, request->any_stain,
                            s->ctx, &s->patches, err))
        return false;
    int threads = pool_workers(s->ctx->pool);
    bool one = s->patches.dataset.n_samples == 1; /* has all threads for itself */
    s->n_workers = threads;
    s->threads_each = one ? threads : 1;
    size_t chunk = (size_t)threads * CHUNK_FOR_EACH;
    s->weights = plan_weights_new();
    s->workers = calloc((size_t)threads, sizeof *s->workers);
    s->scores = calloc(chunk * (size_t)classes, sizeof *s->scores);
    s->problems = calloc(chunk, sizeof *s->problems);
    bool ok = s->weights && s->workers && s->scores && s->problems;
    for (int i = 0; ok && i < threads; i++)
        ok = (s->workers[i].scores = calloc((size_t)classes, sizeof *s->scores)) != NULL;
    return ok || err_memory(err, "scores");
}

static void close_all(struct scoring *s)
{
    for (int i = 0; s->workers && i < s->n_workers; i++) {
        model_run_free(&s->workers[i].run);
        free(s->workers[i].plain);
        free(s->workers[i].scores);
    }
    free(s->workers);
    plan_weights_free(s->weights);
    free(s->scores);
    free(s->problems);
    free(s->group);
    model_patches_free(&s->patches);
}

/* --- one patch --- */

/* The worker's plan at the size that a patch of this size gets. */
static bool make_ready(const struct scoring *s, struct worker *worker, const struct image *patch,
                       struct err *err)
{
    const struct model *model = s->request->model;
    struct plan_options options = { .threads = s->threads_each, .weights = s->weights };
    int64_t width = 0, height = 0;
    if (!model_input_size(&model->config, patch->width, patch->height, &width, &height, err))
        return false;
    if (s->request->tta && width != height)
        return err_set(err, ERR_USAGE, "--tta needs square patches, not %lld x %lld px",
                       (long long)width, (long long)height);
    if (worker->run.plan && worker->run.width == width && worker->run.height == height)
        return true;
    model_run_free(&worker->run);
    free(worker->plain);
    worker->plain = NULL;
    if (s->request->tta &&
        !(worker->plain = malloc((size_t)(3 * width * height) * sizeof *worker->plain)))
        return err_memory(err, "a patch");
    if (!model_run_with(model, 1, height, width, &options, &worker->run, err))
        return false;
    if (model_check_classifies(model, worker->run.graph, err))
        return true;
    model_run_free(&worker->run);
    return false;
}

static bool score_patch(const struct scoring *s, struct worker *worker, struct image *patch,
                        double *scores, struct err *err)
{
    const struct model_config *config = &s->request->model->config;
    int64_t n = model_count(s->request->model);
    int ways = s->request->tta ? MODEL_WAYS : 1;
    if (!stain_need_patch(&s->patches.stain, patch, err) || !make_ready(s, worker, patch, err))
        return false;
    float *input = plan_input(worker->run.plan, 0);
    if (!model_prepare(config, patch, worker->plain ? worker->plain : input, err))
        return false;
    memset(scores, 0, (size_t)n * sizeof *scores);
    for (int way = 0; way < ways; way++) {
        if (worker->plain)
            model_lay(worker->plain, 3, worker->run.width, way, input);
        if (!plan_forward(worker->run.plan, err))
            return false;
        const float *outputs = plan_output(worker->run.plan, 0);
        if (model_seems_scored(s->request->model, outputs))
            return model_refuse_scored(s->request->model, err);
        if (!model_score(s->request->model, outputs, worker->scores, err))
            return false;
        for (int64_t c = 0; c < n; c++)
            scores[c] += worker->scores[c] / ways;
    }
    for (int64_t c = 0; c < n; c++)
        if (isnan(scores[c]))
            return err_set(err, ERR_FORMAT, "the model returned a score that is not a number");
    return true;
}

/* A piece of a chunk. Failures are reported with the row. */
static bool score_sample(void *arg, int64_t index, int worker, struct err *err)
{
    (void)err;
    struct scoring *s = arg;
    struct err *problem = &s->problems[index];
    int64_t sample = s->first + index, classes = model_count(s->request->model);
    struct image patch = { 0 };
    *problem = (struct err){ 0 };
    if (dataset_read(&s->patches.dataset, sample, s->group, &patch, problem))
        score_patch(s, &s->workers[worker], &patch, s->scores + index * classes, problem);
    image_free(&patch);
    return true;
}

/* --- all patches --- */

/* The chunk that begins at s->first: of a store, patches of one group, which is read. */
static bool begin_chunk(struct scoring *s, struct err *err)
{
    const struct dataset *dataset = &s->patches.dataset;
    int32_t origin = dataset_origin(dataset, s->first), group = dataset_group(dataset, s->first);
    bool stored = dataset_in_group(dataset, s->first);
    int64_t most = (int64_t)s->n_workers * CHUNK_FOR_EACH;
    for (s->n = 0; s->n < most && s->first + s->n < dataset->n_samples; s->n++) {
        int64_t sample = s->first + s->n;
        if (dataset_origin(dataset, sample) != origin &&
            (stored || dataset_in_group(dataset, sample)))
            break;
        if (stored && dataset_group(dataset, sample) != group)
            break;
    }
    bool held = s->group && s->group_origin == origin && s->group_number == group;
    if (!stored || held)
        return true;
    free(s->group);
    s->group = malloc((size_t)dataset_group_bytes(dataset, s->first));
    s->group_origin = origin;
    s->group_number = group;
    if (!s->group)
        return err_memory(err, "a group of patches");
    return dataset_read_group(dataset, s->first, s->group, err);
}

static bool tell_row(struct scoring *s, int64_t index, score_fn fn, void *arg, struct err *err)
{
    int64_t sample = s->first + index;
    int32_t label = dataset_label(&s->patches.dataset, sample);
    struct sample_place place = dataset_place(&s->patches.dataset, sample);
    char *name = dataset_sample_name(&s->patches.dataset, sample);
    if (!name)
        return err_memory(err, "scores");
    struct score_row row = {
        .name = name,
        .slide = place.slide,
        .x_l0 = place.x_l0,
        .y_l0 = place.y_l0,
        .patient = dataset_patient(&s->patches.dataset, sample),
        .problem = s->problems[index].kind != ERR_NONE ? s->problems[index].text : NULL,
        .label = label == PATCH_UNLABELED ? -1 : label,
        .scores = s->scores + index * model_count(s->request->model),
    };
    bool ok = fn(arg, &row, err);
    free(name);
    return ok;
}

static bool score_all(struct scoring *s, score_fn fn, void *arg, struct err *err)
{
    bool ok = true;
    struct console *console = s->patches.dataset.n_samples > 1 ? s->ctx->console : NULL;
    console_begin(console, "scoring", s->patches.dataset.n_samples, "patches");
    for (s->first = 0; ok && s->first < s->patches.dataset.n_samples; s->first += s->n) {
        ok = (!ctx_stopped(s->ctx) || err_stopped(err)) && begin_chunk(s, err) &&
             pool_for(s->ctx->pool, s->n, score_sample, s, s->ctx->stop, err);
        for (int64_t i = 0; ok && i < s->n; i++)
            ok = tell_row(s, i, fn, arg, err);
        if (ok)
            console_advance(console, s->n);
    }
    console_end(console);
    return ok;
}

bool score_run(const struct score_request *request, const struct ctx *ctx, score_fn fn, void *arg,
               struct err *err)
{
    struct scoring s = { .request = request, .ctx = ctx };
    bool ok = open_all(&s, err) && score_all(&s, fn, arg, err);
    close_all(&s);
    return ok;
}

/* --- tables --- */

void score_put_header(FILE *stream, const struct model_config *config)
{
    fputs("sample,slide,x,y,patient,label", stream);
    for (int64_t c = 0; c < config->num_classes; c++) {
        fputs(config->objective == OBJECTIVE_REGRESS ? "," : ",prob_", stream);
        csv_write_cell(stream, config->class_names[c]);
    }
    fputc('\n', stream);
}

void score_put_row(FILE *stream, const struct model_config *config, const struct score_row *row)
{
    csv_write_cell(stream, row->name);
    fputc(',', stream);
    csv_write_cell(stream, row->slide);
    if (row->x_l0 >= 0 || row->slide[0])
        fprintf(stream, ",%lld,%lld,", (long long)row->x_l0, (long long)row->y_l0);
    else
        fputs(",,,", stream);
    csv_write_cell(stream, row->patient);
    fputc(',', stream);
    if (row->label >= 0)
        fprintf(stream, "%d", row->label);
    for (int64_t c = 0; c < config->num_classes; c++)
        fprintf(stream, ",%.9g", row->scores[c]);
    fputc('\n', stream);
}
