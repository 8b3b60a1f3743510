/* belief_redraw.c: a network, methods and their maps of some views -> how much the maps change when
 * the weights are redrawn from the top down (Adebayo et al. 2018). */
#include <math.h>
#include <stdlib.h>
#include "base/console.h"
#include "base/correlation.h"
#include "base/rng.h"
#include "explain/belief.h"

const char *const belief_depth_names[BELIEF_DEPTHS] = { "head", "quarter", "half", "all" };
static const double depth_shares[BELIEF_DEPTHS] = { 0, 0.25, 0.5, 1 };

static bool has_weights(const struct graph *graph, const struct node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NO_VALUE && graph->values[node->inputs[i]].kind == VALUE_PARAMETER)
            return true;
    return false;
}

static int64_t count_layers(const struct graph *graph)
{
    int64_t count = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        count += has_weights(graph, &graph->nodes[i]);
    return count;
}

/* At least the last one: the head. */
static int64_t layers_of_share(int64_t layers, double share)
{
    int64_t count = (int64_t)ceil(share * (double)layers);
    return count < 1 ? 1 : count;
}

/* A copy of what the parameter was, drawn again. */
static bool redraw_parameter(struct graph *graph, value_id parameter, uint64_t seed,
                             struct err *err)
{
    if (!graph_own(graph, parameter, err))
        return false;
    const struct value *value = &graph->values[parameter];
    float *data = graph_data(graph, parameter);
    int64_t count = shape_count(&value->shape);
    double mean = 0, square = 0;
    for (int64_t i = 0; i < count; i++)
        mean += (double)data[i] / (double)count;
    for (int64_t i = 0; i < count; i++)
        square += ((double)data[i] - mean) * ((double)data[i] - mean) / (double)count;
    double deviation = sqrt(square);
    struct rng rng = rng_new(seed, rng_hash(value->name), rng_hash("redrawn weights"));
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)(mean + deviation * rng_normal(&rng));
    return true;
}

static bool redraw_layers(struct graph *graph, int64_t layers, uint64_t seed, struct err *err)
{
    bool *done = calloc((size_t)graph->n_values, sizeof *done);
    bool ok = done || err_memory(err, "redrawn weights");
    for (int32_t i = graph->n_nodes - 1; ok && i >= 0 && layers > 0; i--) {
        const struct node *node = &graph->nodes[i];
        layers -= has_weights(graph, node);
        for (int k = 0; ok && k < node->n_inputs; k++) {
            value_id input = node->inputs[k];
            if (input == NO_VALUE || graph->values[input].kind != VALUE_PARAMETER || done[input])
                continue;
            done[input] = true;
            ok = redraw_parameter(graph, input, seed, err);
        }
    }
    free(done);
    return ok;
}

bool belief_redrawn_model(const struct model *model, double share, uint64_t seed,
                          struct model **out, struct err *err)
{
    int64_t layers = count_layers(model->graph);
    if (layers == 0)
        return err_set(err, ERR_FORMAT, "%s: has no learnt weights to be redrawn", model->name);
    struct model *redrawn = malloc(sizeof *redrawn);
    if (!redrawn)
        return err_memory(err, "a model with redrawn weights");
    *redrawn = *model;
    redrawn->graph = NULL;
    bool ok = graph_copy(model->graph, &redrawn->graph, err) &&
              redraw_layers(redrawn->graph, layers_of_share(layers, share), seed, err);
    if (ok)
        *out = redrawn;
    else
        belief_model_free(redrawn);
    return ok;
}

void belief_model_free(struct model *redrawn)
{
    if (redrawn)
        graph_free(redrawn->graph);
    free(redrawn);
}

