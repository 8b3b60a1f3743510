/* model_ports.c: `microtome model show` and `bench` of networks of the zoo that do not take a
 * single image: texts, recordings, tokens, images with a time. Weights are drawn, and so are
 * inputs: ids of tokens below the vocabulary, numbers between 0 and 1; nothing is padding. */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/pool.h"
#include "base/rng.h"
#include "cli/model.h"
#include "net/graph/transform.h"
#include "net/zoo/zoo.h"

bool model_has_ports(const struct model_args *given)
{
    const struct zoo_network *network = given->network ? zoo_find(given->network, NULL) : NULL;
    return network && network->input != ZOO_IMAGE;
}

static bool check(const struct model_args *given, struct err *err)
{
    const struct {
        const char *option;
        bool given;
    } refused[] = {
        { "model", given->model != NULL },
        { "weights", given->weights != NULL },
        { "features", given->features },
        { "head", given->head != HEAD_AUTO },
        { "norm", given->norm != NORM_BATCH },
        { "memory stream", given->memory == MODEL_MEMORY_STREAM },
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].given)
            return err_set(err, ERR_USAGE, "--%s: not for %s, which does not take a single image",
                           refused[i].option, given->network);
    return model_check_memory(given, err);
}

bool model_open_ports(const struct model_args *given, struct model **out, struct err *err)
{
    const struct zoo_options options = { .batch = given->batch,
                                         .height = given->size,
                                         .width = given->size,
                                         .classes = given->classes };
    if (!check(given, err))
        return false;
    struct model *model = calloc(1, sizeof *model);
    if (!model)
        return err_memory(err, "the model");
    model_config_init(&model->config);
    model->name = strdup(given->network);
    bool ok = model->name || err_memory(err, "the model");
    if (ok && !zoo_build(given->network, &options, &model->graph, err))
        ok = given->size ? err_prefix(err, "--size") : false;
    ok = ok && graph_initialize(model->graph, (uint64_t)given->init_seed, err);
    if (!ok) {
        model_close(model);
        return false;
    }
    *out = model;
    return true;
}

static void draw_inputs(const struct model_args *given, const struct model_run *run)
{
    const struct zoo_network *network = zoo_find(given->network, NULL);
    struct rng rng = rng_new(1, 0, 0);
    for (int i = 0; i < run->graph->n_inputs; i++) {
        const bool ids = network->input == ZOO_TEXT && i == 0;
        const bool mask = strcmp(run->graph->inputs[i].name, "mask") == 0;
        int64_t n = shape_count(graph_shape(run->graph, run->graph->inputs[i].value));
        float *at = plan_input(run->plan, i);
        for (int64_t k = 0; k < n; k++)
            at[k] = mask  ? 1
                    : ids ? (float)rng_below(&rng, (uint64_t)network->channels)
                          : (float)rng_uniform(&rng);
    }
}

bool model_ports_ready(struct app *app, const struct model_args *given, const struct model *model,
                       bool profile, struct model_run *out, struct err *err)
{
    const struct plan_options options = { .mode = given->train ? PLAN_TRAIN : PLAN_INFER,
                                          .threads = pool_workers(app->ctx.pool),
                                          .profile = profile,
                                          .saving = (enum plan_saving)given->memory };
    *out = (struct model_run){ .batch = given->batch };
    bool ok = given->train ? graph_copy(model->graph, &out->graph, err)
                           : transform_for_inference(model->graph, NULL, 0, &out->graph, err);
    double began_s = clock_monotonic_s();
    ok = ok && plan_new(out->graph, &options, &out->plan, err);
    out->plan_s = clock_monotonic_s() - began_s;
    if (ok)
        draw_inputs(given, out);
    return ok;
}
