/* test_numa.c: which NUMA node each rank of a machine gets, on machines that hwloc makes up: even
 * and uneven ones, more ranks than nodes and fewer, one node, memory without processors; and
 * descriptions that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "dist/numa.h"

static struct numa *make_machine(const char *synthetic)
{
    struct numa *numa = NULL;
    struct err err = { 0 };
    if (!numa_new(synthetic, &numa, &err))
        fail_msg("%s: %s", synthetic, err.text);
    return numa;
}

static void machines_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *synthetic;
        int nodes, cores, processors;
    } cases[] = {
        { "numa:2 core:4 pu:2", 2, 8, 16 },
        { "numa:1 core:4 pu:1", 1, 4, 4 },
        { "pack:2 [numa] core:6 pu:1", 2, 12, 12 },
        { "pack:2 numa:4 core:2 pu:2", 8, 16, 32 },
        { "pack:2 [numa] [numa] core:2 pu:1", 2, 4, 4 }, /* two kinds of memory */
        { "pu:3", 1, 3, 3 },
        { "numa:2 pu:2", 2, 4, 4 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct numa *numa = make_machine(cases[i].synthetic);
        assert_int_equal(numa_nodes(numa), cases[i].nodes);
        assert_int_equal(numa_cores(numa), cases[i].cores);
        assert_int_equal(numa_processors(numa), cases[i].processors);
        numa_free(numa);
    }
}

/* Each rank's node, its processors, and how many share them. */
static void ranks_are_divided(void **state)
{
    (void)state;
    static const struct {
        const char *synthetic;
        int ranks;
        const char *told;
    } cases[] = {
        { "numa:2 core:4 pu:2", 2, "2 NUMA nodes: rank 0 on node 0, rank 1 on node 1" },
        { "numa:2 core:4 pu:2", 4, "2 NUMA nodes: ranks 0-1 on node 0, ranks 2-3 on node 1" },
        { "numa:2 core:4 pu:1", 3, "2 NUMA nodes: rank 0 on node 0, ranks 1-2 on node 1" },
        { "numa:2 core:4 pu:2", 3,
          "2 NUMA nodes; 3 ranks not bound: the NUMA nodes do not divide evenly" },
        { "numa:2 core:1 pu:1", 8, "2 NUMA nodes: ranks 0-3 on node 0, ranks 4-7 on node 1" },
        { "pack:2 numa:4 core:2 pu:2", 4,
          "8 NUMA nodes: rank 0 on nodes 0-1, rank 1 on nodes 2-3, rank 2 on nodes 4-5, rank 3 on "
          "nodes 6-7" },
        { "numa:3 core:4 pu:1", 2,
          "3 NUMA nodes; 2 ranks not bound: the NUMA nodes do not divide evenly" },
        { "numa:2 core:4 pu:2", 1,
          "2 NUMA nodes; 1 rank not bound: one rank has the whole machine" },
        { "numa:1 core:8 pu:2", 4, "1 NUMA node; 4 ranks not bound: one NUMA node" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct numa *numa = make_machine(cases[i].synthetic);
        char text[400];
        numa_tell(numa, cases[i].ranks, text, sizeof text);
        assert_string_equal(text, cases[i].told);
        for (int r = 0; r < cases[i].ranks; r++) { /* a share of all processors, bound or not */
            struct numa_place place = numa_place(numa, cases[i].ranks, r);
            assert_true(place.processors >=
                        place.sharing * (numa_processors(numa) / cases[i].ranks));
            assert_true(place.bound || place.processors == numa_processors(numa));
        }
        numa_free(numa);
    }
}

static void places_are_named(void **state)
{
    (void)state;
    struct numa *numa = make_machine("numa:2 core:4 pu:2");
    struct numa_place place = numa_place(numa, 4, 2);
    assert_true(place.bound);
    assert_int_equal(place.first_node, 1);
    assert_int_equal(place.nodes, 1);
    assert_int_equal(place.sharing, 2);
    assert_int_equal(place.processors, 8);
    assert_string_equal(place.words, "node 1 (processors 8-15)");
    numa_free(numa);
    numa = make_machine("pack:2 numa:2 core:2 pu:1");
    place = numa_place(numa, 2, 1);
    assert_int_equal(place.nodes, 2);
    assert_string_equal(place.words, "nodes 2-3 (processors 4-7)");
    char text[20]; /* too short, but a string */
    numa_tell(numa, 4, text, sizeof text);
    assert_string_equal(text, "4 NUMA nodes: rank ");
    numa_free(numa);
}

/* Every rank has one node, ranks are in the order of nodes, and equal nodes differ by one rank. */
static void nodes_are_filled_evenly(void **state)
{
    (void)state;
    struct numa *numa = make_machine("numa:4 core:16 pu:1");
    for (int ranks = 4; ranks <= 64; ranks++) {
        int on[4] = { 0 }, last = 0;
        for (int r = 0; r < ranks; r++) {
            struct numa_place place = numa_place(numa, ranks, r);
            if (!place.bound)
                break;
            assert_in_range(place.first_node, last, 3);
            last = place.first_node;
            on[last]++;
        }
        for (int a = 0; a < 4 && on[3] > 0; a++)
            assert_in_range(on[a], ranks / 4, (ranks + 3) / 4);
        assert_true(ranks % 4 != 0 || on[3] > 0);
    }
    numa_free(numa);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "two nodes", "numa:2 core:0 pu:2", "numa:2 core:4",
                                       "numa:-1 pu:2", "numa:2 pu" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct numa *numa = NULL;
        struct err err = { 0 };
        assert_false(numa_new(bad[i], &numa, &err));
        assert_null(numa);
        assert_int_equal(err.kind, ERR_USAGE);
        assert_non_null(strstr(err.text, bad[i]));
        assert_non_null(strstr(err.text, "hwloc expects e.g. numa:2 core:4 pu:2"));
    }
    numa_free(NULL);
}

