/* objective_classify.h: what objectives share whose networks give a score for every class of a
 * sample, whatever the sample is: the hooks of objective.h. */
#ifndef TRAIN_OBJECTIVE_CLASSIFY_H
#define TRAIN_OBJECTIVE_CLASSIFY_H
#include "train/objective_classes.h"

extern const struct objective_loss classify_losses[];

bool classify_settle(struct train_config *config, struct err *err);
bool classify_inputs(struct learning *learning, struct err *err);
bool classify_loss(struct learning *learning, const struct comparison *c, double *loss,
                   struct err *err);
bool classify_keep(struct learning *learning, const struct comparison *c, double loss_sum,
                   struct predictions *to, struct err *err);
void classify_predict(const struct learning *learning, const float *outputs, double *values);
void classify_restore(const struct learning *learning, const double *values, float *outputs);
void classify_describe(const struct learning *learning, struct model_config *card);
void classify_free(struct learning *learning);

/* Outputs of a network for n classes -> scores, and back; independent: a sigmoid of each. */
void classify_scores(const float *outputs, int64_t n, bool independent, double *scores);
void classify_outputs(const double *scores, int64_t n, bool independent, float *outputs);

/* What all classifiers have in common, whatever they take; not the name, takes, feeds, build and
 * describe. */
#define OBJECTIVE_OF_CLASSES                                                                       \
    .truth = TRUTH_LABELS, .output = "logits", .losses = classify_losses,                          \
    .measures = classes_measures, .n_measures = CLASSES_N_MEASURES, .plots = classes_plots,        \
    .monitor = "auc", .mode = PLAN_TRAIN, .test = true, .settle = classify_settle,                 \
    .inputs = classify_inputs, .loss = classify_loss, .keep = classify_keep,                       \
    .predict = classify_predict, .restore = classify_restore, .judge = classes_judge,              \
    .write = classes_write, .free = classify_free
#endif
