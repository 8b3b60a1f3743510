/* explain_concepts.c: microtome explain concepts: which concepts a network has learnt, and which
 * matter to its score. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "cli/explain.h"
#include "explain/concept_results.h"
#include "net/model/model_name.h"

static void print_number(FILE *out, double value, int width, int decimals)
{
    if (isnan(value))
        fprintf(out, " %*s", width, "");
    else
        fprintf(out, " %*.*f", width, decimals, value);
}

static int widest(const struct concept_results *results, bool layers)
{
    size_t most = 7;
    for (size_t i = 0; i < results->n; i++) {
        size_t length = strlen(layers ? results->rows[i].layer : results->rows[i].concept);
        most = length > most ? length : most;
    }
    return (int)most;
}

static void print_table(FILE *out, const struct concept_results *results)
{
    int layer_width = widest(results, true), concept_width = widest(results, false);
    char text[CONCEPT_P_TEXT];
    fprintf(
        out, "%s, score of '%s': %lld patches of %lld patients, %lld folds, %lld permutations\n",
        results->model, results->class_name, (long long)results->patches,
        (long long)results->patients, (long long)results->folds, (long long)results->permutations);
    fprintf(out, "%-*s %-*s %7s %6s %5s %7s %6s  %s\n", layer_width, "layer", concept_width,
            "concept", "R2", "p(R2)", "TCAV", "Br", "p(S)", "verdict");
    for (size_t i = 0; i < results->n; i++) {
        const struct concept_result *row = &results->rows[i];
        fprintf(out, "%-*s %-*s", layer_width, row->layer, concept_width, row->concept);
        print_number(out, row->quality, 7, 3);
        fprintf(out, " %6s", concept_p_text(row->p_holm, text));
        print_number(out, row->tcav, 5, 2);
        print_number(out, row->br, 7, 3);
        fprintf(out, " %6s  %s%s\n", concept_p_text(row->p_s_holm, text), row->verdict,
                row->answers ? " (yes or no: AUC for R2)" : "");
    }
}

static bool print_json(FILE *out, const char *path, struct err *err)
{
    char *text = NULL;
    size_t size = 0;
    if (!file_read(path, (size_t)64 << 20, &text, &size, err))
        return false;
    fwrite(text, 1, size, out);
    free(text);
    return true;
}

static bool print(FILE *out, bool json, const char *folder, struct err *err)
{
    struct concept_results results = { 0 };
    char *path = concept_results_path(folder);
    if (!path)
        return err_memory(err, "results");
    bool ok = json ? print_json(out, path, err) : concept_results_read(path, &results, err);
    if (ok && !json)
        print_table(out, &results);
    concept_results_free(&results);
    free(path);
    return ok;
}

bool concept_session_open(const struct explain_args *given, char *const *operands, int n_operands,
                          int argc, char *const *argv, const struct ctx *ctx,
                          struct concept_session *out, struct err *err)
{
    *out = (struct concept_session){ 0 };
    if (!explain_source(given, &out->source, err) ||
        !model_open_classifier(&out->source, &out->model, err))
        return false;
    out->name = model_full_name(&out->source, out->model);
    out->request = (struct concept_request){
        .model = out->model,
        .model_name = out->name,
        .paths = operands,
        .n_paths = (size_t)n_operands,
        .any_stain = given->any_stain,
        .patient = given->patient,
        .layers = given->layers,
        .class_name = given->class_name,
        .concepts = given->concepts,
        .table = given->table,
        .nuclei = given->nuclei,
        .mpp = given->slide_mpp,
        .flat = given->pool == 1,
        .within_patients = given->centre == 0,
        .fit = { .pca = given->fit == 1, .ridge = given->ridge },
        .folds = (int)given->folds,
        .permutations = given->permutations,
        .most_patches = given->most_patches,
        .seed = (uint64_t)given->seed,
        .folder = given->output,
        .argc = argc,
        .argv = argv,
    };
    return (out->name || err_memory(err, "the model")) &&
           concept_study_open(&out->request, ctx, &out->study, err) &&
           file_make_folder(given->output, err);
}

void concept_session_close(struct concept_session *session)
{
    concept_study_free(&session->study);
    model_close(session->model);
    free(session->name);
    *session = (struct concept_session){ 0 };
}

bool concept_session_print(const struct explain_args *given, FILE *out, struct err *err)
{
    return print(out, given->json, given->output, err);
}

static bool run_here(struct app *app, const struct explain_args *given, char *const *operands,
                     int n_operands, struct err *err)
{
    struct concept_session session = { 0 };
    bool kept = false;
    bool ok = cluster_check_idle(given->output, err) &&
              concept_session_open(given, operands, n_operands, app->argc, app->argv, &app->ctx,
                                   &session, err) &&
              concept_study_make(&session.study, given->overwrite, &app->ctx, &kept, err);
    if (ok && kept)
        console_note(app->ctx.console, "existing results are kept; --overwrite makes them again");
    ok = ok && concept_session_print(given, app->out, err);
    concept_session_close(&session);
    return ok;
}

bool explain_concepts(struct app *app, const void *options, char *const *operands, int n_operands,
                      struct err *err)
{
    const struct explain_args *given = options;
    struct explain_job job = { given, "concepts", operands, n_operands };
    if (!cluster_check(&given->cluster, err))
        return false;
    return given->cluster.on > 0 ? explain_submit(app, &job, err)
                                 : run_here(app, given, operands, n_operands, err);
}
