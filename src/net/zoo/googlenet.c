/* googlenet.c: GoogLeNet (Szegedy et al. 2014) as in torchvision: batch norm everywhere, 3x3 where
 * the paper has 5x5, pools in ceil mode. Torchvision's published weights expect images normalised
 * with mean 0.5 and deviation 0.5 (transform_input there); that is part of preparing the input, not
 * of the graph. */
#include "net/zoo/parts.h"

/* Channels: the 1x1 branch; 3x3 reduced and out; "5x5" reduced and out; behind the pool. */
struct inception {
    const char *name;
    int64_t one, three_reduced, three, five_reduced, five, pool;
};

static const struct inception stages[] = {
    { "inception3a", 64, 96, 128, 16, 32, 32 },     { "inception3b", 128, 128, 192, 32, 96, 64 },
    { "inception4a", 192, 96, 208, 16, 48, 64 },    { "inception4b", 160, 112, 224, 24, 64, 64 },
    { "inception4c", 128, 128, 256, 24, 64, 64 },   { "inception4d", 112, 144, 288, 32, 64, 64 },
    { "inception4e", 256, 160, 320, 32, 128, 128 }, { "inception5a", 256, 160, 320, 32, 128, 128 },
    { "inception5b", 384, 192, 384, 48, 128, 128 },
};

static value_id ceil_pool(struct graph *graph, value_id x, struct pool_attr attr)
{
    attr.ceil_mode = true;
    return graph_max_pool(graph, x, attr);
}

/* Pool `number` between the stages. */
static value_id between(struct graph *graph, value_id x, int number, int64_t kernel)
{
    x = ceil_pool(graph, x, pool_square(kernel, 2, 0));
    return graph_alias(graph, zoo_name("maxpool%d", number).text, x);
}

static value_id unit(struct graph *graph, value_id x, const char *prefix, const char *leaf,
                     int64_t channels, int64_t kernel)
{
    return zoo_conv_unit(graph, x, zoo_name("%s.%s", prefix, leaf).text, channels,
                         zoo_same(kernel, kernel));
}

static value_id inception(struct graph *graph, value_id x, const struct inception *spec)
{
    const char *name = spec->name;
    value_id branches[4] = {
        unit(graph, x, name, "branch1", spec->one, 1),
        unit(graph, unit(graph, x, name, "branch2.0", spec->three_reduced, 1), name, "branch2.1",
             spec->three, 3),
        unit(graph, unit(graph, x, name, "branch3.0", spec->five_reduced, 1), name, "branch3.1",
             spec->five, 3),
        unit(graph, ceil_pool(graph, x, pool_square(3, 1, 1)), name, "branch4.1", spec->pool, 1),
    };
    return graph_alias(graph, name, graph_concat(graph, branches, 4, 1));
}

static void auxiliary(struct graph *graph, value_id x, const char *name, int64_t classes)
{
    x = graph_adaptive_average_pool(graph, x, 4, 4);
    x = graph_flatten(graph, unit(graph, x, name, "conv", 128, 1));
    x = graph_relu(graph, graph_linear(graph, x, zoo_name("%s.fc1", name).text, 1024, true));
    x = graph_dropout(graph, x, 0.7f);
    graph_output(graph, name, graph_linear(graph, x, zoo_name("%s.fc2", name).text, classes, true));
}

void zoo_googlenet(struct graph *graph, const struct zoo_options *options)
{
    value_id x = zoo_image(graph, options), after4a = NO_VALUE, after4d = NO_VALUE;
    x = zoo_conv_unit(graph, x, "conv1", 64, conv_square(7, 2, 3));
    x = between(graph, graph_alias(graph, "conv1", x), 1, 3);
    x = zoo_conv_unit(graph, x, "conv2", 64, conv_square(1, 1, 0));
    x = graph_alias(graph, "conv2", x);
    x = zoo_conv_unit(graph, x, "conv3", 192, conv_square(3, 1, 1));
    x = between(graph, graph_alias(graph, "conv3", x), 2, 3);
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        x = inception(graph, x, &stages[i]);
        if (i == 1)
            x = between(graph, x, 3, 3);
        if (i == 2)
            after4a = x;
        if (i == 5)
            after4d = x;
        if (i == 6)
            x = between(graph, x, 4, 2);
    }
    x = graph_alias(graph, "avgpool", graph_global_average_pool(graph, x));
    x = graph_dropout(graph, graph_flatten(graph, x), 0.2f);
    graph_alias(graph, "fc", zoo_scores(graph, x, "fc", options));
    if (options->auxiliary) {
        auxiliary(graph, after4d, "aux2", options->classes);
        auxiliary(graph, after4a, "aux1", options->classes);
    }
    zoo_init(graph, OP_CONV, 1, (struct init){ INIT_NORMAL, 0.01f });
    zoo_init(graph, OP_LINEAR, 1, (struct init){ INIT_NORMAL, 0.01f });
}
