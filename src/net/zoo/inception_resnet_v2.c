/* inception_resnet_v2.c: Inception-ResNet v2 (Szegedy et al. 2016) with timm's parameter names.
 * Smallest input 75 px. */
#include "net/zoo/parts.h"

static value_id mixed_5b(struct graph *graph, value_id x)
{
    const char *name = "mixed_5b";
    value_id branches[4] = {
        zoo_branch(graph, x, name, 0, true, (const struct zoo_step[]){ { 96, 1, 1, 1 }, { 0 } }),
        zoo_branch(graph, x, name, 1, false,
                   (const struct zoo_step[]){ { 48, 1, 1, 1 }, { 64, 5, 5, 1 }, { 0 } }),
        zoo_branch(
            graph, x, name, 2, false,
            (const struct zoo_step[]){ { 64, 1, 1, 1 }, { 96, 3, 3, 1 }, { 96, 3, 3, 1 }, { 0 } }),
        zoo_pooled_branch(graph, x, "mixed_5b.branch3.1", 64),
    };
    return graph_alias(graph, name, graph_concat(graph, branches, 4, 1));
}

static value_id mixed_6a(struct graph *graph, value_id x)
{
    const char *name = "mixed_6a";
    value_id branches[3] = {
        zoo_branch(graph, x, name, 0, true, (const struct zoo_step[]){ { 384, 3, 3, 2 }, { 0 } }),
        zoo_branch(graph, x, name, 1, false,
                   (const struct zoo_step[]){
                       { 256, 1, 1, 1 }, { 256, 3, 3, 1 }, { 384, 3, 3, 2 }, { 0 } }),
        graph_max_pool(graph, x, pool_square(3, 2, 0)),
    };
    return graph_alias(graph, name, graph_concat(graph, branches, 3, 1));
}

static value_id mixed_7a(struct graph *graph, value_id x)
{
    const char *name = "mixed_7a";
    value_id branches[4] = {
        zoo_branch(graph, x, name, 0, false,
                   (const struct zoo_step[]){ { 256, 1, 1, 1 }, { 384, 3, 3, 2 }, { 0 } }),
        zoo_branch(graph, x, name, 1, false,
                   (const struct zoo_step[]){ { 256, 1, 1, 1 }, { 288, 3, 3, 2 }, { 0 } }),
        zoo_branch(graph, x, name, 2, false,
                   (const struct zoo_step[]){
                       { 256, 1, 1, 1 }, { 288, 3, 3, 1 }, { 320, 3, 3, 2 }, { 0 } }),
        graph_max_pool(graph, x, pool_square(3, 2, 0)),
    };
    return graph_alias(graph, name, graph_concat(graph, branches, 4, 1));
}

/* x + scale conv2d(concat(branches)) */
static value_id residual(struct graph *graph, value_id x, const char *name,
                         const value_id *branches, int n, float scale)
{
    value_id y = graph_concat(graph, branches, n, 1);
    if (x == NO_VALUE)
        return NO_VALUE;
    y = graph_conv(graph, y, zoo_name("%s.conv2d", name).text, graph_shape(graph, x)->dim[1], true,
                   conv_square(1, 1, 0));
    if (scale < 1)
        y = graph_scale(graph, y, scale, 0);
    return graph_add(graph, y, x);
}

static value_id block35(struct graph *graph, value_id x, const char *name)
{
    value_id branches[3] = {
        zoo_branch(graph, x, name, 0, true, (const struct zoo_step[]){ { 32, 1, 1, 1 }, { 0 } }),
        zoo_branch(graph, x, name, 1, false,
                   (const struct zoo_step[]){ { 32, 1, 1, 1 }, { 32, 3, 3, 1 }, { 0 } }),
        zoo_branch(
            graph, x, name, 2, false,
            (const struct zoo_step[]){ { 32, 1, 1, 1 }, { 48, 3, 3, 1 }, { 64, 3, 3, 1 }, { 0 } }),
    };
    return graph_alias(graph, name,
                       graph_relu(graph, residual(graph, x, name, branches, 3, 0.17f)));
}

static value_id block17(struct graph *graph, value_id x, const char *name)
{
    value_id branches[2] = {
        zoo_branch(graph, x, name, 0, true, (const struct zoo_step[]){ { 192, 1, 1, 1 }, { 0 } }),
        zoo_branch(graph, x, name, 1, false,
                   (const struct zoo_step[]){
                       { 128, 1, 1, 1 }, { 160, 1, 7, 1 }, { 192, 7, 1, 1 }, { 0 } }),
    };
    return graph_alias(graph, name,
                       graph_relu(graph, residual(graph, x, name, branches, 2, 0.10f)));
}

/* Without its ReLU: the last one of the network has none. */
static value_id block8(struct graph *graph, value_id x, const char *name, float scale)
{
    value_id branches[2] = {
        zoo_branch(graph, x, name, 0, true, (const struct zoo_step[]){ { 192, 1, 1, 1 }, { 0 } }),
        zoo_branch(graph, x, name, 1, false,
                   (const struct zoo_step[]){
                       { 192, 1, 1, 1 }, { 224, 1, 3, 1 }, { 256, 3, 1, 1 }, { 0 } }),
    };
    return residual(graph, x, name, branches, 2, scale);
}

void zoo_inception_resnet_v2(struct graph *graph, const struct zoo_options *options)
{
    static const char *const stem[7] = { "conv2d_1a", "conv2d_2a", "conv2d_2b", "maxpool_3a",
                                         "conv2d_3b", "conv2d_4a", "maxpool_5a" };
    value_id x = mixed_5b(graph, zoo_inception_stem(graph, zoo_image(graph, options), stem));
    for (int i = 0; i < 10; i++)
        x = block35(graph, x, zoo_name("repeat.%d", i).text);
    x = mixed_6a(graph, graph_alias(graph, "repeat", x));
    for (int i = 0; i < 20; i++)
        x = block17(graph, x, zoo_name("repeat_1.%d", i).text);
    x = mixed_7a(graph, graph_alias(graph, "repeat_1", x));
    for (int i = 0; i < 9; i++) {
        struct zoo_name name = zoo_name("repeat_2.%d", i);
        x = graph_relu(graph, block8(graph, x, name.text, 0.20f));
        x = graph_alias(graph, name.text, x);
    }
    x = block8(graph, graph_alias(graph, "repeat_2", x), "block8", 1);
    x = graph_alias(graph, "block8", x);
    x = zoo_conv_unit(graph, x, "conv2d_7b", 1536, conv_square(1, 1, 0));
    x = graph_global_average_pool(graph, graph_alias(graph, "conv2d_7b", x));
    x = graph_alias(graph, "global_pool", graph_flatten(graph, x));
    graph_alias(graph, "classif", zoo_scores(graph, x, "classif", options));
}
