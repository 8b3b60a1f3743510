/* audio.c: encoders of recordings that classify them: the layers of an encoder of texts (bert.c) on
 * log-mel frames. "input" [N, T, bands] has frames, T a multiple of 4; "mask" [N, T / 4] is 0 for
 * padding. Two convolutions over time and frequency (3 x 3, stride 2) and a linear layer make a
 * token of 4 frames; every token gets a learnt position; the scores come from the mean of the
 * tokens that are not padding, as in t5.c. */
#include <string.h>
#include "net/zoo/parts.h"

struct audio {
    const char *name, *encoder; /* encoder: of texts */
    int64_t width;
};

static const struct audio audios[] = {
    { "audio_encoder_tiny", "prenorm_tiny", 128 },
    { "audio_encoder_small", "prenorm_mini", 256 },
};
enum { JOINED = 4, POSITIONS = 512, STEM_SHARE = 4 };
static const float dropout = 0.1f;

/* x [N, T, bands] -> [N, T / 4, width] */
static value_id stem(struct graph *graph, const struct audio *spec, value_id x,
                     const struct zoo_options *options)
{
    int64_t channels = spec->width / STEM_SHARE;
    x = graph_reshape(graph, x, SHAPE(0, 1, options->height, options->channels));
    x = graph_gelu(graph, graph_conv(graph, x, "stem.conv1", channels, true, conv_square(3, 2, 1)));
    x = graph_gelu(graph, graph_conv(graph, x, "stem.conv2", channels, true, conv_square(3, 2, 1)));
    x = graph_transpose(graph, x, (int64_t[]){ 0, 2, 1, 3 });
    x = graph_reshape(graph, x, SHAPE(0, 0, -1));
    return graph_linear(graph, x, "stem.out", spec->width, true);
}

static void build(struct graph *graph, const struct zoo_options *options, const struct audio *spec)
{
    int64_t tokens = options->height / JOINED;
    if (options->height % JOINED != 0 || tokens > POSITIONS) {
        zoo_refuse(graph, "needs a multiple of 4 frames, up to 2048");
        return;
    }
    value_id x =
        graph_input(graph, "input", SHAPE(options->batch, options->height, options->channels));
    value_id mask = graph_input(graph, "mask", SHAPE(options->batch, tokens));
    value_id table = graph_parameter(graph, "positions.weight", SHAPE(POSITIONS, spec->width));
    x = graph_alias(graph, "stem", stem(graph, spec, x, options));
    x = graph_add(graph, x, graph_slice(graph, table, 0, 0, tokens));
    x = zoo_bert_encoder(graph, spec->encoder, graph_dropout(graph, x, dropout), mask,
                         options->depth);
    x = graph_dropout(graph, zoo_mean_of_seen(graph, x, mask), dropout);
    graph_output(graph, "logits", graph_linear(graph, x, "classifier", options->classes, true));
    graph_init(graph, "positions.weight", (struct init){ INIT_NORMAL, 0.02f });
    zoo_init(graph, OP_LINEAR, 1, (struct init){ INIT_NORMAL, 0.02f });
    zoo_init(graph, OP_LINEAR, 2, (struct init){ INIT_CONSTANT, 0 });
    graph_init(graph, "stem.out.weight", (struct init){ INIT_FAN_IN_UNIFORM, 0 });
}

void zoo_audio(struct graph *graph, const struct zoo_options *options)
{
    for (size_t i = 0; i < sizeof audios / sizeof audios[0]; i++)
        if (strcmp(audios[i].name, graph->name) == 0)
            build(graph, options, &audios[i]);
}
