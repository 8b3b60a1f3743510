/* zoo.h: networks by name. An entry describes a network's default inputs and outputs and how its
 * graph is built; nothing here depends on how a graph is run. Parameters have the names and shapes
 * of torchvision's or timm's models, so that published weights load unchanged, and the same initial
 * values; blocks have the names of their modules (graph_alias). All functions are thread-safe. See
 * docs/add-a-network.md for how to add one. */
#ifndef NET_ZOO_ZOO_H
#define NET_ZOO_ZOO_H
#include "net/graph/graph.h"

enum zoo_part { ZOO_WHOLE, ZOO_ENCODER, ZOO_DECODER };

/* What Vision Transformers of one width differ in. */
struct zoo_vit_parts {
    bool known;        /* else as the name of the network says */
    int64_t patch;     /* side in px */
    int64_t gated;     /* SwiGLU in place of GELU: features behind the gate; 0: GELU */
    int64_t registers; /* tokens beside the class token; they and it then have no position */
    bool scaled;       /* LayerScale */
};

/* 0: the network's default. */
struct zoo_options {
    int64_t batch;         /* default 1 */
    int64_t channels;      /* of the input; texts: ids are below it; audio:
                            bands */
    int64_t height, width; /* of the input; tokens and texts: height is their number, width is not
                              used */
    int64_t classes;       /* unet: channels of the output; by default those of the input */
    bool features;      /* of classifiers: the output is "embedding" [N, C], what the linear layer
                         * at the end would read (num_classes=0 of timm) */
    bool auxiliary;     /* googlenet, inception_v3: also the auxiliary heads for training, as
                         * additional outputs; published weights have them */
    int64_t conditions; /* unet: features of the input "condition"; 0: it has none */
    enum zoo_part part; /* autoencoder */
    int64_t depth;      /* vit_*, texts: blocks, for a shorter network of the same width */
    int64_t masked;     /* bert_*, prenorm_*: they recover tokens in place of a class: the input
                         * "places" [N, masked, height] is 1 at the place of each, the output is
                         * "tokens"     [N, masked, channels]; 0: they do not */
    struct zoo_vit_parts vit; /* vit_* */
};

enum zoo_input {
    ZOO_IMAGE,          /* "input" [N, channels, height, width] */
    ZOO_IMAGE_AND_TIME, /* the same and "time" [N, features], see zoo_time_embedding, and, where
                         * asked for, "condition" [N, conditions] */
    ZOO_TOKENS,         /* "input" [N, height, channels] */
    ZOO_TEXT,  /* "input" [N, height]: ids of tokens, "mask" [N, height]: 1, and 0 for padding */
    ZOO_AUDIO, /* "input" [N, height, channels]: log-mel frames, "mask" [N, height / 4]: the same */
};

struct zoo_network {
    const char *name;
    const char *summary; /* one line, no full stop */
    void (*build)(struct graph *graph, const struct zoo_options *options);
    enum zoo_input input;
    int64_t channels, side, classes; /* defaults */
    bool dense_exact; /* dense scores equal those of the sliding window; see transform_field */
};

/* All of them, in the order in which they are listed. */
const struct zoo_network *zoo_networks(size_t *count);

/* NULL, with the nearest name in the error, if there is none. */
const struct zoo_network *zoo_find(const char *name, struct err *err);

/* The graph of a network (below 1 ms), its parameters not yet allocated: see graph_initialize. The
 * first output is the network's main result: "logits" [N, classes], segment_unet [N, classes,
 * height, width]; unet: "noise", an image.
 * options NULL: all defaults. *out is the caller's; free with graph_free. */
bool zoo_build(const char *name, const struct zoo_options *options, struct graph **out,
               struct err *err);

/* If the network does not support the size in the options: the next larger side of a square input
 * that it supports, a multiple of 16 up to 1024 px; 0: none. */
int64_t zoo_larger_px(const char *name, const struct zoo_options *options);

/* The sinusoidal embedding of a time step as unet expects it: `features` (even) floats, the first
 * half sin(t f_i), the second cos(t f_i), f_i = 10000^(-i / half). */
void zoo_time_embedding(double step, int64_t features, float *out);
#endif
