/* runner_stages.c: patches through a network in stages (runner.h): this rank runs its stages of the
 * pipeline (net/stages/pipeline.h). Ranks whose stages take images read batches, and so do ranks
 * that have the last stage, for the labels; the others read nothing. */
#include <stdlib.h>
#include <string.h>
#include "base/console.h"
#include "base/json.h"
#include "base/room.h"
#include "net/stages/simulate.h"
#include "train/staged.h"

/* What a rank has to say. */
struct rank_report {
    int held[2], n_held;
    bool recompute;
    size_t predicted; /* bytes of activations, inputs kept and messages */
    struct pipeline_report did;
};

struct micro_kept {
    struct batch batch;
    struct batch_room room;
};

struct stage_runner {
    struct runner runner;
    struct runner *patches; /* where batches come from */
    struct pipeline *pipeline;
    bool reads;              /* this rank needs batches */
    int output;              /* of the last stage: the objective's */
    int n_read;              /* micro-batches of the step that were read */
    struct batch now;        /* the last of them */
    struct micro_kept *kept; /* [micros]: labels and the like, until the loss */
    uint64_t *first_sample;  /* [micros] */
    step_loss_fn loss;
    void *loss_arg;
    struct rank_report mine;
    struct rank_report *all; /* [ranks] */
};

static struct stage_runner *of(struct runner *runner)
{
    return (struct stage_runner *)runner;
}

static const struct stage_runner *of_const(const struct runner *runner)
{
    return (const struct stage_runner *)runner;
}

static const struct staged *staged_of(const struct stage_runner *r)
{
    return r->runner.trainer->staged;
}

/* --- opening --- */

static void stages_free_runner(struct runner *runner)
{
    struct stage_runner *r = of(runner);
    pipeline_free(r->pipeline);
    runner_free(r->patches);
    for (int m = 0; r->kept && m < staged_of(r)->program.micros; m++)
        free(r->kept[m].room.data);
    free(r->kept), free(r->first_sample), free(r->all);
    free(r);
}

static bool stages_open(struct trainer *trainer, enum data_side side, struct runner **out,
                        struct err *err)
{
    struct stage_runner *r = calloc(1, sizeof *r);
    if (!r)
        return err_memory(err, "batches");
    size_t micros = (size_t)trainer->staged->program.micros;
    r->runner = (struct runner){ &runner_stages, trainer, side };
    r->kept = calloc(micros, sizeof *r->kept);
    r->first_sample = calloc(micros, sizeof *r->first_sample);
    r->all = calloc((size_t)trainer->request->ranks->size, sizeof *r->all);
    bool ok = (r->kept && r->first_sample && r->all) || err_memory(err, "batches");
    if (!ok || !runner_patches.open(trainer, side, &r->patches, err)) {
        stages_free_runner(&r->runner);
        return false;
    }
    *out = &r->runner;
    return true;
}

static int64_t stages_n_batches(const struct runner *runner)
{
    return runner_patches.n_batches(of_const(runner)->patches);
}

static bool stages_begin(struct runner *runner, uint64_t epoch, int64_t first, struct err *err)
{
    struct stage_runner *r = of(runner);
    return !r->reads || runner_patches.begin(r->patches, epoch, first, err);
}

static void stages_end(struct runner *runner)
{
    if (of(runner)->reads)
        runner_patches.end(of(runner)->patches);
}

static double stages_waited_s(const struct runner *runner)
{
    return runner_patches.waited_s(of_const(runner)->patches);
}

/* --- what the pipeline asks for --- */

/* Reads on to a micro-batch. What the loss needs of it, perhaps much later, is copied. */
static bool read_to(struct stage_runner *r, int micro, struct err *err)
{
    const struct staged *s = staged_of(r);
    bool ok = true;
    for (; ok && r->n_read <= micro; r->n_read++) {
        struct micro_kept *kept = &r->kept[r->n_read];
        bool judges = program_rank(&s->program, s->stages.n - 1, r->n_read) == s->rank;
        r->now = (struct batch){ 0 };
        ok = runner_patches.next(r->patches, &r->now, err) &&
             (!judges || batch_copy(&r->now, "image", &kept->room, &kept->batch, err));
    }
    return ok;
}

