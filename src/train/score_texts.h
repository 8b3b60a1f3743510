/* score_texts.h: a table of texts and a model that was trained on texts -> its scores, as CSV: id,
 * label and score_<class>. A text becomes tokens as in training, so scores equal those of
 * validation. Any number of threads gives the same scores but for rounding. */
#ifndef TRAIN_SCORE_TEXTS_H
#define TRAIN_SCORE_TEXTS_H
#include "base/ctx.h"
#include "base/err.h"
#include <stdint.h>

struct score_texts_request {
    const char *model;  /* folder of a training, or the weights in it */
    const char *table;  /* CSV with the columns that the training's tables had; labels may lack */
    const char *folder; /* gets scores.csv; made if needed */
    bool overwrite;
};

struct score_texts_result {
    int64_t n;                 /* texts */
    int64_t cut;               /* of them longer than the network takes */
    int64_t labelled, correct; /* with a label that is a class; whose class has the highest score */
};

/* Is this a model of texts? What cannot be read is none. */
bool score_texts_takes(const char *model);
bool score_texts_run(const struct score_texts_request *request, const struct ctx *ctx,
                     struct score_texts_result *out, struct err *err);
#endif
