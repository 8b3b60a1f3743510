/* score_texts.c: see score_texts.h. */
#include "train/score_texts.h"
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "net/graph/transform.h"
#include "net/model/model.h"
#include "net/model/weights.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "train/dataset_origin.h"

enum { BATCH = 16 };

struct text_model {
    struct model_config config;
    struct tokenizer *tokenizer;
    struct sequence sequence;
    struct graph *graph; /* for inference, of BATCH texts */
    struct plan *plan;
};

/* "name" beside the weights, the caller's; NULL if no memory. */
static char *beside(const char *model, const char *name)
{
    const char *slash = strrchr(model, '/');
    if (file_is_folder(model))
        return text_format("%s/%s", model, name);
    return slash ? text_format("%.*s%s", (int)(slash + 1 - model), model, name) : strdup(name);
}

bool score_texts_takes(const char *model)
{
    struct model_config config = { 0 };
    char *path = beside(model, "config.json");
    bool texts = path && file_exists(path) && model_config_read(path, &config, NULL) &&
                 config.text.tokenizer != NULL;
    model_config_free(&config);
    free(path);
    return texts;
}

static void close_model(struct text_model *m)
{
    plan_free(m->plan);
    graph_free(m->graph);
    tokenizer_free(m->tokenizer);
    model_config_free(&m->config);
}

static bool open_network(const char *weights, const struct ctx *ctx, struct text_model *m,
                         struct err *err)
{
    const struct model_config *config = &m->config;
    struct zoo_options options = { .batch = BATCH,
                                   .channels = tokenizer_size(m->tokenizer),
                                   .height = config->text.max_tokens,
                                   .classes = config->num_classes };
    struct plan_options how = { .mode = PLAN_INFER, .threads = pool_workers(ctx->pool) };
    const struct zoo_network *network = config->network ? zoo_find(config->network, err) : NULL;
    struct graph *graph = NULL;
    if (!network || network->input != ZOO_TEXT)
        return err_set(err, ERR_FORMAT, "config.json: '%s' is not a network of texts",
                       config->network ? config->network : "");
    bool ok = zoo_build(network->name, &options, &graph, err) && graph_allocate(graph, err) &&
              weights_read(graph, weights, NULL, NULL, err) &&
              transform_for_inference(graph, NULL, 0, &m->graph, err) &&
              plan_new(m->graph, &how, &m->plan, err);
    graph_free(graph);
    return ok;
}

static bool open_model(const char *model, const struct ctx *ctx, struct text_model *m,
                       struct err *err)
{
    char *card = beside(model, "config.json");
    char *weights = file_is_folder(model) ? beside(model, "model.safetensors") : strdup(model);
    char *tokenizer = NULL;
    bool ok = (card && weights) || err_memory(err, "the model");
    ok = ok && model_config_read(card, &m->config, err) &&
         ((tokenizer = beside(model, m->config.text.tokenizer)) || err_memory(err, "the model"));
    const struct model_text *text = &m->config.text;
    struct tokenizer_options options = { text->keep_case, text->keep_case };
    ok = ok && tokenizer_open(tokenizer, &options, &m->tokenizer, err);
    m->sequence =
        (struct sequence){ m->tokenizer, text->max_tokens, (enum sequence_rule)text->rule };
    ok = ok && sequence_check(&m->sequence, err) && open_network(weights, ctx, m, err);
    free(card);
    free(weights);
    free(tokenizer);
    return ok;
}

/* Columns of the table; -1: absent. */
struct score_columns {
    int text, label, id;
};

