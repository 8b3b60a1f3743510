/* concept_study.c: a study from its request to verdicts (concept_study.h). */
#include "explain/concept_study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/identity.h"
#include "base/names.h"
#include "base/pool.h"
#include "base/text.h"

#define MOST_BYTES (INT64_C(4) << 30) /* of activations and gradients */
#define LEAST_PERMUTATIONS 1000

const char *const concept_verdict_texts[] = {
    "constant",
    "too few patients have it",
    "too few patches have it",
    "the layer is the same for all patches",
    "not learnt",
    "not learnt: no better than chance",
    "learnt, no effect on the score shown",
    "learnt, raises the score",
    "learnt, lowers the score",
};

/* --- opening --- */

static bool find_class(struct concept_study *study, struct err *err)
{
    const struct model_config *config = &study->request->model->config;
    const char *name = study->request->class_name;
    const char *const *names = (const char *const *)config->class_names;
    size_t n = (size_t)config->num_classes;
    study->class_index = config->num_classes - 1;
    for (size_t i = 0; name && i < n; i++)
        if (strcmp(names[i], name) == 0) {
            study->class_index = (int64_t)i;
            return true;
        }
    return !name || names_refuse(name, names, n, err) || err_prefix(err, "--class");
}

/* The size of the network's input, from the first patch. */
static bool find_size(struct concept_study *study, struct err *err)
{
    const struct dataset *dataset = &study->source.dataset;
    struct image image = { 0 };
    int64_t px = 0;
    bool stored = dataset_in_group(dataset, study->samples[0]);
    bool ok = stored ? dataset_patch_px(dataset, study->samples[0], &px, err)
                     : dataset_read(dataset, study->samples[0], NULL, &image, err);
    ok = ok && (model_input_size(&study->request->model->config, stored ? px : image.width,
                                 stored ? px : image.height, &study->width, &study->height, err) ||
                err_prefix(err, study->names[0]));
    image_free(&image);
    return ok;
}

/* "a,b" -> names [most] in `text`, which is cut up. */
static bool cut_names(char *text, const char **names, int *n, struct err *err)
{
    for (char *at = text; at; (*n)++) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        if (*n == PROBE_MOST_LAYERS)
            return err_set(err, ERR_USAGE, "--layer: more than %d layers", PROBE_MOST_LAYERS);
        for (int i = 0; i < *n; i++)
            if (strcmp(names[i], at) == 0)
                return err_set(err, ERR_USAGE, "--layer: '%s' is given twice", at);
        names[*n] = at;
        at = comma ? comma + 1 : NULL;
    }
    return true;
}

static bool describe_layers(struct concept_study *study, const struct probe *probe, struct err *err)
{
    int64_t bytes = 0;
    for (; study->n_layers < probe_n_layers(probe); study->n_layers++) {
        const struct probe_layer *from = probe_layer(probe, study->n_layers);
        struct concept_layer *layer = &study->layers[study->n_layers];
        *layer = (struct concept_layer){ .name = strdup(from->name),
                                         .channels = from->channels,
                                         .height = from->height,
                                         .width = from->width,
                                         .p = from->channels };
        if (!layer->name)
            return err_memory(err, "layers");
        if (study->request->flat)
            layer->p *= layer->height * layer->width;
        bytes += 2 * study->n * layer->p * (int64_t)sizeof(float);
    }
    if (bytes <= MOST_BYTES)
        return true;
    return err_set(err, ERR_USAGE,
                   "the activations of %lld patches need %.1f GB, more than %.0f GB; pass fewer "
                   "layers, --most-patches %lld or --pool mean",
                   (long long)study->n, (double)bytes / 1e9, (double)MOST_BYTES / 1e9,
                   (long long)((double)study->n * (double)MOST_BYTES / (double)bytes));
}

