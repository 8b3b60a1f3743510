/* map_merge.c: the results of all subjects -> explain.json, with means over them (map.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/version.h"
#include "explain/map_work.h"

void map_put_value(struct json_out *json, const char *key, const json_t *value)
{
    const char *name;
    size_t i;
    json_t *item;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        json_out_object(json, key);
        json_object_foreach((json_t *)value, name, item) map_put_value(json, name, item);
        json_out_close_object(json);
        break;
    case JSON_ARRAY:
        if (json_is_object(json_array_get(value, 0)) || json_is_array(json_array_get(value, 0)))
            json_out_array(json, key);
        else
            json_out_array_line(json, key);
        json_array_foreach(value, i, item) map_put_value(json, NULL, item);
        json_out_close_array(json);
        break;
    case JSON_INTEGER:
        json_out_int(json, key, json_integer_value(value));
        break;
    case JSON_REAL:
        json_out_real(json, key, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        json_out_bool(json, key, json_is_true(value));
        break;
    default:
        json_out_text(json, key, json_string_value(value)); /* null if it is none */
    }
}

/* --- means --- */

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void add_order(struct map_summary_column *column, const json_t *order)
{
    double better_by = number(order, "better_by");
    if (isnan(better_by))
        return;
    column->n++;
    column->deletion += number(order, "deletion");
    column->random_deletion += number(order, "random_deletion");
    column->insertion += number(order, "insertion");
    column->random_insertion += number(order, "random_insertion");
    column->better_by += better_by;
    column->better += better_by > 0;
    const json_t *curve = json_object_get(order, "deletion_curve");
    column->score += json_number_value(json_array_get(curve, 0));
    column->blank += json_number_value(json_array_get(curve, json_array_size(curve) - 1));
}

static void add_inside(struct map_summary_column *column, const json_t *inside)
{
    double map_share = number(inside, "map_share");
    if (isnan(map_share))
        return;
    column->n_inside++;
    column->map_share += map_share;
    column->area_share += number(inside, "area_share");
}

static void end_order(struct map_summary_column *column)
{
    double n = (double)column->n;
    column->deletion /= n;
    column->random_deletion /= n;
    column->insertion /= n;
    column->random_insertion /= n;
    column->better_by /= n;
    column->score /= n;
    column->blank /= n;
    column->map_share /= (double)column->n_inside;
    column->area_share /= (double)column->n_inside;
}

static void add_redrawn(const struct map_run *run, struct map_summary *summary)
{
    json_t *redrawn = map_read_redrawn(run);
    const json_t *maps = json_object_get(redrawn, "maps");
    for (int c = 0; c < run->n_columns; c++) {
        const json_t *map = json_array_get(maps, (size_t)c);
        const json_t *correlation = json_object_get(map, "correlation");
        struct map_summary_column *column = &summary->columns[c];
        column->redrawn = json_array_size(correlation) == BELIEF_DEPTHS;
        for (size_t d = 0; d < BELIEF_DEPTHS; d++) {
            const json_t *value = json_array_get(correlation, d);
            column->correlation[d] = json_is_number(value) ? json_number_value(value) : NAN;
        }
        column->no_explanation = json_is_true(json_object_get(map, "no_explanation"));
    }
    json_decref(redrawn);
}

static void summarise(const struct map_run *run, json_t *const *subjects, int64_t n,
                      struct map_summary *out)
{
    int64_t pairs[MAP_MOST_COLUMNS][MAP_MOST_COLUMNS] = { 0 };
    out->subjects = n;
    for (int64_t i = 0; i < n; i++) {
        const json_t *maps = json_object_get(subjects[i], "maps");
        const json_t *agreement = json_object_get(subjects[i], "agreement");
        out->failed += !maps;
        for (int a = 0; maps && a < run->n_columns; a++) {
            const json_t *row = json_array_get(agreement, (size_t)a);
            const json_t *map = json_array_get(maps, (size_t)a);
            out->columns[a].made++;
            add_order(&out->columns[a], json_object_get(map, "belief"));
            add_inside(&out->columns[a], json_object_get(map, "inside"));
            for (int b = 0; b < run->n_columns; b++) {
                const json_t *value = json_array_get(row, (size_t)b);
                pairs[a][b] += json_is_number(value);
                out->agreement[a][b] += json_number_value(value);
            }
        }
    }
    for (int a = 0; a < run->n_columns; a++) {
        end_order(&out->columns[a]);
        for (int b = 0; b < run->n_columns; b++)
            out->agreement[a][b] /= (double)pairs[a][b];
    }
    add_redrawn(run, out);
}

/* If an image without anything in it has more than this part of the score, nothing that is deleted
 * can lower it much. */
#define MOST_BLANK 0.5

bool map_untold(const struct map_summary_column *column)
{
    return column->n > 0 && !(column->redrawn && column->no_explanation) &&
           column->blank > MOST_BLANK * column->score && 10 * column->better < 9 * column->n;
}

bool map_is_better(const struct map_summary_column *column)
{
    return !(column->redrawn && column->no_explanation) && column->n > 0 && !map_untold(column) &&
           column->better_by > 0 && 2 * column->better > column->n;
}

const char *map_verdict(const struct map_summary_column *column)
{
    if (map_is_better(column))
        return "better than chance";
    if (column->redrawn && column->no_explanation)
        return "no explanation: it hardly depends on what the network learnt";
    if (column->made == 0)
        return "no image could be explained";
    if (column->n == 0)
        return "no map says anything: they are all the same everywhere";
    if (map_untold(column))
        return "cannot be told by deletion: a blank image has over half the score";
    if (column->better_by <= 0)
        return "no better than chance";
    return "better than chance for few images only";
}

