/* sweep_write.c: the tables of a sweep and the link to its best combination (sweep.h). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "sweep/sweep.h"

#define MOST_MEASURES 32

/* The measures that any combination has in a part of its result, in the order of the first. */
struct measures {
    const char *part; /* "val" */
    const char *names[MOST_MEASURES];
    size_t n;
};

static struct measures measures_of(const struct sweep *sweep, const char *part)
{
    struct measures found = { .part = part };
    for (size_t i = 0; i < sweep->n; i++) {
        const char *key;
        const json_t *value;
        json_t *object = json_object_get(sweep->items[i].result, part);
        json_object_foreach(object, key, value)
        {
            size_t k = 0;
            while (k < found.n && strcmp(found.names[k], key) != 0)
                k++;
            if (k == found.n && found.n < MOST_MEASURES)
                found.names[found.n++] = key;
        }
    }
    return found;
}

static void write_numbers(FILE *stream, const struct measures *measures,
                          const struct combination *one)
{
    const json_t *part = json_object_get(one->result, measures->part);
    for (size_t k = 0; k < measures->n; k++) {
        const json_t *value = json_object_get(part, measures->names[k]);
        if (json_is_number(value))
            fprintf(stream, ",%.9g", json_number_value(value));
        else
            fputc(',', stream);
    }
}

static void write_head(FILE *stream, const struct sweep *sweep, const struct measures *val,
                       const struct measures *test)
{
    fputs("combination", stream);
    for (size_t a = 0; a < sweep->n_axes; a++)
        fprintf(stream, ",%s", sweep->axes[a].key->path);
    fputs(",state,best_epoch", stream);
    for (size_t k = 0; k < val->n; k++)
        fprintf(stream, ",val_%s", val->names[k]);
    for (size_t k = 0; k < test->n; k++)
        fprintf(stream, ",test_%s", test->names[k]);
    fputs(",seconds,best\n", stream);
}

static bool write_csv(const struct sweep *sweep, struct err *err)
{
    struct file_out out;
    struct measures val = measures_of(sweep, "val"), test = measures_of(sweep, "test");
    size_t best = sweep_best(sweep);
    if (!file_out_open_in(&out, sweep->folder, "sweep.csv", err))
        return false;
    write_head(out.stream, sweep, &val, &test);
    for (size_t i = 0; i < sweep->n; i++) {
        const struct combination *one = &sweep->items[i];
        csv_write_cell(out.stream, one->name);
        for (size_t a = 0; a < sweep->n_axes; a++) {
            fputc(',', out.stream);
            csv_write_cell(out.stream, sweep->axes[a].values[sweep_value(sweep, i, a)]);
        }
        fprintf(out.stream, ",%s,", combination_state_names[one->state]);
        if (one->result)
            fprintf(out.stream, "%lld",
                    (long long)json_integer_value(json_object_get(one->result, "best_epoch")));
        write_numbers(out.stream, &val, one);
        write_numbers(out.stream, &test, one);
        if (one->result)
            fprintf(out.stream, ",%.3f",
                    json_number_value(json_object_get(one->result, "seconds")));
        else
            fputc(',', out.stream);
        fprintf(out.stream, ",%d\n", i == best);
    }
    return file_out_commit(&out, err);
}

/* --- sweep.json --- */

static void put_part(struct json_out *json, const struct combination *one, const char *part)
{
    const char *key;
    const json_t *value;
    json_t *object = json_object_get(one->result, part);
    if (!object)
        return;
    json_out_object_line(json, part);
    json_object_foreach(object, key, value) json_out_real(json, key, json_number_value(value));
    json_out_close_object(json);
}

static void put_combination(struct json_out *json, const struct sweep *sweep, size_t i)
{
    const struct combination *one = &sweep->items[i];
    json_out_object(json, NULL);
    json_out_text(json, "name", one->name);
    json_out_text(json, "state", combination_state_names[one->state]);
    if (one->error)
        json_out_text(json, "error", one->error);
    json_out_object_line(json, "settings");
    for (size_t a = 0; a < sweep->n_axes; a++)
        json_out_text(json, sweep->axes[a].key->path,
                      sweep->axes[a].values[sweep_value(sweep, i, a)]);
    json_out_close_object(json);
    if (one->result) {
        json_out_int(json, "best_epoch",
                     json_integer_value(json_object_get(one->result, "best_epoch")));
        json_out_int(json, "epochs", json_integer_value(json_object_get(one->result, "epochs")));
        json_out_real(json, "seconds", json_number_value(json_object_get(one->result, "seconds")));
    }
    put_part(json, one, "val");
    put_part(json, one, "test");
    json_out_close_object(json);
}

void sweep_put(const struct sweep *sweep, struct json_out *json)
{
    size_t best = sweep_best(sweep);
    json_out_text(json, "measure", sweep->measure); /* on validation */
    json_out_text(json, "better", sweep->lowest ? "lower" : "higher");
    if (best < sweep->n) {
        char *model = text_format("%s/model.safetensors", sweep->items[best].name);
        json_out_object(json, "best");
        json_out_text(json, "name", sweep->items[best].name);
        json_out_real(json, "value", sweep_score(sweep, best));
        json_out_text(json, "model", model);
        json_out_close_object(json);
        free(model);
    } else {
        json_out_text(json, "best", NULL);
    }
    json_out_array(json, "combinations");
    for (size_t i = 0; i < sweep->n; i++)
        put_combination(json, sweep, i);
    json_out_close_array(json);
}

static bool write_json(const struct sweep *sweep, struct err *err)
{
    struct file_out out;
    struct json_out json;
    if (!file_out_open_in(&out, sweep->folder, "sweep.json", err))
        return false;
    json_out_begin(&json, out.stream);
    json_out_object(&json, NULL);
    sweep_put(sweep, &json);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&out, err);
}

/* DIR/best -> the folder's name, replaced at once. A file system without links does without: the
 * best is also in sweep.json. */
static bool link_best(const struct sweep *sweep, struct err *err)
{
    size_t best = sweep_best(sweep);
    char *path = text_format("%s/best", sweep->folder);
    char *next = text_format("%s/best.%ld.part", sweep->folder, (long)getpid());
    bool ok = (path && next) || err_memory(err, "the sweep");
    if (ok && best == sweep->n) {
        unlink(path);
    } else if (ok && symlink(sweep->items[best].name, next) == 0) {
        if (rename(next, path) != 0) {
            ok = err_errno(err, path, "write");
            unlink(next);
        }
    } else if (ok && errno != EPERM && errno != EOPNOTSUPP) {
        ok = err_errno(err, next, "write");
    }
    free(path);
    free(next);
    return ok;
}

bool sweep_write(const struct sweep *sweep, struct err *err)
{
    return write_csv(sweep, err) && write_json(sweep, err) && sweep_plot(sweep, err) &&
           link_best(sweep, err);
}