static bool find_layers(struct concept_study *study, const struct ctx *ctx, struct err *err)
{
    const char *names[PROBE_MOST_LAYERS];
    struct probe *probe = NULL;
    struct probe_options options = { .layers = names,
                                     .height = study->height,
                                     .width = study->width,
                                     .batch = 1,
                                     .threads = pool_workers(ctx->pool) };
    char *text = strdup(study->request->layers ? study->request->layers : "");
    bool ok = text ? cut_names(text, names, &options.n_layers, err) : err_memory(err, "layers");
    ok = ok && probe_new(study->request->model, &options, &probe, err) &&
         describe_layers(study, probe, err);
    probe_free(probe);
    free(text);
    return ok;
}

/* Patients with a single patch have nothing within. */
static void find_centre(struct concept_study *study, const struct ctx *ctx)
{
    bool several = false;
    for (int64_t i = 1; i < study->n && !several; i++)
        several = study->patient[i] == study->patient[i - 1];
    study->within_patients = study->request->within_patients && several;
    if (study->request->within_patients && !several)
        console_note(ctx->console, "every patient has a single patch: as with --centre none");
}

/* um/px of the patches, if nuclei are measured. */
static bool find_mpp(struct concept_study *study, struct err *err)
{
    const struct concept_request *request = study->request;
    study->mpp = study->source.dataset.mpp;
    if (!(study->mpp > 0))
        study->mpp = request->mpp > 0 ? request->mpp : request->model->config.spacing_um_px;
    if (study->mpp > 0 || !study->list.needs_nuclei)
        return true;
    return err_set(err, ERR_MISSING,
                   "nuclei are measured in um, but neither the patches nor the model state their "
                   "um/px; pass --slide-mpp");
}

/* The lines by which results are known. A folder of nuclei is known by its name. */
static bool describe(struct concept_study *study, struct err *err)
{
    const struct concept_request *request = study->request;
    struct identity table = { 0 };
    char layers[1024], concepts[4096];
    const char *names[CONCEPT_MOST];
    if (request->table && !identity_of_file(request->table, &table, err))
        return false;
    for (int i = 0; i < study->n_layers; i++)
        names[i] = study->layers[i].name;
    names_join(names, (size_t)study->n_layers, layers, sizeof layers);
    for (int i = 0; i < study->list.n; i++)
        names[i] = study->list.items[i].name;
    names_join(names, (size_t)study->list.n, concepts, sizeof concepts);
    study->activations_line = text_format(
        "model=%s data=%016llx any_stain=%d class=%lld layers=%s pool=%s patches=%lld seed=%llu",
        study->model_hash, (unsigned long long)dataset_hash(&study->source.dataset),
        request->any_stain, (long long)study->class_index, layers, request->flat ? "flat" : "mean",
        (long long)request->most_patches, (unsigned long long)request->seed);
    study->line = text_format(
        "%s mpp=%.9g fit=%s ridge=%.9g within=%d folds=%d permutations=%lld "
        "nuclei=%s table=%lld:%016llx concepts=%s",
        study->activations_line ? study->activations_line : "", study->mpp,
        request->fit.pca ? "pca" : "ridge", request->fit.ridge, study->within_patients,
        request->folds, (long long)study->permutations, request->nuclei ? request->nuclei : "",
        (long long)table.bytes, (unsigned long long)table.hash, concepts);
    return (study->activations_line && study->line) || err_memory(err, "the settings");
}

/* At least one patch must have a row. */
static bool check_table(const struct concept_study *study, struct err *err)
{
    const struct concept_table *table = study->list.table;
    for (int64_t i = 0; table && i < study->n; i++) {
        struct sample_place place = dataset_place(&study->source.dataset, study->samples[i]);
        struct concept_patch patch = {
            .name = study->names[i], .slide = place.slide, .x_l0 = place.x_l0, .y_l0 = place.y_l0
        };
        if (concept_table_has(table, &patch))
            return true;
    }
    return !table || err_set(err, ERR_USAGE,
                             "%s: no row matches a patch; the first patch is '%s'; see "
                             "docs/explain.md for how rows are matched",
                             concept_table_path(table), study->names[0]);
}

