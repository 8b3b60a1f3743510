/* test_pipeline.c: a network on the ranks of a pipeline, which are threads here, makes the
 * gradients and running statistics of one process that runs the same micro-batches one after
 * another, bit for bit where sums have the same order; in the memory that the schedule promises;
 * and fails as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/stages/pipeline.h"
#include "net/zoo/zoo.h"
#include "support/drawn_step.h"
#include "support/thread_peers.h"

#define MOST 4 /* stages */
#define STEPS 2

struct pipe_case {
    const char *network; /* NULL: a small one */
    int64_t side, batch;
    int stages, micros;
    enum program_kind kind;
    bool recompute;
    bool exact;  /* bit for bit */
    int fail_on; /* the rank on which the loss or the feed fails; -1: none */
    struct plan_options plan;
};

/* A rank, with what it leaves. */
struct one_rank {
    struct graph *graph;
    struct stages stages;
    float *gradients[2];
    int held[2], n_held;
    int completed[2];
    int last_micro; /* of the loss */
    struct pipeline_report report;
    struct err err;
    bool ok;
};

struct all_ranks {
    const struct pipe_case *c;
    struct program program;
    struct thread_peers *peers[2][CHANNELS];
    struct one_rank ranks[MOST];
};

/* conv, norm, relu, dropout, conv, norm, sum, relu. */
static value_id block(struct graph *graph, value_id x, int i)
{
    char name[2][16], norm[2][16];
    for (int k = 0; k < 2; k++) {
        snprintf(name[k], sizeof name[k], "b%d.conv%d", i, k);
        snprintf(norm[k], sizeof norm[k], "b%d.norm%d", i, k);
    }
    value_id y = graph_conv(graph, x, name[0], 24, false, conv_square(3, 1, 1));
    y = graph_relu(graph, graph_batch_norm(graph, y, norm[0]));
    y = graph_dropout(graph, y, 0.2f);
    y = graph_conv(graph, y, name[1], 24, false, conv_square(3, 1, 1));
    return graph_relu(graph, graph_add(graph, x, graph_batch_norm(graph, y, norm[1])));
}

static struct graph *small_network(const struct pipe_case *c)
{
    struct graph *graph = graph_new("small");
    value_id x = graph_input(graph, "image", SHAPE(c->batch, 3, c->side, c->side));
    x = graph_conv(graph, x, "stem", 24, true, conv_square(3, 2, 1));
    for (int i = 0; i < 4; i++)
        x = block(graph, x, i);
    x = graph_linear(graph, graph_flatten(graph, graph_global_average_pool(graph, x)), "fc", 5,
                     true);
    graph_output(graph, "logits", x);
    return graph;
}

static struct graph *network(const struct pipe_case *c)
{
    struct zoo_options zoo = {
        .batch = c->batch, .height = c->side, .width = c->side, .classes = 5
    };
    struct err err = { 0 };
    struct graph *graph = NULL;
    if (!c->network)
        graph = small_network(c);
    else if (!zoo_build(c->network, &zoo, &graph, &err))
        fail_msg("%s: %s", c->network, err.text);
    assert_true(draw_weights(graph));
    return graph;
}

/* --- one process --- */

/* The micro-batches m of all steps with m % stride == first. */
static struct plan *run_whole(const struct pipe_case *c, const struct graph *graph, int first,
                              int stride)
{
    struct plan_options options = c->plan;
    struct plan *plan = NULL;
    struct err err = { 0 };
    options.mode = PLAN_TRAIN, options.threads = 1;
    if (!plan_new(graph, &options, &plan, &err))
        fail_msg("%s", err.text);
    for (int s = 0; s < STEPS; s++)
        for (int m = first; m < c->micros; m += stride) {
            for (int i = 0; i < graph->n_inputs; i++)
                draw_input(graph, i, s * 100 + m, plan_input(plan, i));
            plan_set_random(plan, (uint64_t)(9 + s), (uint64_t)(m * c->batch));
            assert_true(plan_forward(plan, &err));
            draw_loss(graph, plan, s * 100 + m);
            assert_true(plan_backward(plan, &err));
        }
    return plan;
}

/* --- a rank --- */

struct rank_arg {
    struct all_ranks *all;
    int rank, step;
};

static bool feed(void *arg, int stage, int micro, int port, float *to, struct err *err)
{
    struct rank_arg *a = arg;
    if (a->all->c->fail_on == a->rank && stage == 0 && micro == 1)
        return err_set(err, ERR_IO, "no such patch");
    draw_input(a->all->ranks[a->rank].stages.graphs[stage], port, a->step * 100 + micro, to);
    return true;
}

