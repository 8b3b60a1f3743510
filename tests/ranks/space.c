/* space.c: networks whose images are divided among real ranks, in rows, columns or both, against
 * the whole network in one plan, which every rank computes too: outputs, gradients, statistics. The
 * control: what neighbours send back for halos is dropped, and the comparison must fail. */
#include <string.h>
#include "check.h"
#include "net/graph/transform.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "support/golden.h"
#include "support/zoo_golden.h"
#include "train/peers.h"

#define BATCH 2
#define HEIGHT 65
#define WIDTH 97
#define CLASSES 7
#define SAME 3e-6 /* of the largest: what two orders of sums come to in 110 layers */

/* Peers whose exchanges bring zeros from now on, if `drop`. */
struct dropping {
    struct plan_peers real;
    bool drop;
};

static bool exchange(void *arg, const struct peers_exchange *x, struct err *err)
{
    struct dropping *d = arg;
    bool ok = d->real.exchange(d->real.arg, x, err);
    if (ok && d->drop && x->from != PEER_NONE)
        memset(x->in, 0, x->in_bytes);
    return ok;
}

static bool sum(void *arg, double *values, int64_t n, struct err *err)
{
    struct dropping *d = arg;
    return d->real.sum(d->real.arg, values, n, err);
}

static bool sum_floats(void *arg, float *values, int64_t n, struct err *err)
{
    struct dropping *d = arg;
    return d->real.sum_floats(d->real.arg, values, n, err);
}

static bool start_send(void *arg, int to, const void *data, size_t bytes, int64_t *handle,
                       struct err *err)
{
    const struct plan_peers *real = &((struct dropping *)arg)->real;
    return real->start_send(real->arg, to, data, bytes, handle, err);
}

static bool start_receive(void *arg, int from, void *data, size_t bytes, int64_t *handle,
                          struct err *err)
{
    const struct plan_peers *real = &((struct dropping *)arg)->real;
    return real->start_receive(real->arg, from, data, bytes, handle, err);
}

static bool progress(void *arg, struct err *err)
{
    const struct plan_peers *real = &((struct dropping *)arg)->real;
    return real->progress(real->arg, err);
}

static bool finish(void *arg, int64_t handle, struct err *err)
{
    const struct plan_peers *real = &((struct dropping *)arg)->real;
    return real->finish(real->arg, handle, err);
}

static void abandon(void *arg)
{
    const struct plan_peers *real = &((struct dropping *)arg)->real;
    real->abandon(real->arg);
}

static struct plan_peers wrap(struct dropping *d)
{
    return (struct plan_peers){ .arg = d,
                                .rank = d->real.rank,
                                .size = d->real.size,
                                .sum = sum,
                                .sum_floats = sum_floats,
                                .exchange = exchange,
                                .start_send = start_send,
                                .start_receive = start_receive,
                                .progress = progress,
                                .finish = finish,
                                .abandon = abandon };
}

struct run {
    const struct ranks *ranks;
    struct graph *graph;
    struct plan *plan;
    struct dropping dropping[2];
    struct plan_peers peers[2];
};

static struct graph *network(const struct ranks *ranks, const char *name)
{
    struct zoo_options options = {
        .batch = BATCH, .channels = 3, .height = HEIGHT, .width = WIDTH, .classes = CLASSES
    };
    struct graph *graph = NULL;
    struct err err = { 0 };
    CHECK_OK(ranks, zoo_build(name, &options, &graph, &err), &err);
    CHECK_OK(ranks, graph_allocate(graph, &err), &err);
    zoo_fill_parameters(graph, 1.0, true); /* activations off the kinks */
    return graph;
}

