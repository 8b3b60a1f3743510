/* test_net_collective.c: networks of which every peer (here: a thread) has a part, against the
 * whole network in one plan: an image in bands with halos, linear layers divided by their outputs
 * and by their inputs; and what these ops are without peers. Parts gathered: test_net_gather.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "net/graph/transform.h"
#include "net/onnx/onnx.h"
#include "net/plan/plan.h"
#include "support/golden.h"
#include "support/paths.h"
#include "support/peer_job.h"
#include "support/thread_peers.h"

#define PEERS 3
#define HEIGHT 24
#define WIDTH 20
#define CHANNELS 16
#define TALL 4 /* convolutions that see two rows beyond their own */

/* --- an image in bands --- */

static const int64_t band_rows[PEERS] = { 7, 9, 8 };

/* Convolutions, and a mean that a classifier sees. Of 24 rows, or of a part of them: then the
 * rows that a convolution would see beyond it come from the neighbours. */
static struct graph *band_network(int64_t rows, bool divided)
{
    struct graph *g = graph_new("bands");
    value_id x = graph_input(g, "input", SHAPE(2, 3, rows, WIDTH));
    struct conv_attr small = conv_square(3, 1, 1),
                     tall = { .kernel = { 5, 3 }, .pad = { 2, 1, 2, 1 } };
    if (divided) {
        small.pad[SIDE_TOP] = small.pad[SIDE_BOTTOM] = 0;
        tall.pad[SIDE_TOP] = tall.pad[SIDE_BOTTOM] = 0;
        x = graph_halo(g, x, (struct halo_attr){ 2, 1, 1, PEERS_SPACE, false, { 0, 0 } });
    }
    x = graph_gelu(g, graph_conv(g, x, "conv1", 20, true, small));
    for (int i = 0; i < TALL; i++) {
        static const char *const names[TALL] = { "conv2", "conv3", "conv4", "conv5" };
        if (divided)
            x = graph_halo(g, x, (struct halo_attr){ -2, 2, 2, PEERS_SPACE, false, { 0, 0 } });
        x = graph_gelu(g, graph_conv(g, x, names[i], CHANNELS, true, tall));
    }
    graph_output(g, "maps", x);
    value_id mean = graph_flatten(g, graph_global_average_pool(g, x));
    mean = graph_scale(g, mean, (float)rows / HEIGHT, 0);
    if (divided)
        mean = graph_all_reduce(
            g, mean, (struct all_reduce_attr){ .group = PEERS_SPACE, .sum_forward = true });
    graph_output(g, "logits", graph_linear(g, mean, "fc", 3, true));
    if (peer_job_ready(g))
        return g;
    graph_free(g);
    return NULL;
}

/* planes of `rows` rows from `first` on, of planes of HEIGHT rows: numbers by their place there. */
static void fill_rows(float *to, uint64_t what, int64_t planes, int64_t first, int64_t rows)
{
    for (int64_t p = 0; p < planes; p++)
        for (int64_t i = 0; i < rows * WIDTH; i++)
            to[p * rows * WIDTH + i] =
                peer_job_number(what, (uint64_t)((p * HEIGHT + first) * WIDTH + i));
}

static void run_band(struct peer_job *job, int64_t rows, bool divided)
{
    job->graph = band_network(rows, divided);
    job->options.mode = PLAN_TRAIN, job->options.threads = 1, job->options.input_gradients = true;
    if (!job->graph || !plan_new(job->graph, &job->options, &job->plan, NULL))
        return;
    fill_rows(plan_input(job->plan, 0), 1, 2 * 3, job->first, rows);
    fill_rows(plan_output_gradient(job->plan, 0), 2, 2 * CHANNELS, job->first, rows);
    for (int i = 0; i < 6; i++)
        plan_output_gradient(job->plan, 1)[i] = peer_job_number(3, (uint64_t)i);
    plan_zero_gradients(job->plan);
    job->ok = plan_forward(job->plan, NULL) && plan_backward(job->plan, NULL);
}

