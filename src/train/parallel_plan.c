/* parallel_plan.c: see parallel_plan.h: the question for the advice, from a config. */
#include "train/parallel_plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/room.h"
#include "dist/numa.h"
#include "net/plan/plan.h"
#include "text/tokenizer.h"
#include "train/network.h"
#include "train/objectives.h"

#define MEASURE_MOST ((size_t)2 << 30)    /* bytes that measuring may take */
#define MEASURE_LEAST ((size_t)256 << 20) /* the same, if ranks may take less */
#define MEASURE_PX 64                     /* images are not made smaller to measure */
#define MEASURE_TIMES 3 /* the fastest counts: others may use the processors too */

/* Images of the size of the config, or texts; other data are not planned for. */
static bool check_kind(const struct train_config *config, struct err *err)
{
    if (config_recordings(config))
        return err_set(err, ERR_USAGE,
                       "data.audio: grids are planned for patches and texts; use parallel.data");
    if (config_texts(config) && objective_of(config)->truth == TRUTH_NONE)
        return err_set(err, ERR_USAGE,
                       "objective %s: grids are not planned for it; use parallel.data",
                       objective_of(config)->name);
    if (config_whole(config))
        return err_set(err, ERR_USAGE,
                       "data.slides: grids are planned for patches; whole slides are divided with "
                       "parallel.data and parallel.bands");
    if (config->distill.teacher[0])
        return err_set(
            err, ERR_USAGE,
            "distill.teacher: grids are not planned for distillation; use parallel.data");
    if (config_divided(config))
        return err_set(err, ERR_USAGE,
                       "parallel.space: %lldx%lld: only data, stages and heads are planned; omit "
                       "it",
                       (long long)config->space[0], (long long)config->space[1]);
    if (config->parallel[GRID_BANDS] > 1)
        return err_set(err, ERR_USAGE,
                       "parallel.bands: %lld: only data, stages and heads are planned; omit it",
                       (long long)config->parallel[GRID_BANDS]);
    return config_check_heads(config, err);
}

/* As in advice_request: as the config says, else open if it allows them at all. */
static int heads_of(const struct train_config *config)
{
    struct train_config divided = *config;
    if (config->parallel[GRID_HEADS] > 1)
        return (int)config->parallel[GRID_HEADS];
    divided.parallel[GRID_HEADS] = 2;
    return config_check_heads(&divided, NULL) ? 0 : 1;
}

static bool text_network(const struct train_config *config, int64_t classes, struct graph **out,
                         struct err *err)
{
    struct tokenizer_options options = { .keep_case = config->data.keep_case,
                                         .keep_accents = config->data.keep_case };
    struct tokenizer *tokenizer = NULL;
    int64_t vocabulary = config->data.vocabulary;
    if (config->data.tokenizer[0]) {
        if (!tokenizer_open(config->data.tokenizer, &options, &tokenizer, err))
            return false;
        vocabulary = tokenizer_size(tokenizer);
        tokenizer_free(tokenizer);
    }
    return network_build_text(config, classes, vocabulary, out, err);
}

bool parallel_network(const struct train_config *config, struct graph **out, struct err *err)
{
    struct train_config one = *config; /* what it points to stays the config's */
    int64_t classes = config->classes.n > 0 ? (int64_t)config->classes.n : 1;
    one.train.batch = one.train.accumulate = one.pipeline.micro_batch = 1;
    if (config_texts(config))
        return text_network(&one, classes, out, err);
    return config->truth == TRUTH_LABEL_IMAGES
               ? network_build_pixels(&one, classes, out, err)
               : network_build(&one, config->truth == TRUTH_TARGETS ? 1 : classes,
                               "a network that can be trained on patches", out, err);
}

static bool sees_batch(const struct train_config *config, const struct graph *graph)
{
    if (config->network.norm == NORM_FROZEN)
        return false;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (strcmp(graph->nodes[i].op->name, "batch_norm") == 0)
            return true;
    return false;
}

static int optimizer_arrays(const struct train_config *config)
{
    const struct optimizer_options *o = &config->optimizer;
    bool adam = o->kind == OPTIMIZER_ADAM || o->kind == OPTIMIZER_ADAMW;
    return (adam ? 2 : o->momentum > 0) + (config->train.ema > 0);
}

/* The program as it is now, what data take, and plans, also of an evaluation, which runs the whole
 * network. As a training counts it (runner_coming_bytes). */
