/* explain_map.c: microtome explain map: images and a network -> maps, and how far to believe them.
 */
#include <math.h>
#include <stdlib.h>
#include "base/claim.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/explain.h"
#include "net/model/model_name.h"

static void print_number(FILE *stream, double value)
{
    if (isfinite(value))
        fprintf(stream, "  %8.3f", value);
    else
        fprintf(stream, "  %8s", "-");
}

static void print_table(FILE *stream, const struct map_run *run, const struct map_summary *summary)
{
    int width = 6;
    for (int i = 0; i < run->n_columns; i++) {
        int length = snprintf(NULL, 0, "%s", run->columns[i].name);
        width = length > width ? length : width;
    }
    fprintf(stream, "%-*s  %8s  %8s  %8s  %8s  %10s  %8s  %s\n", width, "map", "deletion",
            "(chance)", "insert", "(chance)", "better in", "redrawn", "verdict");
    for (int i = 0; i < run->n_columns; i++) {
        const struct map_summary_column *c = &summary->columns[i];
        char better[48];
        snprintf(better, sizeof better, "%lld of %lld", (long long)c->better, (long long)c->n);
        fprintf(stream, "%-*s", width, run->columns[i].name);
        print_number(stream, c->deletion);
        print_number(stream, c->random_deletion);
        print_number(stream, c->insertion);
        print_number(stream, c->random_insertion);
        fprintf(stream, "  %10s", better);
        print_number(stream, c->redrawn ? c->correlation[BELIEF_DEPTHS - 1] : NAN);
        fprintf(stream, "  %s\n", map_verdict(c));
    }
    for (int i = 0; run->inside && i < run->n_columns; i++) {
        const struct map_summary_column *c = &summary->columns[i];
        fprintf(stream, "%-*s  inside:", width, run->columns[i].name);
        print_number(stream, c->map_share);
        fputs(" of the map,", stream);
        print_number(stream, c->area_share);
        fputs(" of the area\n", stream);
    }
    for (int a = 1; a < run->n_columns; a++) {
        fprintf(stream, "agreement of %s with", run->columns[a].name);
        for (int b = 0; b < a; b++) {
            fprintf(stream, "%s %s", b ? "," : "", run->columns[b].name);
            if (isfinite(summary->agreement[a][b]))
                fprintf(stream, " %.2f", summary->agreement[a][b]);
            else
                fprintf(stream, " -");
        }
        fputc('\n', stream);
    }
    fprintf(stream, "%s/index.html: %lld image%s", run->request->folder,
            (long long)summary->subjects, summary->subjects == 1 ? "" : "s");
    if (summary->failed > 0)
        fprintf(stream, ", %lld failed", (long long)summary->failed);
    fputc('\n', stream);
}

