/* test_net_names.c: names of layers. What may be called how; which names the networks of the zoo
 * have; and that a name finds the same numbers in every graph made from a graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/graph/transform.h"
#include "net/onnx/onnx.h"
#include "net/plan/plan.h"
#include "net/zoo/zoo.h"
#include "support/golden.h"
#include "support/paths.h"

/* --- rules --- */

/* input -> conv "a" -> batch norm "b" -> relu "block" -> mean "features" -> linear "c" */
static struct graph *chain(void)
{
    struct graph *g = graph_new("chain");
    value_id x = graph_input(g, "x", SHAPE(1, 3, 8, 8));
    x = graph_conv(g, x, "a", 4, true, conv_square(3, 1, 1));
    x = graph_batch_norm(g, x, "b");
    x = graph_alias(g, "block", graph_relu(g, x));
    x = graph_flatten(g, graph_global_average_pool(g, x));
    graph_output(g, "y", graph_linear(g, graph_alias(g, "features", x), "c", 2, true));
    return g;
}

static void an_alias_is_found_last(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = chain(), *copy = NULL;
    value_id relu = graph_find(g, "relu_2"), found = NO_VALUE;
    assert_true(relu != NO_VALUE);
    assert_int_equal(graph_find(g, "block"), relu);
    assert_int_equal(graph_find(g, "y"), graph_find(g, "c"));
    assert_int_equal(graph_alias(g, "block.out", relu), relu); /* a second name */
    assert_int_equal(graph_alias(g, "block", relu), relu);     /* the same again */
    assert_int_equal(graph_alias(g, "a", graph_find(g, "a")), graph_find(g, "a"));
    assert_int_equal(g->n_aliases, 4);
    assert_true(graph_ok(g, &err));
    assert_true(graph_copy(g, &copy, &err));
    assert_int_equal(copy->n_aliases, 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(copy->aliases[i].name, g->aliases[i].name);
        assert_int_equal(graph_find(copy, copy->aliases[i].name), g->aliases[i].value);
    }
    assert_true(graph_layer(g, "block", &found, &err) && found == relu);
    assert_false(graph_layer(g, "blok", &found, &err));
    assert_string_equal(err.text, "no layer 'blok'; did you mean block?");
    assert_false(graph_layer(g, "nothing like it", &found, &err));
    assert_string_equal(err.text,
                        "no layer 'nothing like it'; 'microtome model show --layers' lists them");
    assert_false(graph_layer(g, "a.weight", &found, &err));
    assert_string_equal(err.text, "'a.weight' is a weight, not a layer");
    graph_free(g), graph_free(copy);
}

static void a_name_means_one_value(void **state)
{
    (void)state;
    struct err err = { 0 };
    static const char *const taken[] = { "x", "a", "a.weight", "b", "y", "features", "" };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        struct graph *g = chain();
        assert_int_equal(graph_alias(g, taken[i], graph_find(g, "block")), NO_VALUE);
        assert_false(graph_ok(g, &err));
        assert_non_null(strstr(err.text, *taken[i] ? "is the name of another value" : "no name"));
        graph_free(g);
    }
    for (int i = 0; i < 4; i++) { /* values that come later, under the name of an alias */
        struct graph *g = chain();
        value_id x = graph_find(g, "x");
        if (i == 0)
            graph_input(g, "block", SHAPE(1, 3, 8, 8));
        else if (i == 1)
            graph_parameter(g, "block", SHAPE(3));
        else if (i == 2)
            graph_node(g, OP_RELU, "block", &x, 1, NULL);
        else
            graph_output(g, "block", graph_find(g, "a"));
        assert_false(graph_ok(g, &err));
        assert_string_equal(err.text, "chain: block: the name is an alias of another value");
        graph_free(g);
    }
    struct graph *g = chain();
    assert_int_equal(graph_alias(g, "w", graph_find(g, "a.weight")), NO_VALUE);
    assert_false(graph_ok(g, &err));
    assert_non_null(strstr(err.text, "not of an activation"));
    graph_free(g);
    g = chain(); /* generated names give way */
    value_id x = graph_find(g, "x");
    graph_alias(g, "relu_6", x);
    assert_true(graph_relu(g, x) != NO_VALUE);
    assert_int_equal(graph_find(g, "relu_6"), x);
    assert_true(graph_find(g, "relu_6_") != NO_VALUE && graph_ok(g, &err));
    graph_free(g);
}

