/* test_net_graph.c: building graphs, shapes, names, sticky errors, first values, text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/graph/graph.h"

static struct graph *small_network(int64_t batch, int64_t side)
{
    struct graph *g = graph_new("small");
    value_id x = graph_input(g, "input", SHAPE(batch, 3, side, side));
    x = graph_conv(g, x, "conv1", 16, false, conv_square(7, 2, 3));
    x = graph_relu(g, graph_batch_norm(g, x, "bn1"));
    x = graph_max_pool(g, x, pool_square(3, 2, 1));
    value_id y = graph_conv(g, x, "block.conv", 16, true, conv_square(3, 1, 1));
    x = graph_relu(g, graph_add(g, x, y));
    x = graph_flatten(g, graph_global_average_pool(g, x));
    graph_output(g, "logits", graph_linear(g, x, "fc", 10, true));
    return g;
}

static void shapes_follow_the_input(void **state)
{
    (void)state;
    struct graph *g = small_network(2, 224);
    struct err err = { 0 };
    assert_true(graph_ok(g, &err));
    assert_true(shape_equal(graph_shape(g, graph_find(g, "conv1")), &SHAPE(2, 16, 112, 112)));
    assert_true(shape_equal(graph_shape(g, graph_find(g, "logits")), &SHAPE(2, 10)));
    assert_int_equal(graph_parameter_count(g), 3 * 16 * 49 + 32 + 16 * 16 * 9 + 16 + 160 + 10);
    assert_true(graph_resize(g, graph_find(g, "input"), SHAPE(5, 3, 97, 131), &err));
    assert_true(shape_equal(graph_shape(g, graph_find(g, "block.conv")), &SHAPE(5, 16, 25, 33)));
    assert_false(graph_resize(g, graph_find(g, "input"), SHAPE(5, 4, 97, 131), &err));
    assert_non_null(strstr(err.text, "conv1"));
    assert_true(shape_equal(graph_shape(g, graph_find(g, "logits")), &SHAPE(5, 10)));
    graph_free(g);
}

static void the_first_error_is_kept(void **state)
{
    (void)state;
    struct graph *g = graph_new("bad");
    struct err err = { 0 };
    value_id x = graph_input(g, "input", SHAPE(1, 3, 8, 8));
    x = graph_conv(g, x, "stem", 4, false, conv_square(11, 1, 0));
    x = graph_relu(g, x);
    graph_output(g, "y", x);
    assert_false(graph_ok(g, &err));
    assert_non_null(strstr(err.text, "stem"));
    assert_non_null(strstr(err.text, "does not fit"));
    graph_free(g);
}

static void wrong_attributes_are_named(void **state)
{
    (void)state;
    struct graph *g = graph_new("bad");
    struct err err = { 0 };
    value_id x = graph_input(g, "input", SHAPE(1, 3, 8, 8));
    graph_max_pool(g, x, (struct pool_attr){ .kernel = { 2, 2 }, .stride = { -1, 1 } });
    assert_false(graph_ok(g, &err));
    assert_non_null(strstr(err.text, "stride"));
    graph_free(g);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct shape a, b;
        enum op_kind kind;
        union attr attr;
    } bad[] = {
        { { 2, { 3, 4 } }, { 2, { 3, 4 } }, OP_MATMUL, { .matmul = { 0 } } },
        { { 3, { 2, 3, 4 } }, { 3, { 3, 4, 5 } }, OP_MATMUL, { .matmul = { 0 } } },
        { { 1, { 4 } }, { 2, { 4, 5 } }, OP_MATMUL, { .matmul = { 0 } } },
        { { 2, { 3, 4 } }, { 1, { 3 } }, OP_ADD, { .axis = { 0 } } },
        { { 2, { 3, 4 } }, { 2, { 2, 4 } }, OP_CONCAT, { .axis = { 1 } } },
        { { 2, { 3, 4 } }, { 2, { 3, 4 } }, OP_CONCAT, { .axis = { 2 } } },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct graph *g = graph_new("bad");
        struct err err = { 0 };
        value_id x[2] = { graph_input(g, "a", bad[i].a), graph_input(g, "b", bad[i].b) };
        assert_int_equal(graph_node(g, bad[i].kind, "both", x, 2, &bad[i].attr), NO_VALUE);
        assert_false(graph_ok(g, &err));
        assert_non_null(strstr(err.text, "both"));
        graph_free(g);
    }
}

/* Extents that PyTorch 1.13 gives (ceil_mode drops a last window that begins in the padding). */
static void window_extents_are_those_of_pytorch(void **state)
{
    (void)state;
    assert_int_equal(window_extent(112, 3, 2, 0, 0, 1, true), 56);
    assert_int_equal(window_extent(5, 2, 2, 0, 0, 1, true), 3);
    assert_int_equal(window_extent(4, 3, 3, 1, 1, 1, true), 2);
    assert_int_equal(window_extent(3, 2, 3, 1, 1, 1, true), 2);
    assert_int_equal(window_extent(2, 1, 3, 0, 0, 1, true), 1);
    assert_int_equal(window_extent(7, 3, 1, 1, 1, 3, false), 3);
}

