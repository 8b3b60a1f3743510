/* test_stream_budget.c: the side of tiles and the share of records by one number: what is chosen
 * fits, the least that is named in a refusal is accepted, and one byte less is not. How the whole
 * graph runs where it fits: what is estimated is what a plan takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/room.h"
#include "net/stream/budget.h"
#include "net/stream/choose.h"
#include "net/stream/records.h"
#include "net/zoo/zoo.h"

#define N_TILES 2500

/* A network whose tiles take bytes as those of real ones: by their area, their side and the width
 * of the image. */
struct fake {
    int64_t side;
    size_t records[N_TILES];
    int asked;
};

static bool ask(void *arg, int64_t tile_px, struct budget_need *out, struct err *err)
{
    (void)err;
    struct fake *fake = arg;
    int64_t across = (fake->side + tile_px - 1) / tile_px, n = across * across;
    fake->asked++;
    assert_true(n <= N_TILES && tile_px % 32 == 0);
    for (int64_t i = 0; i < n; i++)
        fake->records[i] = i == 0 ? 0 : (size_t)(tile_px * 2000) * 4;
    *out = (struct budget_need){ .bytes = (size_t)(tile_px * tile_px * 300 + fake->side * 5000),
                                 .records = fake->records,
                                 .n = n };
    return true;
}

struct asked_for {
    int64_t side, tile_px;
    size_t budget;
    const char *spill;
    bool bf16;
};

static bool choose(const struct asked_for *asked, struct budget_choice *out, struct err *err)
{
    struct fake fake = { .side = asked->side };
    struct plan_stream stream = { .tile_px = asked->tile_px,
                                  .budget = asked->budget,
                                  .spill = asked->spill,
                                  .bf16 = asked->bf16,
                                  .besides = 250000000 };
    struct budget_options options = { .name = "fakenet",
                                      .height = asked->side,
                                      .width = asked->side,
                                      .step = 32,
                                      .stream = &stream,
                                      .ask = ask,
                                      .arg = &fake };
    bool ok = budget_choose(&options, out, err);
    if (!ok)
        return false;
    struct budget_need need;
    struct records *records;
    ask(&fake, out->tile_px, &need, err);
    if (asked->budget)
        assert_true(out->bytes <= asked->budget);
    struct records_options kept = { .n = need.n,
                                    .bytes = need.records,
                                    .memory = out->records,
                                    .folder = asked->spill,
                                    .bf16 = asked->bf16 };
    if (!records_new(&kept, &records, err))
        fail_msg("%s", err->text);
    size_t took = need.bytes + records_stats(records).memory;
    assert_true(took <= out->bytes);
    assert_true((double)took >= 0.9 * (double)out->bytes);
    records_free(records);
    return true;
}

static void what_is_chosen_fits(void **state)
{
    (void)state;
    const char *spill = getenv("SCRATCH");
    int64_t before = 0;
    for (size_t mb = 4000; mb >= 20; mb = mb * 3 / 4) {
        struct asked_for asked = { 3000, 0, mb * 1000000, spill, false };
        struct budget_choice choice;
        struct err err = { 0 };
        if (!choose(&asked, &choice, &err)) {
            assert_true(mb < 100);
            break;
        }
        assert_true(before == 0 || choice.tile_px <= before);
        before = choice.tile_px;
    }
    assert_true(before > 0 && before < 512);
}

static void no_limit(void **state)
{
    (void)state;
    struct asked_for asked = { 3000, 0, 0, NULL, false };
    struct budget_choice choice;
    struct err err;
    assert_true(choose(&asked, &choice, &err));
    assert_int_equal(choice.records, 0);
    asked.tile_px = 700; /* as asked, in whole steps */
    assert_true(choose(&asked, &choice, &err));
    assert_int_equal(choice.tile_px, 672);
    asked.side = 500, asked.tile_px = 0; /* no larger than the image */
    assert_true(choose(&asked, &choice, &err));
    assert_int_equal(choice.tile_px, 512);
}

