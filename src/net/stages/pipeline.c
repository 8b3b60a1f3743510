/* pipeline.c: see pipeline.h: the works of one rank, one after another. */
#include "net/stages/pipeline.h"
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "net/stages/pipe.h"

static size_t value_bytes(const struct graph *graph, value_id value)
{
    return (size_t)shape_count(graph_shape(graph, value)) * sizeof(float);
}

/* --- what is to be done --- */

/* The micro-batches of a copy in the order in which a rank has works of this kind for them: the
 * first behind `*at`; -1: no more. */
static int next_micro(const struct program *program, int rank, enum work_kind kind, int copy,
                      int *at)
{
    while (*at < program->n_work[rank]) {
        const struct work *work = &program->work[rank][(*at)++];
        if (work->kind == kind && (!program->two_way || work->micro % 2 == copy))
            return work->micro;
    }
    return -1;
}

/* Both ends of an edge must have the same order: messages carry no names. */
static bool check_order(const struct program *program, const struct stage_edge *edge, int copy,
                        enum work_kind kind, struct err *err)
{
    int ranks[2] = { program_rank(program, edge->from, copy),
                     program_rank(program, edge->to, copy) };
    int at[2] = { 0 }, micro[2];
    do {
        for (int k = 0; k < 2; k++)
            micro[k] = next_micro(program, ranks[k], kind, copy, &at[k]);
        if (micro[0] != micro[1])
            return err_set(err, ERR_USAGE,
                           "the schedule %s has other orders of micro-batches on ranks %d and %d",
                           program->schedule, ranks[0], ranks[1]);
    } while (micro[0] >= 0);
    return true;
}

static bool check_peers(const struct pipeline_options *o, struct err *err)
{
    int copies = o->program->two_way ? 2 : 1;
    for (int copy = 0; copy < copies; copy++)
        for (int c = 0; c < CHANNELS && o->stages->n_edges > 0; c++) {
            const struct plan_peers *peers = o->peers[copy][c];
            if (!peers || peers->size != o->stages->n || peers->rank != o->rank)
                return err_set(err, ERR_USAGE, "a pipeline of %d stages needs as many ranks",
                               o->stages->n);
        }
    return true;
}

static bool check_options(const struct pipeline_options *o, struct err *err)
{
    const struct stages *stages = o->stages;
    const struct program *program = o->program;
    if (program->stages != stages->n)
        return err_set(err, ERR_USAGE, "a schedule of %d stages for a network of %d",
                       program->stages, stages->n);
    if (o->rank < 0 || o->rank >= stages->n)
        return err_set(err, ERR_USAGE, "a pipeline of %d ranks has no rank %d", stages->n, o->rank);
    if (o->plan.mode == PLAN_INFER)
        return err_set(err, ERR_USAGE, "a pipeline trains: its plans cannot be for inference");
    if (o->recompute && o->plan.saving != SAVING_ALL)
        return err_set(err, ERR_USAGE,
                       "stages that are recomputed keep nothing that could be saved otherwise: "
                       "leave out train.saving, or parallel.recompute");
    bool ok = check_peers(o, err);
    for (int e = 0; e < stages->n_edges; e++)
        for (int copy = 0; copy <= program->two_way && copy < program->micros; copy++)
            ok = ok && check_order(program, &stages->edges[e], copy, WORK_FORWARD, err) &&
                 check_order(program, &stages->edges[e], copy, WORK_BACKWARD, err);
    return ok;
}

/* --- made and freed --- */

/* Outputs that no later stage reads must be the loss's. */
static bool check_outputs(const struct pipeline *p, const struct pipe_stage *stage, struct err *err)
{
    for (int o = 0; o < stage->graph->n_outputs && stage->stage < p->options.stages->n - 1; o++) {
        bool read = false;
        for (int k = 0; k < stage->n_out; k++)
            read = read || pipe_edge(p, stage->out[k])->output == o;
        if (!read)
            return err_set(err, ERR_USAGE,
                           "%s: is an output of the network that stage %d of %d makes; cut behind "
                           "it, so that the last stage does",
                           stage->graph->outputs[o].name, stage->stage + 1, p->options.stages->n);
    }
    return true;
}

