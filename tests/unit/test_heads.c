/* test_heads.c: Transformers whose attention heads and MLP columns are divided among processes
 * (here: threads), times replicas with samples of their own, are as exact as the network on one:
 * outputs and gradients of all parameters are compared with PyTorch in double precision
 * (tests/golden/zoo: outputs in full, gradients by checksums), and their error is at most 1.5 times
 * that of the whole network; not so with sums that are left out. A toy against central differences
 * in double; the same bits with sums that are waited for; dropout on any grid; what is refused. All
 * of it also with tokens divided where heads and columns are not. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "net/graph/transform.h"
#include "net/plan/execution.h"
#include "net/plan/tape.h"
#include "support/golden.h"
#include "support/heads_parts.h"
#include "support/paths.h"
#include "support/thread_peers.h"
#include "support/zoo_golden.h"

#define TIMES 1.5
#define NEGLIGIBLE 1e-6 /* of the largest: biases of keys have no gradient but rounding */
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- against double precision --- */

struct errors {
    double gradients; /* root of the mean square over all parameters */
    double outputs;   /* of all, in full */
};

/* By its checksums, relative to the norm of the reference. */
static double error_of(const struct zoo_golden *golden, const char *name, const struct shape *shape,
                       const float *ours)
{
    const struct zoo_record *record = zoo_golden_find(golden, name, shape);
    assert_non_null(record);
    uint64_t stream = zoo_stream("dot:", name);
    double squares = 0, dot = 0, reference = (double)record->norm[ZOO_EVAL];
    for (int64_t i = 0; i < shape_count(shape); i++) {
        squares += (double)ours[i] * (double)ours[i];
        dot += (double)ours[i] * zoo_number(stream, i);
    }
    double error = fmax(fabs(sqrt(squares) - reference), fabs(dot - (double)record->dot[ZOO_EVAL]));
    return isnan(squares) ? INFINITY : error / reference;
}

static double output_error(const struct zoo_golden *golden, const struct heads_result *result)
{
    double squares = 0, reference = 0;
    double *values =
        zoo_golden_values(golden, ZOO_EVAL, result->graph->outputs[0].name, result->n_outputs);
    assert_non_null(values);
    for (int64_t i = 0; i < result->n_outputs; i++) {
        squares += pow((double)result->outputs[i] - values[i], 2);
        reference += pow(values[i], 2);
    }
    free(values);
    return isnan(squares) ? INFINITY : sqrt(squares / reference);
}

static struct errors judge(const struct zoo_golden *golden, const struct heads_result *result)
{
    const struct graph *graph = result->graph;
    const float *gradient = result->gradients;
    double squares = 0, largest = 0;
    int n = 0;
    for (value_id v = 0; v < graph->n_values; v++)
        if (graph->values[v].kind == VALUE_PARAMETER)
            largest = fmax(largest, (double)zoo_golden_find(golden, graph->values[v].name,
                                                            &graph->values[v].shape)
                                        ->norm[ZOO_EVAL]);
    for (value_id v = 0; v < graph->n_values; v++) {
        const struct value *value = &graph->values[v];
        if (value->kind != VALUE_PARAMETER)
            continue;
        double error = error_of(golden, value->name, &value->shape, gradient);
        double norm = (double)zoo_golden_find(golden, value->name, &value->shape)->norm[ZOO_EVAL];
        gradient += shape_count(&value->shape);
        if (norm > NEGLIGIBLE * largest)
            squares += error * error, n++;
    }
    return (struct errors){ sqrt(squares / n), output_error(golden, result) };
}

static struct errors run(const struct zoo_golden *golden, const struct zoo_case *zoo_case,
                         int parts, int replicas, bool tokens, enum heads_fault fault)
{
    static const char *const faults[] = { "", ", detached", ", apart", ", alone" };
    struct heads_job job = { .network = zoo_case->network,
                             .options = zoo_case->options,
                             .parts = parts,
                             .replicas = replicas,
                             .mode = PLAN_TUNE,
                             .fault = fault,
                             .tokens = tokens };
    struct heads_result result;
    heads_parts_run(&job, &result);
    struct errors e = judge(golden, &result);
    print_message("%-13s heads %d%s x data %d%s: gradients %.2e, outputs %.1e; %lld of %lld "
                  "parameters, %.2f MB\n",
                  zoo_case->name, parts, tokens ? " and tokens" : "", replicas, faults[fault],
                  e.gradients, e.outputs, (long long)result.part_count, (long long)result.count,
                  (double)result.arena / 1e6);
    heads_result_free(&result);
    return e;
}