static void an_alias_without_its_numbers_ends(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = chain(), *out = NULL, *kept = NULL;
    graph_alias(g, "before", graph_find(g, "b"));
    assert_true(graph_initialize(g, 1, &err));
    assert_true(transform_for_inference(g, NULL, 0, &out, &err));
    assert_int_equal(graph_find(out, "before"), NO_VALUE); /* in front of the fused ReLU */
    assert_int_equal(graph_find(out, "block"), graph_find(out, "a"));
    graph_free(out);
    assert_true(transform_for_inference(g, (const char *[]){ "before" }, 1, &kept, &err));
    assert_int_equal(graph_find(kept, "before"), graph_find(kept, "b"));
    assert_true(graph_find(kept, "block") != graph_find(kept, "b"));
    graph_free(kept);
    graph_free(g);
    g = graph_new("linear"); /* a linear layer, its ReLU and a dropout become one */
    value_id x = graph_input(g, "x", SHAPE(1, 3));
    x = graph_alias(g, "hidden", graph_relu(g, graph_linear(g, x, "d", 4, true)));
    x = graph_alias(g, "dropped", graph_dropout(g, x, 0.5f));
    graph_output(g, "y", graph_linear(g, x, "e", 2, true));
    assert_true(graph_initialize(g, 1, &err));
    assert_true(transform_for_inference(g, NULL, 0, &out, &err));
    assert_int_equal(graph_find(out, "hidden"), graph_find(out, "d"));
    assert_int_equal(graph_find(out, "dropped"), graph_find(out, "d"));
    graph_free(out), graph_free(g);
}

static void what_is_taken_out_has_no_alias(void **state)
{
    (void)state;
    struct err err = { 0 };
    struct graph *g = chain(), *out = NULL;
    value_id block = graph_find(g, "block");
    graph_alias(g, "before", graph_find(g, "b"));
    assert_true(transform_bypass(g, block, &out, &err));
    assert_int_equal(graph_find(out, "block"), NO_VALUE);
    assert_int_equal(graph_find(out, "before"), graph_find(out, "b"));
    graph_free(out), graph_free(g);
}

/* --- the zoo --- */

struct example {
    const char *network;
    int64_t side, dense_stride; /* 0: not run densely */
    int dense_lost;             /* names that do not outlive it: pooling behind the classifier */
    int rows_lost;              /* the same of inference: layers of which some tokens are left */
    const char *names[8];       /* some of those that users know */
};

