/* densenet.c: DenseNet-121 and 161 (Huang et al. 2016) with torchvision's parameter names. */
#include "net/zoo/parts.h"

struct densenet {
    int64_t growth, first; /* channels that a layer adds; channels of the stem */
    int layers[4];
};

static value_id norm_relu(struct graph *graph, value_id x, const char *name)
{
    return graph_relu(graph, graph_batch_norm(graph, x, name));
}

/* x [N, C, H, W] -> [N, C + growth, H, W] */
static value_id dense_layer(struct graph *graph, value_id x, const char *prefix, int64_t growth)
{
    value_id y = norm_relu(graph, x, zoo_name("%s.norm1", prefix).text);
    y = graph_conv(graph, y, zoo_name("%s.conv1", prefix).text, 4 * growth, false,
                   conv_square(1, 1, 0));
    y = norm_relu(graph, y, zoo_name("%s.norm2", prefix).text);
    y = graph_conv(graph, y, zoo_name("%s.conv2", prefix).text, growth, false,
                   conv_square(3, 1, 1));
    return graph_concat(graph, (const value_id[]){ x, y }, 2, 1);
}

/* Halves the channels and the size. */
static value_id transition(struct graph *graph, value_id x, const char *prefix)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    int64_t half = graph_shape(graph, x)->dim[1] / 2;
    x = norm_relu(graph, x, zoo_name("%s.norm", prefix).text);
    x = graph_conv(graph, x, zoo_name("%s.conv", prefix).text, half, false, conv_square(1, 1, 0));
    return graph_alias(graph, prefix, graph_average_pool(graph, x, pool_square(2, 2, 0)));
}

static void build(struct graph *graph, const struct zoo_options *options,
                  const struct densenet *spec)
{
    value_id x = zoo_image(graph, options);
    x = graph_conv(graph, x, "features.conv0", spec->first, false, conv_square(7, 2, 3));
    x = graph_alias(graph, "features.relu0", norm_relu(graph, x, "features.norm0"));
    x = graph_alias(graph, "features.pool0", graph_max_pool(graph, x, pool_square(3, 2, 1)));
    for (int i = 0; i < 4; i++) {
        for (int layer = 0; layer < spec->layers[i]; layer++)
            x = dense_layer(graph, x,
                            zoo_name("features.denseblock%d.denselayer%d", i + 1, layer + 1).text,
                            spec->growth);
        graph_alias(graph, zoo_name("features.denseblock%d", i + 1).text, x);
        if (i < 3)
            x = transition(graph, x, zoo_name("features.transition%d", i + 1).text);
    }
    x = graph_alias(graph, "features", graph_batch_norm(graph, x, "features.norm5"));
    x = graph_flatten(graph, graph_global_average_pool(graph, graph_relu(graph, x)));
    graph_alias(graph, "classifier", zoo_scores(graph, x, "classifier", options));
    zoo_init(graph, OP_CONV, 1, (struct init){ INIT_FAN_IN_NORMAL, 0 });
    zoo_init(graph, OP_LINEAR, 2, (struct init){ INIT_CONSTANT, 0 });
}

void zoo_densenet121(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct densenet){ 32, 64, { 6, 12, 24, 16 } });
}

void zoo_densenet161(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct densenet){ 48, 96, { 6, 12, 36, 24 } });
}
