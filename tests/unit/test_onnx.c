/* test_onnx.c: graphs written as ONNX and read back give the same numbers, names and ops; errors in
 * a file are reported. The files and numbers stay in SCRATCH/onnx for tests/onnx/check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/rng.h"
#include "net/onnx/onnx.h"
#include "net/onnx/model.h"
#include "net/plan/plan.h"
#include "net/graph/transform.h"
#include "support/golden.h"
#include "support/paths.h"
#include "base/text.h"

static char *scratch(const char *name, const char *extension)
{
    char *file = text_format("onnx/%s%s", name, extension), *path = scratch_path(file);
    free(file);
    return path;
}

/* Every windowed, resampling and elementwise op of images. */
static struct graph *images(void)
{
    struct graph *g = graph_new("images");
    struct conv_attr odd = { .kernel = { 3, 2 },
                             .stride = { 2, 1 },
                             .pad = { 1, 0, 2, 1 },
                             .dilation = { 1, 2 },
                             .groups = 2 };
    struct conv_attr up = { .kernel = { 3, 3 },
                            .stride = { 2, 2 },
                            .pad = { 1, 1, 0, 1 },
                            .output_pad = { 1, 0 },
                            .groups = 2 };
    struct pool_attr ceil_pool = { .kernel = { 3, 3 }, .stride = { 2, 2 }, .ceil_mode = true };
    struct pool_attr mean_pool = { .kernel = { 3, 3 }, .stride = { 1, 1 }, .pad = { 1, 1, 1, 1 } };
    value_id x = graph_input(g, "image", SHAPE(2, 3, 19, 16));
    x = graph_conv(g, x, "conv1", 8, true, conv_square(3, 1, 1));
    x = graph_leaky_relu(g, graph_batch_norm(g, x, "bn1"), 0.2f);
    graph_alias(g, "stem.act", graph_alias(g, "stem", x));
    value_id a = graph_relu(g, graph_conv(g, x, "conv2", 6, false, odd));
    a = graph_conv_transpose(g, a, "up", 8, true, up);
    a = graph_lrn(g, a, (struct lrn_attr){ 5, 1e-2f, 0.75f, 2 });
    a = graph_max_pool(g, graph_tanh(g, a), ceil_pool);
    value_id b = graph_average_pool(g, graph_silu(g, x), mean_pool);
    b = graph_pad(g, b, (struct pad_attr){ { 1, 2, 0, -1 }, PAD_REFLECT, 0 });
    b = graph_pad(g, b, (struct pad_attr){ { 0, 1, 1, 0 }, PAD_REPLICATE, 0 });
    b = graph_pad(g, b, (struct pad_attr){ { 1, 0, 0, 1 }, PAD_ZERO, 0.5f });
    b = graph_adaptive_average_pool(g, b, 5, 7);
    b = graph_upsample(g, b, (struct upsample_attr){ .scale = { 2, 2 } });
    b = graph_upsample(g, b,
                       (struct upsample_attr){ .mode = UPSAMPLE_BILINEAR, .size = { 13, 9 } });
    b = graph_upsample(g, b,
                       (struct upsample_attr){
                           .mode = UPSAMPLE_BILINEAR, .scale = { 2, 3 }, .align_corners = true });
    const struct shape *fit = graph_shape(g, a);
    b = graph_upsample(
        g, b,
        (struct upsample_attr){ .mode = UPSAMPLE_BILINEAR, .size = { fit->dim[2], fit->dim[3] } });
    value_id c = graph_sub(g, graph_mul(g, a, graph_sigmoid(g, b)), graph_scale(g, b, 0.5f, 0));
    c = graph_div(g, c, graph_scale(g, graph_sigmoid(g, a), 1, 1));
    value_id p = graph_flatten(g, graph_global_average_pool(g, c));
    value_id q = graph_flatten(g, graph_global_max_pool(g, c));
    p = graph_dropout(
        g, graph_concat(g, (value_id[]){ p, graph_slice(g, q, -1, 1, INT64_MAX) }, 2, -1), 0.3f);
    graph_output(g, "logits", graph_linear(g, p, "fc", 5, true));
    graph_output(g, "probability", graph_softmax(g, graph_linear(g, p, "fc2", 4, false), 1));
    return g;
}