static bool find_columns(const struct csv *csv, const struct model_text *text,
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

/* The scores of up to BATCH rows from `first` on. */
static bool run_batch(struct text_model *m, const struct csv *csv, int column, size_t first,
                      struct err *err)
{
    int64_t tokens = m->sequence.tokens;
    for (int64_t i = 0; i < BATCH; i++) {
        float *ids = plan_input(m->plan, 0) + i * tokens,
              *mask = plan_input(m->plan, 1) + i * tokens;
        size_t row = first + (size_t)i < csv->n_rows ? first + (size_t)i : first;
        char line[32];
        snprintf(line, sizeof line, "line %d", csv->lines[row]);
        if (!text_check(csv, row, column, err))
            return false;
        if (!sequence_fill(&m->sequence, csv_cell(csv, row, column), ids, mask, err)) {
            err_prefix(err, line);
            return err_prefix(err, csv->path);
        }
    }
    return plan_forward(m->plan, err);
}

static void put_header(FILE *stream, const struct model_config *config)
{
    fputs("id,label", stream);
    for (int64_t c = 0; c < config->num_classes; c++) {
        char *name = text_format("score_%s", config->class_names[c]);
        fputc(',', stream);
        csv_write_cell(stream, name ? name : "");
        free(name);
    }
    fputc('\n', stream);
}

/* logits [classes] of a row; scores [classes] is room. */
static void put_row(FILE *stream, const struct text_model *m, const struct csv *csv, size_t row,
                    const struct score_columns *columns, const float *logits, double *scores,
                    struct score_texts_result *result)
{
    const struct model_config *config = &m->config;
    const char *label = csv_cell(csv, row, columns->label);
    int64_t n = config->num_classes, best = 0, truth = -1;
    if (columns->id >= 0)
        csv_write_cell(stream, csv_cell(csv, row, columns->id));
    else
        fprintf(stream, "%zu", row + 1);
    fputc(',', stream);
    csv_write_cell(stream, label);
    if (!config->independent)
        model_scores(logits, n, scores);
    for (int64_t c = 0; c < n; c++) {
        if (config->independent)
            model_scores(logits + c, 1, scores + c);
        best = scores[c] > scores[best] ? c : best;
        truth = strcmp(config->class_names[c], label) == 0 ? c : truth;
        fprintf(stream, ",%.9g", scores[c]);
    }
    fputc('\n', stream);
    result->n++;
    result->labelled += truth >= 0;
    result->correct += truth >= 0 && best == truth;
}

static bool count_cut(const struct text_model *m, const char *text,
                      struct score_texts_result *result, struct err *err)
{
    struct token_ids ids = { 0 };
    bool ok = tokenizer_encode(m->tokenizer, text, true, &ids, err);
    result->cut += ids.n > m->sequence.tokens;
    token_ids_free(&ids);
    return ok;
}

static bool score_rows(struct text_model *m, const struct csv *csv, const struct ctx *ctx,
                       FILE *stream, struct score_texts_result *result, struct err *err)
{
    struct score_columns columns;
    int64_t classes = m->config.num_classes;
    double *scores = calloc((size_t)classes, sizeof *scores);
    bool ok =
        (scores || err_memory(err, "scores")) && find_columns(csv, &m->config.text, &columns, err);
    if (ok)
        put_header(stream, &m->config);
    for (size_t first = 0; ok && first < csv->n_rows; first += BATCH) {
        size_t end = first + BATCH < csv->n_rows ? first + BATCH : csv->n_rows;
        ok = (!ctx_stopped(ctx) || err_set(err, ERR_STOPPED, "stopped")) &&
             run_batch(m, csv, columns.text, first, err);
        for (size_t row = first; ok && row < end; row++) {
            put_row(stream, m, csv, row, &columns,
                    plan_output(m->plan, 0) + (int64_t)(row - first) * classes, scores, result);
            ok = count_cut(m, csv_cell(csv, row, columns.text), result, err);
        }
    }
    free(scores);
    return ok;
}

/* Scores to the file, which is complete or not there. */
static bool write_scores(struct text_model *m, const struct csv *csv, const struct ctx *ctx,
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
    struct text_model m = { 0 };
    struct csv csv = { 0 };
    char *path = text_format("%s/scores.csv", request->folder);
    bool ok = path || err_memory(err, "the scores");
    *out = (struct score_texts_result){ 0 };
    if (ok && file_exists(path) && !request->overwrite)
        ok = err_set(err, ERR_USAGE, "%s: exists; pass --overwrite to replace it", path);
    ok = ok && csv_read(request->table, &csv, err) && open_model(request->model, ctx, &m, err) &&
         file_make_folder(request->folder, err) && write_scores(&m, &csv, ctx, path, out, err);
    csv_free(&csv);
    close_model(&m);
    free(path);
    return ok;
}