static void print_json(FILE *stream, const struct map_run *run, const struct map_summary *summary)
{
    struct json_out json;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_int(&json, "subjects", summary->subjects);
    json_out_int(&json, "failed", summary->failed);
    json_out_array(&json, "maps");
    for (int i = 0; i < run->n_columns; i++) {
        const struct map_summary_column *c = &summary->columns[i];
        json_out_object_line(&json, NULL);
        json_out_text(&json, "name", run->columns[i].name);
        json_out_real(&json, "deletion", c->deletion);
        json_out_real(&json, "random_deletion", c->random_deletion);
        json_out_real(&json, "insertion", c->insertion);
        json_out_real(&json, "random_insertion", c->random_insertion);
        json_out_real(&json, "better_by", c->better_by);
        json_out_int(&json, "better", c->better);
        json_out_real(&json, "score", c->score);
        json_out_real(&json, "blank_score", c->blank);
        json_out_real(&json, "redrawn", c->redrawn ? c->correlation[BELIEF_DEPTHS - 1] : NAN);
        json_out_bool(&json, "no_explanation", c->redrawn && c->no_explanation);
        json_out_text(&json, "verdict", map_verdict(c));
        if (run->inside)
            map_put_inside(&json, c);
        json_out_close_object(&json);
    }
    json_out_close_array(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

static struct map_request request_of(const struct explain_args *given, const struct model *model,
                                     const char *model_name)
{
    struct map_request request = { .model = model,
                                   .model_name = model_name,
                                   .methods = given->methods ? given->methods : "gradcam",
                                   .layers = given->layers,
                                   .method = explain_defaults(),
                                   .belief = belief_defaults(),
                                   .redrawn_subjects = given->belief_subjects,
                                   .inside = given->inside,
                                   .hot = given->hot,
                                   .stitching = (enum map_stitching)given->stitch,
                                   .pick = (enum subject_pick)given->pick,
                                   .seed = (uint64_t)given->seed,
                                   .folder = given->output,
                                   .overwrite = given->overwrite };
    request.method.batch = given->batch;
    request.method.lime_samples = given->lime_samples;
    request.method.lime_segments = given->lime_segments;
    request.method.smooth_samples = given->smooth_samples;
    request.method.smooth_noise = given->smooth_noise;
    request.method.ig_steps = given->ig_steps;
    request.method.occlusion_px = given->occlusion_px;
    request.method.occlusion_stride_px = given->occlusion_stride_px;
    request.belief.steps = given->belief_steps;
    request.belief.random_orders = given->belief_orders;
    request.belief.seed = (uint64_t)given->seed;
    return request;
}

static struct subject_request subjects_of(const struct explain_args *given,
                                          const struct model *model, char *const *operands,
                                          int n_operands)
{
    return (struct subject_request){ .model = model,
                                     .paths = operands,
                                     .n_paths = n_operands,
                                     .class_name = given->class_name,
                                     .pick = (enum subject_pick)given->pick,
                                     .top = given->top,
                                     .min_score = given->min_score,
                                     .seed = (uint64_t)given->seed,
                                     .areas = given->stitch == STITCH_ALL,
                                     .any_stain = given->any_stain,
                                     .stain_template = given->stain_template,
                                     .cache = given->cache,
                                     .results = given->output };
}

bool map_session_open(const struct explain_args *given, char *const *operands, int n_operands,
                      const struct ctx *ctx, struct map_session *out, struct err *err)
{
    *out = (struct map_session){ 0 };
    if (!explain_source(given, &out->source, err) ||
        !model_open_classifier(&out->source, &out->model, err))
        return false;
    out->name = model_full_name(&out->source, out->model);
    out->request = request_of(given, out->model, out->name);
    out->wanted = subjects_of(given, out->model, operands, n_operands);
    return (out->name || err_memory(err, "the model")) &&
           subjects_find(&out->wanted, ctx, &out->subjects, err) &&
           map_open(&out->request, &out->subjects, ctx, &out->run, err);
}

void map_session_close(struct map_session *session)
{
    map_close(session->run);
    subjects_free(&session->subjects);
    model_close(session->model);
    free(session->name);
    *session = (struct map_session){ 0 };
}

bool map_session_finish(const struct map_session *session, const struct explain_args *given,
                        const struct ctx *ctx, FILE *out, struct err *err)
{
    struct map_summary *summary = calloc(1, sizeof *summary);
    bool ok = (summary || err_memory(err, "the maps")) && map_redraw(session->run, ctx, err);
    bool merged = ok;
    ok = ok && map_merge(session->run, ctx, summary, err);
    if (merged && summary->subjects > 0) {
        if (given->json)
            print_json(out, session->run, summary);
        else
            print_table(out, session->run, summary);
    }
    free(summary);
    return ok;
}

static bool run_here(struct app *app, const struct explain_args *given, char *const *operands,
                     int n_operands, struct err *err)
{
    struct map_session session = { 0 };
    struct claim *claim = NULL;
    bool ok = cluster_check_idle(given->output, err) &&
              map_session_open(given, operands, n_operands, &app->ctx, &session, err) &&
              claim_take(given->output, &claim, err) && map_prepare(session.run, err) &&
              map_make(session.run, 0, session.subjects.n, &app->ctx, err);
    for (int32_t i = 0; ok && i < session.subjects.n_sources; i++)
        ok = map_stitch(session.run, i, &app->ctx, err);
    ok = ok && map_session_finish(&session, given, &app->ctx, app->out, err);
    claim_release(claim);
    map_session_close(&session);
    return ok;
}

bool explain_map(struct app *app, const void *options, char *const *operands, int n_operands,
                 struct err *err)
{
    const struct explain_args *given = options;
    struct explain_job job = { given, "map", operands, n_operands };
    if (!cluster_check(&given->cluster, err))
        return false;
    return given->cluster.on > 0 ? explain_submit(app, &job, err)
                                 : run_here(app, given, operands, n_operands, err);
}
