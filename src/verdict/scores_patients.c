/* scores_patients.c: scores of patients, and the patients and groups of scores (scores.h). */
#include <stdlib.h>
#include <string.h>
#include "verdict/scores.h"

const char *const patient_score_names[] = { "max", "mean", NULL };

/* A row and its sort key. */
struct keyed {
    const char *key;
    int64_t row;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* Rows sorted by a text; the caller's to free. */
static struct keyed *sort_rows(const char *const *keys, int64_t n, struct err *err)
{
    struct keyed *rows = calloc((size_t)n + 1, sizeof *rows);
    if (!rows) {
        err_memory(err, "the scores");
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        rows[i] = (struct keyed){ keys[i], i };
    qsort(rows, (size_t)n, sizeof *rows, by_key);
    return rows;
}

/* The rows of one patient -> one. */
static bool join_rows(const struct scores *from, const struct keyed *rows, int64_t n,
                      enum patient_score how, struct scores *to, struct err *err)
{
    const int64_t first = rows[0].row, at = to->n++;
    double highest = from->values[first], sum = 0;
    to->slides[at] = to->patients[at] = rows[0].key;
    to->positive[at] = false;
    if (from->groups)
        to->groups[at] = from->groups[first];
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = rows[i].row;
        if (from->groups && strcmp(from->groups[row], from->groups[first]) != 0)
            return err_set(
                err, ERR_FORMAT,
                "patient '%s' is in two groups: '%s' with slide '%s' and '%s' with slide '%s'; "
                "choose a --by column that is the same for all slides of a patient",
                rows[0].key, from->groups[first], from->slides[first], from->groups[row],
                from->slides[row]);
        to->positive[at] |= from->positive[row];
        highest = from->values[row] > highest ? from->values[row] : highest;
        sum += from->values[row];
    }
    to->values[at] = how == PATIENT_MAX ? highest : sum / (double)n;
    return true;
}

bool scores_by_patient(struct scores *scores, enum patient_score how, struct err *err)
{
    const size_t n = (size_t)scores->n;
    struct scores joined = { .slides = calloc(n + 1, sizeof *joined.slides),
                             .values = calloc(n + 1, sizeof *joined.values),
                             .positive = calloc(n + 1, sizeof *joined.positive),
                             .patients = calloc(n + 1, sizeof *joined.patients),
                             .groups =
                                 scores->groups ? calloc(n + 1, sizeof *joined.groups) : NULL };
    struct keyed *rows = sort_rows(scores->patients, scores->n, err);
    bool room = joined.slides && joined.values && joined.positive && joined.patients &&
                (joined.groups || !scores->groups);
    bool ok = rows && (room || err_memory(err, "the patients"));
    for (int64_t begin = 0, end; ok && begin < scores->n; begin = end) {
        for (end = begin; end < scores->n && strcmp(rows[end].key, rows[begin].key) == 0; end++)
            ;
        ok = join_rows(scores, rows + begin, end - begin, how, &joined, err);
    }
    if (ok) { /* keep the tables: the names point into them */
        struct scores before = *scores;
        scores->slides = joined.slides, scores->values = joined.values;
        scores->positive = joined.positive, scores->patients = joined.patients;
        scores->groups = joined.groups, scores->n = joined.n;
        scores->labels = NULL;
        joined = (struct scores){ .slides = before.slides,
                                  .values = before.values,
                                  .positive = before.positive,
                                  .labels = before.labels,
                                  .patients = before.patients,
                                  .groups = before.groups };
    }
    free(rows);
    scores_free(&joined);
    return ok;
}

/* Numbers of patients; a row without a patient counts as a separate one. */
static bool number_patients(const char *const *patients, struct scores_part *part, struct err *err)
{
    struct keyed *rows = sort_rows(patients, part->n, err);
    part->clusters = rows ? calloc((size_t)part->n + 1, sizeof *part->clusters) : NULL;
    if (!part->clusters) {
        free(rows);
        return err_memory(err, "the patients");
    }
    for (int64_t i = 0; i < part->n; i++) {
        bool same = i > 0 && *rows[i].key && strcmp(rows[i].key, rows[i - 1].key) == 0;
        part->n_patients += !same;
        part->clusters[rows[i].row] = part->n_patients - 1;
    }
    free(rows);
    if (part->n_patients == part->n) {
        free(part->clusters);
        part->clusters = NULL;
    }
    return true;
}

bool scores_part(const struct scores *scores, const char *group, struct scores_part *out,
                 struct err *err)
{
    const size_t n = (size_t)scores->n;
    *out = (struct scores_part){ .values = calloc(n + 1, sizeof *out->values),
                                 .positive = calloc(n + 1, sizeof *out->positive) };
    const char **patients = calloc(n + 1, sizeof *patients);
    bool named = false;
    bool ok = (out->values && out->positive && patients) || err_memory(err, "the scores");
    for (int64_t i = 0; ok && i < scores->n; i++) {
        if (group && strcmp(scores->groups[i], group) != 0)
            continue;
        out->values[out->n] = scores->values[i];
        out->positive[out->n] = scores->positive[i];
        out->positives += scores->positive[i];
        patients[out->n] = scores->patients ? scores->patients[i] : "";
        named = named || *patients[out->n];
        out->n++;
    }
    ok = ok && (!named || number_patients(patients, out, err));
    free(patients);
    if (!ok)
        scores_part_free(out);
    return ok;
}

void scores_part_free(struct scores_part *part)
{
    free(part->values);
    free(part->positive);
    free(part->clusters);
    *part = (struct scores_part){ 0 };
}

int scores_group_order(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    char *end_x, *end_y;
    double value_x = strtod(x, &end_x), value_y = strtod(y, &end_y);
    bool number_x = *x && !*end_x, number_y = *y && !*end_y;
    if (number_x != number_y)
        return number_x ? -1 : 1;
    if (number_x && value_x != value_y)
        return value_x < value_y ? -1 : 1;
    return strcmp(x, y);
}

bool scores_groups(const struct scores *scores, const char ***out, size_t *n, struct err *err)
{
    const char **values = calloc((size_t)scores->n + 1, sizeof *values);
    size_t kept = 0;
    if (!values)
        return err_memory(err, "the groups");
    memcpy(values, scores->groups, (size_t)scores->n * sizeof *values);
    qsort(values, (size_t)scores->n, sizeof *values, scores_group_order);
    for (int64_t i = 0; i < scores->n; i++)
        if (i == 0 || strcmp(values[i], values[kept - 1]) != 0)
            values[kept++] = values[i];
    *out = values, *n = kept;
    return true;
}