static bool open_stage(struct pipeline *p, int h, int stage, struct err *err)
{
    const struct stages *stages = p->options.stages;
    struct pipe_stage *s = &p->held[h];
    size_t n = (size_t)stages->n_edges + 1;
    *s = (struct pipe_stage){ .stage = stage,
                              .graph = stages->graphs[stage],
                              .gradients = p->options.gradients[h],
                              .in = calloc(n, sizeof(int)),
                              .out = calloc(n, sizeof(int)) };
    if (!s->in || !s->out)
        return err_memory(err, "a pipeline");
    for (int e = 0; e < stages->n_edges; e++) {
        if (stages->edges[e].to == stage)
            s->in[s->n_in++] = e;
        if (stages->edges[e].from == stage)
            s->out[s->n_out++] = e;
    }
    for (int i = 0; i < s->graph->n_inputs; i++)
        s->input_bytes += value_bytes(s->graph, s->graph->inputs[i].value);
    for (int i = 0; i < p->n_works; i++)
        if (p->works[i].stage == stage)
            s->last_work = i;
    return check_outputs(p, s, err);
}

static bool open_micros(struct pipeline *p, struct err *err)
{
    p->micros = calloc((size_t)p->options.program->micros, sizeof *p->micros);
    bool ok = p->micros != NULL;
    for (int i = 0; ok && i < p->n_works; i++) {
        struct pipe_micro *m = &p->micros[p->works[i].micro];
        if (m->inputs)
            continue;
        m->held = p->n_held == 2 && p->works[i].stage == p->held[1].stage;
        const struct pipe_stage *s = &p->held[m->held];
        m->inputs = calloc((size_t)s->graph->n_inputs + 1, sizeof(struct packet *));
        m->there = calloc((size_t)s->n_in + 1, sizeof *m->there);
        m->back = calloc((size_t)s->n_out + 1, sizeof *m->back);
        ok = m->inputs && m->there && m->back;
    }
    return ok || err_memory(err, "a pipeline");
}

bool pipeline_new(const struct pipeline_options *options, struct pipeline **out, struct err *err)
{
    *out = NULL;
    if (!check_options(options, err))
        return false;
    struct pipeline *p = calloc(1, sizeof *p);
    if (!p)
        return err_memory(err, "a pipeline");
    int held[2];
    p->options = *options;
    p->n_held = program_held(options->program, options->rank, held);
    p->works = options->program->work[options->rank];
    p->n_works = options->program->n_work[options->rank];
    p->plan_of = calloc((size_t)p->n_works + 1, sizeof *p->plan_of);
    bool ok = p->plan_of || err_memory(err, "a pipeline");
    for (int h = 0; ok && h < p->n_held; h++)
        ok = open_stage(p, h, held[h], err);
    ok = ok && open_micros(p, err) && pipe_sets_new(p, err);
    if (!ok) {
        pipeline_free(p);
        return false;
    }
    *out = p;
    return true;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    pipe_sets_free(p);
    pipe_messages_free(p);
    for (int m = 0; p->micros && m < p->options.program->micros; m++)
        free(p->micros[m].inputs), free(p->micros[m].there), free(p->micros[m].back);
    for (int h = 0; h < p->n_held; h++)
        free(p->held[h].in), free(p->held[h].out);
    free(p->micros), free(p->plan_of);
    free(p);
}

/* --- works --- */

/* A work as it runs. */
struct now {
    const struct work *work;
    const struct pipe_work *decided;
    struct pipe_micro *micro;
    const struct pipe_stage *stage;
    struct plan *plan;
    uint64_t seed, first_sample;
};

/* An error that came up between steps of the plan counts too. */
static bool ran(struct pipeline *p, bool ok, struct err *err)
{
    if (ok && p->failure.kind != ERR_NONE)
        return err_set(err, p->failure.kind, "%s", p->failure.text);
    return ok;
}

