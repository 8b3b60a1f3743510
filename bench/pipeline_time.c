/* pipeline_time.c: one step of a network in stages over the ranks that mpirun started, each with a
 * thread, measured and simulated; or only simulated, for ranks that need not exist.
 *
 *     pipeline_time NETWORK PX SCHEDULE MICROS RECOMPUTE REPEATS
 *     pipeline_time NETWORK PX SCHEDULE MICROS RECOMPUTE 0 STAGES REPLICAS LATENCY_US GB_PER_S
 *
 * Micro-batches are one drawn image of PX x PX. The first rank prints one JSON object: the seconds
 * of the fastest step, sums of gradients between the two copies of mast and master included; the
 * simulation of the same on as many processors as there are; and the activations, kept inputs and
 * messages of every rank. Simulated ranks have a processor each. Times of layers are measured on
 * this machine in both cases, with at most ROOM of activations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "net/stages/pipeline.h"
#include "net/stages/simulate.h"
#include "net/zoo/zoo.h"
#include "train/parallel_plan.h"
#include "train/peers.h"

#define ROOM ((size_t)3 << 30)
#define CLASSES 2

struct step {
    struct ranks *all;
    struct ranks groups[2][CHANNELS];
    struct plan_peers peers[2][CHANNELS], everybody;
    struct graph *graph;
    struct stages stages;
    struct program program;
    struct stage_cost costs[STAGES_MOST];
    struct wire wire;
    bool recompute;
    int n_held, held[2];
    float *gradients[2], *received;
};

/* --- what the layers cost --- */

/* Cuts the network into n stages of equal time, measured by the first rank for all. */
static bool cut(struct step *s, int n, struct err *err)
{
    int32_t begin[STAGES_MOST + 1] = { 0 };
    size_t n_nodes = (size_t)s->graph->n_nodes;
    struct node_cost *costs = calloc(n_nodes, sizeof *costs);
    struct costs_options options = { .threads = 1, .room = ROOM, .least_px = 128, .repeats = 3 };
    int64_t px = 0;
    bool ok = costs != NULL || err_memory(err, "costs");
    if (ok && s->all->rank == 0)
        ok = costs_measure(s->graph, &options, costs, &px, err) &&
             costs_balance(s->graph, costs, n, &s->wire, 0, begin, err);
    ok = ranks_agree(s->all, ok, NULL, err) &&
         ranks_broadcast(s->all, begin, sizeof begin, 0, err) &&
         ranks_broadcast(s->all, costs, n_nodes * sizeof *costs, 0, err) &&
         stages_new(s->graph, begin, n, &s->stages, err);
    if (ok)
        costs_of_stages(&s->stages, costs, s->costs);
    free(costs);
    return ok;
}

static bool simulated(const struct step *s, int ranks_a_machine, int replicas,
                      struct simulation *out, struct err *err)
{
    struct simulate_options options = { .program = &s->program,
                                        .costs = s->costs,
                                        .edges = s->stages.edges,
                                        .n_edges = s->stages.n_edges,
                                        .wire = s->wire,
                                        .recompute = s->recompute,
                                        .ranks_a_machine = ranks_a_machine,
                                        .cores = parallel_processors(),
                                        .threads = 1,
                                        .copies = replicas * (s->program.two_way ? 2 : 1) };
    return simulate(&options, out, err);
}

/* --- a step --- */

static bool feed(void *arg, int stage, int micro, int port, float *to, struct err *err)
{
    const struct graph *graph = ((const struct step *)arg)->stages.graphs[stage];
    int64_t n = shape_count(graph_shape(graph, graph->inputs[port].value));
    (void)err;
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)((i * 7 + micro * 31) % 255) / 128 - 1;
    return true;
}

static bool loss(void *arg, int micro, struct plan *plan, struct err *err)
{
    (void)arg, (void)micro, (void)err;
    for (int i = 0; i < CLASSES; i++)
        plan_output_gradient(plan, 0)[i] = i ? -1 : 1;
    return true;
}