static const struct example examples[] = {
    { "scan_tiny", 224, 16, 1, 0, { "stem", "layer2", "layer2.0", "layer3.1", "avgpool", "fc" } },
    { "scan_small", 224, 16, 1, 0, { "stem", "layer1", "layer3" } },
    { "scan_base", 224, 16, 1, 0, { "stem", "layer1.1", "layer3.0" } },
    { "scan_wide", 628, 64, 1, 0, { "stem", "layer2.0", "layer3.1" } },
    { "resnet18",
      64,
      32,
      1,
      0,
      { "relu", "maxpool", "layer1", "layer3.1", "layer4", "avgpool", "fc" } },
    { "resnet34", 64, 32, 1, 0, { "layer3.5", "layer4.2" } },
    { "resnet50", 64, 32, 1, 0, { "layer1.2", "layer2", "layer4" } },
    { "resnet101", 64, 32, 1, 0, { "layer3.22", "layer4" } },
    { "resnet152", 64, 32, 1, 0, { "layer3.35", "layer4" } },
    { "resnet110_v2", 32, 4, 1, 0, { "relu1", "layer1.11", "layer3", "relu", "fc" } },
    { "googlenet", 64, 32, 0, 0, { "conv1", "maxpool2", "inception3a", "inception5b", "avgpool" } },
    { "inception_v3",
      128,
      32,
      0,
      0,
      { "Conv2d_1a_3x3", "maxpool1", "Mixed_5b", "Mixed_7c", "avgpool" } },
    { "inception_v4", 128, 32, 1, 0, { "features.2", "features.9", "features", "global_pool" } },
    { "inception_resnet_v2",
      128,
      32,
      1,
      0,
      { "conv2d_1a", "maxpool_3a", "mixed_5b", "repeat_1.19", "repeat_2", "block8", "conv2d_7b" } },
    { "densenet121",
      64,
      32,
      0,
      0,
      { "features.pool0", "features.denseblock4", "features.transition3" } },
    { "densenet161", 64, 32, 0, 0, { "features.relu0", "features.denseblock1", "features" } },
    { "vgg16",
      64,
      0,
      0,
      0,
      { "features.1", "features.30", "features", "avgpool", "classifier.4" } },
    { "vgg16_bn",
      64,
      0,
      0,
      0,
      { "features.2", "features.43", "features", "avgpool", "classifier.4" } },
    { "vit_small_patch16_224", 32, 0, 0, 2, { "patch_embed", "pos_drop", "blocks.11", "blocks" } },
    { "convnext_tiny", 128, 0, 0, 0, { "stem", "stages.0", "stages.3.blocks.2", "head" } },
    { "swin_tiny_patch4_window7_224",
      56,
      0,
      0,
      0,
      { "patch_embed", "layers.1.downsample", "layers.2.blocks.5", "norm", "head" } },
    { "ctranspath", 56, 0, 0, 0, { "patch_embed", "layers.3" } },
    { "efficientnet_b0", 96, 0, 0, 0, { "bn1.act", "blocks.0.0", "blocks.6", "global_pool" } },
    { "preactresnet34", 64, 0, 0, 0, { "maxpool", "layer1.2", "layer4", "linear" } },
    { "inception_v4nobn", 128, 0, 0, 0, { "features.2", "features", "global_pool" } },
    { "vgg16mod", 64, 0, 0, 0, { "features.30", "classifier.1", "classifier" } },
    { "transformer_encoder", 16, 0, 0, 0, { "layers.0", "layers.5", "norm", "head" } },
    { "unet_tiny", 16, 0, 0, 0, { "down.0.0", "down.2.0", "middle.1", "up.2.1" } },
    { "unet_small", 16, 0, 0, 0, { "down.0.0", "down.2.0", "middle.1", "up.2.1" } },
    { "unet", 16, 0, 0, 0, { "stem", "down.3.1", "middle.0", "up.0.2" } },
    { "unet_large", 32, 0, 0, 0, { "down.0.0", "down.1.1", "down.5.1", "middle.1" } },
    { "segment_unet", 16, 0, 0, 0, { "down.0", "down.2", "up.1", "up.0" } },
    { "autoencoder_4", 16, 0, 0, 0, { "encoder.0", "encoder.2", "decoder.2", "decoder.0" } },
    { "autoencoder_8", 16, 0, 0, 0, { "encoder.3", "decoder.3" } },
    { "bert_tiny",
      16,
      0,
      0,
      2,
      { "bert.embeddings", "bert.encoder.layer.1", "bert.encoder", "bert.pooler" } },
    { "prenorm_tiny",
      16,
      0,
      0,
      2,
      { "roberta_prelayernorm.embeddings", "roberta_prelayernorm.encoder.layer.0" } },
    { "audio_encoder_tiny",
      16,
      0,
      0,
      0,
      { "stem", "roberta_prelayernorm.encoder.layer.1", "roberta_prelayernorm.encoder" } },
    { "t5_mini", 16, 0, 0, 0, { "encoder.block.0", "encoder.block.3", "encoder" } },
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

/* Cheap weights that keep numbers near 1. */
static void fill_weights(struct graph *g)
{
    struct err err = { 0 };
    uint32_t random = 12345;
    assert_true(graph_allocate(g, &err));
    for (int32_t i = 0; i < g->n_values; i++) {
        if (!graph_is_parameter(g, i))
            continue;
        const struct shape *shape = graph_shape(g, i);
        int64_t n = shape_count(shape);
        float *data = graph_data(g, i), middle = 0, width = 0.2f;
        const char *leaf = strrchr(g->values[i].name, '.');
        if (shape->rank > 1)
            width = sqrtf(6 / (float)shape_span(shape, 1, shape->rank));
        else if (leaf && (strcmp(leaf, ".weight") == 0 || strcmp(leaf, ".running_var") == 0))
            middle = 1;
        for (int64_t k = 0; k < n; k++) {
            random = random * 1664525u + 1013904223u;
            data[k] = middle + width * ((float)(random >> 8) / 8388608.0f - 1);
        }
    }
}

static void known_names_are_there(const struct example *e, const struct graph *g)
{
    for (int i = 0; i < 8 && e->names[i]; i++) {
        value_id value = NO_VALUE;
        struct err err = { 0 };
        if (!graph_layer(g, e->names[i], &value, &err))
            fail_msg("%s: %s", e->network, err.text);
    }
    for (int i = 0; i < g->n_aliases; i++)
        assert_int_equal(graph_find(g, g->aliases[i].name), g->aliases[i].value);
}

static struct graph *build(const struct example *e)
{
    struct err err = { 0 };
    struct graph *g = NULL;
    struct zoo_options options = {
        .height = e->side, .width = e->side, .classes = 2, .channels = e->side == 16 ? 32 : 3
    };
    if (!zoo_build(e->network, &options, &g, &err))
        fail_msg("%s", err.text);
    known_names_are_there(e, g);
    if (graph_parameter_count(g) > 100 << 20) { /* only the front of what takes half a gigabyte */
        struct graph *front = NULL;
        value_id end = graph_find(g, "avgpool"); /* VGG: all but the classifier */
        if (end == NO_VALUE)
            assert_true(graph_layer(g, e->names[1], &end, &err));
        assert_true(transform_prefix(g, end, &front, &err));
        graph_free(g);
        g = front;
    }
    fill_weights(g);
    return g;
}

/* A plan that has run, with every alias as an output behind the graph's own. from NULL: made-up
 * inputs; else the inputs are the outputs of that plan. */
struct looked {
    struct graph *graph;
    struct plan *plan;
};

static bool is_ids(const struct graph *g, int input)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op->kind == OP_EMBEDDING && g->nodes[i].inputs[0] == g->inputs[input].value)
            return true;
    return false;
}

