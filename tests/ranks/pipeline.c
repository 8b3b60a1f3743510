/* pipeline.c: networks cut into as many stages as there are ranks, trained by every schedule over
 * MPI: the gradients and running statistics of one process that runs the same micro-batches; bit
 * for bit where sums have the same order. Cuts are anywhere: skips cross them. */
#include <math.h>
#include <string.h>
#include "check.h"
#include "net/stages/pipeline.h"
#include "net/zoo/zoo.h"
#include "support/drawn_step.h"
#include "train/peers.h"

#define MICROS_MOST 6
#define SEED 9

struct pipe_case {
    const char *network;
    int64_t side, batch;
    enum program_kind kind;
    bool recompute, exact;
};

struct rank_state {
    const struct pipe_case *c;
    struct ranks *all;
    struct graph *graph;
    struct stages stages;
    struct program program;
    float *gradients[2];
    int held[2], n_held;
};

static struct graph *network(struct ranks *all, const struct pipe_case *c)
{
    struct zoo_options zoo = {
        .batch = c->batch, .height = c->side, .width = c->side, .classes = 5
    };
    struct err err = { 0 };
    struct graph *graph = NULL;
    CHECK_OK(all, zoo_build(c->network, &zoo, &graph, &err), &err);
    CHECK(all, draw_weights(graph));
    return graph;
}

static bool feed(void *arg, int stage, int micro, int port, float *to, struct err *err)
{
    const struct rank_state *s = arg;
    (void)err;
    draw_input(s->stages.graphs[stage], port, micro, to);
    return true;
}

static bool loss(void *arg, int micro, struct plan *plan, struct err *err)
{
    const struct rank_state *s = arg;
    (void)err;
    draw_loss(s->stages.graphs[s->stages.n - 1], plan, micro);
    return true;
}

/* Two steps, of which the second begins with what the first left in memory. */
static void run_pipeline(struct rank_state *s, const struct plan_peers *const peers[2][CHANNELS])
{
    struct pipeline *pipeline = NULL;
    struct err err = { 0 };
    uint64_t first_sample[MICROS_MOST];
    struct pipeline_options o = { .stages = &s->stages,
                                  .program = &s->program,
                                  .rank = s->all->rank,
                                  .recompute = s->c->recompute,
                                  .plan = { .mode = PLAN_TRAIN, .threads = 1 },
                                  .gradients = { s->gradients[0], s->gradients[1] },
                                  .feed = feed,
                                  .loss = loss,
                                  .arg = s };
    memcpy(o.peers, peers, sizeof o.peers);
    for (int m = 0; m < s->program.micros; m++)
        first_sample[m] = (uint64_t)(m * s->c->batch);
    CHECK_OK(s->all, pipeline_new(&o, &pipeline, &err), &err);
    for (int step = 0; step < 2; step++)
        CHECK_OK(s->all, pipeline_step(pipeline, SEED, first_sample, &err), &err);
    CHECK(s->all, pipeline_report(pipeline).steps == 2);
    pipeline_free(pipeline);
}

/* The same micro-batches on one process, m % stride == first. */
static struct plan *run_whole(const struct rank_state *s, const struct graph *graph, int first,
                              int stride)
{
    struct plan_options options = { .mode = PLAN_TRAIN, .threads = 1 };
    struct plan *plan = NULL;
    struct err err = { 0 };
    CHECK_OK(s->all, plan_new(graph, &options, &plan, &err), &err);
    for (int step = 0; step < 2; step++)
        for (int m = first; m < s->program.micros; m += stride) {
            for (int i = 0; i < graph->n_inputs; i++)
                draw_input(graph, i, m, plan_input(plan, i));
            plan_set_random(plan, SEED, (uint64_t)(m * s->c->batch));
            CHECK_OK(s->all, plan_forward(plan, &err), &err);
            draw_loss(graph, plan, m);
            CHECK_OK(s->all, plan_backward(plan, &err), &err);
        }
    return plan;
}

static double difference(const float *a, const float *b, int64_t n)
{
    double sum = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return size > 0 ? sqrt(sum / size) : sqrt(sum);
}