/* Of |a| and |b|; NaN if one of them is constant or not a number somewhere. */
static bool correlate_sizes(const struct attribution *a, const struct attribution *b, double *out,
                            struct err *err)
{
    int64_t n = a->height * a->width;
    float *sizes = malloc((size_t)n * sizeof *sizes);
    double *ranks = malloc((size_t)(2 * n) * sizeof *ranks);
    bool ok = (sizes && ranks) || err_memory(err, "the ranks of a map");
    const float *values[2] = { a->values, b->values };
    bool finite = true;
    for (int k = 0; ok && finite && k < 2; k++) {
        for (int64_t i = 0; i < n; i++) {
            sizes[i] = fabsf(values[k][i]);
            finite = finite && isfinite(sizes[i]);
        }
        ok = !finite || correlation_ranks(sizes, n, ranks + k * n, err);
    }
    if (ok)
        *out = finite ? correlation_of(ranks, ranks + n, n) : NAN;
    free(sizes);
    free(ranks);
    return ok;
}

struct redrawing {
    const struct belief_method *method;
    const struct explain_view *views;
    int n_views;
    const struct attribution *maps; /* [n_views] */
    const struct ctx *ctx;
};

/* The mean of the correlations of all views at one depth. */
static bool compare_views(const struct redrawing *r, const struct explain_settings *settings,
                          struct probe *probe, int layer, int depth, struct belief_redrawn *out,
                          struct err *err)
{
    double sum = 0;
    struct attribution *maps = calloc((size_t)r->n_views + 1, sizeof *maps);
    bool ok = (maps || err_memory(err, "maps")) &&
              explainer_run(r->method->explainer, settings, probe, layer, r->views, r->n_views,
                            r->ctx, maps, err);
    for (int i = 0; ok && i < r->n_views; i++) {
        double correlation = NAN;
        ok = correlate_sizes(&r->maps[i], &maps[i], &correlation, err);
        if (ok && !isnan(correlation))
            sum += correlation, out->views[depth]++;
    }
    for (int i = 0; maps && i < r->n_views; i++)
        attribution_free(&maps[i]);
    free(maps);
    out->correlation[depth] = out->views[depth] ? sum / (double)out->views[depth] : NAN;
    return ok;
}

static bool compare_method(const struct redrawing *r, const struct explain_settings *settings,
                           int depth, struct belief_redrawn *out, struct err *err)
{
    const struct explainer *explainer = r->method->explainer;
    bool of_layer = explainer->maps == MAPS_LAYER;
    const char *layer = r->method->layer ? r->method->layer : "";
    struct probe_options options = { .layers = &layer,
                                     .n_layers = of_layer,
                                     .height = settings->height,
                                     .width = settings->width,
                                     .batch = settings->batch,
                                     .threads = settings->threads,
                                     .input_gradient = explainer->input_gradient,
                                     .forward_only = explainer->forward_only,
                                     .attention = explainer->attention };
    struct probe *probe = NULL;
    bool ok = probe_new(settings->model, &options, &probe, err) &&
              compare_views(r, settings, probe, of_layer ? 0 : -1, depth, out, err);
    probe_free(probe);
    return ok;
}

bool belief_redraw(const struct explain_settings *settings, const struct belief_settings *belief,
                   const struct belief_method *methods, int n_methods,
                   const struct explain_view *views, int n_views, const struct attribution *maps,
                   const struct ctx *ctx, struct belief_redrawn *out, struct err *err)
{
    int64_t layers = count_layers(settings->model->graph);
    bool ok = true;
    for (int k = 0; k < n_methods; k++)
        out[k] = (struct belief_redrawn){ 0 };
    for (int depth = 0; ok && depth < BELIEF_DEPTHS; depth++) {
        struct model *redrawn = NULL;
        ok =
            belief_redrawn_model(settings->model, depth_shares[depth], belief->seed, &redrawn, err);
        struct explain_settings with_redrawn = *settings;
        with_redrawn.model = redrawn;
        for (int k = 0; ok && k < n_methods; k++) {
            struct redrawing r = { &methods[k], views, n_views, maps + (int64_t)k * n_views, ctx };
            out[k].share[depth] =
                (double)layers_of_share(layers, depth_shares[depth]) / (double)layers;
            ok = compare_method(&r, &with_redrawn, depth, &out[k], err);
            console_advance(ctx->console, n_views);
        }
        belief_model_free(redrawn);
    }
    for (int k = 0; ok && k < n_methods; k++)
        out[k].no_explanation = out[k].correlation[BELIEF_DEPTHS - 1] > belief->unchanged;
    return ok;
}
