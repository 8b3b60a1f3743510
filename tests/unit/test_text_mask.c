/* test_text_mask.c: masked tokens: the loss and all gradients against Hugging Face
 * (tests/golden/text_mask.py), and which tokens are masked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_file.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "support/zoo_golden.h"
#include "train/loss.h"
#include "train/objective_mask.h"

enum { ROWS = 2, TOKENS = 16, PLACES = 3, VOCABULARY = 50 };

static double number_at(const json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

static void feed(struct plan *plan, const json_t *rows, int32_t labels[ROWS * PLACES])
{
    for (size_t r = 0; r < ROWS; r++) {
        const json_t *row = json_array_get(rows, r), *places = json_object_get(row, "places");
        for (size_t i = 0; i < TOKENS; i++) {
            plan_input(plan, 0)[r * TOKENS + i] = (float)number_at(json_object_get(row, "ids"), i);
            plan_input(plan, 1)[r * TOKENS + i] = (float)number_at(json_object_get(row, "mask"), i);
        }
        float *where = plan_input(plan, 2) + r * PLACES * TOKENS;
        memset(where, 0, PLACES * TOKENS * sizeof *where);
        for (size_t i = 0; i < PLACES; i++) {
            bool there = i < json_array_size(places);
            labels[r * PLACES + i] =
                there ? (int32_t)number_at(json_object_get(row, "labels"), i) : LOSS_IGNORE;
            if (there)
                where[i * TOKENS + (size_t)number_at(places, i)] = 1;
        }
    }
}

/* Norm and dot product of every gradient; the table of tokens has that of both its uses. */
static void compare_gradients(struct plan *plan, const struct graph *graph, const json_t *wanted)
{
    size_t seen = 0;
    for (value_id v = 0; v < graph->n_values; v++) {
        const struct value *value = &graph->values[v];
        if (value->kind != VALUE_PARAMETER)
            continue;
        const json_t *want = json_object_get(wanted, value->name);
        if (!want)
            fail_msg("Hugging Face has no %s", value->name);
        const float *gradient = plan_parameter_gradient(plan, v);
        uint64_t stream = zoo_stream("dot:", value->name);
        double squares = 0, dot = 0, norm = number_at(want, 0);
        for (int64_t i = 0; i < shape_count(&value->shape); i++) {
            squares += (double)gradient[i] * (double)gradient[i];
            dot += (double)gradient[i] * zoo_number(stream, i);
        }
        if (!(fabs(sqrt(squares) - norm) <= 1e-4 * norm + 1e-6) ||
            !(fabs(dot - number_at(want, 1)) <= 1e-4 * norm + 1e-6))
            fail_msg("%s: %g and %g, not %g and %g", value->name, sqrt(squares), dot, norm,
                     number_at(want, 1));
        seen++;
    }
    assert_int_equal(seen, json_object_size(wanted));
}

static void compare(const json_t *one)
{
    struct masking masking = { .tokens = TOKENS, .vocabulary = VOCABULARY, .places = PLACES };
    struct zoo_options options = {
        .batch = ROWS, .channels = VOCABULARY, .height = TOKENS, .masked = PLACES
    };
    struct plan_options how = { .mode = PLAN_TUNE, .threads = 1 };
    const char *name = json_string_value(json_object_get(one, "network"));
    const json_t *losses = json_object_get(one, "losses");
    struct graph *graph = NULL;
    struct plan *plan = NULL;
    struct err err = { 0 };
    int32_t labels[ROWS * PLACES];
    if (!zoo_build(name, &options, &graph, &err) || !graph_allocate(graph, &err))
        fail_msg("%s", err.text);
    zoo_fill_parameters(graph, 1, false);
    if (!plan_new(graph, &how, &plan, &err))
        fail_msg("%s", err.text);
    feed(plan, json_object_get(one, "rows"), labels);
    assert_true(plan_forward(plan, &err));
    for (int r = 0; r < ROWS; r++) {
        double loss = 0;
        assert_true(masking_loss(&masking, plan_output(plan, 0) + r * PLACES * VOCABULARY,
                                 labels + r * PLACES, ROWS, &loss,
                                 plan_output_gradient(plan, 0) + r * PLACES * VOCABULARY, &err));
        double wanted = number_at(losses, (size_t)r);
        if (!(fabs(loss * ROWS - wanted) <= 1e-5 * wanted))
            fail_msg("%s: loss %.9g, not %.9g", name, loss * ROWS, wanted);
    }
    assert_true(plan_backward(plan, &err));
    compare_gradients(plan, graph, json_object_get(one, "gradients"));
    plan_free(plan);
    graph_free(graph);
}

