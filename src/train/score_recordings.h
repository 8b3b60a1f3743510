/* score_recordings.h: a table of recordings and a model that was trained on recordings -> its
 * scores, as those of texts (score_texts.h). A recording becomes frames as the model's config.json
 * says. */
#ifndef TRAIN_SCORE_RECORDINGS_H
#define TRAIN_SCORE_RECORDINGS_H
#include "train/score_texts.h"

/* Is this a model of recordings? What cannot be read is none. */
bool score_recordings_takes(const char *model);
bool score_recordings_run(const struct score_texts_request *request, const struct ctx *ctx,
                          struct score_texts_result *out, struct err *err);
#endif