/* A small ViT: class token, attention, layer norm, GELU. */
static struct graph *tokens(void)
{
    struct graph *g = graph_new("tokens");
    value_id x = graph_input(g, "image", SHAPE(2, 3, 12, 16));
    x = graph_conv(g, x, "patch_embed.proj", 24, true, conv_square(4, 4, 0));
    x = graph_transpose(g, graph_reshape(g, x, SHAPE(0, 24, -1)), (int64_t[]){ 0, 2, 1 });
    value_id token = graph_expand_batch(g, graph_parameter(g, "cls_token", SHAPE(1, 1, 24)), x);
    x = graph_concat(g, (value_id[]){ token, x }, 2, 1);
    x = graph_add(g, x, graph_parameter(g, "pos_embed", SHAPE(1, 13, 24)));
    value_id y = graph_linear(g, graph_layer_norm(g, x, "norm1", 1e-6f), "attn.qkv", 72, true);
    y = graph_attention_packed(g, y, NO_VALUE, NO_VALUE, (struct attention_attr){ .heads = 2 });
    x = graph_add(g, x, graph_linear(g, y, "attn.proj", 24, true));
    y = graph_gelu(g, graph_linear(g, graph_layer_norm(g, x, "norm2", 1e-6f), "fc1", 48, true));
    x = graph_add(g, x, graph_linear(g, y, "fc2", 24, false));
    graph_alias(g, "blocks", graph_alias(g, "blocks.0", x));
    x = graph_reduce_mean(g, graph_layer_norm(g, x, "norm", 1e-6f), 1u << 1, false);
    graph_output(g, "logits", graph_linear(g, x, "head", 3, true));
    return g;
}

static struct graph *groups(void)
{
    struct graph *g = graph_new("groups");
    union attr tanh_form = { .gelu = { true } };
    value_id x = graph_input(g, "image", SHAPE(2, 3, 9, 7));
    x = graph_conv(g, x, "conv", 8, false, conv_square(3, 1, 1));
    x = graph_silu(g, graph_group_norm(g, x, "norm", 4, 1e-5f));
    x = graph_node(g, OP_GELU, NULL, &x, 1, &tanh_form);
    x = graph_adaptive_average_pool(g, x, 3, 7);
    graph_output(g, "features", graph_reduce_mean(g, x, 1u << 3, true));
    return g;
}

/* Functions by name, maxima over axes, places. */
static struct graph *functions(void)
{
    struct graph *g = graph_new("functions");
    static const float places[] = { 5, 0, 0, 7 };
    value_id x = graph_input(g, "image", SHAPE(2, 3, 9, 7));
    x = graph_sigmoid(g, graph_conv(g, x, "conv", 8, true, conv_square(3, 1, 1)));
    for (int kind = FUNCTION_EXP; kind <= FUNCTION_FROM_NAN; kind++) {
        union attr attr = { .function = { (enum function_kind)kind, 1.5f } };
        x = graph_sigmoid(g, graph_node(g, OP_FUNCTION, NULL, &x, 1, &attr));
    }
    value_id at = graph_constant(g, "places", SHAPE(4), places);
    x = graph_node(g, OP_TAKE, NULL, (value_id[]){ x, at }, 2, &(union attr){ .axis = { 1 } });
    union attr rows = { .reduce = { 1u << 2, false } };
    graph_output(g, "features", graph_node(g, OP_REDUCE_MAX, NULL, &x, 1, &rows));
    return g;
}

/* Heads of whole images. */
static struct graph *heads(void)
{
    struct graph *g = graph_new("heads");
    value_id x = graph_input(g, "image", SHAPE(2, 3, 9, 7));
    x = graph_conv(g, x, "conv", 8, true, conv_square(3, 1, 1));
    value_id scores = graph_conv(g, graph_tanh(g, x), "head.w", 1, true, conv_square(1, 1, 0));
    graph_output(g, "attention", graph_flatten(g, graph_attention_pool(g, x, scores)));
    graph_output(g, "lse", graph_flatten(g, graph_global_lse_pool(g, x, 3)));
    return g;
}

/* Residual blocks as they run: batch norm folded, activation and sum fused into the convolutions.
 */