/* The reference has the precision of a float, and outputs are few: the plain ones may be exact by
 * chance, so some roundings are allowed besides. */
static bool is_as_exact(struct errors e, struct errors plain)
{
    return e.gradients <= TIMES * plain.gradients + FLT_EPSILON &&
           e.outputs <= TIMES * plain.outputs + 4 * FLT_EPSILON;
}

static void test_parts_are_as_exact_as_the_whole(void **state)
{
    static const struct {
        const char *name;
        int heads[3], data[3];
    } grids[] = {
        { "vit_patch32", { 1, 2, 3 }, { 1, 2 } }, { "vit_dinov2", { 2 }, { 2 } },
        { "transformer", { 2, 4 }, { 1, 3 } },    { "bert_batch", { 1, 2, 4 }, { 1, 2, 3 } },
        { "bert_mini", { 1, 2, 4 }, { 1, 2 } },   { "bert_tiny", { 2 }, { 1, 3 } },
        { "prenorm_tiny", { 2 }, { 1, 3 } },      { "t5_mini", { 1, 2, 4 }, { 1, 3 } },
    };
    char *folder = source_path("tests/golden/zoo");
    struct zoo_case *cases = NULL;
    size_t n = zoo_cases(folder, &cases);
    int tried = 0;
    (void)state;
    for (size_t i = 0; i < n * COUNT(grids); i++) {
        const struct zoo_case *c = &cases[i % n];
        const int *heads = grids[i / n].heads, *data = grids[i / n].data;
        struct zoo_golden golden;
        if (strcmp(c->name, grids[i / n].name) != 0)
            continue;
        assert_true(zoo_golden_read(&golden, folder, NULL, c->name));
        struct errors plain = run(&golden, c, 1, 1, false, HEADS_RIGHT);
        for (int k = 0; k < 9; k++)
            for (int tokens = 0; tokens < (heads[k / 3] > 1 ? 2 : 1); tokens++)
                if (heads[k / 3] * data[k % 3] > 1)
                    assert_true(is_as_exact(
                        run(&golden, c, heads[k / 3], data[k % 3], tokens, HEADS_RIGHT), plain));
        for (int tokens = 0; tokens < 2; tokens++) {
            assert_false(is_as_exact(run(&golden, c, 2, 1, tokens, HEADS_DETACHED), plain));
            assert_false(is_as_exact(run(&golden, c, 2, 1, tokens, HEADS_APART), plain));
        }
        /* of one layer only the first token, which the first part has, gets gradients */
        if (c->options.depth != 1)
            assert_false(is_as_exact(run(&golden, c, 2, 1, true, HEADS_ALONE), plain));
        zoo_golden_free(&golden);
        tried++;
    }
    assert_int_equal(tried, COUNT(grids));
    free(cases), free(folder);
}

/* --- a toy against central differences in double --- */

enum { TOKENS = 3, WIDTH = 8, HEADS = 4, SIZE = 2, HIDDEN = 12 };
enum { QKV, QKV_BIAS, OUT, OUT_BIAS, UP, UP_BIAS, DOWN, DOWN_BIAS, TOY_PARAMETERS };
static const struct {
    const char *name;
    int rows, columns;
} toy[TOY_PARAMETERS] = {
    [QKV] = { "qkv.weight", 3 * WIDTH, WIDTH }, [QKV_BIAS] = { "qkv.bias", 3 * WIDTH, 1 },
    [OUT] = { "out.weight", WIDTH, WIDTH },     [OUT_BIAS] = { "out.bias", WIDTH, 1 },
    [UP] = { "up.weight", HIDDEN, WIDTH },      [UP_BIAS] = { "up.bias", HIDDEN, 1 },
    [DOWN] = { "down.weight", WIDTH, HIDDEN },  [DOWN_BIAS] = { "down.bias", WIDTH, 1 },
};