static bool feed(void *arg, int stage, int micro, int port, float *to, struct err *err)
{
    struct stage_runner *r = arg;
    const char *name = staged_of(r)->stages.graphs[stage]->inputs[port].name;
    const struct objective_feed *feed = r->runner.trainer->learning.objective->feeds;
    if (!read_to(r, micro, err))
        return false;
    while (feed->tensor && strcmp(feed->port, name) != 0)
        feed++;
    const struct batch_item *item = feed->tensor ? batch_find(&r->now, feed->tensor) : NULL;
    if (!item || r->n_read != micro + 1)
        return err_set(err, ERR_USAGE, "stage %d: nothing to give to its input %s", stage + 1,
                       name);
    const struct shape *shape = &item->shape;
    if (staged_of(r)->part)
        trainer_space_cut(r->runner.trainer, item->data, shape->dim[0] * shape->dim[1],
                          shape->dim[2], 0, NULL, to);
    else
        memcpy(to, item->data, (size_t)shape_count(shape) * sizeof *to);
    return true;
}

static bool judge(void *arg, int micro, struct plan *plan, struct err *err)
{
    struct stage_runner *r = arg;
    if (!read_to(r, micro, err))
        return false;
    struct step_batch batch = { .batch = r->kept[micro].batch,
                                .outputs = plan_output(plan, r->output),
                                .gradient = plan_output_gradient(plan, r->output) };
    bool ok = r->loss(r->loss_arg, &batch, err);
    const struct graph *last = staged_of(r)->stages.graphs[staged_of(r)->stages.n - 1];
    trainer_space_gradient(r->runner.trainer, last, r->output, batch.gradient);
    return ok;
}

static void complete(void *arg, int i)
{
    struct stage_runner *r = arg;
    const struct staged *s = staged_of(r);
    trainer_share_complete(r->runner.trainer, s->at[i], s->at[i + 1]);
}

static void progress(void *arg)
{
    struct stage_runner *r = arg;
    trainer_share_complete(r->runner.trainer, 0, 0);
}

/* --- memory --- */

/* Of all inputs of a stage, for one micro-batch. */
static size_t input_bytes(const struct graph *graph)
{
    size_t bytes = 0;
    for (int i = 0; i < graph->n_inputs; i++)
        bytes += (size_t)shape_count(graph_shape(graph, graph->inputs[i].value)) * sizeof(float);
    return bytes;
}

/* What the pipeline will take on this rank. */
static bool predict(const struct stage_runner *r, const struct pipeline_options *options,
                    size_t *out, struct err *err)
{
    const struct staged *s = staged_of(r);
    struct stage_cost costs[STAGES_MOST] = { 0 };
    struct simulate_options simulated = { .program = &s->program,
                                          .costs = costs,
                                          .edges = s->stages.edges,
                                          .n_edges = s->stages.n_edges,
                                          .recompute = options->recompute };
    for (int h = 0; h < s->n_held; h++) {
        const struct graph *graph = s->stages.graphs[s->held[h]];
        struct plan_options plan = options->plan;
        struct plan_estimate estimate;
        value_id *keep = calloc((size_t)graph->n_inputs + 1, sizeof *keep);
        for (int i = 0; keep && i < graph->n_inputs; i++)
            keep[i] = graph->inputs[i].value;
        plan.keep = keep, plan.n_keep = s->held[h] > 0 ? graph->n_inputs : 0;
        plan.split_backward = s->program.split;
        bool ok = keep ? plan_estimate(graph, &plan, &estimate, err) : err_memory(err, graph->name);
        free(keep);
        if (!ok)
            return false;
        costs[s->held[h]].kept = estimate.arena;
        costs[s->held[h]].inputs = input_bytes(graph);
    }
    *out = simulate_peak(&simulated, s->rank);
    return true;
}

/* parallel.recompute: auto. Neither choice changes a bit, and ranks need not choose the same,
 * unless they talk in a forward pass. */
static bool choose_recompute(const struct stage_runner *r, struct pipeline_options *options,
                             struct err *err)
{
    const struct trainer *trainer = r->runner.trainer;
    const struct train_config *config = trainer->config;
    double limit = 1e6 * (double)config->train.memory_mb;
    size_t coming = 0, predicted = 0;
    options->recompute = config->pipeline.recompute == RECOMPUTE_ALWAYS;
    if (config->pipeline.recompute != RECOMPUTE_AUTO || config_half(config) ||
        config->pipeline.schedule != PROGRAM_1F1B)
        return true;
    if (trainer->peers.size > 1 || trainer_divides(trainer))
        limit = 0;
    if (limit > 0 && (!runner_coming_bytes(trainer, trainer->graph, &coming, err) ||
                      !predict(r, options, &predicted, err)))
        return false;
    options->recompute =
        limit == 0 || (double)(room_resident() + coming) + (double)predicted > limit;
    return true;
}

/* --- the network --- */