static struct graph *fused(void)
{
    struct graph *g = graph_new("fused"), *out = NULL;
    struct err err = { 0 };
    value_id x = graph_input(g, "image", SHAPE(2, 3, 11, 13));
    x = graph_relu(
        g, graph_batch_norm(g, graph_conv(g, x, "a", 8, false, conv_square(3, 1, 1)), "bna"));
    value_id y = graph_batch_norm(g, graph_conv(g, x, "b", 8, true, conv_square(3, 1, 1)), "bnb");
    y = graph_relu(g, graph_add(g, y, x));
    y = graph_silu(g, graph_conv(g, y, "c", 6, true, conv_square(1, 1, 0)));
    y = graph_flatten(g, graph_global_average_pool(g, y));
    y = graph_gelu(g, graph_linear(g, y, "d", 7, true));
    graph_output(g, "logits", y);
    if (!graph_ok(g, &err) || !graph_initialize(g, 3, &err) ||
        !transform_for_inference(g, NULL, 0, &out, &err))
        fail_msg("%s", err.text);
    graph_free(g);
    return out;
}

/* Values that are stored as bfloat16 and int8. */
static struct graph *stored(void)
{
    struct graph *g = graph_new("stored");
    value_id x = graph_input(g, "image", SHAPE(2, 3, 9, 7));
    x = graph_convert(g, x, (struct storage){ DTYPE_INT8, 0.03f, -7 });
    x = graph_relu(g, graph_conv(g, x, "conv", 8, true, conv_square(3, 1, 1)));
    x = graph_max_pool(g, graph_convert(g, x, (struct storage){ .dtype = DTYPE_BFLOAT16 }),
                       pool_square(2, 2, 0));
    graph_output(g, "features", graph_flatten(g, x));
    return g;
}

/* Random weights, positive variances. */
static void fill(struct graph *g)
{
    for (int32_t i = 0; i < g->n_values; i++) {
        const struct value *value = &g->values[i];
        if (!graph_is_parameter(g, i))
            continue;
        struct rng rng = rng_new(5, rng_hash(value->name), 0);
        bool variance = strstr(value->name, "running_var") != NULL;
        for (int64_t k = 0; k < shape_count(&value->shape); k++)
            graph_data(g, i)[k] =
                variance ? (float)rng_between(&rng, 0.5, 2) : (float)(rng_normal(&rng) * 0.3);
    }
}

static void save(const char *name, const char *extension, const float *floats, int64_t n)
{
    char *path = scratch(name, extension);
    struct file_out out;
    assert_true(file_out_open(&out, path, NULL));
    fwrite(floats, sizeof *floats, (size_t)n, out.stream);
    assert_true(file_out_commit(&out, NULL));
    free(path);
}

/* All outputs one after another, the caller's. */
static float *run(const struct graph *g, int64_t *count)
{
    struct err err = { 0 };
    struct plan *plan;
    struct plan_options options = { .mode = PLAN_INFER, .threads = 1 };
    struct rng rng = rng_new(9, 0, 0);
    if (!plan_new(g, &options, &plan, &err))
        fail_msg("%s: %s", g->name, err.text);
    const struct shape *in = graph_shape(g, g->inputs[0].value);
    for (int64_t i = 0; i < shape_count(in); i++)
        plan_input(plan, 0)[i] = (float)rng_normal(&rng);
    save(g->name, ".input", plan_input(plan, 0), shape_count(in));
    if (!plan_forward(plan, &err))
        fail_msg("%s: %s", g->name, err.text);
    *count = 0;
    for (int i = 0; i < g->n_outputs; i++)
        *count += shape_count(graph_shape(g, g->outputs[i].value));
    float *all = malloc((size_t)*count * sizeof *all);
    assert_non_null(all);
    int64_t at = 0;
    for (int i = 0; i < g->n_outputs; i++) {
        int64_t n = shape_count(graph_shape(g, g->outputs[i].value));
        memcpy(all + at, plan_output(plan, i), (size_t)n * sizeof *all);
        at += n;
    }
    plan_free(plan);
    return all;
}

