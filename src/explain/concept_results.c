/* concept_results.c: see concept_results.h. */
#include "explain/concept_results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_file.h"

#define MOST_BYTES ((size_t)64 << 20)

static char *text_at(const json_t *object, const char *key, bool *ok)
{
    const char *text = json_string_value(json_object_get(object, key));
    char *copy = text ? strdup(text) : NULL;
    *ok = *ok && copy;
    return copy;
}

static double number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int64_t count_at(const json_t *object, const char *key, bool *ok)
{
    const json_t *value = json_object_get(object, key);
    *ok = *ok && json_is_integer(value) && json_integer_value(value) >= 0;
    return json_integer_value(value);
}

static bool read_row(const json_t *from, struct concept_result *row)
{
    bool ok = json_is_object(from);
    row->layer = text_at(from, "layer", &ok);
    row->concept = text_at(from, "concept", &ok);
    row->verdict = text_at(from, "verdict", &ok);
    row->answers = json_object_get(from, "auc") != NULL;
    row->patches = count_at(from, "patches", &ok);
    row->patients = count_at(from, "patients", &ok);
    row->quality = number_at(from, row->answers ? "auc" : "r2");
    row->p_holm = number_at(from, "p_holm");
    row->tcav = number_at(from, "tcav");
    row->br = number_at(from, "br");
    row->p_s_holm = number_at(from, "p_s_holm");
    return ok;
}

static bool read_all(const json_t *from, struct concept_results *out)
{
    const json_t *rows = json_object_get(from, "results");
    bool ok = json_is_array(rows);
    out->model = text_at(from, "model", &ok);
    out->class_name = text_at(from, "class", &ok);
    out->pool = text_at(from, "pool", &ok);
    out->fit = text_at(from, "fit", &ok);
    out->made_from = text_at(from, "made_from", &ok);
    out->patches = count_at(from, "patches", &ok);
    out->patients = count_at(from, "patients", &ok);
    out->folds = count_at(from, "folds", &ok);
    out->permutations = count_at(from, "permutations", &ok);
    out->rows = calloc(json_array_size(rows) + 1, sizeof *out->rows);
    ok = ok && out->rows;
    for (size_t i = 0; ok && i < json_array_size(rows); i++)
        ok = read_row(json_array_get(rows, out->n++), &out->rows[i]);
    return ok;
}

bool concept_results_read(const char *path, struct concept_results *out, struct err *err)
{
    *out = (struct concept_results){ 0 };
    json_t *from = json_file_read(path, MOST_BYTES, err);
    if (!from)
        return false;
    bool ok = read_all(from, out) ||
              err_set(err, ERR_FORMAT,
                      "%s: not written by 'microtome explain concepts', or damaged", path);
    json_decref(from);
    return ok;
}

void concept_results_free(struct concept_results *results)
{
    for (size_t i = 0; results->rows && i < results->n; i++) {
        free(results->rows[i].layer);
        free(results->rows[i].concept);
        free(results->rows[i].verdict);
    }
    free(results->rows);
    free(results->model);
    free(results->class_name);
    free(results->pool);
    free(results->fit);
    free(results->made_from);
    *results = (struct concept_results){ 0 };
}

const char *concept_p_text(double p, char text[CONCEPT_P_TEXT])
{
    text[0] = '\0';
    if (p < 0.001)
        snprintf(text, CONCEPT_P_TEXT, "<0.001");
    else if (!isnan(p))
        snprintf(text, CONCEPT_P_TEXT, "%.3f", p);
    return text;
}
