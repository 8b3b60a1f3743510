/* score_texts.h: a table of texts and a model that was trained on texts -> its scores, as CSV: id,
 * label and score_<class>. A text becomes tokens as in training, so scores equal those of
 * validation. Any number of threads gives the same scores but for rounding. */
#ifndef TRAIN_SCORE_TEXTS_H
#define TRAIN_SCORE_TEXTS_H
#include "base/ctx.h"
#include "base/csv.h"
#include "base/err.h"
#include "net/model/model_config.h"
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
    bool windows;              /* which are read in windows, so that nothing is lost */
    int64_t labelled, correct; /* with a label that is a class; whose class has the highest score */
};

/* Is this a model of texts? What cannot be read is none. */
bool score_texts_takes(const char *model);
/* Columns of such a table; -1: absent. */
struct score_columns {
    int text, label, id;
};
bool score_columns_find(const struct csv *csv, const struct model_text *text,
                        struct score_columns *out, struct err *err);
bool score_texts_run(const struct score_texts_request *request, const struct ctx *ctx,
                     struct score_texts_result *out, struct err *err);
#endif
