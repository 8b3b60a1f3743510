/* inception_v4.c: Inception v4 (Szegedy et al. 2016) with timm's parameter names: features.N counts
 * the units of the stem and the blocks alike. Smallest input 75 px. WSInfer's inception_v4nobn is
 * the same without batch norm. */
#include "net/zoo/parts.h"

typedef const struct zoo_step steps[];

static value_id pool(struct graph *graph, value_id x)
{
    return graph_max_pool(graph, x, pool_square(3, 2, 0));
}

/* A unit with a name of its own within the block. */
static value_id unit(struct graph *graph, value_id x, const char *block, const char *leaf,
                     int64_t channels, int64_t height, int64_t width)
{
    return zoo_conv_unit(graph, x, zoo_name("%s.%s", block, leaf).text, channels,
                         zoo_same(height, width));
}

/* The pool and a convolution with stride 2, side by side. */
static value_id mixed_3a(struct graph *graph, value_id x, const char *name)
{
    value_id conv =
        zoo_conv_unit(graph, x, zoo_name("%s.conv", name).text, 96, conv_square(3, 2, 0));
    return graph_concat(graph, (const value_id[]){ pool(graph, x), conv }, 2, 1);
}

static value_id mixed_4a(struct graph *graph, value_id x, const char *name)
{
    value_id branches[2] = {
        zoo_branch(graph, x, name, 0, false, (steps){ { 64, 1, 1, 1 }, { 96, 3, 3, 0 }, { 0 } }),
        zoo_branch(
            graph, x, name, 1, false,
            (steps){ { 64, 1, 1, 1 }, { 64, 1, 7, 1 }, { 64, 7, 1, 1 }, { 96, 3, 3, 0 }, { 0 } }),
    };
    return graph_concat(graph, branches, 2, 1);
}

static value_id mixed_5a(struct graph *graph, value_id x, const char *name)
{
    value_id conv =
        zoo_conv_unit(graph, x, zoo_name("%s.conv", name).text, 192, conv_square(3, 2, 0));
    return graph_concat(graph, (const value_id[]){ conv, pool(graph, x) }, 2, 1);
}

static value_id inception_a(struct graph *graph, value_id x, const char *name)
{
    value_id branches[4] = {
        zoo_branch(graph, x, name, 0, true, (steps){ { 96, 1, 1, 1 }, { 0 } }),
        zoo_branch(graph, x, name, 1, false, (steps){ { 64, 1, 1, 1 }, { 96, 3, 3, 1 }, { 0 } }),
        zoo_branch(graph, x, name, 2, false,
                   (steps){ { 64, 1, 1, 1 }, { 96, 3, 3, 1 }, { 96, 3, 3, 1 }, { 0 } }),
        zoo_pooled_branch(graph, x, zoo_name("%s.branch3.1", name).text, 96),
    };
    return graph_concat(graph, branches, 4, 1);
}

static value_id reduction_a(struct graph *graph, value_id x, const char *name)
{
    value_id branches[3] = {
        zoo_branch(graph, x, name, 0, true, (steps){ { 384, 3, 3, 2 }, { 0 } }),
        zoo_branch(graph, x, name, 1, false,
                   (steps){ { 192, 1, 1, 1 }, { 224, 3, 3, 1 }, { 256, 3, 3, 2 }, { 0 } }),
        pool(graph, x),
    };
    return graph_concat(graph, branches, 3, 1);
}

static value_id inception_b(struct graph *graph, value_id x, const char *name)
{
    value_id branches[4] = {
        zoo_branch(graph, x, name, 0, true, (steps){ { 384, 1, 1, 1 }, { 0 } }),
        zoo_branch(graph, x, name, 1, false,
                   (steps){ { 192, 1, 1, 1 }, { 224, 1, 7, 1 }, { 256, 7, 1, 1 }, { 0 } }),
        zoo_branch(graph, x, name, 2, false,
                   (steps){ { 192, 1, 1, 1 },
                            { 192, 7, 1, 1 },
                            { 224, 1, 7, 1 },
                            { 224, 7, 1, 1 },
                            { 256, 1, 7, 1 },
                            { 0 } }),
        zoo_pooled_branch(graph, x, zoo_name("%s.branch3.1", name).text, 128),
    };
    return graph_concat(graph, branches, 4, 1);
}

static value_id reduction_b(struct graph *graph, value_id x, const char *name)
{
    value_id branches[3] = {
        zoo_branch(graph, x, name, 0, false, (steps){ { 192, 1, 1, 1 }, { 192, 3, 3, 2 }, { 0 } }),
        zoo_branch(
            graph, x, name, 1, false,
            (steps){
                { 256, 1, 1, 1 }, { 256, 1, 7, 1 }, { 320, 7, 1, 1 }, { 320, 3, 3, 2 }, { 0 } }),
        pool(graph, x),
    };
    return graph_concat(graph, branches, 3, 1);
}

/* Two of its branches end in a fork: 1x3 and 3x1 side by side. */
static value_id inception_c(struct graph *graph, value_id x, const char *name)
{
    value_id one = unit(graph, x, name, "branch1_0", 384, 1, 1);
    value_id two = unit(graph, x, name, "branch2_0", 384, 1, 1);
    two = unit(graph, two, name, "branch2_1", 448, 3, 1);
    two = unit(graph, two, name, "branch2_2", 512, 1, 3);
    value_id branches[6] = {
        zoo_branch(graph, x, name, 0, true, (steps){ { 256, 1, 1, 1 }, { 0 } }),
        unit(graph, one, name, "branch1_1a", 256, 1, 3),
        unit(graph, one, name, "branch1_1b", 256, 3, 1),
        unit(graph, two, name, "branch2_3a", 256, 1, 3),
        unit(graph, two, name, "branch2_3b", 256, 3, 1),
        zoo_pooled_branch(graph, x, zoo_name("%s.branch3.1", name).text, 256),
    };
    return graph_concat(graph, branches, 6, 1);
}

typedef value_id block_function(struct graph *graph, value_id x, const char *name);

static const struct {
    block_function *block;
    int count;
} blocks[] = { { mixed_3a, 1 },    { mixed_4a, 1 },    { mixed_5a, 1 },    { inception_a, 4 },
               { reduction_a, 1 }, { inception_b, 7 }, { reduction_b, 1 }, { inception_c, 3 } };

void zoo_inception_v4(struct graph *graph, const struct zoo_options *options)
{
    static const int64_t stem[3][3] = { { 32, 2, 0 }, { 32, 1, 0 }, { 64, 1, 1 } };
    value_id x = zoo_image(graph, options);
    int index = 0;
    for (; index < 3; index++) {
        struct zoo_name name = zoo_name("features.%d", index);
        x = zoo_conv_unit(graph, x, name.text, stem[index][0],
                          conv_square(3, stem[index][1], stem[index][2]));
        graph_alias(graph, name.text, x);
    }
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        for (int k = 0; k < blocks[i].count; k++) {
            struct zoo_name name = zoo_name("features.%d", index++);
            x = graph_alias(graph, name.text, blocks[i].block(graph, x, name.text));
        }
    x = graph_global_average_pool(graph, graph_alias(graph, "features", x));
    x = graph_alias(graph, "global_pool", graph_flatten(graph, x));
    graph_alias(graph, "last_linear", zoo_scores(graph, x, "last_linear", options));
}
