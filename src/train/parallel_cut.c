/* parallel_cut.c: parallel.stages without parallel.cut: the first rank measures the layers and cuts
 * the network into stages that take equally long, for all. */
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "train/parallel_plan.h"

/* Where stages begin, for all ranks. */
struct cut_places {
    int32_t begin[STAGES_MOST + 1];
};

bool parallel_name_cuts(const struct graph *graph, const int32_t *begin, int stages,
                        struct texts *out, struct err *err)
{
    for (size_t i = 0; i < out->n; i++)
        free(out->items[i]);
    free(out->items);
    *out = (struct texts){ .items = calloc((size_t)stages, sizeof *out->items) };
    if (!out->items)
        return err_memory(err, "the config");
    for (int s = 1; s < stages; s++) {
        out->items[out->n] = strdup(graph->nodes[begin[s] - 1].name);
        if (!out->items[out->n++])
            return err_memory(err, "the config");
    }
    return true;
}

/* What an earlier start in this folder was cut at, if it had as many stages. */
static bool earlier(const struct graph *graph, const char *folder, int stages,
                    struct cut_places *out, bool *found, struct err *err)
{
    struct train_config then = { 0 };
    char *path = text_format("%s/config.yaml", folder);
    if (!path)
        return err_memory(err, "the config");
    bool ok = !file_exists(path) || config_read(path, NULL, 0, &then, err);
    *found = ok && then.parallel[GRID_STAGE] == stages && then.pipeline.cut.n + 1 == (size_t)stages;
    if (*found)
        ok = stages_at(graph, (const char *const *)then.pipeline.cut.items, stages - 1, out->begin,
                       err);
    free(path);
    config_free(&then);
    return ok;
}

static bool measure_cut(const struct train_config *config, struct graph *graph,
                        const struct parallel_place *place, struct cut_places *out, struct err *err)
{
    struct node_cost *costs = NULL;
    int64_t measured_px = 0;
    bool ok = graph_initialize(graph, (uint64_t)config->seed, err) &&
              parallel_measure(graph, place, &costs, &measured_px, err) &&
              costs_balance(graph, costs, (int)config->parallel[GRID_STAGE], &place->wire, 0,
                            out->begin, err);
    free(costs);
    return ok;
}

/* What the trainer refuses need not be measured. */
static bool worth_cutting(const struct train_config *config, const struct ranks *ranks)
{
    int extent[GRID_AXES];
    return config_staged(config) && config->pipeline.cut.n == 0 &&
           config_check_parallel(config, NULL) && config_extents(config, ranks->size, extent, NULL);
}

bool parallel_cut(struct train_config *config, struct ranks *ranks, const char *folder, bool resume,
                  const struct ctx *ctx, struct err *err)
{
    int stages = (int)config->parallel[GRID_STAGE];
    struct cut_places places = { 0 };
    struct graph *graph = NULL;
    struct parallel_place place = { .threads = pool_workers(ctx->pool),
                                    .ranks_a_machine = ranks->local_size };
    if (!worth_cutting(config, ranks))
        return true;
    bool ok = ranks_agree(ranks, parallel_network(config, &graph, err), NULL, err) &&
              parallel_wire(ranks, &place.wire, err);
    if (ok && ranks->rank == 0) {
        bool found = false;
        parallel_memory(config, &place);
        ok = !resume || earlier(graph, folder, stages, &places, &found, err);
        ok = ok && (found || measure_cut(config, graph, &place, &places, err));
    }
    ok = ranks_agree(ranks, ok, NULL, err) &&
         ranks_broadcast(ranks, &places, sizeof places, 0, err) &&
         parallel_name_cuts(graph, places.begin, stages, &config->pipeline.cut, err);
    graph_free(graph);
    return ok;
}
