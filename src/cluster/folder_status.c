/* folder_status.c: see folder_status.h. */
#include "cluster/folder_status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "base/file.h"
#include "base/json_file.h"
#include "base/text.h"

#define MAX_RUN_BYTES ((size_t)1 << 30)

static int64_t whole(const json_t *object, const char *key)
{
    int64_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? value : 0;
}

static bool add_failure(struct folder_status *status, const json_t *slide, struct err *err)
{
    struct folder_failure *more =
        realloc(status->failures, (size_t)(status->failed + 1) * sizeof *more);
    if (!more)
        return err_memory(err, "the status");
    status->failures = more;
    const char *name = json_string_value(json_object_get(slide, "name"));
    const char *error = json_string_value(json_object_get(slide, "error"));
    struct folder_failure failure = { strdup(name ? name : "?"), strdup(error ? error : "") };
    status->failures[status->failed++] = failure;
    return (failure.slide && failure.error) || err_memory(err, "the status");
}

/* A record of base/run.h. */
static bool count_slides(const json_t *root, const json_t *slides, struct folder_status *out,
                         struct err *err)
{
    bool ok = true;
    out->units = "slides";
    for (size_t i = 0; ok && i < json_array_size(slides); i++) {
        const json_t *slide = json_array_get(slides, i);
        const char *state = json_string_value(json_object_get(slide, "state"));
        out->done += state && strcmp(state, "done") == 0;
        out->kept += state && strcmp(state, "kept") == 0;
        out->no_tissue += state && strcmp(state, "no tissue") == 0;
        if (state && strcmp(state, "failed") == 0)
            ok = add_failure(out, slide, err);
    }
    out->planned = whole(root, "planned");
    out->ended = json_is_string(json_object_get(root, "ended"));
    return ok;
}

/* A record of a training. */
static void count_epochs(const json_t *root, struct folder_status *out)
{
    const char *state = json_string_value(json_object_get(root, "state"));
    out->units = "epochs";
    out->done = whole(root, "epochs");
    out->planned = whole(root, "epochs_planned");
    out->ended = state && strcmp(state, "running") != 0;
}

static bool understand(const json_t *root, const char *path, struct folder_status *out,
                       struct err *err)
{
    const json_t *slides = json_object_get(root, "slides");
    const char *command = json_string_value(json_array_get(json_object_get(root, "arguments"), 1));
    bool trained = json_is_string(json_object_get(root, "state"));
    if (!command || (!json_is_array(slides) && !trained))
        return err_set(err, ERR_FORMAT, "%s: not written by microtome, or damaged", path);
    snprintf(out->command, sizeof out->command, "%.31s", command);
    out->seconds = json_number_value(json_object_get(root, "seconds"));
    if (trained)
        count_epochs(root, out);
    else if (!count_slides(root, slides, out, err))
        return false;
    int64_t come_to = out->done + out->kept + out->failed + out->no_tissue;
    out->planned = out->planned > come_to ? out->planned : come_to;
    out->left = out->planned - come_to;
    return true;
}

bool folder_status_look(const char *folder, struct folder_status *out, struct err *err)
{
    *out = (struct folder_status){ 0 };
    char *path = text_format("%s/run.json", folder);
    json_t *root = NULL;
    struct stat facts;
    bool ok = path || err_memory(err, folder);
    if (ok && stat(path, &facts) != 0)
        ok = err_set(err, ERR_MISSING,
                     "%s: contains no run.json; name the -o folder of extract, tissue, train or "
                     "predict%s",
                     folder,
                     file_is_folder(folder) ? " (a run writes it with its first slide)" : "");
    ok =
        ok && (root = json_file_read(path, MAX_RUN_BYTES, err)) && understand(root, path, out, err);
    if (ok) {
        out->age_s = fmax(0, difftime(time(NULL), facts.st_mtime));
        out->claimed = claim_look(folder, &out->holder) && out->holder.alive;
    }
    json_decref(root);
    free(path);
    if (!ok)
        folder_status_free(out);
    return ok;
}

void folder_status_free(struct folder_status *status)
{
    for (int64_t i = 0; status->failures && i < status->failed; i++) {
        free(status->failures[i].slide);
        free(status->failures[i].error);
    }
    free(status->failures);
    *status = (struct folder_status){ 0 };
}
