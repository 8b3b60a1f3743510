/* probe.h: a classifier prepared to be looked into: logits, activations of layers by name and the
 * gradient of a logit with respect to them. Forward passes use the kernels of inference up to the
 * first layer that is asked for; only what follows it is differentiated, and no gradients of
 * weights are computed. The values do not depend on the number of threads, nor on what else is in a
 * batch. Used by one thread at a time; itself runs on `threads`. */
#ifndef EXPLAIN_PROBE_H
#define EXPLAIN_PROBE_H
#include "net/model/model.h"

struct probe;

#define PROBE_MOST_LAYERS 32

struct probe_options {
    const char *const *layers; /* names as in `model show --layers`; "" or none: the last spatial */
    int n_layers;
    int64_t height, width; /* of the network's input */
    int64_t batch;         /* images that run together, 1 or more */
    int threads;
    bool input_gradient; /* also with respect to the input */
    bool forward_only;   /* no gradients at all: for scores and activations */
};

/* A layer as the probe sees it. Images are [N, C, h, w]; tokens of a transformer [N, T, C] are
 * handed over as [N, C, h, w] without the class token. */
struct probe_layer {
    const char *name;
    int64_t channels, height, width; /* not spatial: height and width are 1 */
    bool spatial;
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

/* Runs n <= batch images, input [n, 3, height, width] normalised as model_prepare does. */
bool probe_forward(struct probe *probe, const float *input, int64_t n, struct err *err);
/* [n, classes] of the last forward pass; the probe's. */
const float *probe_logits(const struct probe *probe);
/* After a forward pass: image i is differentiated from the logit of class classes[i]. */
bool probe_backward(struct probe *probe, const int64_t *classes, struct err *err);

/* Of all n images of the last pass: [n, C, h, w] of the layer; the probe's, plain, valid until the
 * next pass. */
const float *probe_activation(struct probe *probe, int layer, struct err *err);
const float *probe_gradient(struct probe *probe, int layer, struct err *err);
/* [n, 3, height, width], with options.input_gradient. */
const float *probe_input_gradient(struct probe *probe, struct err *err);
#endif
