/* classifier.h: a model that returns one score per class for an image. The network may end in
 * logits or in a built-in softmax or sigmoid, which is recognised so that no second one is applied.
 */
#ifndef NET_MODEL_CLASSIFIER_H
#define NET_MODEL_CLASSIFIER_H
#include "net/model/model.h"

/* Whether it predicts a number instead (objective regress): its one "class" is the number. */
bool model_predicts_number(const struct model *model);

/* Whether it gives features (num_classes 0): model->n_scores numbers, which are no scores. */
bool model_gives_features(const struct model *model);
/* Numbers for an image: classes, or features. */
int64_t model_count(const struct model *model);
/* Of such a model, what model_as_classifier is for others; model_score then gives the features. */
bool model_as_extractor(struct model *model, enum model_outputs given, struct err *err);

/* Rejects a network whose input is not one RGB image or whose output is not class scores, and
 * determines what its outputs are (`given` overrides). If it ends in softmax, log softmax or
 * sigmoid, that layer is removed from the graph: the rest returns logits, as in all other models,
 * and model_score does what the layer did. */
bool model_as_classifier(struct model *model, enum model_outputs given, struct err *err);
/* model_open, then model_as_classifier with source->outputs. */
bool model_open_classifier(const struct model_source *source, struct model **out, struct err *err);

/* Whether `graph`, the model's at some size and batch, expects RGB and returns one score per class
 * for each image. At other sizes it may return a map. */
bool model_check_classifies(const struct model *model, const struct graph *graph, struct err *err);

/* The outputs [classes] of the model's graph for one image -> its scores, or its number. If the
 * outputs are used as probabilities, anything that is not one is an error. NaN gives NaN. */
bool model_score(const struct model *model, const float *outputs, double *scores, struct err *err);

/* Whether outputs treated as logits are all between 0 and 1 and add up to 1. For one image that may
 * be chance, though it is unlikely. Always false if source->outputs was given. */
bool model_seems_scored(const struct model *model, const float *outputs);
bool model_refuse_scored(const struct model *model, struct err *err);

/* The layer the network ends in: "Softmax", "LogSoftmax", "Sigmoid"; NULL if none of these. */
const char *model_ending(const struct model *model);

#define MODEL_OUTPUTS_TEXT 160
/* Describes in `text` what the outputs are and how they become scores. *usual: softmax or sigmoid
 * of logits, which need not be mentioned. */
const char *model_outputs_text(const struct model *model, char text[MODEL_OUTPUTS_TEXT],
                               bool *usual);
/* The same as one word, for heatmap.json; "logits" in the usual case. */
const char *model_outputs_word(const struct model *model);
#endif