static double toy_number(const char *name, int64_t i)
{
    return (double)(float)(0.7 * zoo_number(zoo_stream("toy:", name), i));
}

/* y [rows] = weight x + bias */
static void linear(double *const weights[], int weight, const double *x, double *y)
{
    for (int o = 0; o < toy[weight].rows; o++) {
        y[o] = weights[weight + 1][o];
        for (int c = 0; c < toy[weight].columns; c++)
            y[o] += weights[weight][o * toy[weight].columns + c] * x[c];
    }
}

/* One token of one head: softmax of q k / sqrt(2), times v. */
static void attend(double qkv[TOKENS][3 * WIDTH], int token, int head, double *out)
{
    double weights[TOKENS], sum = 0;
    for (int s = 0; s < TOKENS; s++) {
        double score = 0;
        for (int d = head * SIZE; d < (head + 1) * SIZE; d++)
            score += qkv[token][d] * qkv[s][WIDTH + d];
        sum += weights[s] = exp(score / sqrt(SIZE));
    }
    for (int d = head * SIZE; d < (head + 1) * SIZE; d++) {
        out[d] = 0;
        for (int s = 0; s < TOKENS; s++)
            out[d] += weights[s] / sum * qkv[s][2 * WIDTH + d];
    }
}

/* The loss of the toy: a block without norms on one sample of three tokens. */
static double toy_loss(double *const weights[], const double *x)
{
    double qkv[TOKENS][3 * WIDTH], loss = 0;
    for (int t = 0; t < TOKENS; t++)
        linear(weights, QKV, x + t * WIDTH, qkv[t]);
    for (int t = 0; t < TOKENS; t++) {
        double seen[WIDTH], y[WIDTH], hidden[HIDDEN], z[WIDTH];
        for (int h = 0; h < HEADS; h++)
            attend(qkv, t, h, seen);
        linear(weights, OUT, seen, y);
        for (int c = 0; c < WIDTH; c++)
            y[c] += x[t * WIDTH + c];
        linear(weights, UP, y, hidden);
        for (int c = 0; c < HIDDEN; c++)
            hidden[c] *= 0.5 * (1 + erf(hidden[c] / sqrt(2)));
        linear(weights, DOWN, hidden, z);
        for (int c = 0; c < WIDTH; c++)
            loss += toy_number("loss", t * WIDTH + c) * (y[c] + z[c]);
    }
    return loss;
}

static struct graph *toy_graph(void)
{
    struct graph *g = graph_new("toy");
    value_id x = graph_input(g, "input", SHAPE(1, TOKENS, WIDTH));
    value_id y = graph_linear(g, x, "qkv", 3 * WIDTH, true);
    y = graph_attention_packed(g, y, NO_VALUE, NO_VALUE, (struct attention_attr){ .heads = HEADS });
    x = graph_add(g, x, graph_linear(g, y, "out", WIDTH, true));
    y = graph_gelu(g, graph_linear(g, x, "up", HIDDEN, true));
    graph_output(g, "output", graph_add(g, x, graph_linear(g, y, "down", WIDTH, true)));
    assert_true(graph_ok(g, NULL) && graph_allocate(g, NULL));
    for (int p = 0; p < TOY_PARAMETERS; p++)
        for (int i = 0; i < toy[p].rows * toy[p].columns; i++)
            graph_data(g, graph_find(g, toy[p].name))[i] = (float)toy_number(toy[p].name, i);
    return g;
}

struct toy_run {
    struct graph *whole, *part[HEADS];
    struct plan *plan[HEADS];
    int64_t *outer;
    int parts;
    struct thread_peers *peers;
};

static void toy_work(void *arg, int rank)
{
    struct toy_run *run = arg;
    struct plan_options options = {
        .mode = PLAN_TRAIN, .threads = 1, .input_gradients = true, .no_sharing = true
    };
    options.peers[PEERS_HEADS] = thread_peers_of(run->peers, rank);
    assert_true(plan_new(run->part[rank], &options, &run->plan[rank], NULL));
    plan_zero_gradients(run->plan[rank]);
    for (int i = 0; i < TOKENS * WIDTH; i++) {
        plan_input(run->plan[rank], 0)[i] = (float)toy_number("input", i);
        plan_output_gradient(run->plan[rank], 0)[i] = (float)toy_number("loss", i);
    }
    assert_true(plan_forward(run->plan[rank], NULL) && plan_backward(run->plan[rank], NULL));
}

