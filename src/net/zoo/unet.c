/* unet.c: the U-Net of denoising diffusion (Ho et al. 2020): residual blocks with group norm and
 * SiLU that receive the time step, self-attention at the lower resolutions, skip connections from
 * the way down to the way up. Inputs: "input" [N, C, H, W], "time" [N, width], the sinusoidal
 * embedding of the step (zoo_time_embedding), and, where options ask for it, "condition" [N,
 * conditions], zeros for none, which is added to the embedded time; output: "noise" [N, C, H, W]. H
 * and W must be multiples of 2^(levels - 1). The last layer of every residual part is initialised
 * to 0, so that the network starts as the identity of its skip connections. */
#include <math.h>
#include "net/zoo/parts.h"

enum { LEVELS = 6 };

struct unet {
    int64_t width;          /* channels of the first level; features of "time" */
    int64_t factor[LEVELS]; /* channels of a level by width; 0: no such level */
    int blocks;             /* residual blocks of a level on the way down; one more on the way up */
    int attention;          /* levels from this one on attend */
    int64_t head, groups;   /* channels of an attention head; groups of group norm */
};

/* What every block needs; the graph grows through it. */
struct builder {
    struct graph *graph;
    const struct unet *spec;
    value_id time; /* SiLU of the embedded time [N, 4 width] */
};

static value_id norm(const struct builder *b, value_id x, const char *prefix, const char *leaf)
{
    return graph_group_norm(b->graph, x, zoo_name("%s.%s", prefix, leaf).text, b->spec->groups,
                            1e-5f);
}

static value_id conv(const struct builder *b, value_id x, const char *prefix, const char *leaf,
                     int64_t channels, struct conv_attr attr)
{
    return graph_conv(b->graph, x, zoo_name("%s.%s", prefix, leaf).text, channels, true, attr);
}

static void begin_at_zero(const struct builder *b, const char *prefix, const char *leaf)
{
    struct init zero = { INIT_CONSTANT, 0 };
    graph_init(b->graph, zoo_name("%s.%s.weight", prefix, leaf).text, zero);
    graph_init(b->graph, zoo_name("%s.%s.bias", prefix, leaf).text, zero);
}

/* x [N, C, H, W] -> [N, channels, H, W] */
static value_id residual(const struct builder *b, value_id x, const char *prefix, int64_t channels)
{
    struct graph *g = b->graph;
    if (x == NO_VALUE)
        return NO_VALUE;
    value_id y = graph_silu(g, norm(b, x, prefix, "norm1"));
    y = conv(b, y, prefix, "conv1", channels, conv_square(3, 1, 1));
    value_id time = graph_linear(g, b->time, zoo_name("%s.time", prefix).text, channels, true);
    y = graph_add(g, y, graph_reshape(g, time, SHAPE(0, channels, 1, 1)));
    y = graph_silu(g, norm(b, y, prefix, "norm2"));
    y = conv(b, y, prefix, "conv2", channels, conv_square(3, 1, 1));
    begin_at_zero(b, prefix, "conv2");
    if (graph_shape(g, x)->dim[1] != channels)
        x = conv(b, x, prefix, "skip", channels, conv_square(1, 1, 0));
    return graph_add(g, x, y);
}

/* Self-attention of all places of x [N, C, H, W]. The size enters the graph here: at another size
 * the network is built again (its parameters stay the same). */
static value_id attention(const struct builder *b, value_id x, const char *prefix)
{
    struct graph *g = b->graph;
    if (x == NO_VALUE)
        return NO_VALUE;
    const struct shape shape = *graph_shape(g, x);
    int64_t channels = shape.dim[1], heads = channels / b->spec->head;
    value_id y = norm(b, x, prefix, "norm"), part[3]; /* q, k, v [N, heads, head, T] */
    y = conv(b, y, prefix, "qkv", 3 * channels, conv_square(1, 1, 0));
    for (int i = 0; i < 3; i++) {
        part[i] = graph_slice(g, y, 1, i * channels, (i + 1) * channels);
        part[i] = graph_reshape(g, part[i], SHAPE(0, heads, b->spec->head, -1));
    }
    struct matmul_attr q_by_k = { .transpose_a = true,
                                  .scale = (float)(1 / sqrt((double)b->spec->head)) };
    y = graph_softmax(g, graph_matmul(g, part[0], part[1], q_by_k), -1); /* [N, heads, T, T] */
    y = graph_matmul(g, part[2], y, (struct matmul_attr){ .transpose_b = true });
    y = graph_reshape(g, y, SHAPE(0, channels, shape.dim[2], shape.dim[3]));
    y = conv(b, y, prefix, "proj", channels, conv_square(1, 1, 0));
    begin_at_zero(b, prefix, "proj");
    return graph_add(g, x, y);
}

