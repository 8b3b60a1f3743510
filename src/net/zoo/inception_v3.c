/* inception_v3.c: Inception v3 (Szegedy et al. 2015) with torchvision's parameter names. Smallest
 * input 75 px. Torchvision's published weights expect images normalised with mean 0.5 and deviation
 * 0.5 (transform_input there); that is part of preparing the input, not of the graph. */
#include "net/zoo/parts.h"

/* One step of a branch: a unit "block.leaf"; height 0 ends the branch. */
struct step {
    const char *leaf;
    int64_t channels, height, width;
};

static value_id unit(struct graph *graph, value_id x, const char *block, const char *leaf,
                     int64_t channels, struct conv_attr attr)
{
    return zoo_conv_unit(graph, x, zoo_name("%s.%s", block, leaf).text, channels, attr);
}

static value_id branch(struct graph *graph, value_id x, const char *block, const struct step *steps)
{
    for (; steps->height; steps++)
        x = unit(graph, x, block, steps->leaf, steps->channels,
                 zoo_same(steps->height, steps->width));
    return x;
}

/* The mean of 3x3 (zeros of the border count), then a 1x1 unit. */
static value_id pool_branch(struct graph *graph, value_id x, const char *block, int64_t channels)
{
    x = graph_average_pool(graph, x, pool_square(3, 1, 1));
    return unit(graph, x, block, "branch_pool", channels, conv_square(1, 1, 0));
}

static value_id inception_a(struct graph *graph, value_id x, const char *name, int64_t pool)
{
    value_id branches[4] = {
        branch(graph, x, name, (const struct step[]){ { "branch1x1", 64, 1, 1 }, { 0 } }),
        branch(graph, x, name,
               (const struct step[]){
                   { "branch5x5_1", 48, 1, 1 }, { "branch5x5_2", 64, 5, 5 }, { 0 } }),
        branch(graph, x, name,
               (const struct step[]){ { "branch3x3dbl_1", 64, 1, 1 },
                                      { "branch3x3dbl_2", 96, 3, 3 },
                                      { "branch3x3dbl_3", 96, 3, 3 },
                                      { 0 } }),
        pool_branch(graph, x, name, pool),
    };
    return graph_alias(graph, name, graph_concat(graph, branches, 4, 1));
}

static value_id inception_b(struct graph *graph, value_id x, const char *name)
{
    value_id y =
        branch(graph, x, name,
               (const struct step[]){
                   { "branch3x3dbl_1", 64, 1, 1 }, { "branch3x3dbl_2", 96, 3, 3 }, { 0 } });
    value_id branches[3] = {
        unit(graph, x, name, "branch3x3", 384, conv_square(3, 2, 0)),
        unit(graph, y, name, "branch3x3dbl_3", 96, conv_square(3, 2, 0)),
        graph_max_pool(graph, x, pool_square(3, 2, 0)),
    };
    return graph_alias(graph, name, graph_concat(graph, branches, 3, 1));
}

static value_id inception_c(struct graph *graph, value_id x, const char *name, int64_t inner)
{
    value_id branches[4] = {
        branch(graph, x, name, (const struct step[]){ { "branch1x1", 192, 1, 1 }, { 0 } }),
        branch(graph, x, name,
               (const struct step[]){ { "branch7x7_1", inner, 1, 1 },
                                      { "branch7x7_2", inner, 1, 7 },
                                      { "branch7x7_3", 192, 7, 1 },
                                      { 0 } }),
        branch(graph, x, name,
               (const struct step[]){ { "branch7x7dbl_1", inner, 1, 1 },
                                      { "branch7x7dbl_2", inner, 7, 1 },
                                      { "branch7x7dbl_3", inner, 1, 7 },
                                      { "branch7x7dbl_4", inner, 7, 1 },
                                      { "branch7x7dbl_5", 192, 1, 7 },
                                      { 0 } }),
        pool_branch(graph, x, name, 192),
    };
    return graph_alias(graph, name, graph_concat(graph, branches, 4, 1));
}