/* The derivative of the loss by one number. */
static double toy_slope(double *const weights[], double *x, double *by)
{
    double step = 1e-5, kept = *by;
    *by = kept + step;
    double above = toy_loss(weights, x);
    *by = kept - step;
    double below = toy_loss(weights, x);
    *by = kept;
    return (above - below) / (2 * step);
}

/* The gradient of a parameter, put together from those of all parts. */
static void toy_gradient(const struct toy_run *run, int parameter, float *out)
{
    int64_t count = toy[parameter].rows * toy[parameter].columns;
    value_id whole = graph_find(run->whole, toy[parameter].name);
    for (int r = 0; r < run->parts; r++) {
        float *own =
            plan_parameter_gradient(run->plan[r], graph_find(run->part[r], toy[parameter].name));
        if (run->outer[whole] > 0)
            heads_move(out, count, run->outer[whole], run->parts, r, own, true);
        else
            memcpy(out, own, (size_t)count * sizeof *out);
    }
}

static void test_toy(void **state)
{
    double *weights[TOY_PARAMETERS], x[TOKENS * WIDTH];
    (void)state;
    for (int i = 0; i < TOKENS * WIDTH; i++)
        x[i] = toy_number("input", i);
    for (int p = 0; p < TOY_PARAMETERS; p++) {
        weights[p] = calloc((size_t)(toy[p].rows * toy[p].columns), sizeof(double));
        for (int i = 0; i < toy[p].rows * toy[p].columns; i++)
            weights[p][i] = toy_number(toy[p].name, i);
    }
    for (int parts = 1; parts <= HEADS; parts *= 2) {
        struct toy_run run = { .whole = toy_graph(), .parts = parts };
        run.peers = thread_peers_new(parts);
        run.outer = calloc((size_t)run.whole->n_values, sizeof *run.outer);
        for (int r = 0; r < parts; r++)
            assert_true(transform_heads(run.whole, parts, r, &run.part[r], run.outer, NULL));
        thread_peers_run(run.peers, toy_work, &run);
        for (int p = 0; p < TOY_PARAMETERS; p++) {
            float found[3 * WIDTH * WIDTH];
            toy_gradient(&run, p, found);
            for (int i = 0; i < toy[p].rows * toy[p].columns; i++)
                assert_true(fabs((double)found[i] - toy_slope(weights, x, &weights[p][i])) < 1e-5);
        }
        for (int r = 0; r < parts; r++) {
            float found[TOKENS * WIDTH];
            assert_true(
                plan_activation_gradient(run.plan[r], run.part[r]->inputs[0].value, found, NULL));
            for (int i = 0; i < TOKENS * WIDTH; i++)
                assert_true(fabs((double)found[i] - toy_slope(weights, x, &x[i])) < 1e-5);
            plan_free(run.plan[r]);
            graph_free(run.part[r]);
        }
        thread_peers_free(run.peers);
        graph_free(run.whole);
        free(run.outer);
    }
    for (int p = 0; p < TOY_PARAMETERS; p++)
        free(weights[p]);
}

/* --- dropout, recomputation, gates --- */

static void try(const struct heads_job *job, struct heads_result *out)
{
    heads_parts_run(job, out);
}

/* How far two runs are apart. */
static double distance(const struct heads_result *a, const struct heads_result *b)
{
    return fmax(relative_error(a->gradients, b->gradients, a->count),
                relative_error(a->outputs, b->outputs, a->n_outputs));
}