static value_id residual_and_attention(const struct builder *b, value_id x, const char *side,
                                       int level, int index)
{
    const struct unet *spec = b->spec;
    struct zoo_name name = zoo_name("%s.%d.%d", side, level, index);
    x = residual(b, x, name.text, spec->width * spec->factor[level]);
    if (level >= spec->attention)
        x = attention(b, x, zoo_name("%s.attention", name.text).text);
    return graph_alias(b->graph, name.text, x);
}

/* To the level above and its channels. */
static value_id upsample(const struct builder *b, value_id x, int level)
{
    int64_t channels = b->spec->width * b->spec->factor[level - 1];
    x = graph_upsample(b->graph, x,
                       (struct upsample_attr){ .mode = UPSAMPLE_NEAREST, .scale = { 2, 2 } });
    return conv(b, x, zoo_name("up.%d", level).text, "upsample", channels, conv_square(3, 1, 1));
}

/* Down, middle, up. x [N, width, H, W] -> the same shape */
static value_id levels(const struct builder *b, value_id x)
{
    const struct unet *spec = b->spec;
    struct graph *g = b->graph;
    value_id skips[LEVELS * 4] = { x };
    int n = 1, count = 0;
    while (count < LEVELS && spec->factor[count])
        count++;
    for (int level = 0; level < count; level++) {
        for (int i = 0; i < spec->blocks; i++)
            x = skips[n++] = residual_and_attention(b, x, "down", level, i);
        if (level < count - 1)
            x = skips[n++] = conv(b, x, zoo_name("down.%d", level).text, "downsample",
                                  spec->width * spec->factor[level], conv_square(3, 2, 1));
    }
    int64_t lowest = spec->width * spec->factor[count - 1];
    x = attention(b, residual(b, x, "middle.0", lowest), "middle.0.attention");
    x = graph_alias(g, "middle.0", x);
    x = graph_alias(g, "middle.1", residual(b, x, "middle.1", lowest));
    for (int level = count - 1; level >= 0; level--) {
        for (int i = 0; i <= spec->blocks; i++) {
            x = graph_concat(g, (const value_id[]){ x, skips[--n] }, 2, 1);
            x = residual_and_attention(b, x, "up", level, i);
        }
        if (level > 0)
            x = upsample(b, x, level);
    }
    return x;
}

/* A learnt vector for each feature, so that the weights count with those of the time. */
static value_id embed_condition(struct graph *graph, const struct zoo_options *options,
                                int64_t features)
{
    value_id x = graph_input(graph, "condition", SHAPE(options->batch, options->conditions));
    x = graph_linear(graph, x, "condition", features, false);
    graph_init(graph, "condition.weight", (struct init){ INIT_NORMAL, 1 });
    return x;
}

static void build(struct graph *graph, const struct zoo_options *options, const struct unet *spec)
{
    value_id x = zoo_image(graph, options);
    value_id time = graph_input(graph, "time", SHAPE(options->batch, spec->width));
    time = graph_silu(graph, graph_linear(graph, time, "time.0", 4 * spec->width, true));
    time = graph_linear(graph, time, "time.1", 4 * spec->width, true);
    if (options->conditions > 0)
        time = graph_add(graph, time, embed_condition(graph, options, 4 * spec->width));
    time = graph_silu(graph, time);
    struct builder b = { graph, spec, time };
    x = graph_conv(graph, x, "stem", spec->width, true, conv_square(3, 1, 1));
    x = levels(&b, graph_alias(graph, "stem", x));
    x = graph_silu(graph, norm(&b, x, "out", "norm"));
    graph_output(graph, "noise",
                 conv(&b, x, "out", "conv", options->classes, conv_square(3, 1, 1)));
    begin_at_zero(&b, "out", "conv");
}

void zoo_unet(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct unet){ 64, { 1, 2, 3, 4 }, 2, 2, 32, 32 });
}

void zoo_unet_small(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct unet){ 32, { 1, 2, 4 }, 1, 2, 32, 8 });
}

void zoo_unet_large(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct unet){ 192, { 1, 1, 2, 2, 4, 4 }, 2, 4, 64, 32 });
}

void zoo_unet_tiny(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct unet){ 16, { 1, 2, 4 }, 1, 2, 16, 4 });
}