static bool loss(void *arg, int micro, struct plan *plan, struct err *err)
{
    struct rank_arg *a = arg;
    struct one_rank *one = &a->all->ranks[a->rank];
    const struct graph *graph = one->stages.graphs[one->stages.n - 1];
    if (a->all->c->fail_on == a->rank && micro == 1)
        return err_set(err, ERR_FORMAT, "no such class");
    for (int o = 0; o < graph->n_outputs; o++)
        for (int64_t i = 0; i < floats_of(graph, graph->outputs[o].value); i++)
            if (plan_output_gradient(plan, o)[i] != 0.0f)
                return err_set(err, ERR_FORMAT, "gradients are not zero before the loss");
    if (micro <= one->last_micro)
        return err_set(err, ERR_FORMAT, "micro-batches come in another order");
    one->last_micro = micro;
    draw_loss(graph, plan, a->step * 100 + micro);
    return true;
}

static void complete(void *arg, int i)
{
    const struct rank_arg *a = arg;
    a->all->ranks[a->rank].completed[i]++;
}

static bool run_steps(struct one_rank *one, struct rank_arg *a, const struct pipeline_options *o,
                      struct err *err)
{
    struct pipeline *pipeline = NULL;
    uint64_t first_sample[64];
    for (int m = 0; m < a->all->c->micros; m++)
        first_sample[m] = (uint64_t)(m * a->all->c->batch);
    bool ok = pipeline_new(o, &pipeline, err);
    for (a->step = 0; ok && a->step < STEPS; a->step++) {
        one->last_micro = -1;
        ok = pipeline_step(pipeline, (uint64_t)(9 + a->step), first_sample, err);
    }
    if (pipeline)
        one->report = pipeline_report(pipeline);
    pipeline_free(pipeline);
    return ok;
}

static void work(void *arg, int rank)
{
    struct all_ranks *all = arg;
    const struct pipe_case *c = all->c;
    struct one_rank *one = &all->ranks[rank];
    struct rank_arg a = { all, rank, 0 };
    int32_t begin[MOST + 1];
    one->graph = network(c);
    for (int s = 0; s <= c->stages; s++)
        begin[s] = one->graph->n_nodes * s / c->stages;
    one->ok = stages_new(one->graph, begin, c->stages, &one->stages, &one->err);
    one->n_held = program_held(&all->program, rank, one->held);
    struct pipeline_options o = { .stages = &one->stages,
                                  .program = &all->program,
                                  .rank = rank,
                                  .recompute = c->recompute,
                                  .plan = c->plan,
                                  .feed = feed,
                                  .loss = loss,
                                  .complete = complete,
                                  .arg = &a };
    o.plan.mode = PLAN_TRAIN, o.plan.threads = 1;
    for (int copy = 0; copy < 2; copy++)
        for (int ch = 0; ch < CHANNELS; ch++)
            o.peers[copy][ch] = thread_peers_of(all->peers[copy][ch], rank);
    for (int h = 0; one->ok && h < one->n_held; h++) {
        size_t n = (size_t)graph_parameter_count(one->stages.graphs[one->held[h]]);
        o.gradients[h] = one->gradients[h] = calloc(n + 1, sizeof(float));
    }
    one->ok = one->ok && run_steps(one, &a, &o, &one->err);
}

/* --- compared --- */

static double difference(const float *a, const float *b, int64_t n)
{
    double sum = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return size > 0 ? sqrt(sum / size) : sqrt(sum);
}

/* Gradients of one held stage, and with `statistics` its buffers. */
static void compare(const struct pipe_case *c, const struct one_rank *one, int h,
                    const struct graph *whole, struct plan *plan, bool statistics)
{
    const struct graph *graph = one->stages.graphs[one->held[h]];
    const float *own = one->gradients[h];
    for (value_id v = 0; v < graph->n_values; v++) {
        if (!graph_is_parameter(graph, v))
            continue;
        value_id same = graph_find(whole, graph->values[v].name);
        int64_t n = floats_of(graph, v);
        bool learnt = graph->values[v].kind == VALUE_PARAMETER;
        const float *want = learnt ? plan_parameter_gradient(plan, same) : graph_data(whole, same);
        const float *is = learnt ? own : graph_data(graph, v);
        own += learnt ? n : 0;
        if (!learnt && !statistics)
            continue;
        bool bits = memcmp(is, want, (size_t)n * sizeof *is) == 0;
        double far = difference(is, want, n);
        if (c->exact ? !bits : far > 1e-6)
            fail_msg("%s, %s on %d stages: %s is off by %g", whole->name, program_names[c->kind],
                     c->stages, graph->values[v].name, far);
    }
}

static void run_ranks(const struct pipe_case *c, struct all_ranks *all)
{
    struct err err = { 0 };
    *all = (struct all_ranks){ .c = c };
    assert_true(program_new(c->kind, c->stages, c->micros, &all->program, &err));
    for (int i = 0; i < 2 * CHANNELS; i++)
        all->peers[i / CHANNELS][i % CHANNELS] = thread_peers_new(c->stages);
    thread_peers_run(all->peers[0][0], work, all);
}

