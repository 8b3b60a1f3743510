/* test_sync_norm.c: batch norm over a batch that is spread over processes (here: threads) is batch
 * norm over the whole batch: outputs, gradients, running statistics; and how far that carries
 * through a whole network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/rng.h"
#include "net/graph/op.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "support/thread_peers.h"

#define PARTS 3
#define EACH 2
#define CLASSES 5
#define SIDE 19
#define SCAN_SIDE 144

/* A small network, or scan_tiny: eleven convolutions with batch norm. */
struct kind {
    bool scan, relu;
};

struct part {
    const struct plan_peers *peers; /* NULL: the whole batch in one plan, */
    bool alone;                     /* by the same kernel, else by oneDNN's */
    enum plan_saving saving;
    int rank, images;
    struct kind kind;
    bool nudged; /* every pixel is the next float */
    struct graph *graph;
    struct plan *plan;
    float *gradients;
    int64_t count;
};

static bool sum_alone(void *arg, double *values, int64_t n, struct err *err)
{
    (void)arg, (void)values, (void)n, (void)err;
    return true;
}

/* 20 channels: not whole blocks. Batch norm of images, blocked and in front of a relu, and of rows.
 */
static struct graph *network(int64_t batch, bool relu)
{
    struct graph *g = graph_new("spread");
    value_id x = graph_input(g, "input", SHAPE(batch, 3, SIDE, SIDE));
    x = graph_batch_norm(g, graph_conv(g, x, "conv1", 20, true, conv_square(3, 1, 1)), "bn1");
    x = relu ? graph_relu(g, x) : graph_gelu(g, x);
    x = graph_batch_norm(g, graph_conv(g, x, "conv2", 32, false, conv_square(3, 2, 1)), "bn2");
    x = relu ? graph_relu(g, x) : graph_gelu(g, x);
    x = graph_flatten(g, x);
    x = graph_batch_norm(g, graph_linear(g, x, "fc1", 12, true), "bn3");
    graph_output(g, "logits", graph_linear(g, graph_tanh(g, x), "fc2", CLASSES, true));
    if (!graph_ok(g, NULL) || !graph_allocate(g, NULL) || !graph_initialize(g, 3, NULL))
        return NULL;
    return g;
}

/* scan_tiny; without relu every relu is a gelu. */
static struct graph *scan_network(int64_t batch, bool relu)
{
    struct zoo_options options = {
        .batch = batch, .height = SCAN_SIDE, .width = SCAN_SIDE, .classes = CLASSES
    };
    struct graph *g = NULL;
    if (!zoo_build("scan_tiny", &options, &g, NULL))
        return NULL;
    for (int i = 0; !relu && i < g->n_nodes; i++)
        if (g->nodes[i].op->kind == OP_RELU)
            g->nodes[i].op = op_get(OP_GELU);
    if (!graph_allocate(g, NULL) || !graph_initialize(g, 3, NULL)) {
        graph_free(g);
        return NULL;
    }
    return g;
}

static float number(uint64_t what, uint64_t index)
{
    struct rng rng = rng_new(7, what, index);
    return (float)(rng_uniform(&rng) - 0.5);
}

/* Runs without asserts: threads may not fail a test. */
static void work(struct part *part)
{
    const struct plan_peers alone = { .sum = sum_alone, .size = 1 };
    struct plan_options options = { .mode = PLAN_TRAIN,
                                    .threads = 1,
                                    .direct = true,
                                    .saving = part->saving,
                                    .peers = { [PEERS_DATA] = part->alone ? &alone : part->peers },
                                    .norm_peers = 1u << PEERS_DATA };
    struct kind kind = part->kind;
    part->graph = (kind.scan ? scan_network : network)(part->images, kind.relu);
    if (!part->graph || !plan_new(part->graph, &options, &part->plan, NULL))
        return;
    uint64_t first = (uint64_t)(part->rank * part->images);
    uint64_t pixels = kind.scan ? 3 * SCAN_SIDE * SCAN_SIDE : 3 * SIDE * SIDE;
    for (uint64_t i = 0; i < (uint64_t)part->images * pixels; i++) {
        float pixel = number(1, first * pixels + i);
        plan_input(part->plan, 0)[i] = part->nudged ? nextafterf(pixel, 1) : pixel;
    }
    for (uint64_t i = 0; i < (uint64_t)part->images * CLASSES; i++)
        plan_output_gradient(part->plan, 0)[i] = number(2, first * CLASSES + i);
    plan_zero_gradients(part->plan);
    if (plan_forward(part->plan, NULL) && plan_backward(part->plan, NULL))
        part->gradients = plan_gradients(part->plan, &part->count);
}

