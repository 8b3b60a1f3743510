/* model_cut.c: `microtome model cut`: where a network is cut into stages for parallel.stages. */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/pool.h"
#include "cli/model.h"
#include "net/graph/transform.h"
#include "parallel/network_cut.h"

/* "a,b" -> its names, which stay in `text`; returns how many. An empty name is kept and refused as
 * a layer. */
static int split(char *text, const char *names[STAGES_MOST])
{
    int n = 0;
    for (char *comma; n < STAGES_MOST - 1 && (comma = strchr(text, ',')); text = comma + 1) {
        *comma = 0;
        names[n++] = text;
    }
    names[n++] = text;
    return n;
}

static bool show(struct app *app, const struct model_args *given, const struct graph *graph,
                 const struct network_cut_options *options, struct err *err)
{
    struct network_cut cut = { 0 };
    struct json_out json;
    if (!network_cut_new(graph, options, &cut, err))
        return false;
    if (given->json) {
        json_out_begin(&json, app->out);
        json_out_object(&json, NULL);
        network_cut_json(&cut, &json);
        json_out_close_object(&json);
        json_out_end(&json);
    } else {
        network_cut_print(&cut, app->out);
    }
    network_cut_free(&cut);
    return true;
}

bool model_cut(struct app *app, const struct model_args *given, struct err *err)
{
    const char *names[STAGES_MOST] = { 0 };
    struct network_cut_options options = { .stages = (int)given->stages,
                                           .memory = (size_t)given->memory_mb * 1000000,
                                           .count = given->count,
                                           .threads = pool_workers(app->ctx.pool) };
    if (given->stages == 0 && !given->at)
        return err_set(err, ERR_USAGE, "cut: pass --stages N, or --at LAYER,LAYER");
    struct model *model = NULL;
    struct graph *graph = NULL;
    struct model_source source = model_source_of(given);
    int64_t height = 0, width = 0;
    char *at = given->at ? strdup(given->at) : NULL;
    bool ok = (!given->at || at || err_memory(err, "--at")) && model_open(&source, &model, err);
    if (at) {
        options.n_at = split(at, names);
        options.at = names;
    }
    if (ok)
        model_input_side(model, given, &height, &width);
    ok = ok && transform_resize(model->graph, given->batch, height, width, &graph, err) &&
         show(app, given, graph, &options, err);
    graph_free(graph);
    model_close(model);
    free(at);
    return ok;
}
