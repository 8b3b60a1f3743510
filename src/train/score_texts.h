/* score_texts.h: scores of a table of texts by a model that was trained on texts (score_table.h). A
 * text becomes tokens as in training, so scores equal those of validation. Any number of threads
 * gives the same scores but for rounding. */
#ifndef TRAIN_SCORE_TEXTS_H
#define TRAIN_SCORE_TEXTS_H
#include "train/score_table.h"

/* Is this a model of texts? What cannot be read is none. */
bool score_texts_takes(const char *model);
struct score_names score_texts_names(const struct model_config *config);
extern const struct score_kind score_texts;
#endif