static void work_on_band(void *jobs, int rank)
{
    run_band((struct peer_job *)jobs + rank, band_rows[rank], true);
}

/* Returns how often the first of them talked. */
static int64_t run_bands(struct peer_job *jobs, struct plan_options options)
{
    struct thread_peers *peers = thread_peers_new(PEERS);
    int64_t first = 0;
    assert_non_null(peers);
    for (int r = 0; r < PEERS; r++) {
        jobs[r] = (struct peer_job){ .options = options, .first = first };
        jobs[r].options.peers[PEERS_SPACE] = thread_peers_of(peers, r);
        first += band_rows[r];
    }
    thread_peers_run(peers, work_on_band, jobs);
    int64_t calls = thread_peers_calls(peers, 0);
    thread_peers_free(peers);
    for (int r = 0; r < PEERS; r++)
        assert_true(jobs[r].ok);
    return calls;
}

/* The rows of a part out of the whole tensor [planes][HEIGHT][WIDTH]. */
static float *rows_of(const float *whole, int64_t planes, int64_t first, int64_t rows)
{
    float *part = malloc((size_t)(planes * rows * WIDTH) * sizeof *part);
    assert_non_null(part);
    for (int64_t p = 0; p < planes; p++)
        memcpy(part + p * rows * WIDTH, whole + (p * HEIGHT + first) * WIDTH,
               (size_t)(rows * WIDTH) * sizeof *part);
    return part;
}

/* direct: a pixel is the same sum wherever its row is, bit by bit. */
static void compare_bands(struct peer_job *jobs, struct peer_job *whole, bool direct)
{
    int64_t n, m;
    const float *gradients = plan_gradients(whole->plan, &n);
    float *sum = calloc((size_t)n, sizeof *sum), *d_whole = peer_job_input_gradient(whole);
    for (int r = 0; r < PEERS; r++) {
        int64_t rows = band_rows[r], pixels = 2 * CHANNELS * rows * WIDTH;
        float *maps = rows_of(plan_output(whole->plan, 0), 2 * CHANNELS, jobs[r].first, rows);
        float *d = rows_of(d_whole, 2 * 3, jobs[r].first, rows),
              *own = peer_job_input_gradient(&jobs[r]);
        if (direct)
            assert_memory_equal(plan_output(jobs[r].plan, 0), maps, (size_t)pixels * sizeof *maps);
        assert_true(relative_error(plan_output(jobs[r].plan, 0), maps, pixels) < 1e-5);
        assert_true(relative_error(plan_output(jobs[r].plan, 1), plan_output(whole->plan, 1), 6) <
                    1e-5);
        assert_true(relative_error(own, d, 2 * 3 * rows * WIDTH) < (direct ? 2e-6 : 2e-5));
        const float *part = plan_gradients(jobs[r].plan, &m);
        assert_int_equal(n, m);
        for (int64_t i = 0; i < n; i++)
            sum[i] += part[i];
        free(maps), free(d), free(own);
    }
    /* Every peer computes the loss of the logits, so the classifier's gradient is there each time:
     * it counts once. */
    for (int k = 0; k < 2; k++) {
        value_id id = graph_find(whole->graph, k ? "fc.bias" : "fc.weight");
        float *d = sum + (plan_parameter_gradient(whole->plan, id) - gradients);
        for (int64_t i = 0; i < shape_count(graph_shape(whole->graph, id)); i++)
            d[i] /= PEERS;
    }
    assert_true(relative_error(sum, gradients, n) < 2e-5);
    free(sum), free(d_whole);
}

static void bands_with_halos_are_the_whole_image(void **state)
{
    (void)state;
    for (int direct = 0; direct < 2; direct++) {
        struct peer_job jobs[PEERS], whole = { .options = { .direct = direct } };
        run_band(&whole, HEIGHT, false);
        assert_true(whole.ok);
        run_bands(jobs, whole.options);
        compare_bands(jobs, &whole, direct);
        for (int r = 0; r < PEERS; r++)
            peer_job_free(&jobs[r]);
        peer_job_free(&whole);
    }
}

