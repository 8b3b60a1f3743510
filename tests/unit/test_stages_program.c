/* test_stages_program.c: schedules: every rank has each work that is its own once; the works can be
 * done in the order given, without a deadlock; how many micro-batches are kept; messages are
 * received in the order in which they are sent; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "net/stages/program.h"

#define S_MOST 8
#define M_MOST 16

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static bool is_possible(enum program_kind schedule, int micros)
{
    return schedule == PROGRAM_MAST     ? micros == 2
           : schedule == PROGRAM_MASTER ? micros % 2 == 0
                                        : true;
}

/* Calls `check` for every schedule, number of stages and of micro-batches. */
static void for_all(void (*check)(enum program_kind, const struct program *))
{
    int programs = 0;
    for (int schedule = 0; schedule < PROGRAMS; schedule++)
        for (int stages = 1; stages <= S_MOST; stages++)
            for (int micros = 1; micros <= M_MOST; micros++) {
                struct program program;
                struct err err = { 0 };
                bool made = program_new(schedule, stages, micros, &program, &err);
                assert_int_equal(made, is_possible(schedule, micros));
                if (!made) {
                    assert_int_equal(err.kind, ERR_USAGE);
                    continue;
                }
                assert_string_equal(program.schedule, program_names[schedule]);
                check(schedule, &program);
                program_free(&program);
                programs++;
            }
    assert_int_equal(programs, S_MOST * (4 * M_MOST + M_MOST / 2 + 1));
}

static void has_all_works(enum program_kind schedule, const struct program *program)
{
    (void)schedule;
    int seen[3][S_MOST][M_MOST] = { 0 };
    for (int r = 0; r < program->stages; r++) {
        int held[2], n_held = program_held(program, r, held);
        for (int i = 0; i < program->n_work[r]; i++) {
            const struct work *work = &program->work[r][i];
            assert_int_equal(program_rank(program, work->stage, work->micro), r);
            assert_true(work->stage == held[0] || (n_held == 2 && work->stage == held[1]));
            seen[work->kind][work->stage][work->micro]++;
        }
    }
    for (int s = 0; s < program->stages; s++)
        for (int m = 0; m < program->micros; m++) {
            assert_int_equal(seen[WORK_FORWARD][s][m], 1);
            assert_int_equal(seen[WORK_BACKWARD][s][m], 1);
            assert_int_equal(seen[WORK_WEIGHTS][s][m], program->split);
        }
}

static void every_work_once(void **state)
{
    (void)state;
    for_all(has_all_works);
}

struct done {
    bool of[3][S_MOST][M_MOST];
};

/* Forward needs the stage before; backward its own forward and the stage behind; weights their
 * backward. */
static bool may_run(const struct program *program, const struct done *done, const struct work *work)
{
    int s = work->stage, m = work->micro;
    if (work->kind == WORK_FORWARD)
        return s == 0 || done->of[WORK_FORWARD][s - 1][m];
    if (work->kind == WORK_BACKWARD)
        return done->of[WORK_FORWARD][s][m] &&
               (s == program->stages - 1 || done->of[WORK_BACKWARD][s + 1][m]);
    return done->of[WORK_BACKWARD][s][m];
}

static void comes_to_an_end(enum program_kind schedule, const struct program *program)
{
    (void)schedule;
    struct done done = { 0 };
    int next[S_MOST] = { 0 }, left = 0;
    for (int r = 0; r < program->stages; r++)
        left += program->n_work[r];
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < program->stages; r++) {
            if (next[r] == program->n_work[r])
                continue;
            const struct work *work = &program->work[r][next[r]];
            if (!may_run(program, &done, work))
                continue;
            done.of[work->kind][work->stage][work->micro] = true;
            next[r]++, left--;
            moved = true;
        }
    }
    assert_int_equal(left, 0);
}

static void no_deadlock(void **state)
{
    (void)state;
    for_all(comes_to_an_end);
}

static void keeps_as_many(enum program_kind schedule, const struct program *program)
{
    int stages = program->stages, micros = program->micros;
    for (int r = 0; r < stages; r++) {
        int held[2], n_held = program_held(program, r, held);
        for (int i = 0; i < n_held; i++) {
            int most = program_most_kept(program, r, held[i]);
            if (schedule <= PROGRAM_MASTER)
                assert_int_equal(most, 1);
            else if (schedule == PROGRAM_GPIPE)
                assert_int_equal(most, micros);
            else if (schedule == PROGRAM_1F1B)
                assert_int_equal(most, smaller(stages - r, micros));
            else /* as the first rank of 1f1b */
                assert_int_equal(most, smaller(stages, micros));
        }
    }
}

