/* results_runs.c: reads run.json and the files of a training run (results.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json_file.h"
#include "report/results.h"
#include "base/text.h"

#define MOST_JSON_BYTES ((size_t)128 << 20)

/* A JSON object; NULL, with the problem recorded, if the file does not contain one. A missing file
 * is not a problem. *ok is false only if out of memory. */
static json_t *load(struct results *results, const char *folder, const char *name, bool *ok,
                    struct err *err)
{
    char *path = text_format("%s/%s", folder, name);
    json_t *object = NULL;
    struct err problem = { 0 };
    *ok = path || err_memory(err, folder);
    if (*ok && file_exists(path)) {
        object = json_file_read(path, MOST_JSON_BYTES, &problem);
        *ok = object || results_problem(results, problem.text, err);
    }
    free(path);
    return object;
}

static char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return strdup(text ? text : "");
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The command line as it was typed, with a space between words. */
static char *arguments_of(const json_t *object)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    size_t index;
    json_t *word;
    json_array_foreach(json_object_get(object, "arguments"), index, word)
    {
        const char *value = json_string_value(word);
        const char *slash = index == 0 && value ? strrchr(value, '/') : NULL;
        bool quoted = value && (strchr(value, ' ') || !value[0]);
        fprintf(stream, "%s%s%s%s", index ? " " : "", quoted ? "'" : "",
                slash   ? slash + 1
                : value ? value
                        : "",
                quoted ? "'" : "");
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void count_slides(const json_t *object, struct result_run *run)
{
    size_t index;
    json_t *slide;
    json_array_foreach(json_object_get(object, "slides"), index, slide)
    {
        const char *state = json_string_value(json_object_get(slide, "state"));
        run->slides++;
        run->failed += state && strcmp(state, "failed") == 0;
    }
}

static double core_seconds(const json_t *object)
{
    double used = number_of(object, "cpu_seconds");
    if (isfinite(used))
        return used;
    double ranks = number_of(object, "ranks"), threads = number_of(object, "threads");
    return number_of(object, "seconds") * threads * (isfinite(ranks) ? ranks : 1);
}

bool results_take_run(struct results *results, const char *folder, struct err *err)
{
    bool ok;
    json_t *object = load(results, folder, "run.json", &ok, err);
    if (!object)
        return ok;
    ok = results_room(&results->runs, results->n_runs, &results->runs_room, sizeof *results->runs,
                      err);
    if (ok) {
        struct result_run *run = &results->runs[results->n_runs++];
        const char *command =
            json_string_value(json_array_get(json_object_get(object, "arguments"), 1));
        bool ended = !json_is_null(json_object_get(object, "ended"));
        *run = (struct result_run){ .folder = strdup(folder),
                                    .command = strdup(command ? command : "?"),
                                    .version = text_of(object, "version"),
                                    .began = text_of(object, "began"),
                                    .arguments = arguments_of(object),
                                    .state = strdup(ended ? "" : "not finished"),
                                    .seconds = number_of(object, "seconds"),
                                    .core_seconds = core_seconds(object) };
        count_slides(object, run);
        ok = (run->folder && run->command && run->version && run->began && run->arguments &&
              run->state) ||
             err_memory(err, folder);
    }
    json_decref(object);
    return ok;
}

bool results_take_training(struct results *results, const char *folder, struct err *err)
{
    bool ok;
    struct err why = { 0 };
    struct csv csv = { 0 };
    char *path = text_format("%s/metrics.csv", folder);
    if (!path)
        return err_memory(err, folder);
    bool readable = csv_read(path, &csv, &why);
    free(path);
    if (!readable)
        return results_problem(results, why.text, err);
    if (csv_column(&csv, "epoch") < 0 || csv.n_rows == 0) {
        csv_free(&csv); /* from another program */
        return true;
    }
    if (!results_room(&results->trainings, results->n_trainings, &results->trainings_room,
                      sizeof *results->trainings, err)) {
        csv_free(&csv);
        return false;
    }
    struct result_training *training = &results->trainings[results->n_trainings++];
    *training = (struct result_training){ .folder = strdup(folder), .metrics = csv };
    json_t *metrics = load(results, folder, "metrics.json", &ok, err);
    json_t *run = ok ? load(results, folder, "run.json", &ok, err) : NULL;
    training->best_epoch = json_integer_value(json_object_get(metrics, "best_epoch"));
    training->network = text_of(run, "network");
    const json_t *test = json_object_get(metrics, "test");
    training->test_patches = json_integer_value(json_object_get(test, "patches"));
    training->test_accuracy = number_of(test, "accuracy");
    training->test_auc = number_of(test, "auc");
    training->test_r2 = number_of(test, "r2");
    training->test_mae = number_of(test, "mae");
    json_decref(metrics);
    json_decref(run);
    return ok && ((training->folder && training->network) || err_memory(err, folder));
}

bool results_take_sweep(struct results *results, const char *folder, struct err *err)
{
    struct err why = { 0 };
    struct csv csv = { 0 };
    char *path = text_format("%s/sweep.csv", folder);
    if (!path)
        return err_memory(err, folder);
    bool readable = csv_read(path, &csv, &why);
    free(path);
    if (!readable)
        return results_problem(results, why.text, err);
    bool other = csv_column(&csv, "combination") < 0; /* of another program */
    if (other || !results_room(&results->sweeps, results->n_sweeps, &results->sweeps_room,
                               sizeof *results->sweeps, err)) {
        csv_free(&csv);
        return other;
    }
    struct result_sweep *sweep = &results->sweeps[results->n_sweeps++];
    *sweep = (struct result_sweep){ .folder = strdup(folder), .table = csv };
    return sweep->folder || err_memory(err, folder);
}