static bool besides(const struct train_config *config, struct parallel_plan *plan, struct err *err)
{
    struct plan_options evaluate = { .mode = PLAN_INFER, .threads = 1 };
    struct plan_options train = { .mode = PLAN_TRAIN, .threads = 1 };
    struct plan_estimate evaluated = { 0 }, trained = { 0 };
    size_t now = room_resident();
    int arrays = 2 + (config->train.ema > 0);
    if (!parallel_network(config, &plan->graph, err) ||
        !graph_initialize(plan->graph, (uint64_t)config->seed, err) ||
        !plan_estimate(plan->graph, &evaluate, &evaluated, err) ||
        !plan_estimate(plan->graph, &train, &trained, err))
        return false;
    plan->request = (struct advice_request){
        .besides = now + evaluated.arena * (size_t)config->train.batch +
                   (2 * (size_t)config->data.window_mb << 20),
        .train_plan = trained.plan,
        .evaluation_plan = evaluated.plan,
        .other_arrays = arrays > optimizer_arrays(config) ? arrays - optimizer_arrays(config) : 0,
    };
    return true;
}

bool parallel_measure(const struct graph *graph, const struct parallel_place *place,
                      struct node_cost **out, int64_t *measured_px, struct err *err)
{
    size_t room = MEASURE_MOST;
    if (place->memory > 0 && place->memory < room)
        room = place->memory > MEASURE_LEAST ? place->memory : MEASURE_LEAST;
    struct costs_options options = { .threads = place->threads > 0 ? place->threads : 1,
                                     .room = room,
                                     .least_px = MEASURE_PX,
                                     .repeats = MEASURE_TIMES };
    *out = calloc((size_t)graph->n_nodes + 1, sizeof **out);
    if (!*out)
        return err_memory(err, "costs of layers");
    return costs_measure(graph, &options, *out, measured_px, err);
}

static void ask(const struct train_config *config, struct parallel_plan *plan)
{
    const struct parallel_place *place = &plan->place;
    int64_t replica = config->train.batch * config->train.accumulate;
    struct advice_request *request = &plan->request;
    *request = (struct advice_request){ .graph = plan->graph,
                                        .costs = plan->costs,
                                        .ranks = place->ranks,
                                        .memory = place->memory,
                                        .besides = request->besides,
                                        .train_plan = request->train_plan,
                                        .evaluation_plan = request->evaluation_plan,
                                        .other_arrays = request->other_arrays,
                                        .optimizer_arrays = optimizer_arrays(config),
                                        .wire = place->wire,
                                        .ranks_a_machine = place->ranks_a_machine,
                                        .cores = place->cores,
                                        .threads = place->threads,
                                        .schedule = -1,
                                        .recompute = -1,
                                        .micro_batch = config->pipeline.micro_batch };
    request->data = (int)config->parallel[GRID_DATA];
    request->stages = config->parallel[GRID_STAGE] > 1 ? (int)config->parallel[GRID_STAGE] : 0;
    request->heads = heads_of(config);
    request->sequence = config->sequence;
    request->texts = config_texts(config);
    int data = request->data > 0     ? request->data
               : request->stages > 0 ? place->ranks / request->stages
               : request->heads > 0  ? place->ranks / request->heads
                                     : place->ranks;
    request->step_images = replica * (data > 0 ? data : 1);
    if (config->pipeline.recompute != RECOMPUTE_AUTO)
        request->recompute = config->pipeline.recompute == RECOMPUTE_ALWAYS;
    if (config->pipeline.times > 0)
        request->times = (int)config->pipeline.times;
    if (request->micro_batch == 0 && plan->norm_fixes)
        request->micro_batch = config->train.batch;
}

bool parallel_plan_new(const struct train_config *config, const struct parallel_place *place,
                       struct parallel_plan *out, struct err *err)
{
    bool texts = config_texts(config);
    *out = (struct parallel_plan){ .place = *place,
                                   .input_px = texts ? 0 : config->network.input_px,
                                   .tokens = texts ? config->data.max_tokens : 0 };
    bool ok = check_kind(config, err) && besides(config, out, err) &&
              parallel_measure(out->graph, place, &out->costs, &out->measured_px, err);
    if (ok) {
        out->norm_fixes = sees_batch(config, out->graph);
        ask(config, out);
        ok = advise(&out->request, &out->advice, err);
    }
    if (!ok)
        parallel_plan_free(out);
    return ok;
}

void parallel_plan_free(struct parallel_plan *plan)
{
    advice_free(&plan->advice);
    graph_free(plan->graph);
    free(plan->costs);
    *plan = (struct parallel_plan){ 0 };
}

void parallel_memory(const struct train_config *config, struct parallel_place *place)
{
    if (config->train.memory_mb > 0) {
        place->memory = (size_t)config->train.memory_mb * 1000000;
        place->memory_from = "train.memory_mb";
        return;
    }
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    int ranks = place->ranks_a_machine > 0 ? place->ranks_a_machine : 1;
    place->memory = bytes > 0 ? (size_t)(0.9 * bytes / ranks) : 0;
    place->memory_from = "this machine's";
}

int parallel_processors(void)
{
    struct numa *numa = NULL;
    int n = numa_new(NULL, &numa, NULL) ? numa_processors(numa) : 1;
    numa_free(numa);
    return n > 0 ? n : 1;
}
