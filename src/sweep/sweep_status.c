/* sweep_status.c: see sweep_status.h. */
#include "sweep/sweep_status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json_file.h"
#include "base/text.h"

#define MAX_SWEEP_BYTES (256 << 20)
#define MAX_RUN_BYTES (1 << 20)

static char *sweep_path(const char *folder)
{
    return text_format("%s/sweep.json", folder);
}

bool sweep_status_exists(const char *folder)
{
    char *path = sweep_path(folder);
    bool there = path && file_exists(path);
    free(path);
    return there;
}

/* A copy, the caller's; "" if there is no such text. */
static char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text_format("%s", text ? text : "");
}

/* From the run.json of its training; nothing if it has not begun. */
static void count_epochs(const char *folder, struct sweep_row *row)
{
    char *path = text_format("%s/%s/run.json", folder, row->name);
    json_t *run = path ? json_file_read(path, MAX_RUN_BYTES, NULL) : NULL;
    row->epochs = json_integer_value(json_object_get(run, "epochs"));
    row->epochs_planned = json_integer_value(json_object_get(run, "epochs_planned"));
    json_decref(run);
    free(path);
}

static bool read_row(const char *folder, const json_t *one, const char *measure,
                     struct sweep_row *row, struct err *err)
{
    const json_t *score = json_object_get(json_object_get(one, "val"), measure);
    row->name = text_at(one, "name");
    row->state = text_at(one, "state");
    row->error = text_at(one, "error");
    row->score = json_is_number(score) ? json_number_value(score) : NAN;
    if (!row->name || !row->state || !row->error)
        return err_memory(err, "the status");
    if (!row->name[0] || row->name[0] == '.' ||
        strchr(row->name, '/')) /* it names a folder below */
        return err_set(err, ERR_FORMAT, "%s/sweep.json: not written by microtome, or damaged",
                       folder);
    count_epochs(folder, row);
    return true;
}

bool sweep_status_look(const char *folder, struct sweep_status *out, struct err *err)
{
    *out = (struct sweep_status){ 0 };
    char *path = sweep_path(folder);
    json_t *root = path ? json_file_read(path, MAX_SWEEP_BYTES, err) : NULL;
    const json_t *items = json_object_get(root, "combinations");
    size_t n = json_array_size(items);
    bool ok = path ? root != NULL : err_memory(err, "the status");
    out->measure = text_at(root, "measure");
    out->best = text_at(json_object_get(root, "best"), "name");
    out->rows = calloc(n + 1, sizeof *out->rows);
    ok = ok && ((out->measure && out->best && out->rows) || err_memory(err, "the status"));
    for (; ok && out->n < n; out->n++) {
        struct sweep_row *row = &out->rows[out->n];
        ok = read_row(folder, json_array_get(items, out->n), out->measure, row, err);
        out->done += ok && strcmp(row->state, "done") == 0;
        out->failed += ok && strcmp(row->state, "failed") == 0;
    }
    if (ok)
        out->claimed = claim_look(folder, &out->holder) && out->holder.alive;
    json_decref(root);
    free(path);
    if (!ok) {
        out->n = out->rows ? n : 0;
        sweep_status_free(out);
    }
    return ok;
}

void sweep_status_free(struct sweep_status *status)
{
    for (size_t i = 0; i < status->n; i++) {
        free(status->rows[i].name);
        free(status->rows[i].state);
        free(status->rows[i].error);
    }
    free(status->rows);
    free(status->measure);
    free(status->best);
    *status = (struct sweep_status){ 0 };
}
