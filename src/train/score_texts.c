/* score_texts.c: see score_texts.h. */
#include "train/score_texts.h"
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "net/graph/transform.h"
#include "train/dataset_origin.h"
#include "train/score_table.h"
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

static void close_scorer(struct scorer *m)
{
    plan_free(m->plan);
    graph_free(m->graph);
    free(m->outputs);
    text_model_close(&m->model);
}

static bool open_scorer(const char *model, const struct ctx *ctx, struct scorer *m, struct err *err)
{
    struct plan_options how = { .mode = PLAN_INFER, .threads = pool_workers(ctx->pool) };
    if (!text_model_open(model, BATCH, &m->model, err))
        return false;
    m->outputs = calloc((size_t)(BATCH * m->model.config.num_classes), sizeof *m->outputs);
    return (m->outputs || err_memory(err, "scores")) &&
           transform_for_inference(m->model.graph, NULL, 0, &m->graph, err) &&
           plan_new(m->graph, &how, &m->plan, err);
}

bool score_columns_find(const struct csv *csv, const struct model_text *text,
                        struct score_columns *out, struct err *err)
{
    out->text = csv_column(csv, text->text);
    out->label = text->label ? csv_column(csv, text->label) : -1;
    out->id = text->id ? csv_column(csv, text->id) : -1;
    if (out->text < 0)
        return err_set(err, ERR_USAGE,
                       "%s: no column '%s', which had the texts in the model's training; rename "
                       "the column that has them",
                       csv->path, text->text);
    return out->id >= 0 || !text->id ||
           err_set(err, ERR_USAGE, "%s: no column '%s', which is the id (data.id)", csv->path,
                   text->id);
}

/* The outputs for up to BATCH rows from `first` on. */
static bool run_batch(struct scorer *m, const struct csv *csv, int column, size_t first,
                      struct err *err)
{
    const struct model_config *config = &m->model.config;
    struct text_windows how = { .sequence = &m->model.sequence,
                                .plan = m->plan,
                                .mask = 1,
                                .batch = BATCH,
                                .classes = config->num_classes,
                                .independent = config->independent };
    const char *texts[BATCH];
    int64_t n = 0, at;
    for (size_t row = first; row < csv->n_rows && n < BATCH; row++) {
        if (!text_check(csv, row, column, err))
            return false;
        texts[n++] = csv_cell(csv, row, column);
    }
    if (text_windows_run(&how, texts, n, m->outputs, &at, err))
        return true;
    char line[32];
    snprintf(line, sizeof line, "line %d", csv->lines[first + (size_t)(at < 0 ? 0 : at)]);
    if (at >= 0)
        err_prefix(err, line);
    return err_prefix(err, csv->path);
}

static bool count_cut(const struct scorer *m, const char *text, struct score_texts_result *result,
                      struct err *err)
{
    struct token_ids ids = { 0 };
    bool ok = tokenizer_encode(m->model.tokenizer, text, true, &ids, err);
    result->cut += ids.n > m->model.sequence.tokens;
    token_ids_free(&ids);
    return ok;
}

static bool score_rows(struct scorer *m, const struct csv *csv, const struct ctx *ctx, FILE *stream,
                       struct score_texts_result *result, struct err *err)
{
    struct score_columns columns;
    int64_t classes = m->model.config.num_classes;
    double *scores = calloc((size_t)classes, sizeof *scores);
    bool ok = (scores || err_memory(err, "scores")) &&
              score_columns_find(csv, &m->model.config.text, &columns, err);
    result->windows = m->model.sequence.rule == SEQUENCE_WINDOWS;
    if (ok)
        score_table_header(stream, &m->model.config);
    for (size_t first = 0; ok && first < csv->n_rows; first += BATCH) {
        size_t end = first + BATCH < csv->n_rows ? first + BATCH : csv->n_rows;
        ok = (!ctx_stopped(ctx) || err_set(err, ERR_STOPPED, "stopped")) &&
             run_batch(m, csv, columns.text, first, err);
        for (size_t row = first; ok && row < end; row++) {
            struct score_table_row at = { csv, row, columns.label, columns.id };
            score_table_write(stream, &m->model.config, &at,
                              m->outputs + (int64_t)(row - first) * classes, scores, result);
            ok = count_cut(m, csv_cell(csv, row, columns.text), result, err);
        }
    }
    free(scores);
    return ok;
}

/* Scores to the file, which is complete or not there. */
static bool write_scores(struct scorer *m, const struct csv *csv, const struct ctx *ctx,
                         const char *path, struct score_texts_result *out, struct err *err)
{
    struct file_out file;
    if (!file_out_open(&file, path, err))
        return false;
    if (score_rows(m, csv, ctx, file.stream, out, err))
        return file_out_commit(&file, err);
    file_out_discard(&file);
    return false;
}

bool score_texts_run(const struct score_texts_request *request, const struct ctx *ctx,
                     struct score_texts_result *out, struct err *err)
{
    struct scorer m = { 0 };
    struct csv csv = { 0 };
    char *path = text_format("%s/scores.csv", request->folder);
    bool ok = path || err_memory(err, "the scores");
    *out = (struct score_texts_result){ 0 };
    if (ok && file_exists(path) && !request->overwrite)
        ok = err_set(err, ERR_USAGE, "%s: exists; pass --overwrite to replace it", path);
    ok = ok && csv_read(request->table, &csv, err) && open_scorer(request->model, ctx, &m, err) &&
         file_make_folder(request->folder, err) && write_scores(&m, &csv, ctx, path, out, err);
    csv_free(&csv);
    close_scorer(&m);
    free(path);
    return ok;
}