bool concept_study_open(const struct concept_request *request, const struct ctx *ctx,
                        struct concept_study *out, struct err *err)
{
    *out = (struct concept_study){ .request = request };
    int64_t tests = 0;
    bool ok = concept_list_make(request->concepts, request->table, &out->list, err) &&
              find_class(out, err) &&
              model_patches_open_by(request->model, request->paths, request->n_paths,
                                    request->any_stain, request->patient, ctx, &out->source, err) &&
              concept_draw(out, err) && check_table(out, err) && find_mpp(out, err) &&
              find_size(out, err) && find_layers(out, ctx, err) &&
              model_hash_text(request->model, out->model_hash, err);
    if (!ok)
        return false;
    find_centre(out, ctx);
    tests = (int64_t)out->n_layers * out->list.n;
    out->permutations = request->permutations;
    if (out->permutations == 0) /* the least p, corrected, is half the level */
        out->permutations = (int64_t)(2 * (double)tests / CONCEPT_LEVEL) > LEAST_PERMUTATIONS
                                ? (int64_t)(2 * (double)tests / CONCEPT_LEVEL)
                                : LEAST_PERMUTATIONS;
    if ((double)tests / (double)(1 + out->permutations) > CONCEPT_LEVEL)
        console_warn(ctx->console,
                     "with %lld permutations none of %lld tests can be significant; pass "
                     "--permutations %lld or more",
                     (long long)out->permutations, (long long)tests,
                     (long long)(2 * (double)tests / CONCEPT_LEVEL));
    out->rows = calloc((size_t)tests, sizeof *out->rows);
    return (out->rows || err_memory(err, "results")) && describe(out, err);
}

void concept_study_free(struct concept_study *study)
{
    for (int i = 0; study->rows && i < study->n_layers * study->list.n; i++) {
        free(study->rows[i].sensitivities);
        free(study->rows[i].direction);
    }
    for (int i = 0; i < study->n_layers; i++) {
        free(study->layers[i].name);
        free(study->layers[i].activations);
        free(study->layers[i].gradients);
    }
    for (int64_t i = 0; study->names && i < study->n; i++)
        free(study->names[i]);
    free(study->rows);
    free(study->activations_line);
    free(study->line);
    free(study->names);
    free(study->samples);
    free(study->patient);
    free(study->fold);
    free(study->logits);
    free(study->values);
    concept_list_free(&study->list);
    model_patches_free(&study->source);
    *study = (struct concept_study){ 0 };
}

/* --- scoring --- */

/* Subtracts the patient's mean from each column of rows [n, p]. */
static bool centre_activations(const struct concept_study *study, int64_t p, float *rows,
                               struct err *err)
{
    int32_t n_patients = study->source.dataset.n_patients;
    double *sums = calloc((size_t)(n_patients * p) + 1, sizeof *sums);
    int64_t *counts = calloc((size_t)n_patients + 1, sizeof *counts);
    bool ok = (sums && counts) || err_memory(err, "the means of patients");
    for (int64_t i = 0; ok && i < study->n; i++) {
        counts[study->patient[i]]++;
        for (int64_t j = 0; j < p; j++)
            sums[study->patient[i] * p + j] += (double)rows[i * p + j];
    }
    for (int64_t i = 0; ok && i < study->n; i++)
        for (int64_t j = 0; j < p; j++)
            rows[i * p + j] -=
                (float)(sums[study->patient[i] * p + j] / (double)counts[study->patient[i]]);
    free(counts);
    free(sums);
    return ok;
}

/* The same for the values of a concept, of which some are NaN. What is left of equal numbers is 0,
 * not rounding. */
