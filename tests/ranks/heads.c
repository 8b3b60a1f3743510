/* heads.c: Transformers whose heads and columns are divided among real ranks, in one replica and in
 * two, also with tokens divided, against the whole network in one plan, which every rank computes
 * too: outputs and gradients.
 * The control: sums of gradients that are left out backward, and the comparison must fail. */
#include <string.h>
#include "check.h"
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "support/golden.h"
#include "support/zoo_golden.h"
#include "train/peers.h"

#define BATCH 6
#define CLASSES 5
#define MOST_COPIES 3
#define MOST_PARTS 4 /* the ViT has five tokens */
#define SAME 2e-5    /* of the largest: two orders of sums; T5 does not scale its scores */

struct network {
    const char *name;
    int heads;
    struct zoo_options options;
};

static const struct network networks[] = {
    { "vit_small_patch32_224", 6, { .channels = 3, .height = 64, .width = 64, .depth = 1 } },
    { "bert_mini", 4, { .channels = 40, .height = 7, .depth = 1 } },
    { "t5_mini", 4, { .channels = 40, .height = 7, .depth = 2 } },
};

struct run {
    struct ranks *ranks;
    struct graph *whole, *graph;
    struct plan *plan;
    int64_t *outer;
    bool *summed; /* of the part, where tokens are divided too */
    struct plan_peers peers;
};

static struct graph *build(struct ranks *ranks, const struct network *network, int64_t batch)
{
    struct zoo_options options = network->options;
    struct graph *graph = NULL;
    struct err err = { 0 };
    options.batch = batch;
    options.classes = CLASSES;
    CHECK_OK(ranks, zoo_build(network->name, &options, &graph, &err), &err);
    CHECK_OK(ranks, graph_allocate(graph, &err), &err);
    zoo_fill_parameters(graph, 1.0, false);
    return graph;
}

/* Leaves out the sums backward. */
static void detach(struct graph *graph)
{
    for (int32_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op->kind == OP_ALL_REDUCE)
            graph->nodes[i].attr.all_reduce.sum_backward = false;
        else if (graph->nodes[i].op->kind == OP_ALL_GATHER)
            graph->nodes[i].attr.all_gather.sum_backward = false;
}

static void divide_tokens(struct run *run, int parts, int part)
{
    struct graph *heads = run->graph;
    struct err err = { 0 };
    CHECK_OK(run->ranks, transform_tokens(heads, parts, part, &run->graph, &run->summed, &err),
             &err);
    graph_free(heads);
}

/* grid NULL: the whole network with all samples. */
static void make(struct run *run, const struct network *network, struct rank_grid *grid,
                 bool tokens, bool detached)
{
    struct plan_options options = { .mode = PLAN_TRAIN, .threads = 1 };
    struct err err = { 0 };
    run->whole = build(run->ranks, network, grid ? BATCH / grid->extent[GRID_DATA] : BATCH);
    run->outer = calloc((size_t)run->whole->n_values, sizeof *run->outer);
    int parts = grid ? grid->extent[GRID_HEADS] : 1, part = grid ? grid->at[GRID_HEADS] : 0;
    CHECK_OK(run->ranks,
             parts > 1 ? transform_heads(run->whole, parts, part, &run->graph, run->outer, &err)
                       : graph_copy(run->whole, &run->graph, &err),
             &err);
    if (parts > 1) {
        if (tokens)
            divide_tokens(run, parts, part);
        run->peers = peers_of_ranks(&grid->group[GRID_HEADS]);
        if (detached)
            detach(run->graph);
        options.peers[PEERS_HEADS] = &run->peers;
    }
    CHECK_OK(run->ranks, plan_new(run->graph, &options, &run->plan, &err), &err);
    plan_zero_gradients(run->plan);
    plan_set_random(run->plan, 5,
                    grid ? (uint64_t)(grid->at[GRID_DATA] * BATCH / grid->extent[GRID_DATA]) : 0);
}

