/* status_sweep.c: microtome status of a sweep on this computer. */
#include <math.h>
#include <string.h>
#include "base/json.h"
#include "cli/status.h"
#include "sweep/sweep_status.h"

static const char *word_of(const struct sweep_status *status, const struct sweep_row *row)
{
    bool lost = strcmp(row->state, "running") == 0 && !status->claimed;
    return lost ? "stopped" : row->state;
}

static const char *whole_word(const struct sweep_status *status)
{
    return status->claimed                              ? "running"
           : status->done == status->n                  ? "done"
           : status->done + status->failed == status->n ? "done, except what failed"
                                                        : "stopped";
}

static void print_text(FILE *out, const struct sweep_status *status)
{
    char measure[48];
    snprintf(measure, sizeof measure, "val %.40s", status->measure);
    fprintf(out, "%-48s %8s %11s %12s\n", "sweep", "state", "epochs", measure);
    for (size_t i = 0; i < status->n; i++) {
        const struct sweep_row *row = &status->rows[i];
        char epochs[48] = "-", score[32] = "-";
        if (row->epochs_planned > 0)
            snprintf(epochs, sizeof epochs, "%lld/%lld", (long long)row->epochs,
                     (long long)row->epochs_planned);
        if (isfinite(row->score))
            snprintf(score, sizeof score, "%.4f", row->score);
        fprintf(out, "%-48s %8s %11s %12s\n", row->name, word_of(status, row), epochs, score);
    }
    for (size_t i = 0; i < status->n; i++)
        if (status->rows[i].error[0])
            fprintf(out, "%s: %s\n", status->rows[i].name, status->rows[i].error);
    fprintf(out, "%s; %zu of %zu combinations are done", whole_word(status), status->done,
            status->n);
    if (status->best[0])
        fprintf(out, "; best by validation%s: %s",
                status->done + status->failed < status->n ? " so far" : "", status->best);
    fputc('\n', out);
    if (status->claimed)
        fprintf(out, "process %ld on %s has used the folder since %s\n", status->holder.pid,
                status->holder.host, status->holder.since);
    else if (status->done < status->n)
        fputs("run the same command again to do only what is missing\n", out);
}

static void print_json(FILE *out, const struct sweep_status *status, const char *folder)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    json_out_text(&json, "command", "train");
    json_out_text(&json, "folder", folder);
    json_out_text(&json, "units", "combinations");
    json_out_int(&json, "planned", (int64_t)status->n);
    json_out_int(&json, "done", (int64_t)status->done);
    json_out_int(&json, "failed", (int64_t)status->failed);
    json_out_bool(&json, "running", status->claimed);
    json_out_text(&json, "word", whole_word(status));
    json_out_text(&json, "measure", status->measure);
    json_out_text(&json, "best", status->best[0] ? status->best : NULL);
    json_out_array(&json, "combinations");
    for (size_t i = 0; i < status->n; i++) {
        const struct sweep_row *row = &status->rows[i];
        json_out_object_line(&json, NULL);
        json_out_text(&json, "name", row->name);
        json_out_text(&json, "state", word_of(status, row));
        json_out_int(&json, "epochs", row->epochs);
        json_out_int(&json, "epochs_planned", row->epochs_planned);
        json_out_real(&json, "val", row->score);
        if (row->error[0])
            json_out_text(&json, "error", row->error);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

bool status_sweep(FILE *out, const char *folder, bool json, bool *ended, struct err *err)
{
    struct sweep_status status;
    if (!sweep_status_look(folder, &status, err))
        return false;
    if (json)
        print_json(out, &status, folder);
    else
        print_text(out, &status);
    *ended = !status.claimed;
    sweep_status_free(&status);
    return true;
}