static bool run_forward(struct pipeline *p, struct now *now, struct err *err)
{
    const struct graph *graph = now->stage->graph;
    for (int i = 0; i < graph->n_inputs; i++)
        memcpy(plan_input(now->plan, i), now->micro->inputs[i]->data, now->micro->inputs[i]->bytes);
    plan_set_random(now->plan, now->seed, now->first_sample);
    return ran(p, plan_forward(now->plan, err), err);
}

/* What came from other stages, and what the network is given. */
static bool gather_inputs(struct pipeline *p, struct now *now, struct err *err)
{
    const struct graph *graph = now->stage->graph;
    struct pipe_micro *micro = now->micro;
    if (!pipe_await(p, now->work->micro, CHANNEL_FORWARD, err))
        return false;
    for (int k = 0; k < now->stage->n_in; k++) {
        micro->inputs[pipe_edge(p, now->stage->in[k])->input] = micro->there[k].packet;
        micro->there[k].packet = NULL;
    }
    for (int i = 0; i < graph->n_inputs; i++) {
        if (micro->inputs[i])
            continue;
        if (!pipe_take(p, value_bytes(graph, graph->inputs[i].value), &micro->inputs[i], err) ||
            !p->options.feed(p->options.arg, now->work->stage, now->work->micro, i,
                             micro->inputs[i]->data, err))
            return false;
    }
    p->kept += now->stage->input_bytes;
    p->most_kept = p->kept > p->most_kept ? p->kept : p->most_kept;
    return true;
}

static void forget_inputs(struct pipeline *p, struct now *now)
{
    for (int i = 0; i < now->stage->graph->n_inputs; i++)
        pipe_release(&now->micro->inputs[i]);
    p->kept -= now->stage->input_bytes;
}

/* Each output once, however many stages read it. */
static bool send_outputs(struct pipeline *p, struct now *now, struct err *err)
{
    bool ok = pipe_send_begin(p, CHANNEL_FORWARD, err);
    for (int o = 0; ok && o < now->stage->graph->n_outputs; o++) {
        struct packet *packet = NULL;
        for (int k = 0; ok && k < now->stage->n_out; k++) {
            const struct stage_edge *edge = pipe_edge(p, now->stage->out[k]);
            if (edge->output != o)
                continue;
            if (!packet && (ok = pipe_take(p, edge->bytes, &packet, err)))
                memcpy(packet->data, plan_output(now->plan, o), edge->bytes);
            ok = ok && pipe_send(p, now->work->micro, CHANNEL_FORWARD, edge->to, packet, err);
        }
        pipe_release(&packet);
    }
    return ok;
}

static bool work_forward(struct pipeline *p, struct now *now, struct err *err)
{
    if (!gather_inputs(p, now, err))
        return false;
    double start = clock_monotonic_s();
    bool ok = run_forward(p, now, err);
    p->report.forward_s += clock_monotonic_s() - start;
    if (!p->options.recompute)
        forget_inputs(p, now);
    return ok && send_outputs(p, now, err);
}

/* From the last stage that read it to the first, as one process would add them. */
static bool gather_gradients(struct pipeline *p, struct now *now, struct err *err)
{
    const struct graph *graph = now->stage->graph;
    if (!pipe_await(p, now->work->micro, CHANNEL_BACKWARD, err))
        return false;
    for (int o = 0; o < graph->n_outputs; o++)
        memset(plan_output_gradient(now->plan, o), 0, value_bytes(graph, graph->outputs[o].value));
    for (int k = now->stage->n_out - 1; k >= 0; k--) {
        struct packet *packet = now->micro->back[k].packet;
        const struct stage_edge *edge = pipe_edge(p, now->stage->out[k]);
        float *to = plan_output_gradient(now->plan, edge->output);
        for (size_t i = 0; i < edge->bytes / sizeof(float); i++)
            to[i] += packet->data[i];
        pipe_release(&now->micro->back[k].packet);
    }
    return now->stage->stage < p->options.stages->n - 1 ||
           p->options.loss(p->options.arg, now->work->micro, now->plan, err);
}