static void most_kept(void **state)
{
    (void)state;
    for_all(keeps_as_many);
}

/* Backward passes that do not directly follow the forward pass of their micro-batch. */
static void computes_again(enum program_kind schedule, const struct program *program)
{
    for (int r = 0; r < program->stages; r++) {
        int again = 0;
        for (int i = 0; i < program->n_work[r]; i++)
            again += program_recomputes(program, r, i);
        bool is_last = r == program->stages - 1;
        if (schedule <= PROGRAM_MASTER)
            assert_int_equal(again, 0);
        else if (schedule == PROGRAM_GPIPE)
            assert_int_equal(again, program->micros == 1 ? 0 : program->micros);
        else if (program->micros > program->stages - 1 - r)
            assert_int_equal(again, is_last ? 0 : program->micros);
    }
}

static void recomputation(void **state)
{
    (void)state;
    for_all(computes_again);
}

/* The micro-batches of a copy of the network in the order in which a rank has works of a kind. */
static int order_of(const struct program *program, int rank, int copy, enum work_kind kind,
                    int *order)
{
    int n = 0;
    for (int i = 0; i < program->n_work[rank]; i++) {
        const struct work *work = &program->work[rank][i];
        if (work->kind == kind && (program->two_way ? work->micro % 2 : 0) == copy)
            order[n++] = work->micro;
    }
    return n;
}

/* A rank has one stage of a copy, so what any two ranks exchange in a copy is a message (or as many
 * as there are tensors) for each of its micro-batches: the orders of both must be the same. */
static void sends_as_it_receives(enum program_kind schedule, const struct program *program)
{
    (void)schedule;
    for (int copy = 0; copy < 1 + program->two_way; copy++)
        for (int kind = WORK_FORWARD; kind <= WORK_BACKWARD; kind++)
            for (int r = 1; r < program->stages; r++) {
                int first[M_MOST], other[M_MOST];
                int n = order_of(program, 0, copy, kind, first);
                assert_int_equal(order_of(program, r, copy, kind, other), n);
                assert_memory_equal(first, other, (size_t)n * sizeof *first);
                for (int i = 1; i < n; i++) /* as one process adds gradients */
                    assert_true(first[i - 1] < first[i]);
            }
}

static void order_of_messages(void **state)
{
    (void)state;
    for_all(sends_as_it_receives);
}

static void two_ways(void **state)
{
    (void)state;
    struct program program;
    struct err err = { 0 };
    assert_true(program_new(PROGRAM_MASTER, 3, 4, &program, &err));
    int held[2];
    assert_int_equal(program_held(&program, 0, held), 2);
    assert_int_equal(held[0], 0);
    assert_int_equal(held[1], 2);
    assert_int_equal(program_held(&program, 2, held), 2);
    assert_int_equal(held[0], 0);
    assert_int_equal(held[1], 2);
    assert_int_equal(program_held(&program, 1, held), 1);
    assert_int_equal(held[0], 1);
    assert_int_equal(program_rank(&program, 0, 2), 0);
    assert_int_equal(program_rank(&program, 0, 3), 2);
    program_free(&program);
    program_free(&program); /* twice is fine */
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        enum program_kind schedule;
        int stages, micros;
        const char *why;
    } cases[] = {
        { PROGRAM_MAST, 2, 4,
          "parallel: the schedule mast has two micro-batches in a step, not 4; take master for "
          "more, or another micro_batch" },
        { PROGRAM_MASTER, 2, 3,
          "parallel: the schedule master has pairs of micro-batches in a step, not 3; take an even "
          "number of them, by micro_batch or times" },
        { PROGRAM_1F1B, 0, 3, "parallel: 0 stages; take 1 to 64" },
        { PROGRAM_1F1B, 65, 3, "parallel: 65 stages; take 1 to 64" },
        { PROGRAM_GPIPE, 2, 0, "parallel: 0 micro-batches in a step; take 1 to 1048576" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct program program;
        struct err err = { 0 };
        assert_false(
            program_new(cases[i].schedule, cases[i].stages, cases[i].micros, &program, &err));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_string_equal(err.text, cases[i].why);
        program_free(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_work_once),   cmocka_unit_test(no_deadlock),
        cmocka_unit_test(most_kept),         cmocka_unit_test(two_ways),
        cmocka_unit_test(order_of_messages), cmocka_unit_test(refused),
        cmocka_unit_test(recomputation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