static void find_role(struct stage_runner *r)
{
    const struct staged *s = staged_of(r);
    const struct trainer *trainer = r->runner.trainer;
    for (int h = 0; h < s->n_held; h++) {
        const struct graph *graph = s->stages.graphs[s->held[h]];
        for (int i = 0; i < graph->n_inputs; i++)
            r->reads = r->reads || trainer_input(trainer->graph, graph->inputs[i].name) >= 0;
        r->reads = r->reads || s->held[h] == s->stages.n - 1;
    }
    r->output = trainer_output(trainer, s->stages.graphs[s->stages.n - 1]);
}

static bool stages_use(struct runner *runner, const struct graph *graph, enum plan_mode mode,
                       struct err *err)
{
    struct stage_runner *r = of(runner);
    struct trainer *trainer = runner->trainer;
    struct staged *s = trainer->staged;
    pipeline_free(r->pipeline);
    r->pipeline = NULL;
    if (!graph)
        return true;
    struct pipeline_options options = {
        .stages = &s->stages,
        .program = &s->program,
        .rank = s->rank,
        .plan = { .mode = mode,
                  .threads = trainer->threads,
                  .norm_peers = 1u << PEERS_DATA,
                  .norm_frozen = trainer->config->network.norm == NORM_FROZEN,
                  .saving = config_half(trainer->config) ? SAVING_HALF : SAVING_ALL },
        .feed = feed,
        .loss = judge,
        .complete = complete,
        .progress = progress,
        .arg = r,
    };
    options.plan.peers[PEERS_DATA] = trainer_peers(trainer);
    trainer_space_peers(trainer, &options.plan);
    for (int h = 0; h < s->n_held; h++)
        options.gradients[h] = trainer->gradients + s->at[h];
    for (int i = 0; i < 2 * CHANNELS; i++)
        options.peers[i / CHANNELS][i % CHANNELS] = &s->peers[i / CHANNELS][i % CHANNELS];
    find_role(r);
    if (!choose_recompute(r, &options, err) || !predict(r, &options, &r->mine.predicted, err))
        return false;
    r->mine.recompute = options.recompute;
    return pipeline_new(&options, &r->pipeline, err);
}

static bool stages_step(struct runner *runner, int64_t number, step_loss_fn loss, void *arg,
                        struct err *err)
{
    struct stage_runner *r = of(runner);
    struct trainer *trainer = runner->trainer;
    int micros = staged_of(r)->program.micros;
    for (int m = 0; m < micros; m++)
        r->first_sample[m] = runner_first_sample(runner, number * micros + m);
    r->n_read = 0;
    r->loss = loss, r->loss_arg = arg;
    bool ok = pipeline_step(r->pipeline, (uint64_t)trainer->config->seed, r->first_sample, err) &&
              (!r->reads || read_to(r, micros - 1, err));
    trainer->torn = !ok; /* others wait for this rank */
    if (!ok) {
        char who[32];
        snprintf(who, sizeof who, "rank %d", trainer->request->ranks->rank);
        err_prefix(err, who);
    }
    console_advance(trainer->ctx->console, trainer_step_images(trainer));
    return ok;
}

/* --- reports --- */

static void put_held(const struct rank_report *report, char *text, size_t size)
{
    if (report->n_held == 2)
        snprintf(text, size, "stages %d and %d", report->held[0] + 1, report->held[1] + 1);
    else
        snprintf(text, size, "stage %d", report->held[0] + 1);
}

static const char *set_words(int sets)
{
    return sets == 1 ? "set" : "sets";
}

/* Ranks of the first replica, which are the first; the others are like them. */
static int replica_ranks(const struct stage_runner *r)
{
    const struct trainer *trainer = r->runner.trainer;
    return trainer->request->ranks->size / trainer->grid.extent[GRID_DATA];
}

/* Before anything is trained: where the network is cut, and what ranks will take. */
static void say_plan(const struct stage_runner *r)
{
    const struct trainer *trainer = r->runner.trainer;
    const struct staged *s = staged_of(r);
    const struct train_config *config = trainer->config;
    struct console *console = trainer->ctx->console;
    console_note(console, "%d stages, schedule %s, %d micro-batch%s of %lld in a step", s->stages.n,
                 s->program.schedule, s->program.micros, s->program.micros == 1 ? "" : "es",
                 (long long)config_micro_batch(config));
    for (int i = 0; i < s->stages.n; i++)
        console_note(console, "stage %d: %s to %s, %lld parameters", i + 1,
                     trainer->graph->nodes[s->begin[i]].name,
                     trainer->graph->nodes[s->begin[i + 1] - 1].name,
                     (long long)graph_parameter_count(s->stages.graphs[i]));
    for (int i = 0; i < replica_ranks(r); i++) {
        char held[64];
        const struct rank_report *report = &r->all[i];
        put_held(report, held, sizeof held);
        console_note(console, "rank %d: %s, %d %s of activations%s, %.1f MB predicted", i, held,
                     report->did.sets, set_words(report->did.sets),
                     report->recompute ? " and inputs to compute them again" : "",
                     (double)report->predicted / 1e6);
    }
}