/* grid NULL: the whole network. */
static void make(struct run *run, const char *name, struct rank_grid *grid,
                 const struct space_spec *spec, bool frozen)
{
    struct plan_options options = {
        .mode = PLAN_TRAIN, .threads = 1, .direct = true, .norm_frozen = frozen
    };
    struct err err = { 0 };
    run->graph = network(run->ranks, name);
    if (grid) {
        struct graph *part = NULL;
        for (int i = 0; i < 2; i++) {
            run->dropping[i].real = peers_of_ranks(&grid->group[i ? GRID_SPACE : GRID_BANDS]);
            run->peers[i] = wrap(&run->dropping[i]);
        }
        options.peers[PEERS_BANDS] = &run->peers[0], options.peers[PEERS_SPACE] = &run->peers[1];
        options.norm_peers = 1u << PEERS_BANDS | 1u << PEERS_SPACE;
        CHECK_OK(run->ranks, transform_space(run->graph, spec, &part, &err), &err);
        graph_free(run->graph);
        run->graph = part;
    }
    CHECK_OK(run->ranks, plan_new(run->graph, &options, &run->plan, &err), &err);
    plan_zero_gradients(run->plan);
}

static void pass(struct run *run, const struct space_part *at, bool leads, bool detached)
{
    struct err err = { 0 };
    int64_t rows = at->y1 - at->y0, columns = at->x1 - at->x0;
    uint64_t pixels = zoo_stream("", "input"), loss = zoo_stream("loss:", "logits");
    for (int64_t i = 0; i < BATCH * 3 * rows * columns; i++)
        plan_input(run->plan, 0)[i] = (float)zoo_number(
            pixels, (i / (rows * columns) * HEIGHT + at->y0 + i / columns % rows) * WIDTH + at->x0 +
                        i % columns);
    for (int64_t i = 0; leads && i < BATCH * CLASSES; i++)
        plan_output_gradient(run->plan, 0)[i] = (float)zoo_number(loss, i);
    CHECK_OK(run->ranks, plan_forward(run->plan, &err), &err);
    run->dropping[0].drop = run->dropping[1].drop = detached;
    CHECK_OK(run->ranks, plan_backward(run->plan, &err), &err);
}

static void run_free(struct run *run)
{
    plan_free(run->plan);
    graph_free(run->graph);
}

/* How far gradients (the sum over all ranks) and outputs are from those of the whole. */
static double distance(struct ranks *all, struct run *part, struct run *whole)
{
    int64_t n = 0;
    struct err err = { 0 };
    float *gradients = plan_gradients(part->plan, &n);
    CHECK_OK(all, ranks_sum_floats(all, gradients, n, &err), &err);
    CHECK(all, relative_error(plan_output(part->plan, 0), plan_output(whole->plan, 0),
                              BATCH * CLASSES) < 1e-5);
    for (int32_t i = 0; i < part->graph->n_values; i++)
        if (part->graph->values[i].kind == VALUE_BUFFER) {
            const char *name = part->graph->values[i].name;
            CHECK(all, relative_error(graph_data(part->graph, i),
                                      graph_data(whole->graph, graph_find(whole->graph, name)),
                                      shape_count(&part->graph->values[i].shape)) < 1e-6);
        }
    return relative_error(gradients, plan_gradients(whole->plan, &n), n);
}

static void try(struct ranks *all, const char *name, int rows, int columns, bool frozen)
{
    struct err err = { 0 };
    struct rank_grid grid;
    CHECK_OK(all, rank_grid_new(all, (int64_t[]){ 1, 1, columns, rows, 1 }, &grid, &err), &err);
    struct space_spec spec = { rows, columns, grid.at[GRID_BANDS], grid.at[GRID_SPACE], false };
    struct space_part at = space_part(&spec, HEIGHT, WIDTH);
    struct run whole = { .ranks = all };
    make(&whole, name, NULL, NULL, frozen);
    pass(&whole, &(struct space_part){ 0, HEIGHT, 0, WIDTH }, true, false);
    for (int detached = 0; detached < 2; detached++) {
        struct run part = { .ranks = all };
        make(&part, name, &grid, &spec, frozen);
        pass(&part, &at, all->rank == 0, detached);
        double d = distance(all, &part, &whole);
        CHECK(all, (d < SAME) != detached);
        run_free(&part);
    }
    run_free(&whole);
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
    int n = ranks.size;
    try(&ranks, "resnet18", n == 4 ? 2 : n, n == 4 ? 2 : 1, false);
    try(&ranks, "resnet18", n == 4 ? 2 : n, n == 4 ? 2 : 1, true);
    try(&ranks, "resnet110_v2", n == 4 ? 2 : 1, n == 4 ? 2 : n, false);
    ranks_end(&ranks, true);
    return 0;
}
