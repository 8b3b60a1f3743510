/* test_rank_grid.c: the ranks as a grid: extents that fit and those that do not, places, which axis
 * varies fastest; and one process, which is a grid, a group and its own divisions, and has nobody
 * to send to. Groups of several ranks are tested by mpirun in tests/ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "dist/rank_grid.h"

static void extents_fit(void **state)
{
    (void)state;
    static const struct {
        int64_t asked[GRID_AXES];
        int size, data; /* 0: refused */
    } cases[] = {
        { { 0, 1, 1, 1, 1 }, 1, 1 },       { { 0, 1, 1, 1, 1 }, 7, 7 },
        { { 7, 1, 1, 1, 1 }, 7, 7 },       { { 0, 2, 1, 1, 3 }, 24, 4 },
        { { 4, 2, 1, 1, 3 }, 24, 4 },      { { 3, 2, 1, 1, 3 }, 24, 0 },
        { { 0, 5, 1, 1, 1 }, 24, 0 },      { { 0, 2, 2, 2, 2 }, 8, 0 },
        { { 5, 1, 1, 1, 1 }, 4, 0 },       { { 1, 1, 1, 1, 1 }, 2, 0 },
        { { 0, 0, 1, 1, 1 }, 2, 0 },       { { 0, 1 << 20, 1 << 20, 1 << 20, 1 << 20 }, 2, 0 },
        { { 1 << 20, 1, 1, 1, 1 }, 1, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int extent[GRID_AXES] = { 0 };
        struct err err = { 0 };
        bool fits = rank_grid_extents(cases[i].asked, cases[i].size, extent, &err);
        assert_int_equal(fits, cases[i].data > 0);
        assert_int_equal(extent[GRID_DATA], cases[i].data);
        for (int a = GRID_STAGE; fits && a < GRID_AXES; a++)
            assert_int_equal(extent[a], cases[i].asked[a]);
        assert_int_equal(err.kind, fits ? ERR_NONE : ERR_USAGE);
    }
    struct err err = { 0 };
    int extent[GRID_AXES];
    assert_false(rank_grid_extents((int64_t[]){ 3, 2, 1, 1, 1 }, 4, extent, &err));
    assert_string_equal(err.text, "parallel: data 3 x stages 2 x space 1 x bands 1 x heads 1 does "
                                  "not make 4 ranks; data: 0 takes what the others leave");
}

/* Every place once; neighbours in number differ in heads first, in data last. */
static void places(void **state)
{
    (void)state;
    static const int extent[GRID_AXES] = { 2, 3, 2, 1, 4 };
    static const int known[][1 + GRID_AXES] = {
        { 0, 0, 0, 0, 0, 0 }, { 1, 0, 0, 0, 0, 1 },  { 4, 0, 0, 1, 0, 0 },
        { 8, 0, 1, 0, 0, 0 }, { 24, 1, 0, 0, 0, 0 }, { 47, 1, 2, 1, 0, 3 },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int at[GRID_AXES];
        rank_grid_place(extent, known[i][0], at);
        assert_memory_equal(at, known[i] + 1, sizeof at);
    }
    for (int rank = 0; rank < 48; rank++) {
        int at[GRID_AXES], back = 0;
        rank_grid_place(extent, rank, at);
        for (int a = 0; a < GRID_AXES; a++) {
            assert_in_range(at[a], 0, extent[a] - 1);
            back = back * extent[a] + at[a];
        }
        assert_int_equal(back, rank);
    }
}

static void one_process(void **state)
{
    (void)state;
    struct ranks ranks = ranks_one(), part;
    struct rank_grid grid;
    struct err err = { 0 };
    float one = 1;
    int64_t handle = 0;
    assert_false(rank_grid_new(&ranks, (int64_t[]){ 0, 2, 1, 1, 1 }, &grid, &err));
    assert_true(rank_grid_new(&ranks, (int64_t[]){ 0, 1, 1, 1, 1 }, &grid, &err));
    for (int a = 0; a < GRID_AXES; a++) {
        assert_int_equal(grid.extent[a], 1);
        assert_int_equal(grid.group[a].size, 1);
        assert_string_equal(grid.group[a].name, rank_grid_names[a]);
        assert_true(ranks_sum_floats(&grid.group[a], &one, 1, &err));
    }
    assert_true(ranks_split(&grid.group[GRID_DATA], 5, 3, "part", &part, &err));
    assert_true(part.rank == 0 && part.size == 1);
    assert_true(ranks_progress(&part, &err) && ranks_finish(&part, RANKS_ALL, &err));
    assert_true(ranks_exchange(
        &part, &(struct ranks_exchange){ .to = RANKS_NONE, .from = RANKS_NONE }, &err));
    assert_false(ranks_send(&part, 0, &one, sizeof one, &err));
    assert_string_equal(err.text, "rank 0 of 1 in part cannot send to itself");
    assert_false(ranks_start_receive(&part, 1, &one, sizeof one, &handle, &err));
    assert_string_equal(err.text, "rank 0 of 1 in part cannot receive from rank 1");
    assert_false(ranks_exchange(&part, &(struct ranks_exchange){ .to = 0, .from = 0 }, &err));
    ranks_free(&part);
    assert_false(ranks_split(&ranks, -1, 0, "part", &part, &err));
    assert_string_equal(err.text, "part: no group has number -1");
    ranks_free(&part);
    rank_grid_free(&grid);
    assert_true(one == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(extents_fit), cmocka_unit_test(places),
                                        cmocka_unit_test(one_process) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
