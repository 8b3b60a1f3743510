/* sweep_result.c: the result of a training, and the best of many (sweep.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json_file.h"
#include "base/text.h"
#include "sweep/sweep.h"

#define MAX_METRICS_BYTES ((size_t)1 << 30)
#define MAX_RESULT_BYTES (1 << 20)

/* Numbers of an object whose names start with a prefix, without it. */
static void put_numbers(struct json_out *json, const char *name, const json_t *object,
                        const char *prefix)
{
    const char *key;
    const json_t *value;
    size_t length = strlen(prefix);
    json_out_object_line(json, name);
    json_object_foreach((json_t *)object, key,
                        value) if (strncmp(key, prefix, length) == 0 && json_is_number(value))
        json_out_real(json, key + length, json_number_value(value));
    json_out_close_object(json);
}

static void put_result(FILE *stream, const json_t *metrics, const json_t *best)
{
    struct json_out json;
    const json_t *epochs = json_object_get(metrics, "epochs"),
                 *test = json_object_get(metrics, "test");
    double seconds = 0;
    for (size_t i = 0; i < json_array_size(epochs); i++)
        seconds += json_number_value(json_object_get(json_array_get(epochs, i), "seconds"));
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_int(&json, "best_epoch", json_integer_value(json_object_get(metrics, "best_epoch")));
    json_out_int(&json, "epochs", (int64_t)json_array_size(epochs));
    json_out_real(&json, "seconds", seconds);
    put_numbers(&json, "val", best, "val_");
    if (json_is_object(test))
        put_numbers(&json, "test", test, "");
    json_out_close_object(&json);
    json_out_end(&json);
}

bool sweep_record(const char *folder, const char *path, struct err *err)
{
    char *from = text_format("%s/metrics.json", folder);
    struct file_out out;
    json_t *metrics = from ? json_file_read(from, MAX_METRICS_BYTES, err) : NULL;
    const json_t *epochs = json_object_get(metrics, "epochs");
    json_int_t best = json_integer_value(json_object_get(metrics, "best_epoch"));
    bool ok = metrics != NULL || (from ? false : err_memory(err, "the sweep"));
    if (ok && (best < 1 || (size_t)best > json_array_size(epochs)))
        ok = err_set(err, ERR_FORMAT, "%s: names no best epoch", from);
    ok = ok && file_out_open(&out, path, err);
    if (ok) {
        put_result(out.stream, metrics, json_array_get(epochs, (size_t)best - 1));
        ok = file_out_commit(&out, err);
    }
    json_decref(metrics);
    free(from);
    return ok;
}

static void settle_measure(struct sweep *sweep)
{
    bool any = false, any_loss = false;
    for (size_t i = 0; i < sweep->n; i++) {
        const json_t *val = json_object_get(sweep->items[i].result, "val");
        any = any || json_object_get(val, sweep->measure);
        any_loss = any_loss || json_object_get(val, "loss");
    }
    if (!any && any_loss)
        sweep->measure = "loss", sweep->lowest = true;
}

bool sweep_read(struct sweep *sweep, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < sweep->n; i++) {
        struct combination *one = &sweep->items[i];
        char *path = text_format("%s/%s/" SWEEP_RESULT, sweep->folder, one->name);
        ok = path || err_memory(err, "the sweep");
        if (ok && file_exists(path)) {
            json_decref(one->result);
            one->result = json_file_read(path, MAX_RESULT_BYTES, err);
            one->state = COMBINATION_DONE;
            ok = one->result != NULL;
        }
        free(path);
    }
    if (ok)
        settle_measure(sweep);
    return ok;
}

bool sweep_clear(const struct sweep *sweep, struct err *err)
{
    for (size_t i = 0; i < sweep->n; i++) {
        char *folder = sweep_folder(sweep, i);
        if (!folder)
            return err_memory(err, "the sweep");
        file_remove_in(folder, SWEEP_RESULT);
        free(folder);
    }
    return true;
}

double sweep_score(const struct sweep *sweep, size_t i)
{
    const json_t *val = json_object_get(sweep->items[i].result, "val");
    const json_t *value = json_object_get(val, sweep->measure);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

size_t sweep_best(const struct sweep *sweep)
{
    size_t best = sweep->n;
    for (size_t i = 0; i < sweep->n; i++) {
        double score = sweep_score(sweep, i);
        if (isnan(score))
            continue;
        double so_far = best < sweep->n ? sweep_score(sweep, best) : NAN;
        if (isnan(so_far) || (sweep->lowest ? score < so_far : score > so_far))
            best = i;
    }
    return best;
}