/* In training, with dropout between fc1 and fc2 too; and not without it. */
static void test_dropout_is_that_of_the_whole(void **state)
{
    static const struct {
        const char *name;
        int64_t channels, height;
    } networks[] = { { "transformer_encoder", 32, 5 },
                     { "t5_mini", 50, 6 },
                     { "bert_mini", 50, 6 } };
    (void)state;
    for (size_t i = 0; i < COUNT(networks); i++) {
        struct heads_job job = { .network = networks[i].name,
                                 .options = { .batch = 2,
                                              .channels = networks[i].channels,
                                              .height = networks[i].height,
                                              .classes = 3,
                                              .depth = 1 },
                                 .parts = 1,
                                 .replicas = 1,
                                 .mode = PLAN_TRAIN };
        struct heads_result whole, parts, again, without;
        try(&job, &whole);
        for (int tokens = 0; tokens < 2; tokens++) {
            job.parts = 4, job.replicas = 2, job.tokens = tokens;
            job.saving = SAVING_ALL, job.mode = PLAN_TRAIN;
            try(&job, &parts);
            job.saving = SAVING_RECOMPUTE;
            try(&job, &again);
            job.saving = SAVING_ALL, job.mode = PLAN_TUNE;
            try(&job, &without);
            print_message("%s%s: dropout apart %.1e, without %.1e\n", networks[i].name,
                          tokens ? ", tokens divided" : "", distance(&parts, &whole),
                          distance(&without, &whole));
            assert_true(distance(&parts, &whole) < 2e-6);
            assert_true(distance(&without, &whole) > 1e-2);
            assert_memory_equal(parts.gradients, again.gradients,
                                (size_t)parts.count * sizeof(float));
            heads_result_free(&parts);
            heads_result_free(&again), heads_result_free(&without);
        }
        heads_result_free(&whole);
    }
}

/* --- sums that run while others compute --- */

/* Layers that are computed while a sum is under way, of one process. */
struct hidden {
    int rows;    /* forward: pieces of linear layers */
    int weights; /* backward: gradients of weights */
};

static struct hidden hidden_of(const struct plan *plan)
{
    const struct tape *tape = plan->ops->tape(plan);
    struct hidden h = { 0 };
    int under_way = 0;
    for (int i = 0; i < tape->n_steps; i++) {
        const struct step *step = &tape->steps[i];
        under_way += (step->message == MESSAGE_START) - (step->message == MESSAGE_END);
        if (under_way == 0 || step->talks || step->flops <= 0)
            continue;
        h.weights += i >= tape->begin_backward && step->only_weights;
        h.rows += i < tape->begin_backward;
    }
    assert_int_equal(under_way, 0);
    return h;
}

/* Of one layer of a network with so many texts of 40 tokens. */
static struct hidden plan_of_texts(int64_t batch, bool wait)
{
    struct zoo_options options = {
        .batch = batch, .channels = 50, .height = 40, .classes = 3, .depth = 1
    };
    struct graph *whole = heads_network("bert_mini", &options), *part = NULL;
    struct plan_peers peers = { .size = 2 }; /* a plan that is not run calls none */
    struct plan_options plan_options = {
        .mode = PLAN_TRAIN, .threads = 1, .peers = { [PEERS_HEADS] = &peers }, .wait_for_sums = wait
    };
    struct plan *plan = NULL;
    assert_true(transform_heads(whole, 2, 0, &part, NULL, NULL));
    assert_true(plan_new(part, &plan_options, &plan, NULL));
    struct hidden hidden = hidden_of(plan);
    plan_free(plan);
    graph_free(part), graph_free(whole);
    return hidden;
}

/* Of 200 rows two pieces, so one more behind a start in both sums of the layer; gradients of the
 * weights of the two layers of the MLP, of the output projection, and of q, k and v; those of the
 * two layers of the classifier come before the first sum, and are put off too. */
static void test_others_compute_while_sums_are_under_way(void **state)
{
    (void)state;
    struct hidden few = plan_of_texts(2, false), many = plan_of_texts(5, false),
                  none = plan_of_texts(5, true);
    assert_int_equal(few.rows, 0);
    assert_int_equal(few.weights, 8);
    assert_int_equal(many.rows, 2);
    assert_int_equal(many.weights, 8);
    assert_int_equal(none.rows + none.weights, 0);
}

