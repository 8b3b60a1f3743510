/* resnet_v2.c: the pre-activation ResNet-110 for CIFAR (He et al. 2016) in the form of the Keras
 * example, which GEMS scales to 1024-px tiles: 3 stages of 12 bottlenecks, batch norm and ReLU
 * before every convolution, shortcuts taken before normalisation, convolutions with bias, Keras'
 * epsilon and momentum. The mean at the end is global, so any input size works. */
#include "net/zoo/parts.h"

enum { STAGES = 3, BLOCKS = 12 };

static value_id norm_relu(struct graph *graph, value_id x, const char *name)
{
    return graph_relu(
        graph, graph_batch_norm_with(graph, x, name,
                                     (struct norm_attr){ .epsilon = 1e-3f, .momentum = 0.01f }));
}

/* activated: x comes from a batch norm and ReLU already (the very first block). */
static value_id block(struct graph *graph, value_id x, const char *prefix, int64_t width,
                      int64_t out, int64_t stride, bool first, bool activated)
{
    value_id y = activated ? x : norm_relu(graph, x, zoo_name("%s.bn1", prefix).text);
    y = graph_conv(graph, y, zoo_name("%s.conv1", prefix).text, width, true,
                   conv_square(1, stride, 0));
    y = norm_relu(graph, y, zoo_name("%s.bn2", prefix).text);
    y = graph_conv(graph, y, zoo_name("%s.conv2", prefix).text, width, true, conv_square(3, 1, 1));
    y = norm_relu(graph, y, zoo_name("%s.bn3", prefix).text);
    y = graph_conv(graph, y, zoo_name("%s.conv3", prefix).text, out, true, conv_square(1, 1, 0));
    if (first)
        x = graph_conv(graph, x, zoo_name("%s.shortcut", prefix).text, out, true,
                       conv_square(1, stride, 0));
    return graph_alias(graph, prefix, graph_add(graph, x, y));
}

void zoo_resnet110_v2(struct graph *graph, const struct zoo_options *options)
{
    value_id x = zoo_image(graph, options);
    x = graph_conv(graph, x, "conv1", 16, true, conv_square(3, 1, 1));
    x = graph_alias(graph, "relu1", norm_relu(graph, x, "bn1"));
    int64_t width = 16;
    for (int stage = 0; stage < STAGES; stage++) {
        int64_t out = stage == 0 ? 4 * width : 2 * width;
        for (int i = 0; i < BLOCKS; i++)
            x = block(graph, x, zoo_name("layer%d.%d", stage + 1, i).text, width, out,
                      stage > 0 && i == 0 ? 2 : 1, i == 0, stage == 0 && i == 0);
        graph_alias(graph, zoo_name("layer%d", stage + 1).text, x);
        width = out;
    }
    x = graph_alias(graph, "relu", norm_relu(graph, x, "bn"));
    zoo_classifier(graph, x, "fc", options);
    struct init he = { INIT_FAN_IN_NORMAL, 0 }, zero = { INIT_CONSTANT, 0 };
    zoo_init(graph, OP_CONV, 1, he);
    zoo_init(graph, OP_CONV, 2, zero);
    zoo_init(graph, OP_LINEAR, 1, he);
    zoo_init(graph, OP_LINEAR, 2, zero);
}
