/* test_onnx_quantized.c: a network of 8-bit integers as quantisers export it
 * (tests/golden/onnx_quantized.py): the numbers are ONNX Runtime's, the graph stores int8, and is
 * the same when written and read again; what cannot be stored so is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "net/graph/transform.h"
#include "net/onnx/model.h"
#include "net/onnx/onnx.h"
#include "net/plan/plan.h"
#include "support/golden.h"
#include "support/paths.h"

static struct graph *read_golden(void)
{
    struct err err = { 0 };
    struct graph *graph = NULL;
    char *path = source_path("tests/golden/onnx_quantized.onnx");
    if (!onnx_read(path, NULL, &graph, &err))
        fail_msg("%s", err.text);
    free(path);
    return graph;
}

static void assert_stored(const struct graph *graph, const char *name, float scale,
                          int64_t zero_point)
{
    struct storage want = { DTYPE_INT8, scale, zero_point };
    value_id value = graph_find(graph, name);
    assert_true(value != NO_VALUE);
    assert_true(storage_equal(&graph->values[value].storage, &want));
}

/* uint8 is int8 with another zero point. */
static void integers_become_stored_values(void **state)
{
    (void)state;
    struct graph *graph = read_golden();
    assert_stored(graph, "image", 0.021f, 117 - 128);
    assert_stored(graph, "map", 0.043f, -128);
    assert_stored(graph, "pooled", 0.05f, -128);
    int converts = 0;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        converts += graph->nodes[i].op->kind == OP_CONVERT;
    assert_int_equal(converts, 3);
    assert_true(graph_find(graph, "wd") != NO_VALUE && graph_find(graph, "vd") != NO_VALUE);
    assert_int_equal(graph->n_nodes, 3 + 5); /* conv, relu, max pool, flatten, linear */
    graph_free(graph);
}

static void check_numbers(const struct graph *graph, const struct golden *golden)
{
    struct err err = { 0 };
    struct plan *plan = NULL;
    const struct golden_tensor *x = golden_find(golden, "x"), *y = golden_find(golden, "y");
    assert_true(plan_new(graph, &(struct plan_options){ .threads = 2 }, &plan, &err));
    memcpy(plan_input(plan, 0), x->data, (size_t)shape_count(&x->shape) * sizeof(float));
    assert_true(plan_forward(plan, &err));
    double error = relative_error(plan_output(plan, 0), y->data, shape_count(&y->shape));
    print_message("relative error %.1e\n", error);
    assert_true(error < 2e-6);
    plan_free(plan);
}

static void numbers_are_onnx_runtimes(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct golden golden;
    struct graph *graph = read_golden(), *fused = NULL, *back = NULL;
    char *path = scratch_path("quantized.onnx");
    golden_open(&golden, "tests/golden/onnx_quantized.bin");
    check_numbers(graph, &golden);
    assert_true(transform_for_inference(graph, NULL, 0, &fused, &err));
    check_numbers(fused, &golden);
    if (!onnx_write(graph, path, NULL, &err) ||
        !onnx_read(path, &(struct onnx_options){ .batch = 2 }, &back, &err))
        fail_msg("%s", err.text);
    assert_int_equal(graph_hash(back, 0, true), graph_hash(graph, 0, true));
    golden_close(&golden);
    graph_free(graph), graph_free(fused), graph_free(back);
    free(path);
}

/* Input `input` of the node that makes `output` becomes another, or its operator does. */
struct change {
    const char *output;
    int input;
    const char *name, *type, *said;
};

static char *swapped(char *old, const char *with)
{
    free(old);
    return strdup(with);
}

static void change(Onnx__GraphProto *proto, const struct change *change)
{
    for (size_t i = 0; i < proto->n_node; i++) {
        Onnx__NodeProto *node = proto->node[i];
        if (strcmp(node->output[0], change->output) != 0)
            continue;
        if (change->name)
            node->input[change->input] = swapped(node->input[change->input], change->name);
        if (change->type)
            node->op_type = swapped(node->op_type, change->type);
        return;
    }
    proto->output[0]->name = swapped(proto->output[0]->name, change->output + 1);
}

static void what_cannot_be_stored_is_refused(void **state)
{
    (void)state;
    static const struct change changes[] = {
        { "xd", 0, NULL, "Relu", "QuantizeLinear: its integers are read by 'Relu'; only" },
        { ":xq", 0, NULL, NULL, "its integers are an output of the network; only floats may" },
        { "xd", 1, "sa", NULL, "its scale or zero point is not that of 'image'" },
        { "xd", 2, "za", NULL, "its scale or zero point is not that of 'image'" },
        { "xq", 1, "sw", NULL, "activations with several scales are not supported" },
        { "xq", 2, "b", NULL, "activations with several scales are not supported" },
        { "xq", 2, "sa", NULL, "only int8 and uint8 are supported" },
        { "xq", 1, "x", NULL, "the scale" },
        { "xd", 0, "x", NULL, "neither a constant nor the output of QuantizeLinear" },
        { "wd", 1, "sb", NULL, NULL },
        { "wd", 2, "zv", NULL, "as many zero points as scales, are needed" },
        { "vd", 1, "sw", NULL, "as many zero points as scales, are needed" },
        { "bd", 0, "v", NULL, "the scales do not fit the axis" },
    };
    char *path = source_path("tests/golden/onnx_quantized.onnx"), *bytes = NULL;
    size_t size = 0;
    assert_true(file_read(path, 1 << 16, &bytes, &size, NULL));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct err err = { 0 };
        Onnx__ModelProto *model = NULL;
        struct graph *graph = NULL;
        assert_true(onnx_model_parse((uint8_t *)bytes, size, "model.onnx", &model, &err));
        change(model->graph, &changes[i]);
        size_t packed_size = onnx__model_proto__get_packed_size(model);
        uint8_t *packed = malloc(packed_size);
        onnx__model_proto__pack(model, packed);
        bool ok = onnx_parse(packed, packed_size, "model.onnx", NULL, &graph, &err);
        const char *said = changes[i].said;
        if (ok != !said || (said && !strstr(err.text, said)))
            fail_msg("'%s' instead of '%s'", err.text, said ? said : "");
        graph_free(graph);
        free(packed);
        onnx__model_proto__free_unpacked(model, NULL);
    }
    free(bytes), free(path);
}

/* With one byte changed, a file is refused or read, never worse. */
static void damaged_files_are_survived(void **state)
{
    (void)state;
    char *path = source_path("tests/golden/onnx_quantized.onnx"), *bytes = NULL;
    size_t size = 0;
    assert_true(file_read(path, 1 << 16, &bytes, &size, NULL));
    for (size_t i = 0; i < size; i++) {
        struct graph *graph = NULL;
        bytes[i] = (char)~bytes[i];
        onnx_parse((uint8_t *)bytes, size, "changed.onnx", NULL, &graph, NULL);
        graph_free(graph);
        bytes[i] = (char)~bytes[i];
    }
    free(bytes), free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_become_stored_values),
        cmocka_unit_test(numbers_are_onnx_runtimes),
        cmocka_unit_test(what_cannot_be_stored_is_refused),
        cmocka_unit_test(damaged_files_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