/* mast and master: both copies of a stage end with the sum of their gradients. */
static bool sum_copies(struct step *s, struct err *err)
{
    int other = s->all->size - 1 - s->all->rank;
    bool ok = true;
    for (int h = 0; ok && s->n_held == 2 && h < 2; h++) {
        int64_t n = graph_parameter_count(s->stages.graphs[s->held[h]]);
        struct peers_exchange x = { .to = other,
                                    .from = other,
                                    .out = s->gradients[h],
                                    .out_bytes = (size_t)n * sizeof(float),
                                    .in = s->received,
                                    .in_bytes = (size_t)n * sizeof(float) };
        ok = s->everybody.exchange(s->everybody.arg, &x, err);
        for (int64_t i = 0; ok && i < n; i++)
            s->gradients[h][i] += s->received[i];
    }
    return ok;
}

static bool open_pipeline(struct step *s, struct pipeline **out, struct err *err)
{
    struct pipeline_options o = { .stages = &s->stages,
                                  .program = &s->program,
                                  .rank = s->all->rank,
                                  .recompute = s->recompute,
                                  .plan = { .mode = PLAN_TRAIN, .threads = 1 },
                                  .feed = feed,
                                  .loss = loss,
                                  .arg = s };
    size_t most = 1;
    s->n_held = program_held(&s->program, s->all->rank, s->held);
    for (int h = 0; h < s->n_held; h++) {
        size_t n = (size_t)graph_parameter_count(s->stages.graphs[s->held[h]]);
        most = n > most ? n : most;
        o.gradients[h] = s->gradients[h] = calloc(n + 1, sizeof(float));
        if (!s->gradients[h])
            return err_memory(err, "gradients");
    }
    s->received = calloc(most, sizeof(float));
    for (int i = 0; i < 2 * CHANNELS; i++) {
        struct ranks *group = &s->groups[i / CHANNELS][i % CHANNELS];
        if (!ranks_split(s->all, 0, s->all->rank, "pipeline", group, err))
            return false;
        s->peers[i / CHANNELS][i % CHANNELS] = peers_of_ranks(group);
        o.peers[i / CHANNELS][i % CHANNELS] = &s->peers[i / CHANNELS][i % CHANNELS];
    }
    return s->received ? pipeline_new(&o, out, err) : err_memory(err, "gradients");
}

static bool measured(struct step *s, struct pipeline *pipeline, int repeats, double *best,
                     struct err *err)
{
    uint64_t *first = calloc((size_t)s->program.micros, sizeof *first);
    bool ok = first != NULL || err_memory(err, "samples");
    *best = INFINITY;
    for (int i = 0; ok && i < repeats; i++) {
        int64_t ready = 0;
        ok = ranks_most(s->all, &ready, 1, err); /* all begin together */
        double start = clock_monotonic_s();
        ok = ok && pipeline_step(pipeline, 1, first, err) && sum_copies(s, err);
        int64_t us = (int64_t)(1e6 * (clock_monotonic_s() - start));
        ok = ok && ranks_most(s->all, &us, 1, err);
        *best = fmin(*best, 1e-6 * (double)us);
    }
    free(first);
    return ok;
}

/* --- output --- */

static void print_simulation(const struct step *s, const struct simulation *simulation)
{
    printf(", \"simulated_s\": %.4f, \"busy\": %.4f, \"simulated_bytes\": [", simulation->seconds,
           simulation->busy);
    for (int r = 0; r < s->stages.n; r++)
        printf("%s%zu", r ? ", " : "", simulation->peak[r]);
    printf("], \"latency_us\": %.2f, \"gb_per_s\": %.3f}\n", 1e6 * s->wire.latency_s,
           1e-9 * s->wire.bytes_per_s);
}