static bool centre_values(const struct concept_study *study, double *values, struct err *err)
{
    int32_t n_patients = study->source.dataset.n_patients;
    double *sums = calloc((size_t)n_patients + 1, sizeof *sums), largest = 0;
    int64_t *counts = calloc((size_t)n_patients + 1, sizeof *counts);
    bool ok = (sums && counts) || err_memory(err, "the means of patients");
    for (int64_t i = 0; ok && i < study->n; i++)
        if (!isnan(values[i])) {
            counts[study->patient[i]]++;
            sums[study->patient[i]] += values[i];
            largest = fmax(largest, fabs(values[i]));
        }
    for (int64_t i = 0; ok && i < study->n; i++) {
        values[i] -= sums[study->patient[i]] / (double)counts[study->patient[i]];
        if (fabs(values[i]) < 1e-12 * largest)
            values[i] = 0;
    }
    free(counts);
    free(sums);
    return ok;
}

/* Before any correction. */
static enum concept_verdict first_verdict(enum concept_state state,
                                          const struct concept_score *score, bool answers)
{
    switch (state) {
    case CONCEPT_CONSTANT:
        return VERDICT_CONSTANT;
    case CONCEPT_FEW_PATIENTS:
        return VERDICT_FEW_PATIENTS;
    case CONCEPT_FEW_PATCHES:
        return VERDICT_FEW_PATCHES;
    case CONCEPT_DEAD_LAYER:
        return VERDICT_DEAD_LAYER;
    case CONCEPT_SCORED:
        break;
    }
    return score->quality > (answers ? 0.5 : 0) ? VERDICT_CHANCE : VERDICT_NOT_LEARNT;
}

static bool score_row(struct concept_study *study, const struct concept_space *space,
                      struct concept_bases *bases, struct concept_row *row, const struct ctx *ctx,
                      struct err *err)
{
    const struct concept *concept = &study->list.items[row->concept];
    double *values = malloc((size_t)study->n * sizeof *values + 1);
    enum concept_state state = CONCEPT_SCORED;
    struct concept_sample sample = { .n = study->n,
                                     .values = values,
                                     .patient = study->patient,
                                     .fold = study->fold,
                                     .n_folds = study->request->folds,
                                     .answers = concept->answers };
    struct concept_score_options options = { study->request->fit, study->permutations,
                                             study->request->seed };
    row->sensitivities = malloc((size_t)study->n * sizeof(double) + 1);
    row->direction = malloc((size_t)space->p * sizeof(double) + 1);
    bool ok = (values && row->sensitivities && row->direction) || err_memory(err, "a concept");
    for (int64_t i = 0; ok && i < study->n; i++)
        values[i] = study->values[i * study->list.n + row->concept];
    if (ok && study->within_patients && !concept->answers)
        ok = centre_values(study, values, err);
    ok = ok && concept_score(&sample, &options, space, bases, ctx, &state, &row->score,
                             row->sensitivities, row->direction, err);
    row->verdict = first_verdict(state, &row->score, concept->answers);
    if (!ok || row->verdict != VERDICT_CHANCE) {
        free(row->sensitivities);
        free(row->direction);
        row->sensitivities = row->direction = NULL;
    }
    free(values);
    return ok;
}

/* Do two concepts have values for the same patches? Then they share the bases of a layer. */
static bool same_patches(const struct concept_study *study, int a, int b)
{
    for (int64_t i = 0; i < study->n; i++) {
        const double *values = study->values + i * study->list.n;
        if (isnan(values[a]) != isnan(values[b]))
            return false;
    }
    return true;
}

