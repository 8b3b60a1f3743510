/* test_onnx_external.c: weights in a file beside the ONNX file give the floats that were put there;
 * files that are missing, cut off, linked or elsewhere are refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <onnx.pb-c.h>
#include "net/onnx/onnx.h"

static char folder[] = "/tmp/onnx-external-XXXXXX";

static void write_file(const char *name, const void *bytes, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* y [1, 2] = x [1, 3] W, with W [3, 2] at these entries of external_data. */
static bool read_model(const char *location, const char *offset, const char *length,
                       struct graph **out, struct err *err)
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto set = ONNX__OPERATOR_SET_ID_PROTO__INIT, *sets = &set;
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT, *nodes = &node;
    Onnx__TensorProto weight = ONNX__TENSOR_PROTO__INIT, *weights = &weight;
    Onnx__StringStringEntryProto entries[3], *list[3];
    Onnx__TensorShapeProto__Dimension dims[2], *dim_list[2];
    Onnx__TensorShapeProto shape = ONNX__TENSOR_SHAPE_PROTO__INIT;
    Onnx__TypeProto__Tensor tensor = ONNX__TYPE_PROTO__TENSOR__INIT;
    Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
    Onnx__ValueInfoProto x = ONNX__VALUE_INFO_PROTO__INIT, *inputs = &x;
    Onnx__ValueInfoProto y = ONNX__VALUE_INFO_PROTO__INIT, *outputs = &y;
    const char *const pairs[3][2] = { { "location", location },
                                      { "offset", offset },
                                      { "length", length } };
    char *names[3] = { (char *)"x", (char *)"W", (char *)"y" };
    int64_t extents[2] = { 3, 2 };
    for (int i = 0; i < 3; i++) {
        onnx__string_string_entry_proto__init(&entries[i]);
        entries[i].key = (char *)pairs[i][0], entries[i].value = (char *)pairs[i][1];
        list[i] = &entries[i];
    }
    for (int i = 0; i < 2; i++) {
        onnx__tensor_shape_proto__dimension__init(&dims[i]);
        dims[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dims[i].dim_value = i ? 3 : 1;
        dim_list[i] = &dims[i];
    }
    shape.dim = dim_list, shape.n_dim = 2;
    tensor.has_elem_type = true, tensor.elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    tensor.shape = &shape;
    type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE, type.tensor_type = &tensor;
    x.name = names[0], x.type = &type, y.name = names[2];
    weight.name = names[1], weight.dims = extents, weight.n_dims = 2;
    weight.has_data_type = true, weight.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    weight.has_data_location = true;
    weight.data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    weight.external_data = list, weight.n_external_data = length ? 3 : 2;
    node.op_type = (char *)"MatMul", node.input = names, node.n_input = 2;
    node.output = &names[2], node.n_output = 1;
    set.has_version = true, set.version = 17;
    model.opset_import = &sets, model.n_opset_import = 1, model.graph = &graph;
    graph.node = &nodes, graph.n_node = 1, graph.initializer = &weights, graph.n_initializer = 1;
    graph.input = &inputs, graph.n_input = 1, graph.output = &outputs, graph.n_output = 1;
    uint8_t bytes[2048];
    assert_true(onnx__model_proto__get_packed_size(&model) < sizeof bytes);
    write_file("model.onnx", bytes, onnx__model_proto__pack(&model, bytes));
    char path[256];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    return onnx_read(path, NULL, out, err);
}

static void refuse(const char *location, const char *offset, const char *length, const char *why)
{
    struct err err = { 0 };
    struct graph *graph = NULL;
    char text[512];
    snprintf(text, sizeof text, "%s/model.onnx: %s", folder, why);
    assert_false(read_model(location, offset, length, &graph, &err));
    assert_string_equal(err.text, text);
}

static void floats_are_those_of_the_file(void **state)
{
    (void)state;
    const float file[8] = { -1, -1, 1, 2, 3, 4, 5, 6 }; /* the weight begins at byte 8 */
    struct err err = { 0 };
    write_file("model.onnx.data", file, sizeof file);
    for (int to_the_end = 0; to_the_end < 2; to_the_end++) {
        struct graph *graph = NULL;
        if (!read_model("model.onnx.data", "8", to_the_end ? NULL : "24", &graph, &err))
            fail_msg("%s", err.text);
        value_id weight = graph_find(graph, "W");
        assert_int_not_equal(weight, NO_VALUE);
        const float *got = graph_data(graph, weight); /* [2, 3], as a linear layer has it */
        for (int o = 0; o < 2; o++)
            for (int i = 0; i < 3; i++)
                assert_true(got[o * 3 + i] == file[2 + i * 2 + o]);
        graph_free(graph);
    }
}

static void other_files_are_refused(void **state)
{
    (void)state;
    char target[300], link[300];
    snprintf(target, sizeof target, "%s/model.onnx.data", folder);
    snprintf(link, sizeof link, "%s/linked.data", folder);
    assert_int_equal(symlink(target, link), 0);
    refuse("absent.data", "0", "24",
           "its weights are in 'absent.data', which cannot be opened (No such file or directory); "
           "put that file beside the model");
    refuse("linked.data", "0", "24",
           "its weights are in 'linked.data', which is a symbolic link; put the file itself there");
    refuse("../model.onnx.data", "0", "24",
           "the weights of 'W' are in '../model.onnx.data'; only files beside the model are read");
    refuse("/etc/passwd", "0", "24",
           "the weights of 'W' are in '/etc/passwd'; only files beside the model are read");
    unlink(link);
}

static void wrong_ranges_are_refused(void **state)
{
    (void)state;
    const char *const cut = "which has 32; it is truncated, or of another model";
    char text[256];
    snprintf(text, sizeof text, "'W' is at bytes 16 to 40 of 'model.onnx.data', %s", cut);
    refuse("model.onnx.data", "16", "24", text);
    snprintf(text, sizeof text, "'W' is at bytes 33 to 33 of 'model.onnx.data', %s", cut);
    refuse("model.onnx.data", "33", "0", text);
    refuse("model.onnx.data", "-8", "24", "offset or length of 'W' is not a number");
    struct err err = { 0 };
    struct graph *graph = NULL;
    assert_false(read_model("model.onnx.data", "0", "20", &graph, &err));
    assert_non_null(strstr(err.text, "the length of a constant's data does not match its shape"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_are_those_of_the_file),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(wrong_ranges_are_refused),
    };
    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char path[300];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/model.onnx.data", folder);
    unlink(path);
    rmdir(folder);
    return failed;
}