static void work_of(void *parts, int rank)
{
    work((struct part *)parts + rank);
}

static void part_free(struct part *part)
{
    plan_free(part->plan);
    graph_free(part->graph);
}

/* |a - b| <= limit times the largest. */
static void assert_near(const float *a, const float *b, int64_t n, double limit, const char *what)
{
    double most = 0, apart = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i]));
        apart = fmax(apart, fabs((double)a[i] - (double)b[i]));
    }
    if (!(apart <= limit * most))
        fail_msg("%s: apart by %.3g of %.3g", what, apart, most);
}

/* |a - b| / |a| of two gradients, as vectors. */
static double distance(const float *a, const float *b, int64_t n)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)a[i] * (double)a[i];
    }
    return sqrt(apart / size);
}

/* Gradients as vectors; a single element may be off by more, for its sum is of many terms. */
static void compare(const struct part *parts, const struct part *whole, double limit)
{
    int64_t count = whole->count;
    float *sums = calloc((size_t)count, sizeof *sums);
    for (int r = 0; r < PARTS; r++) {
        assert_non_null(parts[r].gradients);
        assert_int_equal(parts[r].count, count);
        for (int64_t i = 0; i < count; i++)
            sums[i] += parts[r].gradients[i];
        assert_near(plan_output(whole->plan, 0) + r * EACH * CLASSES, plan_output(parts[r].plan, 0),
                    EACH * CLASSES, limit, "outputs");
    }
    assert_true(distance(whole->gradients, sums, count) <= limit);
    assert_near(whole->gradients, sums, count, 3 * limit, "gradients");
    for (value_id v = 0; v < whole->graph->n_values; v++)
        for (int r = 0; r < PARTS && whole->graph->values[v].kind == VALUE_BUFFER; r++) {
            int64_t n = shape_count(&whole->graph->values[v].shape);
            assert_near(graph_data(whole->graph, v), graph_data(parts[r].graph, v), n, limit,
                        whole->graph->values[v].name);
            assert_memory_equal(graph_data(parts[0].graph, v), graph_data(parts[r].graph, v),
                                (size_t)n * sizeof(float));
        }
    free(sums);
}

/* Three parts against one: the order of sums differs. Against oneDNN's own statistics, which are
 * summed in float: three norms, one after another, add up what that rounds. */
static void judge(const struct part *parts)
{
    for (int alone = 0; alone < 2; alone++) {
        struct part whole = { .images = PARTS * EACH, .kind = parts[0].kind, .alone = alone };
        work(&whole);
        assert_non_null(whole.gradients);
        compare(parts, &whole, alone ? 1e-6 : 5e-6);
        part_free(&whole);
    }
}

/* Returns how often the first of them talked to the others. */
static int64_t run_parts(struct part *parts, struct kind kind, enum plan_saving saving)
{
    struct thread_peers *peers = thread_peers_new(PARTS);
    assert_non_null(peers);
    for (int r = 0; r < PARTS; r++)
        parts[r] = (struct part){ .peers = thread_peers_of(peers, r),
                                  .rank = r,
                                  .images = EACH,
                                  .kind = kind,
                                  .saving = saving };
    thread_peers_run(peers, work_of, parts);
    int64_t calls = thread_peers_calls(peers, 0);
    thread_peers_free(peers);
    return calls;
}

static void spread_is_whole(void **state)
{
    (void)state;
    for (int relu = 0; relu < 2; relu++) {
        struct part parts[PARTS];
        run_parts(parts, (struct kind){ .relu = relu }, SAVING_ALL);
        judge(parts);
        for (int r = 0; r < PARTS; r++)
            part_free(&parts[r]);
    }
}

