/* test_onnx_images.c: inputs of bytes, with the channels last, and of open size: what such a file
 * computes of an image that is given as floats [N, 3, H, W]. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <onnx.pb-c.h>
#include <string.h>
#include "net/onnx/onnx.h"
#include "net/plan/plan.h"

/* A file: an input of this type and shape (0: open) that Identity or, for bytes, Cast passes on. */
static size_t file_of(uint8_t *bytes, int type, const int64_t dims[4], char *op)
{
    Onnx__TensorShapeProto__Dimension dim[4];
    Onnx__TensorShapeProto__Dimension *list[4];
    Onnx__TensorShapeProto shape = ONNX__TENSOR_SHAPE_PROTO__INIT;
    for (int i = 0; i < 4; i++) {
        onnx__tensor_shape_proto__dimension__init(&dim[i]);
        dim[i].value_case = dims[i] ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
                                    : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        if (dims[i])
            dim[i].dim_value = dims[i];
        else
            dim[i].dim_param = "open";
        list[i] = &dim[i];
    }
    shape.n_dim = 4, shape.dim = list;
    Onnx__TypeProto__Tensor tensor = ONNX__TYPE_PROTO__TENSOR__INIT;
    tensor.has_elem_type = 1, tensor.elem_type = type, tensor.shape = &shape;
    Onnx__TypeProto of = ONNX__TYPE_PROTO__INIT;
    of.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE, of.tensor_type = &tensor;
    Onnx__ValueInfoProto in = ONNX__VALUE_INFO_PROTO__INIT, out = ONNX__VALUE_INFO_PROTO__INIT;
    in.name = "x", in.type = &of, out.name = "y";
    Onnx__AttributeProto to = ONNX__ATTRIBUTE_PROTO__INIT, *attributes[] = { &to };
    to.name = "to", to.has_type = 1, to.type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    to.has_i = 1, to.i = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT, *nodes[] = { &node };
    node.op_type = op, node.n_input = node.n_output = 1;
    node.input = (char *[]){ "x" }, node.output = (char *[]){ "y" };
    node.n_attribute = strcmp(op, "Cast") == 0, node.attribute = attributes;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    graph.n_node = graph.n_input = graph.n_output = 1, graph.node = nodes;
    graph.input = (Onnx__ValueInfoProto *[]){ &in };
    graph.output = (Onnx__ValueInfoProto *[]){ &out };
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    opset.has_version = 1, opset.version = 17;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    model.has_ir_version = 1, model.ir_version = 8, model.graph = &graph;
    model.n_opset_import = 1, model.opset_import = (Onnx__OperatorSetIdProto *[]){ &opset };
    return onnx__model_proto__pack(&model, bytes);
}

/* The output of the file for an image [1, 3, 16, 20] whose pixel i is the byte i % 251. */
static void run_file(const uint8_t *bytes, size_t size, float *y, struct shape *shape)
{
    struct graph *graph = NULL;
    struct plan *plan = NULL;
    struct err err = { 0 };
    struct onnx_options options = { .height = 16, .width = 20 };
    struct plan_options infer = { .mode = PLAN_INFER, .threads = 1 };
    if (!onnx_parse(bytes, size, "image.onnx", &options, &graph, &err) ||
        !plan_new(graph, &infer, &plan, &err))
        fail_msg("%s", err.text);
    assert_true(shape_equal(graph_shape(graph, graph->inputs[0].value), &SHAPE(1, 3, 16, 20)));
    for (int i = 0; i < 960; i++)
        plan_input(plan, 0)[i] = (float)(i % 251) / 255;
    assert_true(plan_forward(plan, &err));
    *shape = *graph_shape(graph, graph->outputs[0].value);
    assert_int_equal(shape_count(shape), 960);
    memcpy(y, plan_output(plan, 0), 960 * sizeof *y);
    plan_free(plan);
    graph_free(graph);
}

static void channels_last_and_bytes(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    float y[960];
    struct shape shape;
    size_t size =
        file_of(bytes, ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, (int64_t[]){ 0, 0, 0, 3 }, "Cast");
    run_file(bytes, size, y, &shape);
    assert_true(shape_equal(&shape, &SHAPE(1, 16, 20, 3)));
    for (int i = 0; i < 960; i++) {
        int pixel = i / 3, channel = i % 3;
        assert_true(fabs((double)y[i] - (channel * 320 + pixel) % 251) < 1e-4);
    }
}

static void bytes_and_floats_as_they_are(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    float y[960];
    struct shape shape;
    run_file(
        bytes,
        file_of(bytes, ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, (int64_t[]){ 1, 3, 16, 20 }, "Cast"),
        y, &shape);
    for (int i = 0; i < 960; i++)
        assert_true(fabs((double)y[i] - i % 251) < 1e-4);
    run_file(
        bytes,
        file_of(bytes, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, (int64_t[]){ 0, 3, 0, 0 }, "Identity"),
        y, &shape);
    for (int i = 0; i < 960; i++)
        assert_true(y[i] == (float)(i % 251) / 255);
}

/* Small maps [N, C, 3, 3] have no channels at their end; and what is asked to be stored is. */
static void others_keep_their_axes(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    struct graph *graph = NULL;
    struct err err = { 0 };
    size_t size = file_of(bytes, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, (int64_t[]){ 1, 64, 3, 3 },
                          "Identity");
    assert_true(onnx_parse(bytes, size, "map.onnx", NULL, &graph, &err));
    assert_true(shape_equal(graph_shape(graph, graph->inputs[0].value), &SHAPE(1, 64, 3, 3)));
    graph_free(graph);
    struct onnx_options stored = { .as_stored = true };
    size = file_of(bytes, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, (int64_t[]){ 1, 32, 32, 3 },
                   "Identity");
    assert_true(onnx_parse(bytes, size, "map.onnx", &stored, &graph, &err));
    assert_true(shape_equal(graph_shape(graph, graph->inputs[0].value), &SHAPE(1, 32, 32, 3)));
    graph_free(graph);
    size =
        file_of(bytes, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, (int64_t[]){ 1, 0, 0, 3 }, "Identity");
    assert_false(onnx_parse(bytes, size, "open.onnx", NULL, &graph, &err));
    assert_string_equal(err.text,
                        "open.onnx: the input 'x' leaves the size of axis 1 open; specify it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_last_and_bytes),
        cmocka_unit_test(bytes_and_floats_as_they_are),
        cmocka_unit_test(others_keep_their_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