/* replica: whose samples these are. */
static void pass(struct run *run, int replica)
{
    const struct graph *graph = run->graph;
    struct err err = { 0 };
    for (int i = 0; i < graph->n_inputs; i++) {
        int64_t n = shape_count(graph_shape(graph, graph->inputs[i].value));
        uint64_t stream = zoo_stream("", graph->inputs[i].name);
        bool text = graph->n_inputs == 2;
        for (int64_t k = 0; k < n; k++) {
            double number = zoo_number(stream, replica * n + k);
            plan_input(run->plan, i)[k] = !text    ? (float)number
                                          : i == 1 ? 1
                                                   : (float)(int)(20 + 18 * number);
        }
    }
    CHECK_OK(run->ranks, plan_forward(run->plan, &err), &err);
    int64_t n = shape_count(graph_shape(graph, graph->outputs[0].value));
    for (int64_t k = 0; k < n; k++)
        plan_output_gradient(run->plan, 0)[k] =
            (float)zoo_number(zoo_stream("loss:", "logits"), replica * n + k);
    CHECK_OK(run->ranks, plan_backward(run->plan, &err), &err);
}

static value_id next_parameter(const struct graph *graph, value_id v)
{
    while (v < graph->n_values && graph->values[v].kind != VALUE_PARAMETER)
        v++;
    return v;
}

/* How far gradients, summed over replicas and put in their places, are from those of the whole. */
static double distance(struct rank_grid *grid, struct run *part, struct run *whole)
{
    struct err err = { 0 };
    int64_t n = 0, count = 0;
    float *gradients = plan_gradients(part->plan, &n);
    const float *want = plan_gradients(whole->plan, &count);
    float *found = malloc((size_t)count * sizeof *found), *place = found;
    memcpy(found, want, (size_t)count * sizeof *found); /* what other ranks have is not compared */
    CHECK_OK(part->ranks, ranks_sum_floats(&grid->group[GRID_DATA], gradients, n, &err), &err);
    value_id own = next_parameter(part->graph, 0);
    for (value_id v = next_parameter(part->whole, 0); v < part->whole->n_values;
         v = next_parameter(part->whole, v + 1), own = next_parameter(part->graph, own + 1)) {
        int64_t floats = shape_count(&part->whole->values[v].shape), have = floats;
        if (part->outer[v] > 0) {
            have /= grid->extent[GRID_HEADS];
            heads_move(place, floats, part->outer[v], grid->extent[GRID_HEADS],
                       grid->at[GRID_HEADS], gradients, true);
        } else {
            if (part->summed && part->summed[own])
                CHECK_OK(part->ranks,
                         ranks_sum_floats(&grid->group[GRID_HEADS], gradients, floats, &err), &err);
            memcpy(place, gradients, (size_t)floats * sizeof *place);
        }
        place += floats, gradients += have;
    }
    double apart = relative_error(found, want, count);
    free(found);
    return apart;
}

static void run_free(struct run *run)
{
    plan_free(run->plan);
    graph_free(run->graph);
    graph_free(run->whole);
    free(run->outer), free(run->summed);
}

static void try(struct ranks *all, const struct network *network, int data, bool tokens,
                bool detached)
{
    struct err err = { 0 };
    struct rank_grid grid;
    int heads = all->size / data;
    CHECK_OK(all, rank_grid_new(all, (int64_t[]){ data, 1, 1, 1, heads }, &grid, &err), &err);
    struct run whole = { .ranks = all }, part = { .ranks = all };
    make(&whole, network, NULL, false, false);
    make(&part, network, &grid, tokens, detached);
    pass(&whole, 0);
    pass(&part, grid.at[GRID_DATA]);
    int64_t n = BATCH / data * CLASSES;
    CHECK(all, relative_error(plan_output(part.plan, 0),
                              plan_output(whole.plan, 0) + grid.at[GRID_DATA] * n, n) < 1e-5);
    double apart = distance(&grid, &part, &whole);
    if (all->rank == 0)
        printf("%s: heads %d%s x data %d%s: apart by %.1e\n", network->name, heads,
               tokens ? " and tokens" : "", data, detached ? ", detached" : "", apart);
    CHECK(all, detached ? apart > 1e-3 : apart < SAME);
    run_free(&whole);
    run_free(&part);
    rank_grid_free(&grid);
}

int main(void)
{
    struct ranks ranks;
    struct err err = { 0 };
    if (!ranks_begin(&ranks, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 77;
    }
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        for (int data = 1; data <= MOST_COPIES; data++) {
            int heads = ranks.size / data;
            bool fits = ranks.size % data == 0 && heads > 1 && heads <= MOST_PARTS &&
                        networks[i].heads % heads == 0;
            for (int tokens = 0; fits && tokens < 2; tokens++) {
                try(&ranks, &networks[i], data, tokens, false);
                try(&ranks, &networks[i], data, tokens, true);
            }
        }
    ranks_end(&ranks, true);
    return 0;
}