/* Borders that came are kept, not asked for again: as many calls, the same bits. */
static void recomputation_does_not_talk(void **state)
{
    (void)state;
    struct peer_job all[PEERS], again[PEERS];
    int64_t calls = run_bands(all, (struct plan_options){ .saving = SAVING_ALL });
    int64_t n, m;
    /* halos: two ways, two passes; one sum: parts out and back, to and from each of the others,
     * each started and finished */
    assert_int_equal(calls, (1 + TALL) * 2 * 2 + 2 * (PEERS - 1) * 4);
    assert_int_equal(run_bands(again, (struct plan_options){ .saving = SAVING_RECOMPUTE }), calls);
    for (int r = 0; r < PEERS; r++) {
        const float *a = plan_gradients(all[r].plan, &n), *b = plan_gradients(again[r].plan, &m);
        assert_memory_equal(a, b, (size_t)n * sizeof *a);
        assert_true(plan_steps(again[r].plan) > plan_steps(all[r].plan)); /* it does recompute */
        peer_job_free(&all[r]), peer_job_free(&again[r]);
    }
}

/* --- a linear layer in parts --- */

#define ROWS 4
#define IN 12
#define HIDDEN 24 /* PEERS parts of 8 */
#define OUT 5

/* Two linear layers with a gelu between them. Divided: each peer has some hidden features, and what
 * they add to the outputs is summed. */
static struct graph *mlp(int64_t hidden, bool divided)
{
    struct graph *g = graph_new("mlp");
    value_id x = graph_input(g, "input", SHAPE(ROWS, IN));
    if (divided)
        x = graph_all_reduce(
            g, x, (struct all_reduce_attr){ .group = PEERS_HEADS, .sum_backward = true });
    x = graph_gelu(g, graph_linear(g, x, "fc1", hidden, true));
    x = graph_linear(g, x, "fc2", OUT, false);
    if (divided)
        x = graph_all_reduce(g, x,
                             (struct all_reduce_attr){ .group = PEERS_HEADS, .sum_forward = true });
    graph_output(g, "y", x);
    if (peer_job_ready(g))
        return g;
    graph_free(g);
    return NULL;
}

/* Weights by the place of a hidden feature in the whole; `first` is that of the part. */
static void draw_mlp(struct graph *g, int64_t hidden, int64_t first)
{
    for (int64_t h = 0; h < hidden; h++) {
        uint64_t at = (uint64_t)(first + h);
        for (uint64_t i = 0; i < IN; i++)
            graph_data(g, graph_find(g, "fc1.weight"))[h * IN + (int64_t)i] =
                peer_job_number(4, at * IN + i);
        graph_data(g, graph_find(g, "fc1.bias"))[h] = peer_job_number(5, at);
        for (uint64_t o = 0; o < OUT; o++)
            graph_data(g, graph_find(g, "fc2.weight"))[(int64_t)o * hidden + h] =
                peer_job_number(6, at * OUT + o);
    }
}

static void run_mlp(struct peer_job *job, int64_t hidden, bool divided)
{
    job->graph = mlp(hidden, divided);
    job->options.mode = PLAN_TRAIN, job->options.threads = 1, job->options.input_gradients = true;
    if (!job->graph)
        return;
    draw_mlp(job->graph, hidden, job->first);
    if (!plan_new(job->graph, &job->options, &job->plan, NULL))
        return;
    for (uint64_t i = 0; i < ROWS * IN; i++)
        plan_input(job->plan, 0)[i] = peer_job_number(7, i);
    for (uint64_t i = 0; i < ROWS * OUT; i++)
        plan_output_gradient(job->plan, 0)[i] = peer_job_number(8, i);
    plan_zero_gradients(job->plan);
    job->ok = plan_forward(job->plan, NULL) && plan_backward(job->plan, NULL);
}

static void work_on_mlp(void *jobs, int rank)
{
    run_mlp((struct peer_job *)jobs + rank, HIDDEN / PEERS, true);
}