static struct looked look(const struct graph *g, const struct plan *from)
{
    struct err err = { 0 };
    struct looked all = { NULL, NULL };
    assert_true(graph_copy(g, &all.graph, &err));
    for (int i = 0; i < g->n_aliases; i++)
        if (g->values[g->aliases[i].value].kind == VALUE_NODE) {
            struct graph *to = all.graph;
            bool declared = false;
            for (int k = 0; k < g->n_outputs; k++)
                declared = declared || strcmp(g->outputs[k].name, g->aliases[i].name) == 0;
            if (!declared)
                graph_output(to, g->aliases[i].name, g->aliases[i].value);
        }
    if (!plan_new(all.graph, &(struct plan_options){ .mode = PLAN_INFER, .threads = 1 }, &all.plan,
                  &err))
        fail_msg("%s: %s", g->name, err.text);
    for (int i = 0; i < g->n_inputs; i++) {
        const struct shape *shape = graph_shape(g, g->inputs[i].value);
        int64_t n = shape_count(shape), one = n / shape->dim[0];
        float *x = plan_input(all.plan, i);
        for (int64_t k = 0; k < n; k++) /* the same for every image */
            x[k] = from ? plan_output(from, i)[k] : sinf((float)(k % one) * 0.37f + (float)i);
        for (int64_t k = 0; !from && is_ids(g, i) && k < n; k++)
            x[k] = (float)(k % one % 7 + 1);
    }
    if (!plan_forward(all.plan, &err))
        fail_msg("%s: %s", g->name, err.text);
    return all;
}

