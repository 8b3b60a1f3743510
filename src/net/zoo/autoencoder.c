/* autoencoder.c: an image to a smaller map of few channels and back, for diffusion on that map
 * (Rombach et al. 2022, without adversary and without noise): residual blocks with group norm and
 * SiLU. Input "input" [N, C, H, W]; outputs "image", of the same shape, and "latent" [N, L, H / f,
 * W / f], between -1 and 1 (tanh), as the processes of diffusion expect images. H and W must be
 * multiples of f. Options ask for one half alone, with the same parameters: the encoder, which
 * gives "latent", or the decoder, whose input is "latent". */
#include "net/zoo/parts.h"

enum { LEVELS = 4 };

struct autoencoder {
    int64_t width[LEVELS]; /* channels of a level; 0: no such level. Each halves the image */
    int64_t latent, groups;
};

/* x [N, C, H, W] -> [N, channels, H, W] */
static value_id residual(struct graph *graph, value_id x, const char *prefix, int64_t channels,
                         int64_t groups)
{
    if (x == NO_VALUE)
        return NO_VALUE;
    value_id y = x;
    for (int i = 1; i <= 2; i++) {
        y = graph_group_norm(graph, y, zoo_name("%s.norm%d", prefix, i).text, groups, 1e-5f);
        y = graph_conv(graph, graph_silu(graph, y), zoo_name("%s.conv%d", prefix, i).text, channels,
                       true, conv_square(3, 1, 1));
    }
    if (graph_shape(graph, x)->dim[1] != channels)
        x = graph_conv(graph, x, zoo_name("%s.skip", prefix).text, channels, true,
                       conv_square(1, 1, 0));
    return graph_alias(graph, prefix, graph_add(graph, x, y));
}

static value_id finish(struct graph *graph, value_id x, const char *prefix, int64_t channels,
                       int64_t groups)
{
    x = graph_group_norm(graph, x, zoo_name("%s.norm", prefix).text, groups, 1e-5f);
    return graph_conv(graph, graph_silu(graph, x), zoo_name("%s.conv", prefix).text, channels, true,
                      conv_square(3, 1, 1));
}

static int levels_of(const struct autoencoder *spec)
{
    int n = 0;
    while (n < LEVELS && spec->width[n])
        n++;
    return n;
}

/* x [N, C, H, W] -> [N, latent, H / f, W / f], f = 2^(levels - 1) */
static value_id encode(struct graph *graph, value_id x, const struct autoencoder *spec)
{
    int levels = levels_of(spec);
    x = graph_conv(graph, x, "encoder.stem", spec->width[0], true, conv_square(3, 1, 1));
    for (int i = 0; i < levels; i++) {
        if (i > 0)
            x = graph_conv(graph, x, zoo_name("encoder.%d.downsample", i).text, spec->width[i],
                           true, conv_square(3, 2, 1));
        x = residual(graph, x, zoo_name("encoder.%d", i).text, spec->width[i], spec->groups);
    }
    return graph_tanh(graph, finish(graph, x, "encoder.out", spec->latent, spec->groups));
}

/* The way back. */
static value_id decode(struct graph *graph, value_id x, const struct autoencoder *spec,
                       int64_t channels)
{
    int levels = levels_of(spec);
    x = graph_conv(graph, x, "decoder.stem", spec->width[levels - 1], true, conv_square(3, 1, 1));
    for (int i = levels - 1; i >= 0; i--) {
        x = residual(graph, x, zoo_name("decoder.%d", i).text, spec->width[i], spec->groups);
        if (i == 0)
            break;
        x = graph_upsample(graph, x,
                           (struct upsample_attr){ .mode = UPSAMPLE_NEAREST, .scale = { 2, 2 } });
        x = graph_conv(graph, x, zoo_name("decoder.%d.upsample", i).text, spec->width[i - 1], true,
                       conv_square(3, 1, 1));
    }
    return finish(graph, x, "decoder.out", channels, spec->groups);
}

static void build(struct graph *graph, const struct zoo_options *options,
                  const struct autoencoder *spec)
{
    int64_t f = (int64_t)1 << (levels_of(spec) - 1);
    value_id latent;
    if (options->height % f || options->width % f) {
        err_set(&graph->err, ERR_FORMAT, "the size must be a multiple of %lld px", (long long)f);
        return;
    }
    if (options->part == ZOO_DECODER)
        latent = graph_input(
            graph, "latent",
            SHAPE(options->batch, spec->latent, options->height / f, options->width / f));
    else
        latent = encode(graph, zoo_image(graph, options), spec);
    if (options->part != ZOO_ENCODER)
        graph_output(graph, "image", decode(graph, latent, spec, options->channels));
    if (options->part != ZOO_DECODER)
        graph_output(graph, "latent", latent);
}

void zoo_autoencoder_4(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct autoencoder){ { 32, 64, 96 }, 4, 8 });
}

void zoo_autoencoder_8(struct graph *graph, const struct zoo_options *options)
{
    build(graph, options, &(struct autoencoder){ { 32, 64, 96, 128 }, 8, 8 });
}