static void linear_layers_in_parts_are_whole(void **state)
{
    (void)state;
    struct thread_peers *peers = thread_peers_new(PEERS);
    struct peer_job jobs[PEERS], whole = { 0 };
    enum { PART = HIDDEN / PEERS };
    run_mlp(&whole, HIDDEN, false);
    assert_true(peers && whole.ok);
    for (int r = 0; r < PEERS; r++) {
        jobs[r] = (struct peer_job){ .first = r * PART };
        jobs[r].options.peers[PEERS_HEADS] = thread_peers_of(peers, r);
    }
    thread_peers_run(peers, work_on_mlp, jobs);
    float *d_whole = peer_job_input_gradient(&whole);
    for (int r = 0; r < PEERS; r++) {
        assert_true(jobs[r].ok);
        float *d = peer_job_input_gradient(&jobs[r]), columns[OUT * PART];
        struct graph *g = whole.graph;
        const float *d1 = plan_parameter_gradient(whole.plan, graph_find(g, "fc1.weight"));
        const float *d2 = plan_parameter_gradient(whole.plan, graph_find(g, "fc2.weight"));
        g = jobs[r].graph;
        assert_true(relative_error(plan_output(jobs[r].plan, 0), plan_output(whole.plan, 0),
                                   ROWS * OUT) < 1e-6);
        assert_true(relative_error(d, d_whole, ROWS * IN) < 1e-6);
        assert_true(
            relative_error(plan_parameter_gradient(jobs[r].plan, graph_find(g, "fc1.weight")),
                           d1 + r * PART * IN, PART * IN) < 1e-6);
        for (int64_t o = 0; o < OUT; o++)
            memcpy(columns + o * PART, d2 + o * HIDDEN + r * PART, PART * sizeof(float));
        assert_true(
            relative_error(plan_parameter_gradient(jobs[r].plan, graph_find(g, "fc2.weight")),
                           columns, OUT * PART) < 1e-6);
        assert_memory_equal(plan_output(jobs[r].plan, 0), plan_output(jobs[0].plan, 0),
                            ROWS * OUT * sizeof(float));
        free(d);
    }
    for (int r = 0; r < PEERS; r++)
        peer_job_free(&jobs[r]);
    free(d_whole);
    peer_job_free(&whole);
    thread_peers_free(peers);
}

/* --- without peers --- */

/* halo as zeros around, gather and sums as nothing. alone: with a group of one. */
static void alone_they_are_what_remains(void **state)
{
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        struct thread_peers *peers = thread_peers_new(1);
        struct peer_job jobs[2] = { 0 };
        for (int k = 0; k < 2; k++) {
            struct graph *g = jobs[k].graph = graph_new("alone");
            value_id x = graph_input(g, "input", SHAPE(1, 20, 5, 4));
            if (k == 0) {
                x = graph_pad(g, x, (struct pad_attr){ .pad = { 2, 0, 1, 3 } });
            } else {
                x = graph_halo(g, x, (struct halo_attr){ 2, 2, 1, PEERS_SPACE, false, { 0, 0 } });
                x = graph_halo(g, x, (struct halo_attr){ 3, 0, 3, PEERS_BANDS, false, { 0, 0 } });
                x = graph_all_reduce(g, x, (struct all_reduce_attr){ PEERS_SPACE, true, true });
                x = graph_all_gather(g, x, (struct all_gather_attr){ .axis = 1 });
                x = graph_reduce_scatter(g, x, (struct reduce_scatter_attr){ .axis = 1 });
            }
            graph_output(g, "y", graph_conv(g, x, "conv", 16, true, conv_square(3, 1, 0)));
            assert_true(peer_job_ready(g));
            struct plan_options options = { .mode = PLAN_TRAIN,
                                            .threads = 1,
                                            .input_gradients = true };
            for (int p = 0; p < PEER_GROUPS && alone; p++)
                options.peers[p] = thread_peers_of(peers, 0);
            struct err err = { 0 };
            if (!plan_new(g, &options, &jobs[k].plan, &err))
                fail_msg("%s", err.text);
            for (uint64_t i = 0; i < 20 * 5 * 4; i++)
                plan_input(jobs[k].plan, 0)[i] = peer_job_number(1, i);
            for (uint64_t i = 0; i < 16 * 6 * 5; i++)
                plan_output_gradient(jobs[k].plan, 0)[i] = peer_job_number(2, i);
            if (!plan_forward(jobs[k].plan, &err) || !plan_backward(jobs[k].plan, &err))
                fail_msg("%s", err.text);
        }
        float *a = peer_job_input_gradient(&jobs[0]), *b = peer_job_input_gradient(&jobs[1]);
        assert_memory_equal(plan_output(jobs[0].plan, 0), plan_output(jobs[1].plan, 0),
                            16 * 6 * 5 * sizeof(float));
        assert_memory_equal(a, b, 20 * 5 * 4 * sizeof(float));
        assert_int_equal(thread_peers_calls(peers, 0), 0);
        free(a), free(b);
        peer_job_free(&jobs[0]), peer_job_free(&jobs[1]);
        thread_peers_free(peers);
    }
}

