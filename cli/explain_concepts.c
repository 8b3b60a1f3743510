/* explain_concepts.c: microtome explain concepts: which concepts a network has learnt, and which
 * matter to its score. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/file.h"
#include "cli/explain.h"
#include "explain/concept_results.h"
#include "explain/concept_study.h"

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

static bool print(struct app *app, bool json, const char *path, struct err *err)
{
    struct concept_results results = { 0 };
    if (json)
        return print_json(app->out, path, err);
    bool ok = concept_results_read(path, &results, err);
    if (ok)
        print_table(app->out, &results);
    concept_results_free(&results);
    return ok;
}

static bool make(struct app *app, const struct explain_args *given,
                 const struct concept_request *request, struct err *err)
{
    struct concept_study study = { 0 };
    bool kept = false;
    char *path = concept_results_path(request->folder);
    bool ok = path || err_memory(err, "results");
    ok = ok && concept_study_open(request, &app->ctx, &study, err) &&
         file_make_folder(request->folder, err) &&
         concept_study_make(&study, given->overwrite, &app->ctx, &kept, err);
    if (ok && kept)
        console_note(app->ctx.console, "existing results are kept; --overwrite makes them again");
    ok = ok && print(app, given->json, path, err);
    concept_study_free(&study);
    free(path);
    return ok;
}

bool explain_concepts(struct app *app, const void *options, char *const *operands, int n_operands,
                      struct err *err)
{
    const struct explain_args *given = options;
    struct model_source source;
    struct model *model = NULL;
    bool ok = explain_source(given, &source, err) && model_open_classifier(&source, &model, err);
    struct concept_request request = {
        .model = model,
        .model_name = ok ? model->name : NULL,
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
        .argc = app->argc,
        .argv = app->argv,
    };
    ok = ok && make(app, given, &request, err);
    model_close(model);
    return ok;
}
