/* score_recordings.h: scores of a table of recordings by a model that was trained on recordings
 * (score_table.h). A recording becomes frames as the model's config.json says. */
#ifndef TRAIN_SCORE_RECORDINGS_H
#define TRAIN_SCORE_RECORDINGS_H
#include "train/score_table.h"

/* Is this a model of recordings? What cannot be read is none. */
bool score_recordings_takes(const char *model);
extern const struct score_kind score_recordings;
#endif