/* Learnt parameters have the same names, shapes and floats. */
static void same_parameters(const struct graph *a, const struct graph *b)
{
    for (int32_t i = 0; i < a->n_values; i++) {
        if (a->values[i].kind != VALUE_PARAMETER || graph_users(a, i) == 0)
            continue;
        value_id k = graph_find(b, a->values[i].name);
        if (k == NO_VALUE || !graph_is_parameter(b, k))
            fail_msg("%s: %s is gone", a->name, a->values[i].name);
        assert_true(shape_equal(graph_shape(a, i), graph_shape(b, k)));
        assert_memory_equal(graph_data(a, i), graph_data(b, k),
                            (size_t)shape_count(graph_shape(a, i)) * sizeof(float));
    }
}

static int count_ops(const struct graph *g, enum op_kind kind)
{
    int n = 0;
    for (int32_t i = 0; i < g->n_nodes; i++)
        n += g->nodes[i].op->kind == kind;
    return n;
}

/* Aliases are back on the same values, which the tests of names compare by their numbers. */
static void same_layers(const struct graph *a, const struct graph *b)
{
    assert_true(!a->n_aliases || a->n_aliases == b->n_aliases);
    for (int i = 0; i < a->n_aliases; i++) {
        value_id value = a->aliases[i].value, back = graph_find(b, a->aliases[i].name);
        assert_true(back != NO_VALUE);
        assert_true(shape_equal(graph_shape(a, value), graph_shape(b, back)));
    }
}

/* There and back; same_ops: the layers are recognised as what they were. */
static void round_trip(struct graph *g, bool same_ops)
{
    struct graph *back = NULL;
    struct err err = { 0 };
    char *path = scratch(g->name, ".onnx");
    int64_t n, n_back;
    if (!graph_ok(g, &err) || !graph_initialize(g, 1, &err))
        fail_msg("%s", err.text);
    if (same_ops)
        fill(g);
    float *want = run(g, &n);
    save(g->name, ".output", want, n);
    struct onnx_options options = { .batch = 2 };
    if (!onnx_write(g, path, NULL, &err) || !onnx_read(path, &options, &back, &err))
        fail_msg("%s", err.text);
    float *got = run(back, &n_back);
    assert_int_equal(n, n_back);
    double error = relative_error(got, want, n);
    printf("%s: %d nodes, %d read back, relative error %.1e\n", g->name, (int)g->n_nodes,
           (int)back->n_nodes, error);
    assert_true(error < 2e-6);
    same_parameters(g, back);
    same_layers(g, back);
    for (int kind = 0; kind < OP_KINDS && same_ops; kind++)
        if ((kind == OP_LAYER_NORM || kind == OP_GROUP_NORM ||
             (kind == OP_LINEAR && !count_ops(g, OP_ADAPTIVE_AVERAGE_POOL)) || kind == OP_SILU ||
             kind == OP_EXPAND_BATCH || kind == OP_CONV || kind == OP_CONVERT) &&
            count_ops(g, (enum op_kind)kind) != count_ops(back, (enum op_kind)kind))
            fail_msg("%s: %s: %d, then %d", g->name, op_get((enum op_kind)kind)->name,
                     count_ops(g, (enum op_kind)kind), count_ops(back, (enum op_kind)kind));
    /* another batch than it was read for */
    struct shape three = *graph_shape(back, back->inputs[0].value);
    three.dim[0] = 3;
    if (!graph_resize(back, back->inputs[0].value, three, &err))
        fail_msg("%s", err.text);
    free(want), free(got), free(path);
    graph_free(back);
    graph_free(g);
}

static void images_there_and_back(void **state)
{
    (void)state;
    round_trip(images(), true);
}

static void tokens_there_and_back(void **state)
{
    (void)state;
    round_trip(tokens(), true);
}

static void groups_there_and_back(void **state)
{
    (void)state;
    round_trip(groups(), true);
}

static void functions_there_and_back(void **state)
{
    (void)state;
    round_trip(functions(), true);
}

static void heads_there_and_back(void **state)
{
    (void)state;
    round_trip(heads(), true);
}

static void fused_there_and_back(void **state)
{
    (void)state;
    round_trip(fused(), false);
}

static void stored_there_and_back(void **state)
{
    (void)state;
    round_trip(stored(), true);
}