/* What is left between a spread batch and a whole one is float rounding carried through the
 * network: about as much as when every pixel is the next float. */
static void through_a_network(void **state)
{
    (void)state;
    for (int relu = 0; relu < 2; relu++) {
        struct kind kind = { .scan = true, .relu = relu };
        struct part parts[PARTS], whole = { .images = PARTS * EACH, .kind = kind, .alone = true };
        struct part nudged = whole;
        nudged.nudged = true;
        run_parts(parts, kind, SAVING_ALL);
        work(&whole);
        work(&nudged);
        assert_non_null(whole.gradients);
        assert_non_null(nudged.gradients);
        float *sums = calloc((size_t)whole.count, sizeof *sums);
        for (int r = 0; r < PARTS; r++) {
            assert_non_null(parts[r].gradients);
            for (int64_t i = 0; i < whole.count; i++)
                sums[i] += parts[r].gradients[i];
            part_free(&parts[r]);
        }
        double apart = distance(whole.gradients, sums, whole.count),
               rounding = distance(whole.gradients, nudged.gradients, whole.count);
        print_message("%s: %.2g apart, %.2g by a nudge\n", relu ? "relu" : "gelu", apart, rounding);
        assert_true(apart < 5e-6 && apart < 5 * rounding);
        free(sums);
        part_free(&whole);
        part_free(&nudged);
    }
}

/* Steps that talk are not repeated: what they gave is kept, and the gradients are the same bits. */
static void recomputation_talks_no_more(void **state)
{
    (void)state;
    struct kind kind = { .scan = true, .relu = true };
    struct part all[PARTS], again[PARTS];
    int64_t calls = run_parts(all, kind, SAVING_ALL);
    assert_true(calls > 0);
    assert_int_equal(run_parts(again, kind, SAVING_RECOMPUTE), calls);
    for (int r = 0; r < PARTS; r++) {
        assert_true(plan_memory(again[r].plan).arena < plan_memory(all[r].plan).arena);
        assert_memory_equal(again[r].gradients, all[r].gradients,
                            (size_t)all[r].count * sizeof(float));
        part_free(&all[r]), part_free(&again[r]);
    }
}

static bool sum_fails(void *arg, double *values, int64_t n, struct err *err)
{
    int *calls_left = arg;
    (void)values, (void)n;
    return (*calls_left)-- > 0 || err_set(err, ERR_IO, "rank 2: connection reset by peer");
}

/* The layer, the kernel and the reason are in the message, and it is not called a lack of memory.
 * A forward pass has two sums for each of the three norms. */
static void a_failed_sum_is_reported_as_such(void **state)
{
    (void)state;
    for (int backward = 0; backward < 2; backward++) {
        struct err err = { 0 };
        int calls = backward ? 6 : 0;
        struct plan_peers peers = { .sum = sum_fails, .arg = &calls, .size = 2 };
        struct plan_options options = { .mode = PLAN_TRAIN,
                                        .threads = 1,
                                        .peers = { [PEERS_SPACE] = &peers },
                                        .norm_peers = 1u << PEERS_SPACE };
        struct graph *g = network(EACH, true);
        struct plan *plan = NULL;
        assert_non_null(g);
        assert_true(plan_new(g, &options, &plan, &err));
        if (backward) {
            assert_true(plan_forward(plan, &err));
            assert_false(plan_backward(plan, &err));
        } else {
            assert_false(plan_forward(plan, &err));
        }
        assert_int_equal(err.kind, ERR_IO);
        assert_non_null(strstr(err.text, backward ? "bn3: the kernel statistics back"
                                                  : "bn1: the kernel statistics over ranks"));
        assert_non_null(strstr(err.text, "rank 2: connection reset by peer"));
        plan_free(plan);
        graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(spread_is_whole),
                                        cmocka_unit_test(through_a_network),
                                        cmocka_unit_test(recomputation_talks_no_more),
                                        cmocka_unit_test(a_failed_sum_is_reported_as_such) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