static void look_no_more(struct looked *all)
{
    plan_free(all->plan);
    graph_free(all->graph);
}

static const float *numbers(const struct looked *all, const char *name, int64_t *n)
{
    for (int i = 0; i < all->graph->n_outputs; i++)
        if (strcmp(all->graph->outputs[i].name, name) == 0) {
            *n = shape_count(graph_shape(all->graph, all->graph->outputs[i].value));
            return plan_output(all->plan, i);
        }
    return NULL;
}

/* Compares what both have under every alias of `made` and returns how many there are. The image of
 * `before` is the first of `after`. */
static int compare(const char *what, const struct looked *before, const struct looked *after,
                   double tolerance)
{
    int count = 0;
    for (int i = 0; i < after->graph->n_aliases; i++) {
        const char *name = after->graph->aliases[i].name;
        int64_t n = 0, m = 0;
        const float *x = numbers(before, name, &n), *y = numbers(after, name, &m);
        if (!y) /* an input of the tail of a cut */
            continue;
        count++;
        if (!x || m % n)
            fail_msg("%s: %s: %s has %lld numbers, not %lld", before->graph->name, what, name,
                     (long long)m, (long long)n);
        double error = relative_error(y, x, n);
        if (!(error <= tolerance))
            fail_msg("%s: %s: %s differs by %g", before->graph->name, what, name, error);
    }
    return count;
}

/* Runs `made`, compares and frees it. `lost`: how many aliases it may have fewer. */
static void same_numbers(const char *what, const struct looked *before, struct graph *made,
                         double tolerance, int lost)
{
    struct looked after = look(made, NULL);
    int n = compare(what, before, &after, tolerance);
    if (n != before->graph->n_aliases - lost)
        fail_msg("%s: %s: %d names of %d", made->name, what, n, before->graph->n_aliases);
    look_no_more(&after);
    graph_free(made);
}

static void compare_cut(const struct graph *g, const struct looked *before)
{
    struct err err = { 0 };
    struct graph *head = NULL, *tail = NULL;
    const struct graph_port *at = &g->aliases[g->n_aliases / 2];
    if (!transform_cut(g, at->value, &head, &tail, &err))
        fail_msg("%s", err.text);
    struct looked first = look(head, NULL);
    assert_true(graph_find(head, at->name) != NO_VALUE && graph_find(tail, at->name) != NO_VALUE);
    int n = compare("head", before, &first, 1e-6);
    if (g->n_inputs == 1) { /* so that the tail reads what crosses and nothing else */
        struct looked second = look(tail, first.plan);
        int crossing = 0;
        for (int i = 0; i < tail->n_aliases; i++)
            crossing += tail->values[tail->aliases[i].value].kind == VALUE_INPUT;
        n += compare("tail", before, &second, 1e-5);
        assert_true(crossing > 0);
        assert_int_equal(n, g->n_aliases);
        look_no_more(&second);
    }
    look_no_more(&first);
    graph_free(head), graph_free(tail);
}

/* Padding changes numbers: the names stay with the nodes. */
static void padding_keeps_names(const struct graph *g)
{
    struct err err = { 0 };
    struct graph *made = NULL;
    for (enum padding p = PADDING_ZERO; p <= PADDING_REPLICATE; p++) {
        if (!transform_padding(g, p, &made, &err))
            fail_msg("%s", err.text);
        assert_int_equal(made->n_aliases, g->n_aliases);
        for (int i = 0; i < g->n_aliases; i++)
            assert_string_equal(made->values[graph_find(made, g->aliases[i].name)].name,
                                g->values[g->aliases[i].value].name);
        graph_free(made);
    }
}

