/* concept_write.c: the tables, JSON and directions of a study (concept_study.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/npy.h"
#include "base/text.h"
#include "base/version.h"
#include "explain/concept_study.h"

static void put_number(FILE *stream, double value)
{
    if (isfinite(value))
        fprintf(stream, ",%.9g", value);
    else
        fputc(',', stream);
}

/* --- concepts.csv --- */

/* Only what is learnt has a direction, hence S, TCAV and Br. */
static bool has_direction(const struct concept_row *row)
{
    return row->direction != NULL;
}

static bool was_scored(const struct concept_row *row)
{
    return row->verdict >= VERDICT_NOT_LEARNT;
}

static void put_row(FILE *stream, const struct concept_study *study, const struct concept_row *row)
{
    const struct concept *concept = &study->list.items[row->concept];
    const struct concept_score *score = &row->score;
    bool scored = was_scored(row), directed = has_direction(row);
    csv_write_cell(stream, study->layers[row->layer].name);
    fputc(',', stream);
    csv_write_cell(stream, concept->name);
    fprintf(stream, ",%lld,%d", (long long)score->n, score->patients);
    put_number(stream, scored && !concept->answers ? score->quality : NAN);
    put_number(stream, scored && concept->answers ? score->quality : NAN);
    put_number(stream, scored && concept->answers ? score->accuracy : NAN);
    for (int fold = 0; fold < study->request->folds; fold++)
        put_number(stream, scored ? score->fold_quality[fold] : NAN);
    put_number(stream, scored ? score->p_quality : NAN);
    put_number(stream, row->holm_quality);
    put_number(stream, directed ? score->tcav : NAN);
    put_number(stream, directed ? score->br : NAN);
    put_number(stream, directed ? score->mean_s : NAN);
    put_number(stream, directed ? score->std_s : NAN);
    put_number(stream, directed ? score->agreement : NAN);
    put_number(stream, row->p_s);
    put_number(stream, row->holm_s);
    fprintf(stream, ",\"%s\"\n", concept_verdict_texts[row->verdict]);
}

static bool write_csv(const struct concept_study *study, struct err *err)
{
    struct file_out file;
    if (!file_out_open_in(&file, study->request->folder, "concepts.csv", err))
        return false;
    fputs("layer,concept,patches,patients,r2,auc,accuracy", file.stream);
    for (int fold = 0; fold < study->request->folds; fold++)
        fprintf(file.stream, ",fold%d", fold + 1);
    fputs(",p,p_holm,tcav,br,mean_s,std_s,agreement,p_s,p_s_holm,verdict\n", file.stream);
    for (int i = 0; i < study->n_layers * study->list.n; i++)
        put_row(file.stream, study, &study->rows[i]);
    return file_out_commit(&file, err);
}

/* --- patches --- */

static void put_patch(FILE *stream, const struct concept_study *study, int64_t i)
{
    struct sample_place place = dataset_place(&study->source.dataset, study->samples[i]);
    csv_write_cell(stream, study->names[i]);
    fputc(',', stream);
    csv_write_cell(stream, place.slide);
    if (place.slide[0])
        fprintf(stream, ",%lld,%lld,", (long long)place.x_l0, (long long)place.y_l0);
    else
        fputs(",,,", stream);
    csv_write_cell(stream, study->source.dataset.patients[study->patient[i]]);
    fprintf(stream, ",%d", study->fold[i] + 1);
}

static bool write_values(const struct concept_study *study, struct err *err)
{
    struct file_out file;
    if (!file_out_open_in(&file, study->request->folder, "values.csv", err))
        return false;
    fputs("sample,slide,x,y,patient,fold,label,logit", file.stream);
    for (int c = 0; c < study->list.n; c++) {
        fputc(',', file.stream);
        csv_write_cell(file.stream, study->list.items[c].name);
    }
    fputc('\n', file.stream);
    for (int64_t i = 0; i < study->n; i++) {
        int32_t label = dataset_label(&study->source.dataset, study->samples[i]);
        put_patch(file.stream, study, i);
        if (label == PATCH_UNLABELED)
            fputc(',', file.stream);
        else
            fprintf(file.stream, ",%d", label);
        put_number(file.stream, (double)study->logits[i]);
        for (int c = 0; c < study->list.n; c++)
            put_number(file.stream, study->values[i * study->list.n + c]);
        fputc('\n', file.stream);
    }
    return file_out_commit(&file, err);
}

static bool write_sensitivities(const struct concept_study *study, struct err *err)
{
    struct file_out file;
    int n = study->n_layers * study->list.n;
    if (!file_out_open_in(&file, study->request->folder, "sensitivities.csv", err))
        return false;
    fputs("sample,slide,x,y,patient,fold", file.stream);
    for (int k = 0; k < n; k++)
        if (has_direction(&study->rows[k])) {
            const struct concept_row *row = &study->rows[k];
            char *name = text_format("%s.%s", study->layers[row->layer].name,
                                     study->list.items[row->concept].name);
            fputc(',', file.stream);
            csv_write_cell(file.stream, name ? name : "");
            free(name);
        }
    fputc('\n', file.stream);
    for (int64_t i = 0; i < study->n; i++) {
        put_patch(file.stream, study, i);
        for (int k = 0; k < n; k++)
            if (has_direction(&study->rows[k]))
                put_number(file.stream, study->rows[k].sensitivities[i]);
        fputc('\n', file.stream);
    }
    return file_out_commit(&file, err);
}

/* --- directions --- */

