/* test_zoo_build.c: the table of networks: names, defaults, sizes, published parameter counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "net/zoo/zoo.h"

static struct graph *build(const char *name, struct zoo_options options)
{
    struct graph *graph = NULL;
    struct err err = { 0 };
    if (!zoo_build(name, &options, &graph, &err))
        fail_msg("%s", err.text);
    return graph;
}

static void every_network_builds(void **state)
{
    (void)state;
    size_t n;
    const struct zoo_network *networks = zoo_networks(&n);
    assert_true(n >= 19);
    for (size_t i = 0; i < n; i++) {
        struct graph *g = build(networks[i].name, (struct zoo_options){ .batch = 2 });
        struct err err = { 0 };
        assert_ptr_equal(zoo_find(networks[i].name, &err), &networks[i]);
        assert_int_equal(graph_shape(g, g->inputs[0].value)->dim[0], 2);
        const struct shape *out = graph_shape(g, g->outputs[0].value);
        assert_int_equal(out->dim[0], 2);
        if (strcmp(networks[i].name, "segment_unet") == 0)
            assert_true(shape_equal(out, &SHAPE(2, 3, networks[i].side, networks[i].side)));
        else if (networks[i].classes)
            assert_true(shape_equal(out, &SHAPE(2, networks[i].classes)));
        graph_free(g);
    }
}

/* As torchvision's and timm's model tables give them. */
static void parameters_are_as_many_as_published(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t parameters;
    } published[] = {
        { "resnet18", 11689512 },
        { "resnet34", 21797672 },
        { "resnet50", 25557032 },
        { "resnet101", 44549160 },
        { "resnet152", 60192808 },
        { "googlenet", 6624904 },
        { "inception_v3", 23834568 },
        { "inception_resnet_v2", 55843464 },
        { "densenet121", 7978856 },
        { "densenet161", 28681000 },
        { "inception_v4", 42679816 },
        { "vgg16", 138357544 },
        { "vgg16_bn", 138365992 },
        { "vit_small_patch16_224", 22050664 },
        { "vit_tiny_patch16_224", 5717416 },
        { "vit_base_patch16_224", 86567656 },
        { "vit_base_patch32_224", 88224232 },
        { "vit_large_patch16_224", 304326632 },
        { "convnext_tiny", 28589128 },
        { "convnext_small", 50223688 },
        { "convnext_base", 88591464 },
        { "convnext_large", 197767336 },
        { "swin_tiny_patch4_window7_224", 28288354 },
        { "swin_small_patch4_window7_224", 49606258 },
        { "swin_base_patch4_window7_224", 87768224 },
        { "swin_large_patch4_window7_224", 196532476 },
        { "efficientnet_b0", 5288548 },
        { "efficientnet_b1", 7794184 },
        { "efficientnet_b2", 9109994 },
        { "efficientnet_b3", 12233232 },
        { "efficientnet_b4", 19341616 },
        { "efficientnet_b5", 30389784 },
        { "efficientnet_b6", 43040704 },
        { "efficientnet_b7", 66347960 },
    };
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        struct graph *g = build(published[i].name, (struct zoo_options){ 0 });
        assert_int_equal(graph_parameter_count(g), published[i].parameters);
        graph_free(g);
    }
    struct graph *g = build("inception_v3", (struct zoo_options){ .auxiliary = true });
    assert_int_equal(graph_parameter_count(g), 27161264);
    graph_free(g);
}