/* --- mistakes --- */

static bool exchange_fails(void *arg, const struct peers_exchange *exchange, struct err *err)
{
    (void)arg, (void)exchange;
    return err_set(err, ERR_IO, "rank 1: connection reset by peer");
}

static bool start_fails(void *arg, int to, const void *data, size_t bytes, int64_t *handle,
                        struct err *err)
{
    (void)arg, (void)to, (void)data, (void)bytes, (void)handle;
    return err_set(err, ERR_IO, "rank 1: connection reset by peer");
}

static void abandon(void *arg)
{
    ++*(int *)arg;
}

static void mistakes_are_named(void **state)
{
    (void)state;
    struct plan_peers peers = { .size = 2 };
    struct plan_options options = { .threads = 1, .peers = { [PEERS_SPACE] = &peers } };
    struct err err = { 0 };
    struct plan *plan = NULL;
    struct graph *g = graph_new("few");
    value_id x = graph_input(g, "input", SHAPE(1, 3, 2, 8));
    graph_output(g, "y",
                 graph_halo(g, x, (struct halo_attr){ 2, 3, 1, PEERS_SPACE, false, { 0, 0 } }));
    assert_false(plan_new(g, &options, &plan, &err));
    assert_string_equal(err.text,
                        "halo_0: halo: a part of 2 rows is smaller than the border of 3 "
                        "that its neighbour needs; use fewer processes or a larger image");
    graph_free(g);
    g = graph_new("parts");
    x = graph_input(g, "input", SHAPE(1, 3, 4, 8));
    x = graph_all_gather(g, x,
                         (struct all_gather_attr){ .axis = 1, .parts = 4, .group = PEERS_SPACE });
    graph_output(g, "y", x);
    assert_false(plan_new(g, &options, &plan, &err));
    assert_string_equal(
        err.text, "all_gather_0: all_gather: it joins 4 parts, but the group space has 2 peers");
    graph_free(g);
    g = graph_new("none");
    x = graph_all_reduce(g, graph_input(g, "input", SHAPE(1, 3)), (struct all_reduce_attr){ 0 });
    assert_int_equal(x, NO_VALUE);
    assert_non_null(strstr(g->err.text, "neither sum_forward nor sum_backward"));
    graph_free(g);
    g = graph_new("axis");
    x = graph_input(g, "input", SHAPE(1, 3, 4, 8));
    assert_int_equal(graph_halo(g, x, (struct halo_attr){ 1, 1, 1, PEERS_SPACE, false, { 0, 0 } }),
                     NO_VALUE);
    assert_non_null(strstr(g->err.text, "axis 1 is neither height (2) nor width (3)"));
    graph_free(g);
    g = graph_new("beyond");
    x = graph_input(g, "input", SHAPE(1, 3, 4));
    x = graph_reduce_scatter(g, x, (struct reduce_scatter_attr){ .axis = 1, .parts = 4 });
    assert_int_equal(x, NO_VALUE);
    assert_non_null(strstr(g->err.text, "part 0 of 4 of an extent of 3"));
    graph_free(g);
    static const struct all_gather_attr of_others[] = {
        { .axis = 1, .extent = 5 },
        { .axis = 1, .parts = 2, .extent = 5 },
        { .axis = 1, .parts = 3, .extent = 13 },
    };
    static const char *const words[] = {
        "4 of an extent of 5, of which each of 1 peers has 5 or 5",
        "4 of an extent of 5, of which each of 2 peers has 2 or 3",
        NULL,
    };
    for (int i = 0; i < 3; i++) {
        g = graph_new("others");
        x = graph_all_gather(g, graph_input(g, "input", SHAPE(1, 4, 3)), of_others[i]);
        assert_int_equal(x == NO_VALUE, words[i] != NULL);
        assert_true(!words[i] || strstr(g->err.text, words[i]));
        graph_free(g);
    }
}