static void refusals_name_the_least(void **state)
{
    (void)state;
    const char *folder = getenv("SCRATCH");
    for (int i = 0; i < 8; i++) {
        struct asked_for asked = { 3000, i & 1 ? 1024 : 0, 1, i & 2 ? folder : NULL, i & 4 };
        struct budget_choice choice;
        struct err err = { 0 };
        assert_false(choose(&asked, &choice, &err));
        assert_int_equal(err.kind, ERR_MEMORY);
        assert_non_null(strstr(err.text, "fakenet at 3000 x 3000 px"));
        assert_int_equal(strstr(err.text, "with tiles of 1024 px") != NULL, i & 1);
        assert_int_equal(strstr(err.text, "train.spill") == NULL, (i & 2) != 0);
        const char *at = strstr(err.text, "at least ");
        assert_non_null(at);
        size_t least = strtoul(at + strlen("at least "), NULL, 10) * 1000000 - 250000000;
        asked.budget = least;
        if (!choose(&asked, &choice, &err))
            fail_msg("%s", err.text);
        asked.budget = least - 1000001;
        assert_false(choose(&asked, &choice, &err));
    }
}

static void of_a_process(void **state)
{
    (void)state;
    struct plan_stream stream = { 0 };
    budget_of_process(0, 1000, &stream);
    assert_int_equal(stream.budget, 0);
    assert_true(stream.besides > 1000000);
    budget_of_process(100000, 5000, &stream);
    assert_int_equal(stream.budget + stream.besides, 100000000000);
    budget_of_process(1, 0, &stream); /* less than it has already */
    assert_int_equal(stream.budget, 1);
}

/* --- the whole graph --- */

static struct graph *network(int64_t side, int64_t batch)
{
    struct graph *graph;
    struct err err;
    struct zoo_options options = { .batch = batch, .height = side, .width = side, .classes = 2 };
    assert_true(zoo_build("resnet18", &options, &graph, &err));
    assert_true(graph_initialize(graph, 3, &err));
    return graph;
}

static void estimates_are_what_plans_take(void **state)
{
    (void)state;
    struct graph *graph = network(96, 3);
    for (int saving = SAVING_ALL; saving <= SAVING_HALF; saving++)
        for (size_t budget = 0; budget <= 30000000; budget += 6000000) {
            struct plan_options options = { .mode = PLAN_TRAIN,
                                            .threads = 1,
                                            .saving = (enum plan_saving)saving,
                                            .arena_budget =
                                                saving == SAVING_RECOMPUTE ? budget : 0 };
            struct plan_estimate estimate;
            struct plan *plan;
            struct err err;
            bool ok = plan_estimate(graph, &options, &estimate, &err);
            assert_int_equal(plan_new(graph, &options, &plan, &err), ok);
            if (ok)
                assert_int_equal(plan_memory(plan).arena, estimate.arena);
            else
                assert_true(err.kind == ERR_MEMORY && estimate.arena > options.arena_budget);
            plan_free(plan);
        }
    graph_free(graph);
}

static void the_fastest_way_that_fits(void **state)
{
    (void)state;
    struct graph *graph = network(160, 8);
    struct plan_options options = { .mode = PLAN_TRAIN, .threads = 1 };
    enum memory_way before[2] = { WAY_PLAIN, WAY_PLAIN };
    unsigned seen = 0;
    struct err err = { 0 };
    char text[CHOSEN_TEXT];
    for (int bf16 = 0; bf16 < 2; bf16++) {
        int64_t now_mb = (int64_t)(room_resident() / 1000000);
        for (int64_t mb = now_mb + 600; mb > now_mb; mb -= 20) {
            struct memory_limit limit = { .peak_mb = mb, .bf16 = bf16 };
            struct memory_chosen chosen;
            struct plan *plan;
            if (!choose_plan(graph, &options, &limit, &plan, &chosen, &err))
                break;
            assert_true(chosen.predicted <= (size_t)mb * 1000000);
            assert_true(chosen.way >= before[bf16]);
            before[bf16] = chosen.way;
            seen |= 1u << chosen.way << 4 * bf16;
            choose_describe(plan, &chosen, text);
            assert_non_null(strstr(text, "predicted peak"));
            plan_free(plan);
        }
        assert_int_equal(err.kind, ERR_MEMORY);
        assert_non_null(strstr(err.text, "resnet18 at 160 x 160 px needs at least"));
    }
    assert_int_equal(seen, 1u << WAY_PLAIN | 1u << WAY_RECOMPUTE |
                               (1u << WAY_PLAIN | 1u << WAY_HALF | 1u << WAY_RECOMPUTE) << 4);
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_chosen_fits),
        cmocka_unit_test(no_limit),
        cmocka_unit_test(refusals_name_the_least),
        cmocka_unit_test(of_a_process),
        cmocka_unit_test(estimates_are_what_plans_take),
        cmocka_unit_test(the_fastest_way_that_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
