/* test_onnx_exact.c: where ONNX Runtime's arithmetic is the reference: resizing by fractional
 * factors gives its sizes and its numbers (tests/golden/onnx_resize.py). Attributes of the wrong
 * type are rejected, not ignored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "net/onnx/onnx.h"
#include "net/onnx/model.h"
#include "net/plan/plan.h"
#include "support/golden.h"
#include "support/paths.h"

static struct graph *read_golden(const char *name)
{
    struct err err = { 0 };
    struct graph *graph = NULL;
    char *path = source_path(name);
    if (!onnx_read(path, NULL, &graph, &err))
        fail_msg("%s", err.text);
    free(path);
    return graph;
}

static void resizing_is_onnx_runtimes(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct golden golden;
    struct graph *graph = read_golden("tests/golden/onnx_resize.onnx");
    struct plan *plan = NULL;
    int wrong_size = 0, wrong = 0;
    golden_open(&golden, "tests/golden/onnx_resize.bin");
    assert_true(golden.n >= 300);
    assert_true(plan_new(graph, &(struct plan_options){ .threads = 1 }, &plan, &err));
    for (int i = 0; i < graph->n_inputs; i++) {
        int64_t rows = graph_shape(graph, graph->inputs[i].value)->dim[2];
        for (int64_t k = 0; k < 2 * rows; k++)
            plan_input(plan, i)[k] = (float)((k * 29 + rows) % 31) / 8;
    }
    assert_true(plan_forward(plan, &err));
    assert_int_equal(graph->n_outputs, golden.n);
    for (int i = 0; i < graph->n_outputs; i++) {
        const struct golden_tensor *want = golden_find(&golden, "%s", graph->outputs[i].name);
        const struct shape *shape = graph_shape(graph, graph->outputs[i].value);
        assert_non_null(want);
        if (!shape_equal(shape, &want->shape)) {
            wrong_size++;
            print_message("%s: %d rows, ONNX Runtime %d\n", want->name, (int)shape->dim[2],
                          (int)want->shape.dim[2]);
            continue;
        }
        bool same = true;
        for (int64_t k = 0; k < shape_count(shape); k++)
            same = same && fabsf(plan_output(plan, i)[k] - want->data[k]) < 2e-5f;
        if (!same)
            print_message("%s: other numbers\n", want->name);
        wrong += !same;
    }
    assert_int_equal(wrong_size, 0);
    assert_int_equal(wrong, 0);
    golden_close(&golden);
    plan_free(plan);
    graph_free(graph);
}

/* --- attributes --- */

enum { UNSAID = 0, FLOAT = 1, INT = 2, STRING = 3, FLOATS = 6, INTS = 7 };

/* How an attribute of a golden network is changed, and what is said about it. */
struct change {
    const char *node, *attribute;
    int type;         /* that it has then */
    int holds;        /* what is in it, 0: nothing */
    const char *said; /* NULL: it is read */
};

static Onnx__AttributeProto *find_attribute(Onnx__ModelProto *model, const struct change *change)
{
    for (size_t i = 0; i < model->graph->n_node; i++) {
        Onnx__NodeProto *node = model->graph->node[i];
        for (size_t k = 0; k < node->n_attribute; k++)
            if (strcmp(node->name, change->node) == 0 &&
                strcmp(node->attribute[k]->name, change->attribute) == 0)
                return node->attribute[k];
    }
    fail_msg("%s of %s is not there", change->attribute, change->node);
    return NULL;
}

static void hold(Onnx__AttributeProto *a, const struct change *change, int64_t *ints, float *floats)
{
    free(a->ints);
    a->has_type = change->type != UNSAID;
    a->type = (Onnx__AttributeProto__AttributeType)change->type;
    a->has_i = change->holds == INT, a->i = a->has_i;
    a->has_f = change->holds == FLOAT, a->f = a->has_f ? 1 : 0;
    a->ints = ints, a->n_ints = change->holds == INTS ? 2 : 0;
    a->floats = floats, a->n_floats = change->holds == FLOATS ? 2 : 0;
}

static void read_changed(const uint8_t *bytes, size_t size, const struct change *change)
{
    struct err err = { 0 };
    Onnx__ModelProto *model = NULL;
    struct graph *graph = NULL;
    int64_t ints[2] = { 2, 2 };
    float floats[2] = { 2, 2 };
    assert_true(onnx_model_parse(bytes, size, "model.onnx", &model, &err));
    Onnx__AttributeProto *a = find_attribute(model, change);
    hold(a, change, ints, floats);
    size_t packed_size = onnx__model_proto__get_packed_size(model);
    uint8_t *packed = malloc(packed_size);
    assert_non_null(packed);
    onnx__model_proto__pack(model, packed);
    a->ints = NULL, a->floats = NULL, a->n_ints = a->n_floats = 0; /* not to be freed */
    bool ok = onnx_parse(packed, packed_size, "model.onnx", NULL, &graph, &err);
    if (ok != (change->said == NULL) || (change->said && !strstr(err.text, change->said)))
        fail_msg("%s of %s: '%s' instead of '%s'", change->attribute, change->node, err.text,
                 change->said ? change->said : "");
    graph_free(graph);
    free(packed);
    onnx__model_proto__free_unpacked(model, NULL);
}

static void wrong_types_are_refused(void **state)
{
    (void)state;
    static const struct change changes[] = {
        { "y", "axis", INT, INT, NULL },
        { "y", "axis", UNSAID, INT, NULL },
        { "c", "strides", UNSAID, INTS, NULL },
        { "y", "axis", FLOAT, FLOAT,
          "model.onnx: node 'y': Softmax: the attribute 'axis' is FLOAT; ONNX defines it as INT" },
        { "y", "axis", UNSAID, FLOAT, "the attribute 'axis' is FLOAT; ONNX defines it as INT" },
        { "y", "axis", INT, INTS, "the attribute 'axis' is INTS; ONNX defines it as INT" },
        { "y", "axis", STRING, 0, "the attribute 'axis' is STRING; ONNX defines it as INT" },
        { "y", "axis", 13, 0, "the attribute 'axis' is of another type; ONNX defines it as INT" },
        { "y", "axis", UNSAID, 0, "the attribute 'axis' is nothing; ONNX defines it as INT" },
        { "c", "strides", INT, INT,
          "node 'c': Conv: the attribute 'strides' is INT; ONNX defines it as INTS" },
        { "c", "strides", FLOATS, FLOATS, "the attribute 'strides' is FLOATS" },
        { "z", "transB", FLOAT, FLOAT, "Gemm: the attribute 'transB' is FLOAT" },
    };
    char *path = source_path("tests/golden/onnx_scores/softmax.onnx"), *bytes = NULL;
    size_t size = 0;
    assert_true(file_read(path, 1 << 16, &bytes, &size, NULL));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        read_changed((const uint8_t *)bytes, size, &changes[i]);
    free(bytes);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resizing_is_onnx_runtimes),
        cmocka_unit_test(wrong_types_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
