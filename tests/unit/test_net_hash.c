/* test_net_hash.c: the hash of a network changes with anything that changes what it computes, and
 * with nothing else; recorded values stay what they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/identity.h"
#include "net/zoo/zoo.h"

static struct graph *network(const char *name, int64_t side)
{
    struct err err = { 0 };
    struct graph *graph = NULL;
    struct zoo_options options = { .height = side, .width = side, .classes = 2 };
    if (!zoo_build(name, &options, &graph, &err) || !graph_initialize(graph, 5, &err))
        fail_msg("%s", err.text);
    return graph;
}

static uint64_t structure(const struct graph *graph)
{
    return graph_hash(graph, IDENTITY_HASH_BEGIN, false);
}

static uint64_t whole(const struct graph *graph)
{
    return graph_hash(graph, IDENTITY_HASH_BEGIN, true);
}

/* Heatmaps and parts of predictions of earlier versions hold these. */
static void recorded_hashes_are_still_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *network;
        int64_t side;
        uint64_t hash;
    } recorded[] = {
        { "scan_tiny", 224, UINT64_C(0xbe58f1a8b39c9765) },
        { "resnet110_v2", 32, UINT64_C(0x63baad8fcadd5cb8) },
    };
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        struct graph *graph = network(recorded[i].network, recorded[i].side);
        assert_int_equal(whole(graph), recorded[i].hash);
        graph_free(graph);
    }
}

/* Another value of number i of a field. */
static void change_field(const struct attr_field *field, union attr *attr, int i)
{
    void *at = (char *)attr + field->offset;
    switch (field->type) {
    case ATTR_INT:
        ((int64_t *)at)[i] += 1;
        break;
    case ATTR_REAL:
        *(float *)at += 0.5f;
        break;
    case ATTR_DOUBLE:
        ((double *)at)[i] += 0.5;
        break;
    case ATTR_BOOL:
        *(bool *)at = !*(bool *)at;
        break;
    case ATTR_CHOICE:
        *(int *)at += 1;
        break;
    case ATTR_SHAPE:
        ((struct shape *)at)->dim[i] += 1;
        break;
    case ATTR_BITS:
        *(uint32_t *)at ^= 2;
        break;
    }
}

static void every_attribute_counts(void **state)
{
    (void)state;
    static const char *const names[] = { "unet_small", "googlenet", "transformer_encoder" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct graph *graph = NULL;
        struct err err = { 0 };
        int changed = 0;
        assert_true(zoo_build(names[n], NULL, &graph, &err));
        uint64_t before = structure(graph);
        bool seen[OP_KINDS] = { false }; /* one node of every kind */
        for (int32_t k = 0; k < graph->n_nodes; k++) {
            struct node *node = &graph->nodes[k];
            const union attr kept = node->attr;
            bool again = seen[node->op->kind];
            seen[node->op->kind] = true;
            for (const struct attr_field *f = node->op->fields; !again && f && f->name; f++)
                for (int i = 0; i < f->count; i++) {
                    change_field(f, &node->attr, i);
                    if (structure(graph) == before)
                        fail_msg("%s: %s[%d] does not count", node->op->name, f->name, i);
                    node->attr = kept, changed++;
                }
        }
        assert_true(changed > 4);
        assert_int_equal(structure(graph), before);
        graph_free(graph);
    }
}

static void every_weight_counts(void **state)
{
    (void)state;
    struct graph *graph = network("scan_tiny", 224);
    uint64_t before = whole(graph), bare = structure(graph);
    assert_true(before != bare);
    for (int32_t i = 0; i < graph->n_values; i++) {
        if (!graph_is_parameter(graph, i))
            continue;
        float *last = graph_data(graph, i) + shape_count(graph_shape(graph, i)) - 1, kept = *last;
        *last = kept == 0 ? -0.0f : kept * (1 + 1e-6f); /* the lowest bit, or the sign of 0 */
        assert_true(whole(graph) != before);
        assert_int_equal(structure(graph), bare);
        *last = kept;
    }
    assert_int_equal(whole(graph), before);
    graph_free(graph);
}

enum change { NOTHING, NAMES, ORDER, WIRES, OUTPUTS, SIZE, OP, CHANGES };

/* x - y, their sum with a layer of x, and two outputs. */
static struct graph *two_inputs(enum change change)
{
    bool named = change == NAMES;
    int64_t side = change == SIZE ? 12 : 8;
    struct graph *g = graph_new(named ? "b" : "a");
    value_id x = graph_input(g, named ? "p" : "x", SHAPE(1, 4, side, side));
    value_id y = graph_input(g, named ? "q" : "y", SHAPE(1, 4, side, side));
    value_id z = change == ORDER ? graph_sub(g, y, x) : graph_sub(g, x, y);
    value_id w =
        graph_conv(g, change == WIRES ? y : x, named ? "r" : "conv", 4, true, conv_square(3, 1, 1));
    w = change == OP ? graph_silu(g, w) : graph_relu(g, w);
    w = graph_add(g, w, z);
    graph_output(g, named ? "s" : "sum", w);
    graph_output(g, named ? "t" : "difference", change == OUTPUTS ? w : z);
    return g;
}

static void connections_count_and_names_do_not(void **state)
{
    (void)state;
    uint64_t hashes[CHANGES];
    for (int i = 0; i < CHANGES; i++) {
        struct err err = { 0 };
        struct graph *g = two_inputs((enum change)i);
        assert_true(graph_ok(g, &err));
        hashes[i] = structure(g);
        graph_free(g);
    }
    assert_int_equal(hashes[NOTHING], hashes[NAMES]);
    for (int i = ORDER; i < CHANGES; i++)
        for (int k = 0; k < i; k++)
            if (k != NAMES)
                assert_true(hashes[i] != hashes[k]);
}

static void a_hash_continues_another(void **state)
{
    (void)state;
    struct graph *g = two_inputs(NOTHING);
    uint64_t once = structure(g);
    assert_true(graph_hash(g, once, false) != once);
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_hashes_are_still_recognised),
        cmocka_unit_test(every_attribute_counts),
        cmocka_unit_test(every_weight_counts),
        cmocka_unit_test(connections_count_and_names_do_not),
        cmocka_unit_test(a_hash_continues_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
