/* objective_classes.h: what objectives that predict one of several classes share: measures, files
 * and the model card. The truth of a prediction is the number of a class, its values are
 * probabilities. */
#ifndef TRAIN_OBJECTIVE_CLASSES_H
#define TRAIN_OBJECTIVE_CLASSES_H
#include "train/objective.h"

enum { CLASSES_N_MEASURES = 4 };
extern const struct measure classes_measures[CLASSES_N_MEASURES];
extern const char *const classes_plots[];

bool classes_judge(const struct learning *learning, const struct predictions *predictions,
                   double *values, struct err *err);
/* scores.csv, confusion.csv, .svg and .png */
bool classes_write(const struct learning *learning, const char *prefix,
                   const struct predictions *predictions, struct err *err);
void classes_describe(const struct learning *learning, struct model_config *card);
#endif
