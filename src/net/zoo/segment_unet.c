/* segment_unet.c: a small U-Net (Ronneberger et al. 2015) that gives every pixel of an image its
 * class scores: 3 levels of 16, 32 and 64 channels, each two convolutions with batch norm, max
 * pooling on the way down, bilinear upsampling on the way up, where the maps of the same size are
 * joined. Output: "logits" [N, classes, H, W]. H and W must be multiples of 4. A pixel sees up
 * to 26 px to every side. */
#include "net/zoo/parts.h"

enum { LEVELS = 3, WIDTH = 16 };

static value_id unit(struct graph *g, value_id x, const char *prefix, int index, int64_t channels)
{
    x = graph_conv(g, x, zoo_name("%s.conv%d", prefix, index).text, channels, false,
                   conv_square(3, 1, 1));
    return graph_relu(g, graph_batch_norm(g, x, zoo_name("%s.bn%d", prefix, index).text));
}

static value_id block(struct graph *g, value_id x, const char *side, int level)
{
    struct zoo_name name = zoo_name("%s.%d", side, level);
    int64_t channels = WIDTH << level;
    x = unit(g, unit(g, x, name.text, 1, channels), name.text, 2, channels);
    return graph_alias(g, name.text, x);
}

void zoo_segment_unet(struct graph *graph, const struct zoo_options *options)
{
    value_id skips[LEVELS], x = zoo_image(graph, options);
    for (int level = 0; level < LEVELS; level++) {
        if (level > 0)
            x = graph_max_pool(graph, x, pool_square(2, 2, 0));
        x = skips[level] = block(graph, x, "down", level);
    }
    for (int level = LEVELS - 2; level >= 0; level--) {
        x = graph_upsample(graph, x,
                           (struct upsample_attr){ .mode = UPSAMPLE_BILINEAR, .scale = { 2, 2 } });
        x = graph_concat(graph, (const value_id[]){ x, skips[level] }, 2, 1);
        x = block(graph, x, "up", level);
    }
    graph_output(graph, "logits",
                 graph_conv(graph, x, "out", options->classes, true, conv_square(1, 1, 0)));
    zoo_init(graph, OP_CONV, 1, (struct init){ INIT_FAN_OUT_NORMAL, 0 });
}