/* --- explain.json --- */

void map_put_inside(struct json_out *json, const struct map_summary_column *column)
{
    json_out_object_line(json, "inside");
    json_out_int(json, "subjects", column->n_inside);
    json_out_real(json, "map_share", column->map_share);
    json_out_real(json, "area_share", column->area_share);
    json_out_real(json, "enrichment", column->map_share / column->area_share);
    json_out_close_object(json);
}

static void put_columns(struct json_out *json, const struct map_run *run)
{
    json_out_array(json, "maps");
    for (int i = 0; i < run->n_columns; i++) {
        const struct map_column *column = &run->columns[i];
        json_out_object_line(json, NULL);
        json_out_text(json, "name", column->name);
        json_out_text(json, "method", column->explainer->name);
        json_out_text(json, "title", column->explainer->title);
        json_out_text(json, "layer", column->layer >= 0 ? column->layer_name : NULL);
        json_out_bool(json, "signed", !column->explainer->positive);
        json_out_bool(json, "stitched", column->stitched && run->subjects->n_areas > 0);
        json_out_close_object(json);
    }
    json_out_close_array(json);
}

static void put_summary(struct json_out *json, const struct map_run *run,
                        const struct map_summary *summary)
{
    json_out_object(json, "summary");
    json_out_int(json, "subjects", summary->subjects);
    json_out_int(json, "failed", summary->failed);
    json_out_array(json, "maps");
    for (int c = 0; c < run->n_columns; c++) {
        const struct map_summary_column *column = &summary->columns[c];
        json_out_object(json, NULL);
        json_out_text(json, "name", run->columns[c].name);
        json_out_int(json, "subjects", column->n);
        json_out_real(json, "deletion", column->deletion);
        json_out_real(json, "random_deletion", column->random_deletion);
        json_out_real(json, "insertion", column->insertion);
        json_out_real(json, "random_insertion", column->random_insertion);
        json_out_real(json, "better_by", column->better_by);
        json_out_int(json, "better", column->better);
        json_out_real(json, "score", column->score);
        json_out_real(json, "blank_score", column->blank);
        json_out_text(json, "verdict", map_verdict(column));
        if (run->inside)
            map_put_inside(json, column);
        json_out_close_object(json);
    }
    json_out_close_array(json);
    json_out_array(json, "agreement");
    for (int a = 0; a < run->n_columns; a++) {
        json_out_array_line(json, NULL);
        for (int b = 0; b < run->n_columns; b++)
            json_out_real(json, NULL, summary->agreement[a][b]);
        json_out_close_array(json);
    }
    json_out_close_array(json);
    json_t *redrawn = map_read_redrawn(run);
    if (redrawn) {
        json_object_del(redrawn, "identity");
        map_put_value(json, "redrawn", redrawn);
    } else {
        json_out_text(json, "redrawn", NULL);
    }
    json_decref(redrawn);
    json_out_close_object(json);
}

static bool write_json(const struct map_run *run, json_t *const *subjects, int64_t n,
                       const struct map_summary *summary, struct err *err)
{
    const struct map_request *request = run->request;
    struct file_out out;
    struct json_out json;
    if (!file_out_open_in(&out, request->folder, "explain.json", err))
        return false;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "program", "microtome " MICROTOME_VERSION);
    json_out_text(&json, "model", request->model_name);
    json_out_text(&json, "model_hash", run->model_hash);
    json_out_text(&json, "class", request->model->config.class_names[run->subjects->class_index]);
    json_out_text(&json, "pick", subject_pick_names[request->pick]);
    json_out_text(&json, "options", run->options);
    put_columns(&json, run);
    put_summary(&json, run, summary);
    json_out_array(&json, "subjects");
    for (int64_t i = 0; i < n; i++)
        map_put_value(&json, NULL, subjects[i]);
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

/* --- all --- */

/* subject.json of every subject; one that is missing stays so, as a failure. */
static bool read_all(const struct map_run *run, json_t **out, struct err *err)
{
    for (int64_t i = 0; i < run->subjects->n; i++) {
        const struct subject *subject = &run->subjects->items[i];
        out[i] = map_read_subject(run, subject);
        if (!out[i])
            out[i] = json_pack("{s:s, s:s, s:s}", "name", subject->name, "file", subject->file,
                               "error", "was not made");
        if (!out[i])
            return err_memory(err, "the results");
    }
    return true;
}

bool map_merge(const struct map_run *run, const struct ctx *ctx, struct map_summary *summary,
               struct err *err)
{
    int64_t n = run->subjects->n;
    json_t **subjects = calloc((size_t)n + 1, sizeof(json_t *));
    (void)ctx;
    *summary = (struct map_summary){ 0 };
    bool ok = subjects ? read_all(run, subjects, err) : err_memory(err, "the results");
    if (ok)
        summarise(run, subjects, n, summary);
    ok = ok && map_write_outlines(run, subjects, n, err) &&
         map_write_page(run, subjects, n, summary, err) &&
         write_json(run, subjects, n, summary, err);
    for (int64_t i = 0; subjects && i < n; i++)
        json_decref(subjects[i]);
    free(subjects);
    if (ok && summary->failed > 0)
        ok = err_set(err, ERR_FORMAT, "%lld of %lld images failed; explain.json says why",
                     (long long)summary->failed, (long long)n);
    return ok;
}