static int count_usable(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

/* A made-up machine changes nothing here, nor does one rank; the real one counts what it may use.
 */
static void this_machine(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct ranks one = ranks_one();
    int before = count_usable();
    char text[100] = "x";
    struct numa *numa = make_machine("numa:2 core:4 pu:2");
    assert_true(numa_bind(numa, 2, 1, &err));
    assert_int_equal(count_usable(), before);
    numa_free(numa);
    numa_settle(&one, text, sizeof text);
    assert_string_equal(text, "");
    numa = make_machine(NULL);
    assert_int_equal(numa_processors(numa), before);
    assert_true(numa_bind(numa, 1, 0, &err));
    assert_int_equal(count_usable(), before);
    numa_free(numa);
    cpu_set_t all, first;
    CPU_ZERO(&first);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t i = 0; CPU_COUNT(&first) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &first);
    assert_int_equal(sched_setaffinity(0, sizeof first, &first), 0);
    numa = make_machine(NULL); /* as a launcher leaves it */
    assert_int_equal(numa_processors(numa), 1);
    assert_int_equal(numa_cores(numa), 1);
    assert_int_equal(numa_nodes(numa), 1);
    numa_free(numa);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

/* The processors of this machine as two nodes: the first two are bound, memory only to node 0. */
static void processors_are_bound(void **state)
{
    (void)state;
    cpu_set_t all, now;
    struct err err = { 0 };
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (!CPU_ISSET(0, &all) || !CPU_ISSET(1, &all)) {
        print_message("skipped: not both of the first two processors may be used\n");
        return;
    }
    assert_int_equal(setenv("HWLOC_THISSYSTEM", "1", 1), 0);
    struct numa *numa = make_machine("numa:2 core:1 pu:1");
    assert_int_equal(numa_processors(numa), 2);
    for (int rank = 0; rank < 2; rank++) {
        bool memory = numa_bind(numa, 2, rank, &err);
        assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
        assert_int_equal(CPU_COUNT(&now), 1);
        assert_true(CPU_ISSET((size_t)rank, &now));
        if (!memory)
            assert_non_null(strstr(err.text, "the memory could not be bound"));
    }
    numa_free(numa);
    assert_int_equal(unsetenv("HWLOC_THISSYSTEM"), 0);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_are_counted), cmocka_unit_test(ranks_are_divided),
        cmocka_unit_test(places_are_named),     cmocka_unit_test(nodes_are_filled_evenly),
        cmocka_unit_test(nonsense_is_refused),  cmocka_unit_test(this_machine),
        cmocka_unit_test(processors_are_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