static bool print_measured(struct step *s, const struct pipeline *pipeline, double seconds,
                           struct err *err)
{
    struct pipeline_report own = pipeline_report(pipeline),
                           *all = calloc((size_t)s->all->size, sizeof *all);
    struct simulation simulation = { 0 };
    bool ok = (all != NULL || err_memory(err, "a report")) &&
              ranks_gather_equal(s->all, &own, sizeof own, all, err) &&
              simulated(s, s->all->size, 1, &simulation, err);
    if (ok && s->all->rank == 0) {
        printf("{\"measured_s\": %.4f, \"ranks\": [", seconds);
        for (int r = 0; r < s->all->size; r++)
            printf("%s{\"sets\": %d, \"activations\": %zu, \"inputs\": %zu, \"messages\": %zu, "
                   "\"waiting\": %.3f}",
                   r ? ", " : "", all[r].sets, all[r].arenas, all[r].inputs, all[r].messages,
                   all[r].waiting_s / all[r].seconds);
        printf("]");
        print_simulation(s, &simulation);
    }
    simulation_free(&simulation);
    free(all);
    return ok;
}

/* --- */

static bool build(struct step *s, char **argv, int stages, struct err *err)
{
    int64_t px = strtoll(argv[2], NULL, 10);
    struct zoo_options zoo = { .height = px, .width = px, .classes = CLASSES };
    int kind = 0, micros = (int)strtol(argv[4], NULL, 10);
    while (kind < PROGRAMS && strcmp(program_names[kind], argv[3]) != 0)
        kind++;
    if (kind == PROGRAMS)
        return err_set(err, ERR_USAGE, "%s: no such schedule", argv[3]);
    s->recompute = strcmp(argv[5], "0") != 0;
    return zoo_build(argv[1], &zoo, &s->graph, err) && graph_initialize(s->graph, 1, err) &&
           cut(s, stages, err) &&
           program_new((enum program_kind)kind, stages, micros, &s->program, err);
}

static bool run_measured(struct step *s, char **argv, struct err *err)
{
    struct pipeline *pipeline = NULL;
    double seconds = 0;
    s->everybody = peers_of_ranks(s->all);
    bool ok = parallel_wire(s->all, &s->wire, err) && build(s, argv, s->all->size, err) &&
              open_pipeline(s, &pipeline, err) &&
              measured(s, pipeline, (int)strtol(argv[6], NULL, 10), &seconds, err) &&
              print_measured(s, pipeline, seconds, err);
    pipeline_free(pipeline);
    for (int i = 0; i < 2 * CHANNELS; i++)
        ranks_free(&s->groups[i / CHANNELS][i % CHANNELS]);
    return ok;
}

static bool run_simulated(struct step *s, char **argv, struct err *err)
{
    struct simulation simulation = { 0 };
    s->wire = (struct wire){ 1e-6 * strtod(argv[9], NULL), 1e9 * strtod(argv[10], NULL) };
    bool ok = build(s, argv, (int)strtol(argv[7], NULL, 10), err) &&
              simulated(s, 0, (int)strtol(argv[8], NULL, 10), &simulation, err);
    if (ok) {
        printf("{\"stages\": %d", s->stages.n);
        print_simulation(s, &simulation);
    }
    simulation_free(&simulation);
    return ok;
}

int main(int argc, char **argv)
{
    struct ranks ranks;
    struct err err = { 0 };
    if ((argc != 7 && argc != 11) || !ranks_begin(&ranks, &err)) {
        fprintf(stderr,
                "usage: pipeline_time NETWORK PX SCHEDULE MICROS RECOMPUTE REPEATS [STAGES "
                "REPLICAS LATENCY_US GB_PER_S]\n%s\n",
                err.text);
        return 2;
    }
    struct step s = { .all = &ranks };
    bool ok = argc == 7 ? run_measured(&s, argv, &err) : run_simulated(&s, argv, &err);
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    program_free(&s.program);
    stages_free(&s.stages);
    graph_free(s.graph);
    free(s.gradients[0]), free(s.gradients[1]), free(s.received);
    ranks_end(&ranks, ok);
    return ok ? 0 : 1;
}
