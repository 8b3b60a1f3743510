/* classify_stage.c: `microtome classify stage`: heatmaps, annotations or types of slides -> sizes
 * of lesions, types of slides and pN stages of patients. */
#include <string.h>
#include "base/claim.h"
#include "base/console.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/classify.h"
#include "verdict/stage_slides.h"
#include "verdict/stage_table.h"

static struct stage_rules rules_of(const struct classify_options *o)
{
    return (struct stage_rules){ .sizes = { .join_um = o->join_um,
                                            .least_um = o->least_um,
                                            .itc_um = o->itc_um,
                                            .macro_um = o->macro_um },
                                 .class_name = o->class_name,
                                 .threshold = o->threshold,
                                 .open_um = o->open_um,
                                 .mpp = o->mpp,
                                 .downsample = o->downsample };
}

/* The slide list: --slides, or the operand if it names slides and patients. */
static const char *list_of(const struct classify_options *o, const char *path)
{
    struct csv csv;
    if (o->slides || file_is_folder(path) || !csv_read(path, &csv, NULL))
        return o->slides;
    bool lists = csv_column(&csv, o->slide) >= 0 && csv_column(&csv, "patient") >= 0;
    csv_free(&csv);
    return lists ? path : NULL;
}

static bool of_truth(struct app *app, const struct classify_options *o, const char *path,
                     const char *list, const struct stage_rules *rules, struct staged_cohort *out,
                     struct err *err)
{
    struct class_map *class_map = NULL;
    struct truth_list truth = { 0 };
    bool ok = class_map_parse(o->class_map, &class_map, err) &&
              truth_list_read(path, o->slide, class_map, &truth, err) &&
              stage_slides_of_truth(&truth, list, o->slide, rules, &app->ctx, out, err);
    truth_list_free(&truth);
    class_map_free(class_map);
    return ok;
}

static bool find_slides(struct app *app, const struct classify_options *o, char *const *paths,
                        int n_paths, const char *list, struct staged_cohort *out, struct err *err)
{
    const struct stage_rules rules = rules_of(o);
    const enum stage_source source = stage_source_of(paths, n_paths);
    if (source == STAGE_OF_HEATMAPS)
        return stage_slides_of_heatmaps(paths, n_paths, &rules, &app->ctx, out, err);
    if (n_paths > 1)
        return err_set(err, ERR_USAGE, "stage reads one folder of annotations or one table");
    return source == STAGE_OF_TRUTH ? of_truth(app, o, paths[0], list, &rules, out, err)
                                    : stage_slides_of_table(paths[0], out, err);
}

static void warn(const struct app *app, const struct staged_cohort *cohort, int64_t missing)
{
    if (missing > 0)
        console_warn(app->ctx.console,
                     "slides of the list that were not found: %lld; stages may be too low",
                     (long long)missing);
    for (size_t i = 0; i < cohort->n_patients; i++) {
        const struct staged_patient *patient = &cohort->patients[i];
        int64_t nodes = patient->of_type[METASTASIS_MICRO] + patient->of_type[METASTASIS_MACRO];
        if (nodes > STAGE_MOST_NODES)
            console_warn(app->ctx.console,
                         "patient '%s' has metastases in %lld nodes: more than the rules of "
                         "CAMELYON17 know (9); counted as pN2",
                         patient->patient, (long long)nodes);
    }
}

static void print_text(FILE *out, const struct staged_cohort *cohort)
{
    int width = 7;
    for (size_t i = 0; i < cohort->n_patients; i++)
        if ((int)strlen(cohort->patients[i].patient) > width)
            width = (int)strlen(cohort->patients[i].patient);
    fprintf(out, "%-*s  stage    nodes  negative  itc  micro  macro\n", width, "patient");
    for (size_t i = 0; i < cohort->n_patients; i++) {
        const struct staged_patient *p = &cohort->patients[i];
        fprintf(out, "%-*s  %-7s  %5lld  %8lld  %3lld  %5lld  %5lld\n", width, p->patient,
                stage_names[p->stage], (long long)p->nodes, (long long)p->of_type[0],
                (long long)p->of_type[1], (long long)p->of_type[2], (long long)p->of_type[3]);
    }
}

static void print_json(FILE *out, const struct staged_cohort *cohort)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_object(&json, NULL);
    json_out_array(&json, "patients");
    for (size_t i = 0; i < cohort->n_patients; i++) {
        const struct staged_patient *patient = &cohort->patients[i];
        json_out_object_line(&json, NULL);
        json_out_text(&json, "patient", patient->patient);
        json_out_text(&json, "stage", stage_names[patient->stage]);
        json_out_int(&json, "nodes", patient->nodes);
        for (int type = 0; type < METASTASES; type++)
            json_out_int(&json, metastasis_names[type], patient->of_type[type]);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_array(&json, "slides");
    for (size_t i = 0; i < cohort->n; i++) {
        const struct staged_slide *slide = &cohort->slides[i];
        json_out_object_line(&json, NULL);
        json_out_text(&json, "slide", slide->slide);
        json_out_text(&json, "patient", slide->patient);
        json_out_text(&json, "node", *slide->node ? slide->node : NULL);
        json_out_text(&json, "type", metastasis_names[slide->type]);
        if (slide->measured) {
            json_out_real(&json, "diameter_um", slide->diameter_um);
            json_out_int(&json, "lesions", slide->lesions.n);
        }
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

bool classify_stage(struct app *app, const void *options, char *const *paths, int n_paths,
                    struct err *err)
{
    const struct classify_options *o = options;
    struct staged_cohort cohort = { 0 };
    struct claim *claim = NULL;
    int64_t missing = 0;
    const char *list = list_of(o, paths[0]);
    if (o->itc_um > o->macro_um)
        return err_set(err, ERR_USAGE, "--itc %g is larger than --macro %g", o->itc_um,
                       o->macro_um);
    bool ok =
        (!o->output || (file_make_folder(o->output, err) && claim_take(o->output, &claim, err))) &&
        find_slides(app, o, paths, n_paths, list, &cohort, err) &&
        stage_find_patients(&cohort, list, o->slide, o->allow_missing, &missing, err) &&
        stage_patients(&cohort, err) && (!o->output || stage_write(&cohort, o->output, err));
    if (ok) {
        warn(app, &cohort, missing);
        (o->json ? print_json : print_text)(app->out, &cohort);
    }
    staged_cohort_free(&cohort);
    claim_release(claim);
    return ok;
}
