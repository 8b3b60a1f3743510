/* resnet.c: ResNet-18, 34, 50, 101, 152 (He et al. 2015), with torchvision's parameter names. The
 * stride of a bottleneck is in its 3x3 convolution, as in torchvision. */
#include "net/zoo/parts.h"

struct resnet {
    bool bottleneck;
    int blocks[4];
};

static value_id conv_norm(struct graph *graph, value_id x, const char *prefix, int number,
                          int64_t channels, struct conv_attr attr)
{
    x = graph_conv(graph, x, zoo_name("%s.conv%d", prefix, number).text, channels, false, attr);
    return graph_batch_norm(graph, x, zoo_name("%s.bn%d", prefix, number).text);
}

/* x [N, C, H, W] -> [N, 4 width or width, H / stride, W / stride] */
static value_id block(struct graph *graph, value_id x, const char *prefix, bool bottleneck,
                      int64_t width, int64_t stride)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    int64_t out = bottleneck ? 4 * width : width;
    value_id y = x;
    if (bottleneck) {
        y = graph_relu(graph, conv_norm(graph, y, prefix, 1, width, conv_square(1, 1, 0)));
        y = graph_relu(graph, conv_norm(graph, y, prefix, 2, width, conv_square(3, stride, 1)));
        y = conv_norm(graph, y, prefix, 3, out, conv_square(1, 1, 0));
    } else {
        y = graph_relu(graph, conv_norm(graph, y, prefix, 1, width, conv_square(3, stride, 1)));
        y = conv_norm(graph, y, prefix, 2, width, conv_square(3, 1, 1));
    }
    if (stride != 1 || graph_shape(graph, x)->dim[1] != out) {
        x = graph_conv(graph, x, zoo_name("%s.downsample.0", prefix).text, out, false,
                       conv_square(1, stride, 0));
        x = graph_batch_norm(graph, x, zoo_name("%s.downsample.1", prefix).text);
    }
    return graph_alias(graph, prefix, graph_relu(graph, graph_add(graph, y, x)));
}

static void build(struct graph *graph, const struct zoo_options *options, const struct resnet *spec)
{
    value_id x = zoo_image(graph, options);
    x = graph_conv(graph, x, "conv1", 64, false, conv_square(7, 2, 3));
    x = graph_alias(graph, "relu", graph_relu(graph, graph_batch_norm(graph, x, "bn1")));
    x = graph_alias(graph, "maxpool", graph_max_pool(graph, x, pool_square(3, 2, 1)));
    for (int stage = 0; stage < 4; stage++) {
        for (int i = 0; i < spec->blocks[stage]; i++)
            x = block(graph, x, zoo_name("layer%d.%d", stage + 1, i).text, spec->bottleneck,
                      (int64_t)64 << stage, stage > 0 && i == 0 ? 2 : 1);
        graph_alias(graph, zoo_name("layer%d", stage + 1).text, x);
    }
    zoo_classifier(graph, x, "fc", options);
    zoo_init(graph, OP_CONV, 1, (struct init){ INIT_FAN_OUT_NORMAL, 0 });
}

void zoo_resnet18(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct resnet){ false, { 2, 2, 2, 2 } });
}

void zoo_resnet34(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct resnet){ false, { 3, 4, 6, 3 } });
}

void zoo_resnet50(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct resnet){ true, { 3, 4, 6, 3 } });
}

void zoo_resnet101(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct resnet){ true, { 3, 4, 23, 3 } });
}

void zoo_resnet152(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct resnet){ true, { 3, 8, 36, 3 } });
}
