/* probe_layers.h: which values of a network a probe looks at, and how their numbers are handed
 * over. Internal to the probe. */
#ifndef EXPLAIN_PROBE_LAYERS_H
#define EXPLAIN_PROBE_LAYERS_H
#include "explain/probe.h"

/* The numbers of a value of the graph, of one image. */
struct probe_watch {
    value_id value;
    struct probe_layer layer; /* name: the graph's, or as it was asked for */
    int64_t stored;           /* floats of an image as the network has them */
    int64_t floats;           /* as they are handed over: layers without the class token */
};

/* graph: the model's, at batch 1. name "": the last spatial layer. *out has the graph's strings.
 * model_name: for messages. */
bool probe_watch_layer(const struct graph *graph, const char *model_name, const char *name,
                       struct probe_watch *out, struct err *err);
/* The last spatial layer: the output of the last node that is an image, or tokens. Of a network
 * with a class token, which alone reaches the logits behind the last attention: the tokens that the
 * last attention is computed from. NO_VALUE: none. */
value_id probe_last_spatial(const struct graph *graph);
/* The name that a user would type: the shortest alias, or the node's. */
const char *probe_name_of(const struct graph *graph, value_id value);
/* The attention matrices [1, heads, T, T] (or [heads, T, T]) of tokens that fill a grid, in the
 * order of the network, into out [graph->n_nodes]; returns how many. layer has the grid, and the
 * heads as channels. */
int probe_watch_attention(const struct graph *graph, struct probe_watch *out);

/* Of n images: from the network's order to that of struct probe_layer. Tokens only; images are the
 * same in both. */
void probe_hand_over(const struct probe_watch *watch, int64_t n, const float *from, float *to);
#endif
