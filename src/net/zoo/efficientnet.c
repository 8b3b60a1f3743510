/* efficientnet.c: EfficientNet (Tan, Le 2019) with timm's names and parameter names, B0 to B7: one
 * network, wider and deeper by factors. */
#include <math.h>
#include <string.h>
#include "net/zoo/parts.h"

struct efficientnet {
    const char *name;
    double wider, deeper;
};

static const struct efficientnet efficientnets[] = {
    { "efficientnet_b0", 1.0, 1.0 }, { "efficientnet_b1", 1.0, 1.1 },
    { "efficientnet_b2", 1.1, 1.2 }, { "efficientnet_b3", 1.2, 1.4 },
    { "efficientnet_b4", 1.4, 1.8 }, { "efficientnet_b5", 1.6, 2.2 },
    { "efficientnet_b6", 1.8, 2.6 }, { "efficientnet_b7", 2.0, 3.1 },
};

/* Of B0. Every block but those of the first stage first makes `expansion` times the channels. */
static const struct {
    int blocks;
    int64_t kernel, stride, expansion, channels;
} stages[] = { { 1, 3, 1, 1, 16 },  { 2, 3, 2, 6, 24 },  { 2, 5, 2, 6, 40 }, { 3, 3, 2, 6, 80 },
               { 3, 5, 1, 6, 112 }, { 4, 5, 2, 6, 192 }, { 1, 3, 1, 6, 320 } };
enum { STAGES = sizeof stages / sizeof stages[0] };

/* The nearest multiple of 8, unless that takes away more than a tenth. */
static int64_t scaled(int64_t channels, double factor)
{
    double wanted = (double)channels * factor;
    int64_t near = (int64_t)(wanted + 4) / 8 * 8;
    near = near < 8 ? 8 : near;
    return (double)near < 0.9 * wanted ? near + 8 : near;
}

/* prefix.leafNUMBER, then batch norm prefix.bnNUMBER */
static value_id conv_norm(struct graph *graph, value_id x, const char *prefix, const char *leaf,
                          int number, int64_t channels, struct conv_attr attr)
{
    x = graph_conv(graph, x, zoo_name("%s.%s", prefix, leaf).text, channels, false, attr);
    return graph_batch_norm(graph, x, zoo_name("%s.bn%d", prefix, number).text);
}

/* Squeeze and excitation: x [N, C, H, W] with a factor between 0 and 1 for each channel. */
static value_id excite(struct graph *graph, value_id x, const char *prefix, int64_t channels,
                       int64_t squeezed)
{
    struct conv_attr one = conv_square(1, 1, 0);
    value_id y = graph_global_average_pool(graph, x);
    y = graph_conv(graph, y, zoo_name("%s.se.conv_reduce", prefix).text, squeezed, true, one);
    y = graph_conv(graph, graph_silu(graph, y), zoo_name("%s.se.conv_expand", prefix).text,
                   channels, true, one);
    return graph_mul(graph, x, graph_sigmoid(graph, y));
}

/* x [N, in, H, W] -> [N, out, H / stride, W / stride] */
static value_id block(struct graph *graph, value_id x, const char *prefix, int stage, int64_t in,
                      int64_t out, int64_t stride)
{
    int64_t kernel = stages[stage].kernel, middle = in * stages[stage].expansion;
    bool expands = stages[stage].expansion > 1;
    struct conv_attr one = conv_square(1, 1, 0),
                     depthwise = conv_square(kernel, stride, kernel / 2);
    int number = 1;
    value_id y = x;
    depthwise.groups = middle;
    if (expands)
        y = graph_silu(graph, conv_norm(graph, y, prefix, "conv_pw", number++, middle, one));
    y = graph_silu(graph, conv_norm(graph, y, prefix, "conv_dw", number++, middle, depthwise));
    y = excite(graph, y, prefix, middle, in / 4);
    y = conv_norm(graph, y, prefix, expands ? "conv_pwl" : "conv_pw", number, out, one);
    if (stride == 1 && in == out)
        y = graph_add(graph, y, x);
    return graph_alias(graph, prefix, y);
}

static void build(struct graph *graph, const struct zoo_options *options,
                  const struct efficientnet *spec)
{
    int64_t in = scaled(32, spec->wider);
    value_id x = zoo_image(graph, options);
    x = graph_conv(graph, x, "conv_stem", in, false, conv_square(3, 2, 1));
    x = graph_silu(graph, graph_batch_norm(graph, x, "bn1"));
    graph_alias(graph, "bn1.act", x);
    for (int stage = 0; stage < STAGES; stage++) {
        int blocks = (int)ceil(stages[stage].blocks * spec->deeper);
        int64_t out = scaled(stages[stage].channels, spec->wider);
        for (int i = 0; i < blocks; i++, in = out)
            x = block(graph, x, zoo_name("blocks.%d.%d", stage, i).text, stage, in, out,
                      i == 0 ? stages[stage].stride : 1);
        graph_alias(graph, zoo_name("blocks.%d", stage).text, x);
    }
    x = graph_conv(graph, x, "conv_head", scaled(1280, spec->wider), false, conv_square(1, 1, 0));
    x = graph_silu(graph, graph_batch_norm(graph, x, "bn2"));
    x = graph_flatten(graph, graph_global_average_pool(graph, x));
    x = graph_alias(graph, "global_pool", x);
    graph_alias(graph, "classifier", zoo_scores(graph, x, "classifier", options));
    zoo_init(graph, OP_CONV, 1, (struct init){ INIT_FAN_OUT_NORMAL, 0 });
    zoo_init(graph, OP_CONV, 2, (struct init){ INIT_CONSTANT, 0 });
    zoo_init(graph, OP_LINEAR, 2, (struct init){ INIT_CONSTANT, 0 });
}

void zoo_efficientnet(struct graph *graph, const struct zoo_options *options)
{
    for (size_t i = 0; i < sizeof efficientnets / sizeof efficientnets[0]; i++)
        if (strcmp(efficientnets[i].name, graph->name) == 0)
            build(graph, options, &efficientnets[i]);
}
