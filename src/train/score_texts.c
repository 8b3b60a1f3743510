/* score_texts.c: see score_texts.h. */
#include "train/score_texts.h"
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "net/graph/transform.h"
#include "train/dataset_origin.h"
#include "train/text_model.h"
#include "train/text_windows.h"

enum { BATCH = 16 };

/* A model as it scores. */
struct scorer {
    struct text_model model;
    struct graph *graph; /* for inference, of BATCH texts */
    struct plan *plan;
    float *outputs; /* [BATCH, classes] */
};

bool score_texts_takes(const char *model)
{
    return text_model_is(model);
}

static void close_scorer(void *state)
{
    struct scorer *m = state;
    plan_free(m->plan);
    graph_free(m->graph);
    free(m->outputs);
    text_model_close(&m->model);
}

static bool open_scorer(void *state, const char *model, const struct ctx *ctx, struct err *err)
{
    struct scorer *m = state;
    struct plan_options how = { .mode = PLAN_INFER, .threads = pool_workers(ctx->pool) };
    if (!text_model_open(model, BATCH, &m->model, err))
        return false;
    m->outputs = calloc((size_t)(BATCH * m->model.config.num_classes), sizeof *m->outputs);
    return (m->outputs || err_memory(err, "scores")) &&
           transform_for_inference(m->model.graph, NULL, 0, &m->graph, err) &&
           plan_new(m->graph, &how, &m->plan, err);
}

static const struct model_config *config_of(const void *state)
{
    return &((const struct scorer *)state)->model.config;
}

struct score_names score_texts_names(const struct model_config *config)
{
    const struct model_text *text = &config->text;
    return (struct score_names){ "texts", text->text, text->label, text->id };
}

static struct score_names names_of(const void *state)
{
    return score_texts_names(config_of(state));
}

/* The outputs for n rows from `first` on. */
static bool run_batch(struct scorer *m, const struct csv *csv, int column, size_t first, int64_t n,
                      struct err *err)
{
    const struct model_config *config = &m->model.config;
    struct text_windows how = { .sequence = &m->model.sequence,
                                .plan = m->plan,
                                .mask = 1,
                                .batch = BATCH,
                                .classes = config->num_classes,
                                .independent = config->independent };
    const char *texts[BATCH] = { 0 };
    int64_t at;
    for (int64_t i = 0; i < n; i++) {
        if (!text_check(csv, first + (size_t)i, column, err))
            return false;
        texts[i] = csv_cell(csv, first + (size_t)i, column);
    }
    if (text_windows_run(&how, texts, n, m->outputs, &at, err))
        return true;
    char line[32];
    snprintf(line, sizeof line, "line %d", csv->lines[first + (size_t)(at < 0 ? 0 : at)]);
    if (at >= 0)
        err_prefix(err, line);
    return err_prefix(err, csv->path);
}

static bool count_cut(const struct scorer *m, const char *text, struct score_table_result *result,
                      struct err *err)
{
    struct token_ids ids = { 0 };
    bool ok = tokenizer_encode(m->model.tokenizer, text, true, &ids, err);
    result->cut += ids.n > m->model.sequence.tokens;
    token_ids_free(&ids);
    return ok;
}

static const float *run(void *state, const struct csv *csv, int column, size_t first, int64_t n,
                        struct score_table_result *result, struct err *err)
{
    struct scorer *m = state;
    bool ok = run_batch(m, csv, column, first, n, err);
    for (int64_t i = 0; ok && i < n; i++)
        ok = count_cut(m, csv_cell(csv, first + (size_t)i, column), result, err);
    result->windows = m->model.sequence.rule == SEQUENCE_WINDOWS;
    return ok ? m->outputs : NULL;
}

const struct score_kind score_texts = {
    .bytes = sizeof(struct scorer),
    .batch = BATCH,
    .open = open_scorer,
    .close = close_scorer,
    .config = config_of,
    .names = names_of,
    .run = run,
};