static void losses_are_those_of_hugging_face(void **state)
{
    (void)state;
    char path[1024];
    struct err err = { 0 };
    snprintf(path, sizeof path, "%s/tests/golden/text/mask.json", getenv("SOURCE"));
    json_t *all = json_file_read(path, 1 << 24, &err);
    if (!all)
        fail_msg("%s", err.text);
    const json_t *cases = json_object_get(all, "cases");
    assert_int_equal(json_array_size(cases), 2);
    for (size_t i = 0; i < json_array_size(cases); i++)
        compare(json_array_get(cases, i));
    json_decref(all);
}

/* 15 % of 100 tokens, of which 80, 10 and 10 % are hidden, replaced and left; the first and the
 * last never; the same key gives the same. */
static void tokens_are_masked(void **state)
{
    (void)state;
    enum { N = 102, MOST = 15, TIMES = 2000 };
    const struct masking m = {
        .tokens = N + 10, .vocabulary = 1000, .front = 1, .back = 1, .mask_id = 4, .places = 17
    };
    float seen[N + 10] = { 0 }, ids[N + 10], again[N + 10];
    float *where = calloc(17 * (N + 10), sizeof *where);
    int32_t labels[17], others[17];
    int64_t hidden = 0, replaced = 0, left = 0, places[N] = { 0 };
    for (int i = 0; i < N; i++)
        seen[i] = 1;
    for (int t = 0; t < TIMES; t++) {
        for (int i = 0; i < N + 10; i++)
            ids[i] = again[i] = (float)(i < N ? 100 + i : 0);
        masking_draw(&m, rng_new(7, 1, (uint64_t)t), seen, again, others, where);
        masking_draw(&m, rng_new(7, 1, (uint64_t)t), seen, ids, labels, where);
        assert_memory_equal(ids, again, sizeof ids);
        assert_memory_equal(labels, others, sizeof labels);
        for (int k = 0; k < 17; k++) {
            assert_true((labels[k] == LOSS_IGNORE) == (k >= MOST));
            int64_t place = k < MOST ? labels[k] - 100 : 1;
            assert_true(place > 0 && place < N - 1);
            assert_true(where[k * (N + 10) + place] == (k < MOST));
            places[place] += k < MOST;
            hidden += k < MOST && ids[place] == 4;
            left += k < MOST && ids[place] == (float)labels[k];
            replaced += k < MOST && ids[place] != 4 && ids[place] != (float)labels[k];
        }
        for (int i = 0; i < N + 10; i++) { /* all others stay */
            bool masked = false;
            for (int k = 0; k < MOST; k++)
                masked = masked || labels[k] == 100 + i;
            assert_true(masked || ids[i] == (float)(i < N ? 100 + i : 0));
        }
    }
    assert_true(fabs((double)hidden / (TIMES * MOST) - 0.8) < 0.01);
    assert_true(fabs((double)replaced / (TIMES * MOST) - 0.1) < 0.01);
    assert_true(fabs((double)left / (TIMES * MOST) - 0.1) < 0.01);
    for (int i = 1; i < N - 1; i++) /* 300 +- 16 each */
        assert_true(places[i] > 220 && places[i] < 380);
    for (int i = 2; i < N + 10; i++) /* of one token it is that */
        seen[i] = i < 3;
    masking_draw(&m, rng_new(7, 1, 0), seen, ids, labels, where);
    assert_true(labels[0] != LOSS_IGNORE && labels[1] == LOSS_IGNORE && where[1] == 1);
    free(where);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_those_of_hugging_face),
        cmocka_unit_test(tokens_are_masked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
