/* probe.h: a classifier prepared to be looked into: logits, activations of layers by name and the
 * gradient of a logit with respect to them. Forward passes use the kernels of inference up to the
 * first layer that is asked for; only what follows it is differentiated, and no gradients of
 * weights are computed.
 *
 * Images run in groups of a fixed size, each group on one thread: the first floor(n / group) groups
 * of a pass together, the images that are left over one by one. So the values of an image depend
 * neither on the number of threads nor on the other images; whether it is in a group or left over
 * may change the last digits. Used by one thread at a time; itself runs on `threads`. */
#ifndef EXPLAIN_PROBE_H
#define EXPLAIN_PROBE_H
#include "net/model/model.h"

struct probe;

/* The weights of a model as probes use them, for several probes of it that exist at the same time,
 * such as those of several threads. Thread-safe; must outlive the probes. NULL if no memory. */
struct probe_shared;
struct probe_shared *probe_shared_new(void);
void probe_shared_free(struct probe_shared *shared); /* NULL-safe */

#define PROBE_MOST_LAYERS 32

struct probe_options {
    /* Names as in `model show --layers`. "": the last spatial layer. None: the same, but with
     * forward_only no layer at all, which is the fastest. */
    const char *const *layers;
    int n_layers;
    int64_t height, width; /* of the network's input */
    int64_t batch;         /* images of a pass at most, 1 or more */
    int threads;
    bool input_gradient;         /* also with respect to the input */
    bool forward_only;           /* no gradients at all: for scores and activations */
    bool attention;              /* also the attention of a transformer; see probe_attention */
    struct probe_shared *shared; /* with other probes of the model; NULL: its own */
};

/* A layer as the probe sees it. Images are [N, C, h, w]. Tokens of a transformer [N, T, C] are
 * handed over as [N, C, h, w] without the class token: of T or T - 1 tokens (T and T - 1 are never
 * both possible) that fill a grid h x w of the proportions of the input; in the latter case the
 * first token is the class token. */
struct probe_layer {
    const char *name;
    int64_t channels, height, width; /* not spatial: height and width are 1 */
    bool spatial;
    bool tokens, class_token;
};

/* The model is one of model_open_classifier and must outlive the probe. Errors: a layer that is not
 * there (with the nearest name), that the logits do not depend on. *out is the caller's. */
bool probe_new(const struct model *model, const struct probe_options *options, struct probe **out,
               struct err *err);
void probe_free(struct probe *probe); /* NULL-safe */

int64_t probe_classes(const struct probe *probe);
int probe_n_layers(const struct probe *probe);
const struct probe_layer *probe_layer(const struct probe *probe, int layer);
/* The layer if it has an extent of more than 1 x 1; an error otherwise that names one that has. */
bool probe_need_spatial(const struct probe *probe, int layer, struct err *err);

/* From the next forward pass on: whether images run one by one, on all threads, so that every image
 * has the very bytes that it has in a pass of its own. Not at first. */
void probe_alone(struct probe *probe, bool alone);

/* Runs n <= batch images, input [n, 3, height, width] normalised as model_prepare does. */
bool probe_forward(struct probe *probe, const float *input, int64_t n, struct err *err);
/* [n, classes] of the last forward pass; the probe's. */
const float *probe_logits(const struct probe *probe);
/* After probe_forward, whose input must still be there: image i is differentiated from the logit of
 * class classes[i]. */
bool probe_backward(struct probe *probe, const int64_t *classes, struct err *err);
/* Both at once, which is faster where n is more than one group. */
bool probe_differentiate(struct probe *probe, const float *input, int64_t n, const int64_t *classes,
                         struct err *err);

/* Of all n images of the last pass: [n, C, h, w] of the layer; the probe's, plain, valid until the
 * next pass. */
const float *probe_activation(struct probe *probe, int layer, struct err *err);
const float *probe_gradient(struct probe *probe, int layer, struct err *err);
/* [n, 3, height, width], with options.input_gradient. */
const float *probe_input_gradient(struct probe *probe, struct err *err);

/* The attention of a transformer, from the first layer to the last: how much each token (row) takes
 * from each other one. */
struct probe_attention {
    int64_t heads, tokens;
    int64_t height, width; /* the tokens as an image, without the class token */
    bool class_token;      /* the first one */
    const float *values;   /* [n, heads, tokens, tokens] of the last pass; the probe's */
};
int probe_n_attention(const struct probe *probe); /* 0: not asked for, or not a transformer */
struct probe_attention probe_attention(const struct probe *probe, int i);
#endif