static void compare(const struct rank_state *s, int h)
{
    /* all micro-batches, or those of the copy whose stage it is */
    bool pair = s->n_held == 2;
    struct graph *whole = network(s->all, s->c);
    struct plan *plan =
        run_whole(s, whole, pair && s->held[h] != s->all->rank ? 1 : 0, pair ? 2 : 1);
    const struct graph *graph = s->stages.graphs[s->held[h]];
    const float *own = s->gradients[h];
    for (value_id v = 0; v < graph->n_values; v++) {
        if (!graph_is_parameter(graph, v))
            continue;
        value_id same = graph_find(whole, graph->values[v].name);
        int64_t n = floats_of(graph, v);
        bool learnt = graph->values[v].kind == VALUE_PARAMETER;
        const float *want = learnt ? plan_parameter_gradient(plan, same) : graph_data(whole, same);
        const float *is = learnt ? own : graph_data(graph, v);
        own += learnt ? n : 0;
        CHECK(s->all, s->c->exact ? memcmp(is, want, (size_t)n * sizeof *is) == 0
                                  : difference(is, want, n) <= 1e-6);
    }
    plan_free(plan);
    graph_free(whole);
}

static void run_case(struct ranks *all, const struct pipe_case *c,
                     const struct plan_peers *const peers[2][CHANNELS])
{
    struct rank_state s = { .c = c, .all = all, .graph = network(all, c) };
    int32_t begin[STAGES_MOST + 1];
    struct err err = { 0 };
    for (int k = 0; k <= all->size; k++)
        begin[k] = s.graph->n_nodes * k / all->size;
    CHECK_OK(all, stages_new(s.graph, begin, all->size, &s.stages, &err), &err);
    int micros = c->kind == PROGRAM_MAST ? 2 : 4;
    CHECK_OK(all, program_new(c->kind, all->size, micros, &s.program, &err), &err);
    s.n_held = program_held(&s.program, all->rank, s.held);
    for (int h = 0; h < s.n_held; h++)
        s.gradients[h] =
            calloc((size_t)graph_parameter_count(s.stages.graphs[s.held[h]]) + 1, sizeof(float));
    run_pipeline(&s, peers);
    for (int h = 0; h < s.n_held; h++) {
        compare(&s, h);
        free(s.gradients[h]);
    }
    program_free(&s.program);
    stages_free(&s.stages);
    graph_free(s.graph);
}

int main(void)
{
    static const struct pipe_case cases[] = {
        { "resnet18", 32, 2, PROGRAM_BASIC, false, true },
        { "resnet18", 32, 2, PROGRAM_MAST, false, true },
        { "resnet18", 32, 2, PROGRAM_MASTER, true, true },
        { "resnet18", 32, 2, PROGRAM_GPIPE, true, true },
        { "resnet18", 32, 2, PROGRAM_1F1B, false, true },
        { "resnet18", 32, 2, PROGRAM_ZB_H1, true, true },
        { "googlenet", 64, 1, PROGRAM_1F1B, true, false },
        { "unet_small", 16, 2, PROGRAM_ZB_H1, false, false },
    };
    struct ranks all, groups[2][CHANNELS];
    struct plan_peers peers[2][CHANNELS];
    const struct plan_peers *by_channel[2][CHANNELS];
    struct err err = { 0 };
    if (!ranks_begin(&all, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 77;
    }
    for (int i = 0; i < 2 * CHANNELS; i++) {
        struct ranks *group = &groups[i / CHANNELS][i % CHANNELS];
        CHECK_OK(&all, ranks_split(&all, 0, all.rank, "pipeline", group, &err), &err);
        peers[i / CHANNELS][i % CHANNELS] = peers_of_ranks(group);
        by_channel[i / CHANNELS][i % CHANNELS] = &peers[i / CHANNELS][i % CHANNELS];
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_case(&all, &cases[i], by_channel);
    for (int i = 0; i < 2 * CHANNELS; i++)
        ranks_free(&groups[i / CHANNELS][i % CHANNELS]);
    ranks_end(&all, true);
    return 0;
}