static void free_ranks(struct all_ranks *all)
{
    for (int i = 0; i < 2 * CHANNELS; i++)
        thread_peers_free(all->peers[i / CHANNELS][i % CHANNELS]);
    for (int r = 0; r < all->c->stages; r++) {
        struct one_rank *one = &all->ranks[r];
        stages_free(&one->stages);
        graph_free(one->graph);
        free(one->gradients[0]), free(one->gradients[1]);
    }
    program_free(&all->program);
}

/* The sets of activations, and the inputs, that the schedule promises. */
static void check_memory(const struct pipe_case *c, const struct all_ranks *all, int r)
{
    const struct one_rank *one = &all->ranks[r];
    bool one_by_one =
        c->kind == PROGRAM_BASIC || c->kind == PROGRAM_MAST || c->kind == PROGRAM_MASTER;
    int late = c->micros < r ? c->micros : r, want = 1; /* weights that wait: zb-h1 */
    if (!c->recompute && c->kind == PROGRAM_GPIPE)
        want = c->micros;
    else if (!c->recompute && !one_by_one)
        want = program_most_kept(&all->program, r, r);
    else if (c->recompute && c->kind == PROGRAM_ZB_H1)
        want = late + 1;
    if (!c->recompute && c->kind == PROGRAM_1F1B)
        assert_int_equal(want, c->stages - r < c->micros ? c->stages - r : c->micros);
    if (c->recompute && c->kind == PROGRAM_ZB_H1)
        assert_true(one->report.sets <= want);
    else
        assert_int_equal(one->report.sets, want);
}

static void check_report(const struct pipe_case *c, const struct all_ranks *all, int r)
{
    const struct one_rank *one = &all->ranks[r];
    size_t inputs = 0;
    for (int h = 0; h < one->n_held; h++) {
        const struct graph *graph = one->stages.graphs[one->held[h]];
        size_t bytes = 0;
        for (int i = 0; i < graph->n_inputs; i++)
            bytes += (size_t)floats_of(graph, graph->inputs[i].value) * sizeof(float);
        bytes *= (size_t)program_most_kept(&all->program, r, one->held[h]);
        inputs = bytes > inputs ? bytes : inputs;
    }
    assert_true(one->report.inputs <= inputs);
    assert_int_equal(one->report.steps, STEPS);
    if (c->recompute && !all->program.split)
        assert_int_equal(one->report.inputs, inputs);
    for (int h = 0; h < one->n_held; h++)
        assert_int_equal(one->completed[h], STEPS);
    assert_true(one->report.seconds >= one->report.waiting_s);
    assert_true((one->report.sent_bytes > 0) == (c->stages > 1));
    check_memory(c, all, r);
}

static void run_case(const struct pipe_case *c)
{
    struct all_ranks all;
    struct graph *whole[3] = { network(c), network(c), network(c) };
    struct plan *plans[3] = { run_whole(c, whole[0], 0, 1), NULL, NULL };
    run_ranks(c, &all);
    if (all.program.two_way)
        for (int copy = 0; copy < 2; copy++)
            plans[1 + copy] = run_whole(c, whole[1 + copy], copy, 2);
    for (int r = 0; r < c->stages; r++) {
        const struct one_rank *one = &all.ranks[r];
        if (!one->ok)
            fail_msg("%s, %s, rank %d of %d: %s", whole[0]->name, program_names[c->kind], r,
                     c->stages, one->err.text);
        for (int h = 0; h < one->n_held; h++) {
            /* all micro-batches, or those of the copy whose stage it is */
            int k = one->n_held == 2 ? 1 + (one->held[h] != r) : 0;
            compare(c, one, h, whole[k], plans[k], true);
        }
        check_report(c, &all, r);
    }
    free_ranks(&all);
    for (int k = 0; k < 3; k++) {
        plan_free(plans[k]);
        graph_free(whole[k]);
    }
}

static int micros_of(enum program_kind kind)
{
    return kind == PROGRAM_MAST ? 2 : kind == PROGRAM_MASTER ? 6 : 5;
}

static void every_schedule_gives_the_same_bits(void **state)
{
    (void)state;
    for (int kind = 0; kind < PROGRAMS; kind++)
        for (int stages = 1; stages <= MOST; stages++)
            for (int recompute = 0; recompute < 2; recompute++)
                run_case(&(struct pipe_case){ .side = 24,
                                              .batch = 2,
                                              .stages = stages,
                                              .micros = micros_of((enum program_kind)kind),
                                              .kind = (enum program_kind)kind,
                                              .recompute = recompute,
                                              .exact = true,
                                              .fail_on = -1 });
}

