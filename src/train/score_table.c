/* score_table.c: see score_table.h. */
#include "train/score_table.h"
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"
#include "train/objective_classify.h"

bool score_columns_find(const struct csv *csv, const struct score_names *names,
                        struct score_columns *out, struct err *err)
{
    out->sample = csv_column(csv, names->sample);
    out->label = names->label ? csv_column(csv, names->label) : -1;
    out->id = names->id ? csv_column(csv, names->id) : -1;
    if (out->sample < 0)
        return err_set(err, ERR_USAGE,
                       "%s: no column '%s', which had the %s in the model's training; rename "
                       "the column that has them",
                       csv->path, names->sample, names->what);
    return out->id >= 0 || !names->id ||
           err_set(err, ERR_USAGE, "%s: no column '%s', which is the id (data.id)", csv->path,
                   names->id);
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

/* A row of a table, and room for its scores [classes]. */
struct row {
    const struct csv *csv;
    const struct score_columns *columns;
    size_t at;
    double *scores;
};

/* logits [classes] of the row, which is counted in *result. Without an id it is its number. */
static void put_row(FILE *stream, const struct model_config *config, const struct row *row,
                    const float *logits, struct score_table_result *result)
{
    const char *label = csv_cell(row->csv, row->at, row->columns->label);
    int64_t n = config->num_classes, best = 0, truth = -1;
    if (row->columns->id >= 0)
        csv_write_cell(stream, csv_cell(row->csv, row->at, row->columns->id));
    else
        fprintf(stream, "%zu", row->at + 1);
    fputc(',', stream);
    csv_write_cell(stream, label);
    classify_scores(logits, n, config->independent, row->scores);
    for (int64_t c = 0; c < n; c++) {
        best = row->scores[c] > row->scores[best] ? c : best;
        truth = strcmp(config->class_names[c], label) == 0 ? c : truth;
        fprintf(stream, ",%.9g", row->scores[c]);
    }
    fputc('\n', stream);
    result->n++;
    result->labelled += truth >= 0;
    result->correct += truth >= 0 && best == truth;
}

static bool put_rows(const struct score_kind *kind, void *state, const struct csv *csv,
                     const struct ctx *ctx, FILE *stream, struct score_table_result *result,
                     struct err *err)
{
    const struct model_config *config = kind->config(state);
    const struct score_names names = kind->names(state);
    struct score_columns columns;
    struct row row = { csv, &columns, 0, calloc((size_t)config->num_classes, sizeof(double)) };
    bool ok =
        (row.scores || err_memory(err, "scores")) && score_columns_find(csv, &names, &columns, err);
    if (ok)
        put_header(stream, config);
    while (ok && row.at < csv->n_rows) {
        size_t first = row.at, left = csv->n_rows - first;
        int64_t n = left < (size_t)kind->batch ? (int64_t)left : kind->batch;
        ok = !ctx_stopped(ctx) || err_stopped(err);
        const float *logits =
            ok ? kind->run(state, csv, columns.sample, first, n, result, err) : NULL;
        ok = logits != NULL;
        for (int64_t i = 0; ok && i < n; i++, row.at++)
            put_row(stream, config, &row, logits + i * config->num_classes, result);
    }
    free(row.scores);
    return ok;
}

/* Scores to the file, which is complete or not there. */
static bool write_scores(const struct score_kind *kind, void *state, const struct csv *csv,
                         const struct ctx *ctx, const char *path, struct score_table_result *out,
                         struct err *err)
{
    struct file_out file;
    if (!file_out_open(&file, path, err))
        return false;
    if (put_rows(kind, state, csv, ctx, file.stream, out, err))
        return file_out_commit(&file, err);
    file_out_discard(&file);
    return false;
}

bool score_table_run(const struct score_kind *kind, const struct score_table_request *request,
                     const struct ctx *ctx, struct score_table_result *out, struct err *err)
{
    void *state = calloc(1, kind->bytes);
    struct csv csv = { 0 };
    char *path = text_format("%s/scores.csv", request->folder);
    bool ok = (state && path) || err_memory(err, "the scores");
    *out = (struct score_table_result){ 0 };
    if (ok && file_exists(path) && !request->overwrite)
        ok = err_set(err, ERR_USAGE, "%s: exists; pass --overwrite to replace it", path);
    ok = ok && csv_read(request->table, &csv, err) && kind->open(state, request->model, ctx, err) &&
         file_make_folder(request->folder, err) &&
         write_scores(kind, state, &csv, ctx, path, out, err);
    csv_free(&csv);
    if (state)
        kind->close(state);
    free(state);
    free(path);
    return ok;
}
