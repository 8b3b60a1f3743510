/* score_table.h: scores.csv of a table whose rows a model scores: id, label and score_<class>. */
#ifndef TRAIN_SCORE_TABLE_H
#define TRAIN_SCORE_TABLE_H
#include <stdio.h>
#include "base/csv.h"
#include "net/model/model_config.h"
#include "train/score_texts.h"

/* A row of the table; label and id are columns, -1: none. Without an id it is the row's number. */
struct score_table_row {
    const struct csv *csv;
    size_t row;
    int label, id;
};

void score_table_header(FILE *stream, const struct model_config *config);
/* logits [classes] of the row; scores [classes] is room. Counts the row in *result. */
void score_table_write(FILE *stream, const struct model_config *config,
                       const struct score_table_row *row, const float *logits, double *scores,
                       struct score_texts_result *result);
#endif
