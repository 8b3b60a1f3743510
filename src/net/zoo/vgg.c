/* vgg.c: VGG-16, plain and with batch norm (Simonyan, Zisserman 2014) with torchvision's parameter
 * names: features.N counts convolutions, norms, ReLUs and pools alike; and WSInfer's vgg16mod
 * (Le et al. 2020), whose classifier is smaller. */
#include "net/zoo/parts.h"

static const int64_t channels[] = { 64, 64,  0,   128, 128, 0,   256, 256, 256,
                                    0,  512, 512, 512, 0,   512, 512, 512, 0 }; /* 0: pool */

/* [N, channels, H, W] -> [N, 512 * 7 * 7] */
static value_id map_of(struct graph *graph, const struct zoo_options *options, bool norm)
{
    value_id x = zoo_image(graph, options);
    int index = 0;
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
        if (channels[i] == 0) {
            x = graph_max_pool(graph, x, pool_square(2, 2, 0));
            graph_alias(graph, zoo_name("features.%d", index++).text, x);
            continue;
        }
        x = graph_conv(graph, x, zoo_name("features.%d", index).text, channels[i], true,
                       conv_square(3, 1, 1));
        if (norm)
            x = graph_batch_norm(graph, x, zoo_name("features.%d", ++index).text);
        x = graph_alias(graph, zoo_name("features.%d", index + 1).text, graph_relu(graph, x));
        index += 2;
    }
    x = graph_adaptive_average_pool(graph, graph_alias(graph, "features", x), 7, 7);
    return graph_flatten(graph, graph_alias(graph, "avgpool", x));
}

static void initialize(struct graph *graph)
{
    struct init zero = { INIT_CONSTANT, 0 };
    zoo_init(graph, OP_CONV, 1, (struct init){ INIT_FAN_OUT_NORMAL, 0 });
    zoo_init(graph, OP_CONV, 2, zero);
    zoo_init(graph, OP_LINEAR, 1, (struct init){ INIT_NORMAL, 0.01f });
    zoo_init(graph, OP_LINEAR, 2, zero);
}

static void build(struct graph *graph, const struct zoo_options *options, bool norm)
{
    value_id x = map_of(graph, options, norm);
    x = graph_relu(graph, graph_linear(graph, x, "classifier.0", 4096, true));
    x = graph_dropout(graph, graph_alias(graph, "classifier.1", x), 0.5f);
    x = graph_relu(graph, graph_linear(graph, x, "classifier.3", 4096, true));
    x = graph_dropout(graph, graph_alias(graph, "classifier.4", x), 0.5f);
    graph_alias(graph, "classifier", zoo_scores(graph, x, "classifier.6", options));
    initialize(graph);
}

void zoo_vgg16(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, false);
}

void zoo_vgg16_bn(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, true);
}

void zoo_vgg16mod(struct graph *graph, const struct zoo_options *options)
{
    value_id x = map_of(graph, options, false);
    x = graph_relu(graph, graph_linear(graph, x, "classifier.0", 1024, true));
    x = graph_dropout(graph, graph_alias(graph, "classifier.1", x), 0.5f);
    graph_alias(graph, "classifier", zoo_scores(graph, x, "classifier.3", options));
    initialize(graph);
}