static bool send_gradients(struct pipeline *p, struct now *now, struct err *err)
{
    bool ok = pipe_send_begin(p, CHANNEL_BACKWARD, err);
    for (int k = 0; ok && k < now->stage->n_in; k++) {
        const struct stage_edge *edge = pipe_edge(p, now->stage->in[k]);
        value_id input = now->stage->graph->inputs[edge->input].value;
        struct packet *packet = NULL;
        ok = pipe_take(p, edge->bytes, &packet, err) &&
             plan_activation_gradient(now->plan, input, packet->data, err) &&
             pipe_send(p, now->work->micro, CHANNEL_BACKWARD, edge->from, packet, err);
        pipe_release(&packet);
    }
    return ok;
}

static bool work_backward(struct pipeline *p, struct now *now, struct err *err)
{
    bool ok = true;
    double start = clock_monotonic_s();
    if (now->decided->again) {
        plan_hold_statistics(now->plan, true);
        ok = run_forward(p, now, err);
        plan_hold_statistics(now->plan, false);
        p->report.recompute_s += clock_monotonic_s() - start;
    }
    if (!ok || !gather_gradients(p, now, err))
        return false;
    start = clock_monotonic_s();
    ok = ran(p,
             p->options.program->split ? plan_backward_inputs(now->plan, err)
                                       : plan_backward(now->plan, err),
             err);
    p->report.backward_s += clock_monotonic_s() - start;
    if (p->options.recompute)
        forget_inputs(p, now);
    return ok && send_gradients(p, now, err);
}

static bool work_weights(struct pipeline *p, struct now *now, struct err *err)
{
    double start = clock_monotonic_s();
    bool ok = ran(p, plan_backward_weights(now->plan, err), err);
    p->report.weights_s += clock_monotonic_s() - start;
    return ok;
}

static bool run_work(struct pipeline *p, int i, uint64_t seed, const uint64_t *first_sample,
                     struct err *err)
{
    static bool (*const kinds[])(struct pipeline *, struct now *, struct err *) = {
        [WORK_FORWARD] = work_forward,
        [WORK_BACKWARD] = work_backward,
        [WORK_WEIGHTS] = work_weights,
    };
    const struct work *work = &p->works[i];
    struct pipe_micro *micro = &p->micros[work->micro];
    struct now now = { .work = work,
                       .decided = &p->plan_of[i],
                       .micro = micro,
                       .stage = &p->held[micro->held],
                       .plan = p->sets[p->plan_of[i].set].plans[micro->held],
                       .seed = seed,
                       .first_sample = first_sample[work->micro] };
    if (!pipe_post(p, i, err) || !kinds[work->kind](p, &now, err))
        return false;
    if (i == now.stage->last_work && p->options.complete)
        p->options.complete(p->options.arg, micro->held);
    return true;
}

bool pipeline_step(struct pipeline *p, uint64_t seed, const uint64_t *first_sample, struct err *err)
{
    double start = clock_monotonic_s();
    bool ok = !p->failed || err_set(err, ERR_USAGE, "a pipeline that failed cannot go on");
    memset(p->posted, 0, sizeof p->posted);
    for (int i = 0; ok && i < p->n_works; i++)
        ok = run_work(p, i, seed, first_sample, err);
    ok = ok && pipe_send_end(p, err);
    if (!ok && !p->failed)
        pipe_abandon(p);
    p->failed = !ok;
    p->report.seconds += clock_monotonic_s() - start;
    p->report.steps += ok;
    return ok;
}

struct pipeline_report pipeline_report(const struct pipeline *p)
{
    struct pipeline_report report = p->report;
    report.inputs = p->most_kept;
    report.messages = p->packet_bytes > p->most_kept ? p->packet_bytes - p->most_kept : 0;
    return report;
}