/* Concatenations and dropout; long skips and two inputs; each block over a cut. */
static void networks_with_long_skips(void **state)
{
    (void)state;
    static const struct pipe_case cases[] = {
        { .network = "googlenet", .side = 64, .batch = 1, .stages = 3, .kind = PROGRAM_1F1B },
        { .network = "googlenet", .side = 64, .batch = 1, .stages = 2, .kind = PROGRAM_MASTER },
        { .network = "unet_small", .side = 16, .batch = 2, .stages = 4, .kind = PROGRAM_ZB_H1 },
        { .network = "unet_small", .side = 16, .batch = 2, .stages = 3, .kind = PROGRAM_MAST },
        { .network = "segment_unet", .side = 32, .batch = 1, .stages = 4, .kind = PROGRAM_GPIPE },
        { .network = "resnet110_v2", .side = 16, .batch = 2, .stages = 4, .kind = PROGRAM_1F1B },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pipe_case c = cases[i];
        c.micros = micros_of(c.kind), c.fail_on = -1;
        c.recompute = c.kind == PROGRAM_1F1B;
        run_case(&c);
    }
}

static void activations_as_bfloat16(void **state)
{
    (void)state;
    run_case(&(struct pipe_case){ .side = 32,
                                  .batch = 2,
                                  .stages = 1,
                                  .micros = 3,
                                  .kind = PROGRAM_GPIPE,
                                  .exact = true,
                                  .fail_on = -1,
                                  .plan = { .saving = SAVING_HALF } });
}

/* --- failures --- */

static void a_failure_ends_all(void **state)
{
    (void)state;
    static const char *const reasons[] = { "no such patch", "no such class" };
    for (int last = 0; last < 2; last++)
        for (int recompute = 0; recompute < 2; recompute++) {
            struct pipe_case c = { .side = 32,
                                   .batch = 1,
                                   .stages = 3,
                                   .micros = 4,
                                   .kind = PROGRAM_1F1B,
                                   .recompute = recompute,
                                   .fail_on = last ? 2 : 0 };
            struct all_ranks all;
            run_ranks(&c, &all);
            for (int r = 0; r < c.stages; r++) {
                assert_false(all.ranks[r].ok);
                const char *why = r == c.fail_on ? reasons[last] : "another rank has left";
                if (!strstr(all.ranks[r].err.text, why))
                    fail_msg("rank %d: %s", r, all.ranks[r].err.text);
            }
            free_ranks(&all);
        }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct pipe_case c = { .side = 32, .batch = 1, .stages = 2 };
    struct graph *graph = network(&c);
    int32_t begin[3] = { 0, graph->n_nodes / 2, graph->n_nodes };
    struct stages stages;
    struct program two, three;
    struct pipeline *pipeline = NULL;
    struct err err = { 0 };
    assert_true(stages_new(graph, begin, 2, &stages, &err));
    assert_true(program_new(PROGRAM_GPIPE, 2, 2, &two, &err));
    assert_true(program_new(PROGRAM_GPIPE, 3, 2, &three, &err));
    struct pipeline_options o = { .stages = &stages,
                                  .program = &three,
                                  .plan = { .mode = PLAN_TRAIN, .threads = 1 } };
    assert_false(pipeline_new(&o, &pipeline, &err));
    assert_non_null(strstr(err.text, "a schedule of 3 stages for a network of 2"));
    o.program = &two;
    assert_false(pipeline_new(&o, &pipeline, &err));
    assert_non_null(strstr(err.text, "needs as many ranks"));
    o.recompute = true, o.plan.saving = SAVING_HALF;
    assert_false(pipeline_new(&o, &pipeline, &err));
    assert_non_null(strstr(err.text, "recompute"));
    o.recompute = false, o.plan.saving = SAVING_ALL, o.rank = 2;
    assert_false(pipeline_new(&o, &pipeline, &err));
    assert_non_null(strstr(err.text, "has no rank 2"));
    struct thread_peers *peers = thread_peers_new(2);
    o.rank = 0;
    for (int ch = 0; ch < CHANNELS; ch++)
        o.peers[0][ch] = thread_peers_of(peers, 0);
    struct work swapped = two.work[1][0];
    two.work[1][0] = two.work[1][1], two.work[1][1] = swapped;
    assert_false(pipeline_new(&o, &pipeline, &err));
    assert_non_null(strstr(err.text, "other orders of micro-batches on ranks 0 and 1"));
    thread_peers_free(peers);
    program_free(&two), program_free(&three);
    stages_free(&stages);
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_gives_the_same_bits),
        cmocka_unit_test(networks_with_long_skips),
        cmocka_unit_test(activations_as_bfloat16),
        cmocka_unit_test(a_failure_ends_all),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