static void names_outlive_transforms(void **state)
{
    const struct example *e = *state;
    struct err err = { 0 };
    struct graph *g = build(e), *made = NULL, *folded = NULL;
    struct looked before = look(g, NULL);
    assert_true(transform_for_inference(g, NULL, 0, &made, &err));
    same_numbers("inference", &before, made, 1e-4, e->rows_lost);
    if (graph_parameter_count(g) > 40 << 20) { /* like the smaller ones of its family */
        look_no_more(&before);
        graph_free(g);
        return;
    }
    assert_true(graph_copy(g, &made, &err));
    same_numbers("copy", &before, made, 0, 0);
    assert_true(transform_resize(g, 2, 0, 0, &made, &err));
    same_numbers("resize", &before, made, 1e-4, 0);
    assert_true(transform_remove_dropout(g, &made, &err));
    same_numbers("dropout", &before, made, 1e-6, 0);
    assert_true(transform_fold_batch_norm(g, NULL, 0, &folded, &err));
    assert_true(transform_fuse(folded, NULL, 0, &made, &err));
    same_numbers("fold", &before, folded, 1e-4, 0);
    same_numbers("fuse", &before, made, 1e-4, 0);
    const char *keep = g->aliases[e->rows_lost ? 0 : g->n_aliases / 2].name;
    assert_true(transform_for_inference(g, &keep, 1, &made, &err));
    same_numbers("kept", &before, made, 1e-4, e->rows_lost);
    const struct graph_port *last = &g->aliases[g->n_aliases - 1];
    assert_true(transform_prefix(g, last->value, &made, &err));
    same_numbers("prefix", &before, made, 1e-6, 0);
    compare_cut(g, &before);
    padding_keeps_names(g);
    if (e->dense_stride) { /* on an image as large as the window */
        struct dense_spec spec = { e->side, e->dense_stride, e->side, e->side };
        if (!transform_dense(g, &spec, &made, &err))
            fail_msg("%s: %s", e->network, err.text);
        same_numbers("dense", &before, made, 1e-4, e->dense_lost);
    }
    look_no_more(&before);
    graph_free(g);
}

/* There and back by a file. */
static void names_outlive_onnx(void **state)
{
    const struct example *e = *state;
    struct err err = { 0 };
    struct graph *g = build(e), *made = NULL;
    struct looked before = look(g, NULL);
    char *path = scratch_path("names.onnx");
    if (!onnx_write(g, path, NULL, &err) || !onnx_read(path, NULL, &made, &err))
        fail_msg("%s", err.text);
    same_numbers("onnx", &before, made, 1e-5, 0);
    look_no_more(&before);
    graph_free(g), free(path);
}

/* Those that one function builds, as all vit_*, by one of them. */
static void every_network_is_tested(void **state)
{
    (void)state;
    size_t n = 0;
    const struct zoo_network *networks = zoo_networks(&n);
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (int k = 0; k < EXAMPLES; k++)
            found = found || zoo_find(examples[k].network, NULL)->build == networks[i].build;
        if (!found)
            fail_msg("no example of %s", networks[i].name);
    }
}

int main(void)
{
    static const int by_file[] = { 0, 9, 14, 20, 22, 27 }; /* one of each kind, and small */
    enum { FILES = sizeof by_file / sizeof *by_file, RULES = 5 };
    struct CMUnitTest tests[EXAMPLES + FILES + RULES] = {
        cmocka_unit_test(an_alias_is_found_last),
        cmocka_unit_test(a_name_means_one_value),
        cmocka_unit_test(an_alias_without_its_numbers_ends),
        cmocka_unit_test(what_is_taken_out_has_no_alias),
        cmocka_unit_test(every_network_is_tested),
    };
    for (int i = 0; i < EXAMPLES; i++)
        tests[RULES + i] = (struct CMUnitTest){ .name = examples[i].network,
                                                .test_func = names_outlive_transforms,
                                                .initial_state = (void *)(uintptr_t)&examples[i] };
    for (int i = 0; i < FILES; i++)
        tests[RULES + EXAMPLES + i] =
            (struct CMUnitTest){ .name = examples[by_file[i]].network,
                                 .test_func = names_outlive_onnx,
                                 .initial_state = (void *)(uintptr_t)&examples[by_file[i]] };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