static value_id inception_d(struct graph *graph, value_id x, const char *name)
{
    value_id y = unit(graph, x, name, "branch3x3_1", 192, conv_square(1, 1, 0));
    value_id z = branch(graph, x, name,
                        (const struct step[]){ { "branch7x7x3_1", 192, 1, 1 },
                                               { "branch7x7x3_2", 192, 1, 7 },
                                               { "branch7x7x3_3", 192, 7, 1 },
                                               { 0 } });
    value_id branches[3] = {
        unit(graph, y, name, "branch3x3_2", 320, conv_square(3, 2, 0)),
        unit(graph, z, name, "branch7x7x3_4", 192, conv_square(3, 2, 0)),
        graph_max_pool(graph, x, pool_square(3, 2, 0)),
    };
    return graph_alias(graph, name, graph_concat(graph, branches, 3, 1));
}

static value_id inception_e(struct graph *graph, value_id x, const char *name)
{
    value_id y =
        branch(graph, x, name, (const struct step[]){ { "branch3x3_1", 384, 1, 1 }, { 0 } });
    value_id z =
        branch(graph, x, name,
               (const struct step[]){
                   { "branch3x3dbl_1", 448, 1, 1 }, { "branch3x3dbl_2", 384, 3, 3 }, { 0 } });
    value_id branches[6] = {
        unit(graph, x, name, "branch1x1", 320, conv_square(1, 1, 0)),
        unit(graph, y, name, "branch3x3_2a", 384, zoo_same(1, 3)),
        unit(graph, y, name, "branch3x3_2b", 384, zoo_same(3, 1)),
        unit(graph, z, name, "branch3x3dbl_3a", 384, zoo_same(1, 3)),
        unit(graph, z, name, "branch3x3dbl_3b", 384, zoo_same(3, 1)),
        pool_branch(graph, x, name, 192),
    };
    return graph_alias(graph, name, graph_concat(graph, branches, 6, 1));
}

static void auxiliary(struct graph *graph, value_id x, int64_t classes)
{
    x = graph_average_pool(graph, x, pool_square(5, 3, 0));
    x = zoo_conv_unit(graph, x, "AuxLogits.conv0", 128, conv_square(1, 1, 0));
    x = zoo_conv_unit(graph, x, "AuxLogits.conv1", 768, conv_square(5, 1, 0));
    x = graph_flatten(graph, graph_global_average_pool(graph, x));
    x = graph_linear(graph, x, "AuxLogits.fc", classes, true);
    graph_output(graph, "aux", graph_alias(graph, "AuxLogits", x));
}

void zoo_inception_v3(struct graph *graph, const struct zoo_options *options)
{
    static const char *const stem[7] = { "Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3",
                                         "maxpool1",      "Conv2d_3b_1x1", "Conv2d_4a_3x3",
                                         "maxpool2" };
    value_id x = zoo_inception_stem(graph, zoo_image(graph, options), stem);
    x = inception_a(graph, x, "Mixed_5b", 32);
    x = inception_a(graph, x, "Mixed_5c", 64);
    x = inception_a(graph, x, "Mixed_5d", 64);
    x = inception_b(graph, x, "Mixed_6a");
    x = inception_c(graph, x, "Mixed_6b", 128);
    x = inception_c(graph, x, "Mixed_6c", 160);
    x = inception_c(graph, x, "Mixed_6d", 160);
    x = inception_c(graph, x, "Mixed_6e", 192);
    value_id after6e = x;
    x = inception_d(graph, x, "Mixed_7a");
    x = inception_e(graph, x, "Mixed_7b");
    x = inception_e(graph, x, "Mixed_7c");
    x = graph_alias(graph, "avgpool", graph_global_average_pool(graph, x));
    x = graph_flatten(graph, graph_dropout(graph, x, 0.5f));
    graph_alias(graph, "fc", zoo_scores(graph, x, "fc", options));
    if (options->auxiliary)
        auxiliary(graph, after6e, options->classes);
    zoo_init(graph, OP_CONV, 1, (struct init){ INIT_NORMAL, 0.1f });
    zoo_init(graph, OP_LINEAR, 1, (struct init){ INIT_NORMAL, 0.1f });
    graph_init(graph, "AuxLogits.conv1.conv.weight", (struct init){ INIT_NORMAL, 0.01f });
    graph_init(graph, "AuxLogits.fc.weight", (struct init){ INIT_NORMAL, 0.001f });
}
