/* convnext.c: ConvNeXt (Liu et al. 2022) with timm's names and parameter names. Sides of 32 px and
 * more. */
#include <string.h>
#include "net/zoo/parts.h"

struct convnext {
    const char *name;
    int depth[4];
    int64_t width; /* of the first stage; it doubles with each */
};

static const struct convnext convnexts[] = {
    { "convnext_tiny", { 3, 3, 9, 3 }, 96 },
    { "convnext_small", { 3, 3, 27, 3 }, 96 },
    { "convnext_base", { 3, 3, 27, 3 }, 128 },
    { "convnext_large", { 3, 3, 27, 3 }, 192 },
};
static const float epsilon = 1e-6f;

static value_id channels_last(struct graph *graph, value_id x)
{
    return graph_transpose(graph, x, (const int64_t[]){ 0, 2, 3, 1 });
}

static value_id channels_first(struct graph *graph, value_id x)
{
    return graph_transpose(graph, x, (const int64_t[]){ 0, 3, 1, 2 });
}

/* Over the channels of x [N, C, H, W] */
static value_id norm(struct graph *graph, value_id x, const char *name)
{
    return channels_first(graph, graph_layer_norm(graph, channels_last(graph, x), name, epsilon));
}

/* x [N, width, H, W] -> the same */
static value_id block(struct graph *graph, value_id x, const char *prefix, int64_t width)
{
    struct conv_attr depthwise = conv_square(7, 1, 3);
    struct zoo_name gamma = zoo_name("%s.gamma", prefix);
    depthwise.groups = width;
    value_id y = graph_conv(graph, x, zoo_name("%s.conv_dw", prefix).text, width, true, depthwise);
    y = graph_layer_norm(graph, channels_last(graph, y), zoo_name("%s.norm", prefix).text, epsilon);
    y = graph_linear(graph, y, zoo_name("%s.mlp.fc1", prefix).text, 4 * width, true);
    y = graph_linear(graph, graph_gelu(graph, y), zoo_name("%s.mlp.fc2", prefix).text, width, true);
    y = graph_mul(graph, y, graph_parameter(graph, gamma.text, SHAPE(width)));
    graph_init(graph, gamma.text, (struct init){ INIT_CONSTANT, 1e-6f });
    return graph_alias(graph, prefix, graph_add(graph, x, channels_first(graph, y)));
}

static void build(struct graph *graph, const struct zoo_options *options,
                  const struct convnext *spec)
{
    int64_t width = spec->width;
    value_id x = zoo_image(graph, options);
    x = graph_conv(graph, x, "stem.0", width, true, conv_square(4, 4, 0));
    x = graph_alias(graph, "stem", norm(graph, x, "stem.1"));
    for (int stage = 0; stage < 4; stage++, width *= 2) {
        struct zoo_name name = zoo_name("stages.%d", stage);
        if (stage > 0) {
            x = norm(graph, x, zoo_name("%s.downsample.0", name.text).text);
            x = graph_conv(graph, x, zoo_name("%s.downsample.1", name.text).text, width, true,
                           conv_square(2, 2, 0));
        }
        for (int i = 0; i < spec->depth[stage]; i++)
            x = block(graph, x, zoo_name("%s.blocks.%d", name.text, i).text, width);
        graph_alias(graph, name.text, x);
    }
    x = graph_flatten(graph, graph_global_average_pool(graph, x));
    x = graph_alias(graph, "head.norm", graph_layer_norm(graph, x, "head.norm", epsilon));
    graph_alias(graph, "head", zoo_scores(graph, x, "head.fc", options));
    zoo_init(graph, OP_CONV, 1, (struct init){ INIT_TRUNCATED, 0.02f });
    zoo_init(graph, OP_CONV, 2, (struct init){ INIT_CONSTANT, 0 });
    zoo_init(graph, OP_LINEAR, 1, (struct init){ INIT_TRUNCATED, 0.02f });
    zoo_init(graph, OP_LINEAR, 2, (struct init){ INIT_CONSTANT, 0 });
}

void zoo_convnext(struct graph *graph, const struct zoo_options *options)
{
    for (size_t i = 0; i < sizeof convnexts / sizeof convnexts[0]; i++)
        if (strcmp(convnexts[i].name, graph->name) == 0)
            build(graph, options, &convnexts[i]);
}