/* --- files that are wrong --- */

/* A model with one input x [1, 3, 4, 4], one initializer w and the given node types in a row. */
struct fake {
    const char *types[3]; /* NULL ends them */
    const char *domain;
    int64_t opset;
    int64_t w_dims[4];
    size_t n_w_dims, w_bytes;
    bool external, open_height;
    const char *layers;   /* what the metadata says about names; NULL: nothing */
    const char *names[3]; /* of the nodes; NULL: first, second, third */
};

/* out NULL: only whether it is read. */
static void put(struct onnx_options *options, const struct fake *fake, struct graph **out,
                struct err *err)
{
    char *names[] = { "x", "a", "b", "c" }, *node_names[] = { "first", "second", "third" };
    uint8_t zeros[64] = { 0 };
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto proto = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto set = ONNX__OPERATOR_SET_ID_PROTO__INIT, *sets = &set;
    Onnx__NodeProto nodes[3], *node_list[3];
    Onnx__ValueInfoProto x = ONNX__VALUE_INFO_PROTO__INIT, y = x, *xs = &x, *ys = &y;
    Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
    Onnx__TypeProto__Tensor tensor_type = ONNX__TYPE_PROTO__TENSOR__INIT;
    Onnx__TensorShapeProto shape = ONNX__TENSOR_SHAPE_PROTO__INIT;
    Onnx__TensorShapeProto__Dimension dims[4], *dim_list[4];
    Onnx__TensorProto w = ONNX__TENSOR_PROTO__INIT, *ws = &w;
    const int64_t extents[4] = { 1, 3, 4, 4 };
    int n = 0;
    for (; n < 3 && fake->types[n]; n++) {
        nodes[n] = (Onnx__NodeProto)ONNX__NODE_PROTO__INIT;
        nodes[n].input = &names[n], nodes[n].output = &names[n + 1];
        nodes[n].n_input = nodes[n].n_output = 1;
        nodes[n].op_type = (char *)(uintptr_t)fake->types[n];
        nodes[n].name = fake->names[n] ? (char *)(uintptr_t)fake->names[n] : node_names[n];
        nodes[n].domain = (char *)(uintptr_t)fake->domain;
        node_list[n] = &nodes[n];
    }
    for (int i = 0; i < 4; i++) {
        dims[i] = (Onnx__TensorShapeProto__Dimension)ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT;
        dims[i].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dims[i].dim_value = fake->open_height && i == 2 ? 0 : extents[i];
        dim_list[i] = &dims[i];
    }
    shape.dim = dim_list, shape.n_dim = 4;
    tensor_type.has_elem_type = 1, tensor_type.elem_type = 1, tensor_type.shape = &shape;
    type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE, type.tensor_type = &tensor_type;
    x.name = names[0], x.type = &type, y.name = names[n];
    w.name = fake->n_w_dims ? "x" : "w";
    w.dims = (int64_t *)(uintptr_t)fake->w_dims, w.n_dims = fake->n_w_dims;
    w.has_data_type = 1, w.data_type = 1;
    w.has_raw_data = 1, w.raw_data.data = zeros, w.raw_data.len = fake->w_bytes;
    w.has_data_location = fake->external;
    w.data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    proto.node = node_list, proto.n_node = (size_t)n;
    proto.input = &xs, proto.output = &ys, proto.n_input = proto.n_output = 1;
    proto.initializer = &ws, proto.n_initializer = fake->w_bytes || fake->external ? 1 : 0;
    set.has_version = 1, set.version = fake->opset;
    model.graph = &proto, model.opset_import = &sets, model.n_opset_import = 1;
    Onnx__StringStringEntryProto note = ONNX__STRING_STRING_ENTRY_PROTO__INIT, *notes = &note;
    note.key = "microtome.layers", note.value = (char *)(uintptr_t)fake->layers;
    model.metadata_props = &notes, model.n_metadata_props = fake->layers ? 1 : 0;
    size_t size = onnx__model_proto__get_packed_size(&model);
    uint8_t *bytes = malloc(size);
    struct graph *graph = NULL;
    assert_non_null(bytes);
    onnx__model_proto__pack(&model, bytes);
    if (onnx_parse(bytes, size, "model.onnx", options, &graph, err))
        err->kind = ERR_NONE;
    if (out)
        *out = graph;
    else
        graph_free(graph);
    free(bytes);
}

