/* concept_kept.c: activations and gradients in the results folder, for another run with the same
 * network and patches (concept_study.h). Flat ones are too large to be kept. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "base/json_file.h"
#include "base/npy.h"
#include "base/text.h"
#include "explain/concept_study.h"

#define MOST_RECORD ((size_t)1 << 20)

static char *kept_path(const struct concept_study *study, int layer, const char *ending)
{
    return text_format("%s/activations/%s%s.npy", study->request->folder, study->layers[layer].name,
                       ending);
}

/* The record is written last: it exists if everything is there. */
static char *record_path(const struct concept_study *study)
{
    return text_format("%s/activations/activations.json", study->request->folder);
}

static bool read_array(char *path, int64_t n, int64_t p, float **out)
{
    int64_t height = 0, width = 0;
    bool ok = path && npy_read(path, out, &height, &width, NULL) && height == n && width == p;
    free(path);
    return ok;
}

static bool is_record(const struct concept_study *study)
{
    char *path = record_path(study);
    json_t *record = path ? json_file_read(path, MOST_RECORD, NULL) : NULL;
    const char *line = json_string_value(json_object_get(record, "made_from"));
    bool same = line && strcmp(line, study->activations_line) == 0;
    json_decref(record);
    free(path);
    return same;
}

bool concept_kept_read(struct concept_study *study)
{
    if (study->request->flat || !is_record(study))
        return false;
    char *logits = text_format("%s/activations/logits.npy", study->request->folder);
    bool ok = read_array(logits, study->n, 1, &study->logits);
    for (int i = 0; ok && i < study->n_layers; i++) {
        struct concept_layer *layer = &study->layers[i];
        ok = read_array(kept_path(study, i, ""), study->n, layer->p, &layer->activations) &&
             read_array(kept_path(study, i, "_gradients"), study->n, layer->p, &layer->gradients);
    }
    if (ok)
        return true;
    free(study->logits);
    study->logits = NULL;
    for (int i = 0; i < study->n_layers; i++) {
        free(study->layers[i].activations);
        free(study->layers[i].gradients);
        study->layers[i].activations = study->layers[i].gradients = NULL;
    }
    return false;
}

static bool write_array(char *path, const float *values, int64_t n, int64_t p, struct err *err)
{
    bool ok = path ? npy_write(path, values, n, p, err) : err_memory(err, "activations");
    free(path);
    return ok;
}

static bool write_record(const struct concept_study *study, struct err *err)
{
    struct file_out file;
    struct json_out json;
    char *path = record_path(study);
    bool ok = path ? file_out_open(&file, path, err) : err_memory(err, "activations");
    free(path);
    if (!ok)
        return false;
    json_out_begin(&json, file.stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "made_from", study->activations_line);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&file, err);
}

bool concept_kept_write(const struct concept_study *study, struct err *err)
{
    char *folder = text_format("%s/activations", study->request->folder);
    bool ok = folder || err_memory(err, "activations");
    if (study->request->flat) {
        free(folder);
        return ok;
    }
    ok = ok && file_make_folder(folder, err);
    if (ok)
        file_remove_in(folder, "activations.json");
    free(folder);
    for (int i = 0; ok && i < study->n_layers; i++) {
        const struct concept_layer *layer = &study->layers[i];
        ok = write_array(kept_path(study, i, ""), layer->activations, study->n, layer->p, err) &&
             write_array(kept_path(study, i, "_gradients"), layer->gradients, study->n, layer->p,
                         err);
    }
    return ok &&
           write_array(text_format("%s/activations/logits.npy", study->request->folder),
                       study->logits, study->n, 1, err) &&
           write_record(study, err);
}
