/* scores.c: see scores.h. */
#include "verdict/scores.h"

#include <stdlib.h>
#include <string.h>

static bool read_labels(const struct scores_request *request, const struct slide_table *table,
                        bool *positive, struct err *err)
{
    int column = 0;
    const char *remedy = request->truth_path
                             ? "name the column of the labels with --label"
                             : "name the column of the labels with --label, or give a table of "
                               "labels with --truth";
    return slide_table_column(table, request->label_column, remedy, &column, err) &&
           slide_table_labels(table, column, request->positive_word, positive, err);
}

/* Slides of the truth that have no score: an error, or counted. */
static bool check_truth(const struct scores_request *request, const struct slide_table *truth,
                        struct scores *out, struct err *err)
{
    for (size_t i = 0; i < truth->n; i++) {
        if (slide_table_find(&out->table, truth->slides[i]) >= 0)
            continue;
        if (!request->allow_missing)
            return err_set(err, ERR_MISSING,
                           "%s:%d: slide '%s' has no score in %s; score it, or pass "
                           "--allow-missing to leave it out",
                           request->truth_path, truth->csv.lines[truth->rows[i]], truth->slides[i],
                           request->path);
        out->without_score++;
    }
    return true;
}

/* Moves the labels of `truth` to the slides of the scores and leaves out slides without one. */
static bool join(const struct scores_request *request, const struct slide_table *truth,
                 const bool *labels, struct scores *out, struct err *err)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < out->n; i++) {
        long at = slide_table_find(truth, out->slides[i]);
        if (at < 0 && !request->allow_missing)
            return err_set(err, ERR_MISSING,
                           "%s:%d: slide '%s' has no label in %s; add it there, or pass "
                           "--allow-missing to leave it out",
                           request->path, out->table.csv.lines[out->table.rows[i]], out->slides[i],
                           request->truth_path);
        if (at < 0) {
            out->without_label++;
            continue;
        }
        out->slides[kept] = out->slides[i];
        out->values[kept] = out->values[i];
        out->positive[kept++] = labels[at];
    }
    out->n = kept;
    if (kept == 0)
        return err_set(err, ERR_MISSING, "%s and %s have no slide in common", request->path,
                       request->truth_path);
    return check_truth(request, truth, out, err);
}

static bool join_truth(const struct scores_request *request, struct scores *out, struct err *err)
{
    struct slide_table truth;
    bool *labels = NULL;
    if (!slide_table_read(request->truth_path, request->slide_column, &truth, err))
        return false;
    labels = calloc(truth.n, sizeof *labels);
    bool ok = (labels || err_memory(err, request->truth_path)) &&
              read_labels(request, &truth, labels, err) && join(request, &truth, labels, out, err);
    free(labels);
    slide_table_free(&truth);
    return ok;
}

bool scores_read(const struct scores_request *request, struct scores *out, struct err *err)
{
    int column = 0;
    *out = (struct scores){ 0 };
    if (!slide_table_read(request->path, request->slide_column, &out->table, err))
        return false;
    out->n = (int64_t)out->table.n;
    out->slides = calloc(out->table.n, sizeof *out->slides);
    out->values = calloc(out->table.n, sizeof *out->values);
    out->positive = calloc(out->table.n, sizeof *out->positive);
    bool ok = false;
    if (!out->slides || !out->values || !out->positive) {
        err_memory(err, request->path);
        goto done;
    }
    memcpy(out->slides, out->table.slides, out->table.n * sizeof *out->slides);
    ok = slide_table_column(&out->table, request->score_column,
                            "name the column of the scores with --score", &column, err) &&
         slide_table_numbers(&out->table, column, out->values, err) &&
         (request->truth_path ? join_truth(request, out, err)
                              : read_labels(request, &out->table, out->positive, err));
done:
    if (!ok)
        scores_free(out);
    return ok;
}

void scores_free(struct scores *scores)
{
    slide_table_free(&scores->table);
    free(scores->slides);
    free(scores->values);
    free(scores->positive);
    *scores = (struct scores){ 0 };
}

bool scores_are_paired(const struct scores *a, const struct scores *b)
{
    if (a->n != b->n)
        return false;
    for (int64_t i = 0; i < a->n; i++)
        if (a->positive[i] != b->positive[i] || strcmp(a->slides[i], b->slides[i]) != 0)
            return false;
    return true;
}