static void reshapes_hold_for_any_batch(void **state)
{
    (void)state;
    struct graph *g = graph_new("");
    struct err err = { 0 };
    value_id x = graph_input(g, "input", SHAPE(2, 12, 4, 4));
    value_id y = graph_reshape(g, x, SHAPE(0, 3, 4, -1));
    value_id z = graph_transpose(g, y, (int64_t[]){ 0, 3, 1, 2 });
    graph_output(g, "z", z);
    assert_true(graph_ok(g, &err));
    assert_true(shape_equal(graph_shape(g, z), &SHAPE(2, 16, 3, 4)));
    assert_true(graph_resize(g, x, SHAPE(7, 12, 5, 4), &err));
    assert_true(shape_equal(graph_shape(g, z), &SHAPE(7, 20, 3, 4)));
    graph_free(g);
}

static void first_values_depend_on_seed_and_name_alone(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *a = small_network(1, 64), *b = small_network(3, 32);
    assert_int_equal(graph_init(a, "*conv.weight", (struct init){ INIT_FAN_OUT_NORMAL, 0 }), 1);
    assert_int_equal(graph_init(b, "block.conv.weight", (struct init){ INIT_FAN_OUT_NORMAL, 0 }),
                     1);
    assert_true(graph_initialize(a, 7, &err) && graph_initialize(b, 7, &err));
    value_id w = graph_find(a, "block.conv.weight");
    assert_memory_equal(graph_data(a, w), graph_data(b, graph_find(b, "block.conv.weight")),
                        16 * 16 * 9 * sizeof(float));
    double square = 0;
    for (int i = 0; i < 16 * 16 * 9; i++)
        square += pow((double)graph_data(a, w)[i], 2);
    assert_true(fabs(square / (16 * 16 * 9) / (2.0 / (16 * 9)) - 1) < 0.1);
    assert_true(graph_data(a, graph_find(a, "bn1.running_var"))[3] == 1);
    graph_free(a), graph_free(b);
}

static void the_text_names_what_matters(void **state)
{
    (void)state;
    struct graph *g = small_network(1, 64);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    graph_print(g, stream);
    fclose(stream);
    assert_non_null(strstr(text, "conv1"));
    assert_non_null(strstr(text, "stride=2,2 pad=3,3,3,3\n"));
    assert_non_null(strstr(text, "output logits"));
    assert_null(strstr(text, "groups"));
    free(text);
    graph_free(g);
}

static void copies_share_parameters(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *a = small_network(1, 64), *b = NULL;
    assert_true(graph_initialize(a, 1, &err));
    assert_true(graph_copy(a, &b, &err));
    value_id w = graph_find(a, "fc.weight");
    assert_ptr_equal(graph_data(a, w), graph_data(b, w));
    graph_free(a);
    assert_true(graph_data(b, w)[0] != 0);
    assert_true(graph_resize(b, graph_find(b, "input"), SHAPE(4, 3, 80, 80), &err));
    graph_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_follow_the_input),
        cmocka_unit_test(the_first_error_is_kept),
        cmocka_unit_test(wrong_attributes_are_named),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(window_extents_are_those_of_pytorch),
        cmocka_unit_test(reshapes_hold_for_any_batch),
        cmocka_unit_test(first_values_depend_on_seed_and_name_alone),
        cmocka_unit_test(the_text_names_what_matters),
        cmocka_unit_test(copies_share_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
