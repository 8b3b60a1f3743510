/* parallel_auto.c: `parallel: auto`: the ranks that there are and a config -> the config with the
 * grid, schedule and cuts that are simulated to be the fastest. */
#include <malloc.h>
#include <stdlib.h>
#include "base/console.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "train/parallel_plan.h"

/* What an earlier start in this folder chose for as many ranks; *found is false if there is none.
 */
static bool earlier(const struct graph *graph, const char *folder, int ranks,
                    struct advice_choice *out, bool *found, struct err *err)
{
    struct train_config then = { 0 };
    char *path = text_format("%s/config.yaml", folder);
    *found = false;
    if (!path)
        return err_memory(err, "the config");
    bool ok = !file_exists(path) || config_read(path, NULL, 0, &then, err);
    int64_t data = then.parallel[GRID_DATA], stages = then.parallel[GRID_STAGE];
    int64_t heads = then.parallel[GRID_HEADS];
    if (ok && data > 0 && data * stages * heads == ranks &&
        then.pipeline.cut.n + 1 == (size_t)stages) {
        *out = (struct advice_choice){ .data = (int)data,
                                       .stages = (int)stages,
                                       .heads = (int)heads,
                                       .schedule = (enum program_kind)then.pipeline.schedule,
                                       .recompute = then.pipeline.recompute == RECOMPUTE_ALWAYS,
                                       .micro_batch = config_micro_batch(&then),
                                       .micros = config_micro_batches(&then) };
        ok = stages_at(graph, (const char *const *)then.pipeline.cut.items, (int)stages - 1,
                       out->begin, err);
        *found = ok;
    }
    free(path);
    config_free(&then);
    return ok;
}

/* Measures, on the first rank. */
static bool choose(const struct train_config *config, const struct parallel_place *place,
                   const struct ctx *ctx, struct advice_choice *out, struct err *err)
{
    struct parallel_plan plan = { 0 };
    char words[160], heads[160];
    bool ok = parallel_plan_new(config, place, &plan, err) &&
              advice_fits(&plan.request, &plan.advice, err);
    if (ok) {
        *out = plan.advice.choices[0];
        advice_words(out, words, sizeof words);
        advice_heads_words(&plan.advice, heads, sizeof heads);
        console_note(ctx->console,
                     "parallel: auto: %s: %.3g s a step simulated, %.0f MB a rank; the fastest of "
                     "%d ways, %d of which fit%s%s",
                     words, out->seconds, (double)out->peak / 1e6, plan.advice.n, plan.advice.n_fit,
                     heads[0] ? "; " : "", heads);
    }
    parallel_plan_free(&plan);
    malloc_trim(0); /* what measuring took is not to count as memory of the training */
    return ok;
}

static bool apply(const struct graph *graph, const struct advice_choice *choice,
                  struct train_config *config, struct err *err)
{
    bool staged = choice->stages > 1;
    config->parallel[GRID_DATA] = choice->data;
    config->parallel[GRID_STAGE] = choice->stages;
    config->parallel[GRID_HEADS] = choice->heads;
    config->sequence = config->sequence && choice->heads > 1;
    config->pipeline.schedule = staged ? (int)choice->schedule : PROGRAM_1F1B;
    config->pipeline.recompute = !staged             ? RECOMPUTE_AUTO
                                 : choice->recompute ? RECOMPUTE_ALWAYS
                                                     : RECOMPUTE_NEVER;
    config->pipeline.times = 0;
    config->pipeline.micro_batch = staged ? choice->micro_batch : 0;
    config->train.batch = choice->micro_batch;
    config->train.accumulate = choice->micros;
    config->pipeline.automatic = false;
    return parallel_name_cuts(graph, choice->begin, choice->stages, &config->pipeline.cut, err);
}

bool parallel_settle(struct train_config *config, struct ranks *ranks, const char *folder,
                     bool resume, const struct ctx *ctx, struct err *err)
{
    if (!config->pipeline.automatic)
        return parallel_cut(config, ranks, folder, resume, ctx, err);
    if (ranks->size == 1) {
        config->pipeline.automatic = config->sequence = false;
        return true;
    }
    struct advice_choice choice = { 0 };
    struct graph *graph = NULL;
    struct parallel_place place = { .ranks = ranks->size,
                                    .ranks_a_machine = ranks->local_size,
                                    .cores = ranks->processors,
                                    .threads = pool_workers(ctx->pool),
                                    .wire_from = "measured" };
    bool ok = parallel_network(config, &graph, err);
    ok = ranks_agree(ranks, ok, NULL, err) && parallel_wire(ranks, &place.wire, err);
    if (ok && ranks->rank == 0) {
        bool found = false;
        parallel_memory(config, &place);
        ok = !resume || earlier(graph, folder, ranks->size, &choice, &found, err);
        ok = ok && (found || choose(config, &place, ctx, &choice, err));
    }
    ok =
        ranks_agree(ranks, ok, NULL, err) && ranks_broadcast(ranks, &choice, sizeof choice, 0, err);
    ok = ok && apply(graph, &choice, config, err);
    graph_free(graph);
    return ok;
}
