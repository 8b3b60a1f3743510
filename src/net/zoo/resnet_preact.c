/* resnet_preact.c: ResNet-34 with batch norm and ReLU before the convolutions (He et al. 2016) as
 * WSInfer's models have it, with its parameter names: the stem and the last map have no norm. */
#include "net/zoo/parts.h"

static value_id norm_relu(struct graph *graph, value_id x, const char *prefix, int number)
{
    return graph_relu(graph, graph_batch_norm(graph, x, zoo_name("%s.bn%d", prefix, number).text));
}

/* x [N, C, H, W] -> [N, width, H / stride, W / stride] */
static value_id block(struct graph *graph, value_id x, const char *prefix, int64_t width,
                      int64_t stride)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    value_id y = norm_relu(graph, x, prefix, 1);
    if (stride != 1 || graph_shape(graph, x)->dim[1] != width)
        x = graph_conv(graph, y, zoo_name("%s.shortcut.0", prefix).text, width, false,
                       conv_square(1, stride, 0));
    y = graph_conv(graph, y, zoo_name("%s.conv1", prefix).text, width, false,
                   conv_square(3, stride, 1));
    y = graph_conv(graph, norm_relu(graph, y, prefix, 2), zoo_name("%s.conv2", prefix).text, width,
                   false, conv_square(3, 1, 1));
    return graph_alias(graph, prefix, graph_add(graph, y, x));
}

void zoo_preactresnet34(struct graph *graph, const struct zoo_options *options)
{
    static const int blocks[4] = { 3, 4, 6, 3 };
    value_id x = zoo_image(graph, options);
    x = graph_conv(graph, x, "conv1", 64, false, conv_square(7, 2, 3));
    x = graph_alias(graph, "maxpool", graph_max_pool(graph, x, pool_square(3, 2, 1)));
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < blocks[stage]; i++)
            x = block(graph, x, zoo_name("layer%d.%d", stage + 1, i).text, (int64_t)64 << stage,
                      stage > 0 && i == 0 ? 2 : 1);
        graph_alias(graph, zoo_name("layer%d", stage + 1).text, x);
    }
    zoo_classifier(graph, x, "linear", options);
}