static void test_sums_under_way_change_no_bits(void **state)
{
    struct heads_job job = {
        .network = "bert_mini",
        .options = { .batch = 12, .channels = 50, .height = 40, .classes = 3, .depth = 2 },
        .mode = PLAN_TRAIN
    };
    (void)state;
    for (int parts = 2; parts <= 4; parts += 2)
        for (int tokens = 0; tokens < 2; tokens++) {
            struct heads_result waited, under_way[2];
            job.parts = parts, job.replicas = parts / 2, job.tokens = tokens;
            job.saving = SAVING_ALL, job.wait = true;
            try(&job, &waited);
            job.wait = false;
            for (int i = 0; i < 2; i++) {
                job.saving = i == 0 ? SAVING_ALL : SAVING_RECOMPUTE;
                try(&job, &under_way[i]);
                assert_memory_equal(under_way[i].gradients, waited.gradients,
                                    (size_t)waited.count * sizeof(float));
                assert_memory_equal(under_way[i].outputs, waited.outputs,
                                    (size_t)waited.n_outputs * sizeof(float));
                heads_result_free(&under_way[i]);
            }
            heads_result_free(&waited);
        }
}

/* SwiGLU: both gates in one linear layer. */
static void test_gates(void **state)
{
    struct heads_job job = { .network = "vit_tiny_patch16_224",
                             .options = { .batch = 2,
                                          .channels = 3,
                                          .height = 32,
                                          .width = 32,
                                          .classes = 3,
                                          .depth = 2,
                                          .vit = { .known = true, .patch = 16, .gated = 96 } },
                             .parts = 1,
                             .replicas = 1,
                             .mode = PLAN_TRAIN };
    struct heads_result whole, parts;
    (void)state;
    try(&job, &whole);
    job.parts = 3;
    try(&job, &parts);
    assert_true(distance(&parts, &whole) < 2e-6);
    heads_result_free(&whole), heads_result_free(&parts);
}

/* --- what is refused --- */

static void refuse(const char *network, int64_t size, int64_t gated, int parts, const char *message)
{
    struct zoo_options options = { .batch = 1,
                                   .channels = 3,
                                   .height = size,
                                   .width = size,
                                   .classes = 3,
                                   .depth = 1,
                                   .vit = { gated > 0, 16, gated } };
    struct graph *graph = NULL, *part = NULL;
    struct err err = { 0 };
    assert_true(zoo_build(network, &options, &graph, &err));
    assert_false(transform_heads(graph, parts, 0, &part, NULL, &err));
    assert_string_equal(err.text, message);
    graph_free(graph);
}

static void test_what_cannot_be_divided_is_refused(void **state)
{
    (void)state;
    refuse("resnet18", 64, 0, 2,
           "the network resnet18 has no attention whose heads could be divided among 2 ranks");
    refuse("vit_tiny_patch16_224", 64, 0, 2,
           "attention_8: 3 heads cannot be divided among 2 ranks");
    refuse("vit_tiny_patch16_224", 64, 100, 3,
           "blocks.0.mlp.fc1: 100 columns cannot be divided among 3 ranks");
    refuse("swin_tiny_patch4_window7_224", 224, 0, 3,
           "attention_43: no linear layer follows, so its heads or columns cannot be divided");
}

/* A patch of 32 px is a token, and so is its class: two for three. */
static void test_too_few_tokens_are_refused(void **state)
{
    struct zoo_options options = {
        .batch = 1, .channels = 3, .height = 32, .width = 32, .classes = 3, .depth = 1
    };
    struct graph *graph = NULL, *part = NULL, *tokens = NULL;
    struct err err = { 0 };
    bool *summed = NULL;
    (void)state;
    assert_true(zoo_build("vit_small_patch32_224", &options, &graph, &err));
    assert_true(transform_heads(graph, 3, 0, &part, NULL, &err));
    assert_false(transform_tokens(part, 3, 0, &tokens, &summed, &err));
    assert_string_equal(err.text,
                        "blocks.0.attn.proj.sum: 2 tokens cannot be divided among 3 ranks");
    graph_free(graph), graph_free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_as_exact_as_the_whole),
        cmocka_unit_test(test_toy),
        cmocka_unit_test(test_dropout_is_that_of_the_whole),
        cmocka_unit_test(test_gates),
        cmocka_unit_test(test_others_compute_while_sums_are_under_way),
        cmocka_unit_test(test_sums_under_way_change_no_bits),
        cmocka_unit_test(test_what_cannot_be_divided_is_refused),
        cmocka_unit_test(test_too_few_tokens_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