static bool score_layer(struct concept_study *study, int number, const struct ctx *ctx,
                        struct err *err)
{
    struct concept_layer *layer = &study->layers[number];
    struct concept_space space = { 0 };
    struct concept_bases bases = { 0 };
    bool done[CONCEPT_MOST] = { false };
    int n = study->list.n;
    bool ok =
        (!study->within_patients || centre_activations(study, layer->p, layer->activations, err)) &&
        concept_space_make(study->n, layer->p, layer->activations, layer->gradients, ctx, &space,
                           err);
    if (space.activations) /* the space's now */
        layer->activations = layer->gradients = NULL;
    for (int first = 0; ok && first < n; first++)
        for (int i = first; ok && i < n; i++) { /* those with the same patches, one by one */
            if (done[i] || !same_patches(study, first, i))
                continue;
            struct concept_row *row = &study->rows[number * n + i];
            row->layer = number;
            row->concept = i;
            ok = (!ctx_stopped(ctx) || err_stopped(err)) &&
                 (score_row(study, &space, &bases, row, ctx, err) ||
                  (err->kind != ERR_STOPPED ? err_prefix(err, layer->name) : false));
            done[i] = true;
            console_advance(ctx->console, 1);
        }
    concept_bases_free(&bases);
    concept_space_free(&space);
    return ok;
}

static bool was_scored(const struct concept_row *row)
{
    return row->verdict >= VERDICT_NOT_LEARNT;
}

/* Corrects the p-values for all concepts and layers. What is not learnt counts as a test of its
 * effect, too, with p = 1. */
static bool judge(struct concept_study *study, struct err *err)
{
    size_t n = (size_t)study->n_layers * (size_t)study->list.n;
    double *p = malloc(2 * n * sizeof *p + 1), *p_s = p + n;
    if (!p)
        return err_memory(err, "p-values");
    for (size_t i = 0; i < n; i++) {
        struct concept_row *row = &study->rows[i];
        row->p_s =
            row->verdict == VERDICT_CHANCE ? fmax(row->score.p_permuted, row->score.p_random) : NAN;
        p[i] = was_scored(row) ? row->score.p_quality : NAN;
        p_s[i] = !was_scored(row) ? NAN : isnan(row->p_s) ? 1 : row->p_s;
    }
    bool ok = concept_holm(p, n, err) && concept_holm(p_s, n, err);
    for (size_t i = 0; ok && i < n; i++) {
        struct concept_row *row = &study->rows[i];
        row->holm_quality = p[i];
        row->holm_s = isnan(row->p_s) ? NAN : p_s[i];
        if (row->verdict == VERDICT_CHANCE && row->holm_quality <= CONCEPT_LEVEL)
            row->verdict = row->holm_s > CONCEPT_LEVEL ? VERDICT_NO_EFFECT
                           : row->score.mean_s > 0     ? VERDICT_RAISES
                                                       : VERDICT_LOWERS;
    }
    free(p);
    return ok;
}

/* All nuclear concepts are void if there are no nuclei: said once. */
static void warn_of_no_nuclei(const struct concept_study *study, const struct ctx *ctx)
{
    bool any = !study->list.needs_nuclei;
    for (int c = 0; c < study->list.n && !any; c++)
        for (int64_t i = 0; i < study->n && !any; i++) {
            enum concept_source source = study->list.items[c].source;
            double value = study->values[i * study->list.n + c];
            any =
                (source == SOURCE_COUNT && value > 0) || (source == SOURCE_NUCLEI && !isnan(value));
        }
    if (!any)
        console_warn(ctx->console,
                     "no nuclei in any of the %lld patches at %g um/px: nuclear concepts are not "
                     "tested",
                     (long long)study->n, study->mpp);
}

bool concept_study_run(struct concept_study *study, const struct ctx *ctx, struct err *err)
{
    bool ok = concept_pass(study, ctx, err);
    if (ok)
        warn_of_no_nuclei(study, ctx);
    console_begin(ctx->console, "concepts", (int64_t)study->n_layers * study->list.n, "tests");
    for (int i = 0; ok && i < study->n_layers; i++)
        ok = score_layer(study, i, ctx, err);
    console_end(ctx->console);
    return ok && judge(study, err) && concept_plot(study, err) && concept_write(study, err);
}