static void a_wrong_name_gets_the_nearest(void **state)
{
    (void)state;
    struct graph *graph = NULL;
    struct err err = { 0 };
    assert_false(zoo_build("resnet19", NULL, &graph, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_string_equal(err.text, "no network 'resnet19'; did you mean resnet18?");
    assert_false(zoo_build("elephant", NULL, &graph, &err));
    assert_non_null(strstr(err.text, "model list"));
    assert_null(graph);
}

static void options_are_taken(void **state)
{
    (void)state;
    struct graph *g = build("googlenet", (struct zoo_options){ .batch = 3,
                                                               .channels = 4,
                                                               .height = 65,
                                                               .width = 97,
                                                               .classes = 5,
                                                               .auxiliary = true });
    assert_true(shape_equal(graph_shape(g, graph_find(g, "input")), &SHAPE(3, 4, 65, 97)));
    assert_int_equal(g->n_outputs, 3);
    assert_true(shape_equal(graph_shape(g, graph_find(g, "aux1")), &SHAPE(3, 5)));
    graph_free(g);
    g = build("googlenet", (struct zoo_options){ .classes = 5 });
    assert_int_equal(g->n_outputs, 1);
    assert_int_equal(graph_find(g, "aux1.fc1.weight"), NO_VALUE);
    graph_free(g);
}

static void sizes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *network;
        int64_t smallest;
    } limits[] = {
        { "inception_v3", 75 }, { "inception_v4", 75 }, { "inception_resnet_v2", 75 },
        { "scan_tiny", 144 },   { "scan_small", 192 },  { "scan_base", 208 },
        { "scan_wide", 564 },   { "resnet18", 1 },      { "vit_small_patch16_224", 16 }
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct zoo_options options = { .height = limits[i].smallest, .width = limits[i].smallest };
        struct graph *g = build(limits[i].network, options);
        struct err err = { 0 };
        graph_free(g), g = NULL;
        options.height--;
        if (options.height == 0)
            continue;
        assert_false(zoo_build(limits[i].network, &options, &g, &err));
        assert_int_equal(err.kind, ERR_FORMAT);
        assert_non_null(strstr(err.text, limits[i].network));
    }
    struct graph *g = NULL;
    struct err err = { 0 };
    assert_false(zoo_build("resnet18", &(struct zoo_options){ .batch = -1 }, &g, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_false(zoo_build("resnet18", &(struct zoo_options){ .height = INT64_MAX / 2 }, &g, &err));
    assert_false(zoo_build("swin_tiny_patch4_window7_224", &(struct zoo_options){ .height = 256 },
                           &g, &err));
    assert_string_equal(err.text, "swin_tiny_patch4_window7_224: needs sides of 28, 56, 112 px or "
                                  "multiples of 224 px");
    assert_false(zoo_build("unet", &(struct zoo_options){ .height = 36 }, &g, &err));
    assert_false(
        zoo_build("transformer_encoder", &(struct zoo_options){ .channels = 12 }, &g, &err));
}

/* num_classes=0 of timm: what the last layer would read. */
static void classifiers_have_features(void **state)
{
    (void)state;
    static const struct {
        const char *network;
        int64_t features;
        const char *gone; /* the layer that is left out */
    } known[] = {
        { "resnet18", 512, "fc.weight" },
        { "scan_tiny", 48, "fc.weight" },
        { "preactresnet34", 512, "linear.weight" },
        { "googlenet", 1024, "fc.weight" },
        { "inception_v3", 2048, "fc.weight" },
        { "inception_v4", 1536, "last_linear.weight" },
        { "inception_resnet_v2", 1536, "classif.weight" },
        { "densenet121", 1024, "classifier.weight" },
        { "vgg16", 4096, "classifier.6.weight" },
        { "vgg16mod", 1024, "classifier.3.weight" },
        { "vit_tiny_patch16_224", 192, "head.weight" },
        { "convnext_tiny", 768, "head.fc.weight" },
        { "swin_base_patch4_window7_224", 1024, "head.fc.weight" },
        { "ctranspath", 768, "head.fc.weight" },
        { "efficientnet_b3", 1536, "classifier.weight" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct graph *g =
            build(known[i].network, (struct zoo_options){ .batch = 2, .features = true });
        assert_int_equal(g->n_outputs, 1);
        assert_string_equal(g->outputs[0].name, "embedding");
        assert_true(shape_equal(graph_shape(g, g->outputs[0].value), &SHAPE(2, known[i].features)));
        assert_int_equal(graph_find(g, known[i].gone), NO_VALUE);
        graph_free(g);
        g = build(known[i].network, (struct zoo_options){ 0 });
        assert_true(graph_find(g, known[i].gone) != NO_VALUE);
        graph_free(g);
    }
    struct graph *g = NULL;
    struct err err = { 0 };
    assert_false(zoo_build("segment_unet", &(struct zoo_options){ .features = true }, &g, &err));
    assert_string_equal(err.text, "segment_unet: has no features: it does not end in a layer that "
                                  "classifies them");
    assert_null(g);
}

/* The sizes in the table of scan.c: no rest at any stride, a whole grid in the end. */
static void scan_maps_are_whole(void **state)
{
    (void)state;
    static const struct {
        const char *network;
        int64_t receptive, places, stride, side;
    } scans[] = { { "scan_tiny", 144, 6, 16, 224 },
                  { "scan_small", 192, 3, 16, 224 },
                  { "scan_base", 208, 2, 16, 224 },
                  { "scan_wide", 564, 8, 64, 1012 } };
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i++) {
        struct graph *g = build(scans[i].network, (struct zoo_options){ 0 });
        int64_t receptive = 1, places = 0;
        for (int32_t k = g->n_nodes - 1; k >= 0; k--) {
            const struct node *node = &g->nodes[k];
            if (node->op->kind == OP_GLOBAL_AVERAGE_POOL)
                places = graph_shape(g, node->inputs[0])->dim[2];
            if (node->op->kind != OP_CONV)
                continue;
            const struct conv_attr *conv = &node->attr.conv;
            int64_t extent = graph_shape(g, node->inputs[0])->dim[2];
            assert_int_equal((extent - conv->kernel[0]) % conv->stride[0], 0);
            for (int side = 0; side < SIDES; side++)
                assert_int_equal(conv->pad[side], 0);
            if (!strstr(node->name, "downsample"))
                receptive = (receptive - 1) * conv->stride[0] + conv->kernel[0];
        }
        assert_int_equal(places, scans[i].places);
        assert_int_equal(receptive, scans[i].receptive);
        assert_int_equal(receptive + scans[i].stride * (places - 1), scans[i].side);
        graph_free(g);
    }
}

/* sin and cos of t 10000^(-i/4), computed with numpy for t = 10, 8 features. */
static void time_embedding_is_sinusoidal(void **state)
{
    (void)state;
    static const double expected[8] = { -0.5440211108893698, 0.8414709848078965,
                                        0.09983341664682815, 0.009999833334166664,
                                        -0.8390715290764524, 0.5403023058681398,
                                        0.9950041652780258,  0.9999500004166653 };
    float embedding[8];
    zoo_time_embedding(10, 8, embedding);
    for (int i = 0; i < 8; i++)
        assert_true(fabs((double)embedding[i] - expected[i]) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_network_builds),
        cmocka_unit_test(parameters_are_as_many_as_published),
        cmocka_unit_test(a_wrong_name_gets_the_nearest),
        cmocka_unit_test(options_are_taken),
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(classifiers_have_features),
        cmocka_unit_test(scan_maps_are_whole),
        cmocka_unit_test(time_embedding_is_sinusoidal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