static void names_of_a_file_are_those_of_layers(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = NULL;
    struct fake fake = { { "Relu", "Identity", "Tanh" }, .opset = 13 };
    put(NULL, &fake, &g, &err);
    assert_int_equal(err.kind, ERR_NONE);
    assert_int_equal(g->n_nodes, 2);
    value_id relu = graph_find(g, "first"), tanh = graph_find(g, "third");
    assert_true(relu != NO_VALUE && tanh != NO_VALUE && relu != tanh);
    assert_int_equal(graph_find(g, "a"), relu);
    assert_int_equal(graph_find(g, "second"), relu); /* Identity */
    assert_int_equal(graph_find(g, "b"), relu);
    assert_int_equal(graph_find(g, "c"), tanh);
    graph_free(g);
    /* recorded ones instead; what cannot be is left out */
    fake.layers = "{\"block\": \"b\", \"x\": \"a\", \"other\": \"nowhere\", \"odd\": 3}";
    put(NULL, &fake, &g, &err);
    assert_int_equal(err.kind, ERR_NONE);
    assert_int_equal(g->n_aliases, 1);
    assert_int_equal(graph_find(g, "block"), graph_find(g, "first"));
    assert_int_equal(graph_find(g, "x"), g->inputs[0].value);
    graph_free(g);
}

