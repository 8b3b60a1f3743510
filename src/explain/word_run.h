/* word_run.h: a table of texts and a model of texts -> pages with the words that its scores come
 * from: texts/<row>.html, index.html, and words.csv with the weight of every word. One text is in
 * work at a time; index.html is the last file that is written. */
#ifndef EXPLAIN_WORD_RUN_H
#define EXPLAIN_WORD_RUN_H
#include "base/ctx.h"
#include "base/err.h"
#include <stdint.h>

struct word_request {
    const char *model; /* folder of a training, or the weights in it */
    const char *table; /* CSV with the columns that the training's tables had; labels may lack */
    const char *folder;
    const char *methods;    /* names, separated by commas; NULL: all */
    const char *class_name; /* NULL: of every text that with the highest score */
    int64_t steps;          /* of integrated gradients */
    bool overwrite;
};

struct word_result {
    int64_t texts, words;
    bool integrated;   /* by gradients */
    double most_apart; /* of all texts: the sum of the weights from the difference of the logits */
    double most_between; /* the largest of these differences */
};

bool word_run(const struct word_request *request, const struct ctx *ctx, struct word_result *out,
              struct err *err);
#endif
