/* objective_texts.h: what objectives that learn from texts share (objective.h). */
#ifndef TRAIN_OBJECTIVE_TEXTS_H
#define TRAIN_OBJECTIVE_TEXTS_H
#include "train/objective.h"

/* Are the starting weights those of this vocabulary? They are if the tokenizer beside them is the
 * same file, or if none is there. */
bool texts_check_start(const struct learning *learning, struct err *err);
/* Hook: the tokenizer beside the weights. */
bool texts_accompany(const struct learning *learning, const char *folder, struct err *err);
#endif
