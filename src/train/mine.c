/* mine.c: see mine.h. */
#include "train/mine.h"

#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/console.h"
#include "base/text.h"
#include "net/model/classifier.h"
#include "net/model/model_run.h"
#include "train/loader.h"

#define MINE_BATCH 16

struct mined {
    int64_t sample;
    double score;
};

struct mine {
    const struct train_config *config;
    const struct ctx *ctx;
    struct dataset dataset;
    struct model *model;
    struct model_run run;
    struct stain_need stain;
    int64_t side_px; /* of what the network sees */
    struct loader *loader;
    struct mined *found;
    int64_t n_found;
    double *scores; /* [classes] */
};

/* Worst first; then in the order of the stores. */
static int by_score(const void *a, const void *b)
{
    const struct mined *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Patches are prepared as the model says, whatever the config says of the network to be trained. */
static bool open_model(struct mine *mine, const char *file, struct err *err)
{
    const struct train_config *config = mine->config;
    int64_t classes = (int64_t)config->classes.n, patch_px = 0, height = 0;
    int threads = pool_workers(mine->ctx->pool);
    if (!model_open_classifier(&(struct model_source){ .file = file }, &mine->model, err))
        return false;
    if (model_predicts_number(mine->model))
        return err_set(err, ERR_USAGE,
                       "%s: predicts a number, but mining needs the scores of a classifier", file);
    const struct model_config *own = &mine->model->config;
    if (own->num_classes != classes)
        return err_set(err, ERR_USAGE, "%s: has %lld classes, but the config names %lld", file,
                       (long long)own->num_classes, (long long)classes);
    if (!dataset_patch_px(&mine->dataset, 0, &patch_px, err) ||
        !model_input_size(own, patch_px, patch_px, &mine->side_px, &height, err) ||
        !stain_need_of(own, &mine->stain, err) ||
        !stain_need_check(&mine->stain, &mine->dataset.stain, file,
                          dataset_origin_path(&mine->dataset, 0),
                          "extract it like the training stores", err))
        return err_prefix(err, file);
    return model_run_new(mine->model, MINE_BATCH, mine->side_px, mine->side_px, threads, false,
                         &mine->run, err);
}

static bool open_loader(struct mine *mine, struct err *err)
{
    const struct train_config *config = mine->config;
    struct loader_options options = { .dataset = &mine->dataset,
                                      .side = DATA_TRAIN,
                                      .batch = MINE_BATCH,
                                      .input_px = mine->side_px,
                                      .window_bytes = config->data.window_mb << 20,
                                      .workers = (int)config->data.workers,
                                      .prepare = &mine->model->config,
                                      .stain = &mine->stain,
                                      .ranks = 1 };
    return loader_new(&options, &mine->loader, err);
}

static bool score_batch(struct mine *mine, struct err *err)
{
    struct batch batch;
    int64_t side = mine->side_px, classes = (int64_t)mine->config->classes.n;
    if (!loader_next(mine->loader, &batch, err))
        return false;
    memcpy(plan_input(mine->run.plan, 0), batch_floats(&batch, "image"),
           (size_t)(MINE_BATCH * 3 * side * side) * sizeof(float));
    if (!plan_forward(mine->run.plan, err))
        return false;
    for (int64_t i = 0; i < batch.n; i++) {
        if (!model_score(mine->model, plan_output(mine->run.plan, 0) + i * classes, mine->scores,
                         err))
            return false;
        double score = 1 - mine->scores[0];
        if (score >= mine->config->mine.threshold)
            mine->found[mine->n_found++] =
                (struct mined){ batch_int64(&batch, "sample")[i], score };
    }
    console_advance(mine->ctx->console, batch.n);
    return true;
}

static bool score_all(struct mine *mine, struct err *err)
{
    bool ok = loader_begin(mine->loader, 0, 0, err);
    console_begin(mine->ctx->console, "mining", mine->dataset.n_samples, "patches");
    for (int64_t i = 0; ok && i < loader_n_batches(mine->loader); i++)
        ok = ctx_stopped(mine->ctx) ? err_stopped(err) : score_batch(mine, err);
    loader_end(mine->loader);
    console_end(mine->ctx->console);
    return ok;
}

static bool write_list(const struct mine *mine, int64_t n, const char *path, struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    fputs("store,patch,score\n", out.stream);
    for (int64_t i = 0; i < n; i++) {
        int64_t sample = mine->found[i].sample;
        csv_write_cell(out.stream, dataset_origin_path(&mine->dataset, sample));
        fprintf(out.stream, ",%lld,%.6f\n", (long long)dataset_item(&mine->dataset, sample),
                mine->found[i].score);
    }
    return file_out_commit(&out, err);
}

bool mine_run(const struct train_config *config, const char *model, const char *path,
              const struct ctx *ctx, struct mine_result *out, struct err *err)
{
    struct mine mine = { .config = config, .ctx = ctx };
    *out = (struct mine_result){ 0 };
    if (config->mine.stores.n == 0)
        return err_set(err, ERR_USAGE, "mine.stores is empty; list stores of normal tissue there");
    bool ok = dataset_open_normal(config, &mine.dataset, err) && open_model(&mine, model, err) &&
              open_loader(&mine, err);
    mine.found = ok ? calloc((size_t)mine.dataset.n_samples, sizeof *mine.found) : NULL;
    mine.scores = calloc(config->classes.n, sizeof *mine.scores);
    if (ok && (!mine.found || !mine.scores))
        ok = err_memory(err, "mining");
    ok = ok && score_all(&mine, err);
    if (ok) {
        int64_t limit = config->mine.limit;
        qsort(mine.found, (size_t)mine.n_found, sizeof *mine.found, by_score);
        out->scored = mine.dataset.n_samples;
        out->found = mine.n_found;
        out->kept = limit > 0 && limit < mine.n_found ? limit : mine.n_found;
        ok = write_list(&mine, out->kept, path, err);
    }
    loader_free(mine.loader);
    model_run_free(&mine.run);
    model_close(mine.model);
    dataset_free(&mine.dataset);
    free(mine.found);
    free(mine.scores);
    return ok;
}

bool mine_name(struct train_config *config, const char *folder, struct err *err)
{
    free(config->data.hard_negatives);
    config->data.hard_negatives = text_format("%s/" MINE_FILE, folder);
    return config->data.hard_negatives || err_memory(err, "the config");
}

bool mine_add(const struct train_config *config, const char *model, enum mine_existing existing,
              const struct ctx *ctx, struct err *err)
{
    const char *path = config->data.hard_negatives;
    struct mine_result result;
    bool exists = file_exists(path);
    if (exists && existing == MINE_KEEP)
        return true;
    if (exists && existing == MINE_REFUSE)
        return err_set(err, ERR_USAGE,
                       "%s: already exists; pass --resume to use it, --overwrite to mine again, or "
                       "use another folder",
                       path);
    if (!mine_run(config, model, path, ctx, &result, err))
        return false;
    console_note(ctx->console,
                 "%lld of %lld patches of normal tissue are false positives; %lld written to %s",
                 (long long)result.found, (long long)result.scored, (long long)result.kept, path);
    return true;
}