/* As PyTorch's exporter writes them. */
static void modules_are_layers(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = NULL;
    struct fake fake = { { "Relu", "Tanh", "Sigmoid" },
                         .opset = 13,
                         .names = { "/m/layer1/layer1.0/act/Relu", "/m/layer1/layer1.0/Tanh",
                                    "/head/head.0/head.0.1/Sigmoid" } };
    static const struct {
        const char *module, *tensor;
    } modules[] = {
        { "m.layer1.0.act", "a" }, { "m.layer1.0", "b" }, { "m.layer1", "b" }, { "m", "b" },
        { "head.0.1", "c" },       { "head.0", "c" },     { "head", "c" }
    };
    enum { MODULES = sizeof modules / sizeof *modules };
    put(NULL, &fake, &g, &err);
    assert_int_equal(err.kind, ERR_NONE);
    for (int i = 0; i < MODULES; i++) {
        assert_string_equal(g->aliases[i].name, modules[i].module);
        assert_int_equal(g->aliases[i].value, graph_find(g, modules[i].tensor));
    }
    assert_int_equal(g->n_aliases, MODULES + 3); /* and the tensors */
    graph_free(g);
    /* a module that two values leave has no output; one that is called like a tensor gives way */
    fake = (struct fake){ { "Relu", "Tanh", "Sigmoid" },
                          .opset = 13,
                          .names = { "/m/Relu", "/c/Tanh", "/m/Sigmoid" } };
    put(NULL, &fake, &g, &err);
    assert_int_equal(err.kind, ERR_NONE);
    assert_int_equal(graph_find(g, "m"), NO_VALUE);
    assert_int_equal(graph_find(g, "c"), g->outputs[0].value);
    graph_free(g);
    fake.names[0] = "/b/Relu";
    put(NULL, &fake, &g, &err);
    assert_int_equal(err.kind, ERR_NONE);
    assert_int_equal(graph_find(g, "b"), graph_find(g, "/c/Tanh"));
    assert_int_equal(graph_find(g, "m"), graph_find(g, "c"));
    graph_free(g);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    static const struct {
        struct fake fake;
        const char *text;
    } cases[] = {
        { { { "Relu", "Bar" }, .opset = 13 },
          "model.onnx: node 'second': operator 'Bar' (opset 13) is not supported" },
        { { { "Relu" }, .domain = "com.microsoft", .opset = 13 },
          "model.onnx: node 'first': operator 'com.microsoft.Relu' (opset 13) is not supported" },
        { { { "LayerNormalization" }, .opset = 16 },
          "operator 'LayerNormalization' (opset 16) is not supported" },
        { { { "Relu" }, .opset = 0 }, "operator 'Relu' (opset 0) is not supported" },
        { { { "Conv" }, .opset = 13 }, "model.onnx: node 'first': Conv: the weight is missing" },
        { { { "Reshape" }, .opset = 13 }, "Reshape: the shape is missing" },
        { { { "MaxPool" }, .opset = 13 }, "MaxPool: kernel_shape is missing" },
        { { { "Relu" }, .opset = 13, .external = true }, "the weights are in another file" },
        { { { "Relu" }, .opset = 13, .w_dims = { 1000 }, .n_w_dims = 1, .w_bytes = 4 },
          "length of a constant's data does not match its shape" },
        { { { "Relu" },
            .opset = 13,
            .w_dims = { 1LL << 40, 1LL << 40 },
            .n_w_dims = 2,
            .w_bytes = 4 },
          "length of a constant's data does not match its shape" },
        { { { "Relu" }, .opset = 13, .open_height = true },
          "the input 'x' leaves the size of axis 2 open; specify it" },
        { { { "Relu" }, .opset = 13, .layers = "[1]" },
          "model.onnx: microtome.layers in the metadata: not a JSON object of names" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = { 0 };
        put(NULL, &cases[i].fake, NULL, &err);
        if (err.kind == ERR_NONE || !strstr(err.text, cases[i].text))
            fail_msg("'%s' instead of '%s'", err.text, cases[i].text);
    }
    struct err err = { 0 };
    struct onnx_options options = { .height = 6 };
    put(&options, &(struct fake){ { "Relu", "Sigmoid", "Tanh" }, .opset = 7, .open_height = true },
        NULL, &err);
    assert_int_equal(err.kind, ERR_NONE);
}

/* Cut off anywhere, or with one byte changed, a file is refused or read, never worse. */
static void damaged_files_are_survived(void **state)
{
    (void)state;
    char *path = scratch("tokens", ".onnx"), *bytes;
    size_t size;
    int taken = 0;
    assert_true(file_read(path, (size_t)1 << 24, &bytes, &size, NULL));
    for (size_t i = 0; i < size; i += 1 + size / 997) {
        struct graph *graph = NULL;
        struct err err = { 0 };
        taken += onnx_parse((uint8_t *)bytes, i, "cut.onnx", NULL, &graph, &err);
        graph_free(graph);
        graph = NULL;
        bytes[i] = (char)~bytes[i];
        onnx_parse((uint8_t *)bytes, size, "changed.onnx", NULL, &graph, NULL);
        graph_free(graph);
        bytes[i] = (char)~bytes[i];
    }
    assert_int_equal(taken, 0);
    free(bytes), free(path);
}

/* A graph in an attribute of a node in a graph, and so on. */
static void deep_nesting_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 21000, ROOM = DEPTH * 16 };
    static const uint8_t tags[] = { 0x0a, 0x2a, 0x32 }; /* node, attribute, g */
    uint8_t *bytes = calloc(1, ROOM);
    size_t at = ROOM;
    struct err err = { 0 };
    struct graph *graph = NULL;
    assert_non_null(bytes);
    for (int i = 0; i <= DEPTH; i++) { /* from the inside */
        uint8_t head[12];
        size_t n = 0, length = ROOM - at;
        head[n++] = i == DEPTH ? 0x3a : tags[2 - i % 3];
        for (; length > 127; length >>= 7)
            head[n++] = (uint8_t)(length | 128);
        head[n++] = (uint8_t)length;
        at -= n;
        memcpy(bytes + at, head, n);
    }
    assert_false(onnx_parse(bytes + at, ROOM - at, "deep.onnx", NULL, &graph, &err));
    assert_non_null(strstr(err.text, "nested too deeply"));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_there_and_back),
        cmocka_unit_test(tokens_there_and_back),
        cmocka_unit_test(groups_there_and_back),
        cmocka_unit_test(functions_there_and_back),
        cmocka_unit_test(heads_there_and_back),
        cmocka_unit_test(fused_there_and_back),
        cmocka_unit_test(stored_there_and_back),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(damaged_files_are_survived),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(names_of_a_file_are_those_of_layers),
        cmocka_unit_test(modules_are_layers),
    };
    char *folder = scratch("", "");
    if (!file_make_folder(folder, NULL))
        return 1;
    free(folder);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