static bool stages_tell(struct runner *runner, struct err *err)
{
    struct stage_runner *r = of(runner);
    const struct staged *s = staged_of(r);
    r->mine.n_held = s->n_held;
    memcpy(r->mine.held, s->held, sizeof s->held);
    r->mine.did = pipeline_report(r->pipeline);
    if (!ranks_gather_equal(runner->trainer->request->ranks, &r->mine, sizeof r->mine, r->all, err))
        return false;
    if (r->mine.did.steps == 0)
        say_plan(r);
    return true;
}

static size_t measured(const struct pipeline_report *did)
{
    return did->arenas + did->inputs + did->messages;
}

static double waiting(const struct pipeline_report *did)
{
    return did->seconds > 0 ? did->waiting_s / did->seconds : 0;
}

static void put_rank(struct json_out *json, int rank, const struct rank_report *report)
{
    const struct pipeline_report *did = &report->did;
    json_out_object_line(json, NULL);
    json_out_int(json, "rank", rank);
    json_out_array_line(json, "stages");
    for (int h = 0; h < report->n_held; h++)
        json_out_int(json, NULL, report->held[h] + 1);
    json_out_close_array(json);
    json_out_bool(json, "recompute", report->recompute);
    json_out_int(json, "sets", did->sets);
    json_out_int(json, "activation_bytes", (int64_t)did->arenas);
    json_out_int(json, "input_bytes", (int64_t)did->inputs);
    json_out_int(json, "message_bytes", (int64_t)did->messages);
    json_out_int(json, "peak_bytes", (int64_t)measured(did));
    json_out_int(json, "predicted_bytes", (int64_t)report->predicted);
    json_out_int(json, "sent_bytes", did->sent_bytes);
    json_out_real(json, "seconds", did->seconds);
    json_out_real(json, "waiting", waiting(did));
    json_out_close_object(json);
}

static void stages_record(const struct runner *runner, struct json_out *json)
{
    const struct stage_runner *r = of_const(runner);
    const struct trainer *trainer = runner->trainer;
    const struct staged *s = staged_of(r);
    json_out_object(json, "pipeline");
    json_out_text(json, "schedule", s->program.schedule);
    json_out_int(json, "micro_batches", s->program.micros);
    json_out_int(json, "micro_batch", config_micro_batch(trainer->config));
    json_out_array(json, "stages");
    for (int i = 0; i < s->stages.n; i++) {
        json_out_object_line(json, NULL);
        json_out_text(json, "first", trainer->graph->nodes[s->begin[i]].name);
        json_out_text(json, "last", trainer->graph->nodes[s->begin[i + 1] - 1].name);
        json_out_int(json, "parameters", graph_parameter_count(s->stages.graphs[i]));
        json_out_int(json, "input_bytes", (int64_t)input_bytes(s->stages.graphs[i]));
        json_out_close_object(json);
    }
    json_out_close_array(json);
    json_out_array(json, "ranks");
    for (int i = 0; i < trainer->request->ranks->size; i++)
        put_rank(json, i, &r->all[i]);
    json_out_close_array(json);
    json_out_close_object(json);
}

static void stages_remark(const struct runner *runner)
{
    const struct stage_runner *r = of_const(runner);
    for (int i = 0; i < replica_ranks(r) && r->all[0].did.steps > 0; i++) {
        char held[64];
        const struct pipeline_report *did = &r->all[i].did;
        put_held(&r->all[i], held, sizeof held);
        console_note(runner->trainer->ctx->console,
                     "rank %d: %s, %d %s: %.1f MB of activations, %.1f MB of inputs, %.1f MB of "
                     "messages; waited %.0f %% of the time of its steps",
                     i, held, did->sets, set_words(did->sets), (double)did->arenas / 1e6,
                     (double)did->inputs / 1e6, (double)did->messages / 1e6, 100 * waiting(did));
    }
}

const struct runner_kind runner_stages = {
    .samples = "patches",
    .batch = config_micro_batch,
    .step_batches = config_micro_batches,
    .open = stages_open,
    .free = stages_free_runner,
    .n_batches = stages_n_batches,
    .begin = stages_begin,
    .end = stages_end,
    .waited_s = stages_waited_s,
    .use = stages_use,
    .step = stages_step,
    .tell = stages_tell,
    .record = stages_record,
    .remark = stages_remark,
};
