/* classifier.h: a model whose output is one score for each class of an image. The network may end
 * in logits or have its softmax or sigmoid built in; the latter is recognised, so that no second
 * one is applied. */
#ifndef NET_CLASSIFIER_H
#define NET_CLASSIFIER_H
#include "net/model.h"

/* Refuses a network that does not take one RGB image or does not give class scores, and finds out
 * what its outputs are (`given` overrules). Where it ends in softmax, log softmax or sigmoid, that
 * layer is taken off the graph: what remains gives logits, as in all other models, and model_score
 * does what the layer did. */
bool model_as_classifier(struct model *model, enum model_outputs given, struct err *err);
/* model_open, and this with source->outputs. */
bool model_open_classifier(const struct model_source *source, struct model **out, struct err *err);

/* Whether `graph`, the model's at some size and batch, takes RGB and gives one score for each class
 * of each image. At other sizes it may give a map. */
bool model_check_classifies(const struct model *model, const struct graph *graph, struct err *err);

/* The outputs [classes] of the model's graph for one image -> its scores. Refuses what is not a
 * probability where the outputs are taken for probabilities. NaN gives NaN. */
bool model_score(const struct model *model, const float *outputs, double *scores, struct err *err);

/* Outputs that would be taken for logits although each lies between 0 and 1 and they add up to 1.
 * For one image that may be chance, though hardly. Always false where source->outputs was given. */
bool model_seems_scored(const struct model *model, const float *outputs);
bool model_refuse_scored(const struct model *model, struct err *err);

/* The layer in which the network ends: "Softmax", "LogSoftmax", "Sigmoid"; NULL if none of these.
 */
const char *model_ending(const struct model *model);

#define MODEL_OUTPUTS_TEXT 160
/* What the outputs are and how they become scores, in words, in `text`. *usual: softmax or sigmoid
 * of logits, which need not be mentioned. */
const char *model_outputs_text(const struct model *model, char text[MODEL_OUTPUTS_TEXT],
                               bool *usual);
/* The same as one word, for the record; "logits" if it is as usual. */
const char *model_outputs_word(const struct model *model);
#endif