static void failures_are_named(void **state)
{
    (void)state;
    int abandoned = 0;
    struct plan_peers peers = { .arg = &abandoned,
                                .size = 2,
                                .exchange = exchange_fails,
                                .start_send = start_fails,
                                .abandon = abandon };
    struct plan_options options = { .threads = 1, .peers = { [PEERS_SPACE] = &peers } };
    struct err err = { 0 };
    struct plan *plan = NULL;
    struct graph *g = graph_new("torn");
    value_id x;
    x = graph_input(g, "input", SHAPE(1, 3, 4, 8));
    graph_output(g, "y",
                 graph_halo(g, x, (struct halo_attr){ 2, 1, 1, PEERS_SPACE, false, { 0, 0 } }));
    assert_true(plan_new(g, &options, &plan, &err));
    assert_false(plan_forward(plan, &err));
    assert_string_equal(err.text,
                        "halo_0: the kernel halo failed: rank 1: connection reset by peer");
    plan_free(plan);
    graph_free(g);
    g = graph_new("sum");
    x = graph_input(g, "input", SHAPE(1, 8));
    graph_output(g, "y",
                 graph_all_reduce(g, x, (struct all_reduce_attr){ PEERS_SPACE, true, false }));
    assert_true(plan_new(g, &options, &plan, &err));
    assert_false(plan_forward(plan, &err));
    assert_string_equal(err.text, "all_reduce_0: the kernel sum over peers: parts out failed: "
                                  "rank 1: connection reset by peer");
    assert_int_equal(abandoned, 1); /* nobody writes into the plan from now on */
    plan_free(plan);
    graph_free(g);
}

/* Transforms copy these ops with their attributes; ONNX and dense scoring refuse them. */
static void transforms_keep_them(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = band_network(8, true), *fused = NULL, *resized = NULL, *dense = NULL;
    assert_non_null(g);
    assert_true(transform_resize(g, 5, 16, WIDTH, &resized, &err));
    assert_true(transform_for_inference(resized, NULL, 0, &fused, &err));
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const struct node *node = &g->nodes[i];
        if (node->op->kind < OP_HALO)
            continue;
        value_id kept = graph_find(fused, node->name);
        assert_int_not_equal(kept, NO_VALUE);
        const struct node *other = &fused->nodes[fused->values[kept].node];
        assert_ptr_equal(other->op, node->op);
        assert_true(op_attr_equal(node->op, &node->attr, &other->attr));
    }
    char *path = scratch_path("collective.onnx");
    assert_false(onnx_write(g, path, NULL, &err));
    assert_non_null(strstr(err.text, "the operation halo cannot be written to ONNX"));
    assert_int_not_equal(access(path, F_OK), 0);
    struct dense_spec spec = { .window = 16, .output_stride = 8, .height = 32, .width = 32 };
    assert_false(transform_dense(g, &spec, &dense, &err));
    assert_non_null(strstr(err.text, "halo"));
    free(path);
    graph_free(g), graph_free(fused), graph_free(resized);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bands_with_halos_are_the_whole_image),
        cmocka_unit_test(recomputation_does_not_talk),
        cmocka_unit_test(linear_layers_in_parts_are_whole),
        cmocka_unit_test(alone_they_are_what_remains),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(failures_are_named),
        cmocka_unit_test(transforms_keep_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