/* Pooled: [1, channels]; flat: [channels, height * width]. */
static bool write_direction(const struct concept_study *study, const struct concept_row *row,
                            struct err *err)
{
    const struct concept_layer *layer = &study->layers[row->layer];
    int64_t rows = study->request->flat ? layer->channels : 1;
    float *values = malloc((size_t)layer->p * sizeof *values);
    char *path = text_format("%s/directions/%s.%s.npy", study->request->folder, layer->name,
                             study->list.items[row->concept].name);
    for (int64_t j = 0; values && j < layer->p; j++)
        values[j] = (float)row->direction[j];
    for (char *at = path ? strrchr(path, '/') - 11 : NULL; at && (at = strpbrk(at, ":\\")); at++)
        *at = '_';
    bool ok = values && path ? npy_write(path, values, rows, layer->p / rows, err)
                             : err_memory(err, "a direction");
    free(path);
    free(values);
    return ok;
}

static bool write_directions(const struct concept_study *study, struct err *err)
{
    char *folder = text_format("%s/directions", study->request->folder);
    bool ok = folder ? file_make_folder(folder, err) : err_memory(err, "directions");
    for (int i = 0; ok && i < study->n_layers * study->list.n; i++)
        if (has_direction(&study->rows[i]))
            ok = write_direction(study, &study->rows[i], err);
    free(folder);
    return ok;
}

/* --- concepts.json --- */

static void put_row_json(struct json_out *json, const struct concept_study *study,
                         const struct concept_row *row)
{
    const struct concept *concept = &study->list.items[row->concept];
    const struct concept_score *score = &row->score;
    json_out_object(json, NULL);
    json_out_text(json, "layer", study->layers[row->layer].name);
    json_out_text(json, "concept", concept->name);
    json_out_text(json, "kind", concept->answers ? "yes or no" : "number");
    json_out_int(json, "patches", score->n);
    json_out_int(json, "patients", score->patients);
    json_out_text(json, "verdict", concept_verdict_texts[row->verdict]);
    if (was_scored(row)) {
        json_out_real(json, concept->answers ? "auc" : "r2", score->quality);
        json_out_array_line(json, "folds");
        for (int fold = 0; fold < study->request->folds; fold++)
            json_out_real(json, NULL, score->fold_quality[fold]);
        json_out_close_array(json);
        if (concept->answers)
            json_out_real(json, "accuracy", score->accuracy);
        json_out_real(json, "penalty", score->penalty);
        json_out_real(json, "p", score->p_quality);
        json_out_real(json, "p_holm", row->holm_quality);
    }
    if (has_direction(row)) {
        json_out_real(json, "tcav", score->tcav);
        json_out_real(json, "br", score->br);
        json_out_real(json, "mean_s", score->mean_s);
        json_out_real(json, "std_s", score->std_s);
        json_out_real(json, "agreement", score->agreement);
        json_out_real(json, "p_s_permuted", score->p_permuted);
        json_out_real(json, "p_s_random", score->p_random);
        json_out_real(json, "p_s", row->p_s);
        json_out_real(json, "p_s_holm", row->holm_s);
    }
    json_out_close_object(json);
}

static void put_settings(struct json_out *json, const struct concept_study *study)
{
    const struct concept_request *request = study->request;
    const struct model_config *config = &request->model->config;
    json_out_text(json, "program", "microtome");
    json_out_text(json, "version", MICROTOME_VERSION);
    json_out_text(json, "kind", "concepts");
    json_out_text(json, "model", request->model_name);
    json_out_text(json, "model_hash", study->model_hash);
    json_out_text(json, "class", config->class_names[study->class_index]);
    json_out_text(json, "pool", request->flat ? "flat" : "mean");
    json_out_text(json, "fit", request->fit.pca ? "pca" : "ridge");
    json_out_real(json, "ridge", request->fit.ridge > 0 ? request->fit.ridge : NAN);
    json_out_text(json, "centre", study->within_patients ? "patient" : "none");
    json_out_int(json, "folds", request->folds);
    json_out_int(json, "permutations", study->permutations);
    json_out_int(json, "seed", (int64_t)request->seed);
    json_out_int(json, "patches", study->n);
    json_out_int(json, "patients", study->source.dataset.n_patients);
    json_out_real(json, "mpp", study->mpp > 0 ? study->mpp : NAN);
    json_out_text(json, "made_from", study->line);
    json_out_array(json, "layers");
    for (int i = 0; i < study->n_layers; i++) {
        const struct concept_layer *layer = &study->layers[i];
        json_out_object_line(json, NULL);
        json_out_text(json, "layer", layer->name);
        json_out_int(json, "channels", layer->channels);
        json_out_int(json, "height", layer->height);
        json_out_int(json, "width", layer->width);
        json_out_close_object(json);
    }
    json_out_close_array(json);
}

static bool write_json(const struct concept_study *study, struct err *err)
{
    struct file_out file;
    struct json_out json;
    if (!file_out_open_in(&file, study->request->folder, "concepts.json", err))
        return false;
    json_out_begin(&json, file.stream);
    json_out_object(&json, NULL);
    put_settings(&json, study);
    json_out_array(&json, "results");
    for (int i = 0; i < study->n_layers * study->list.n; i++)
        put_row_json(&json, study, &study->rows[i]);
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
    return file_out_commit(&file, err);
}

bool concept_write(const struct concept_study *study, struct err *err)
{
    return write_values(study, err) && write_sensitivities(study, err) &&
           write_directions(study, err) && write_csv(study, err) && write_json(study, err);
}
