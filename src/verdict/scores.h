/* scores.h: a column of slide scores with the truth of every slide, from one CSV or from two. */
#ifndef VERDICT_SCORES_H
#define VERDICT_SCORES_H
#include <stdbool.h>
#include <stdint.h>
#include "verdict/slide_table.h"

struct scores_request {
    const char *path; /* the CSV with the scores */
    const char *slide_column, *score_column, *label_column;
    const char *positive_word; /* of a label; NULL: labels are 0 and 1 */
    const char *truth_path;    /* a CSV with slides and labels; NULL: they are in `path` */
    bool allow_missing;        /* slides without a score or without a label are left out */
};

struct scores {
    struct slide_table table;
    int64_t n;                            /* slides with score and label, sorted by name */
    const char **slides;                  /* [n] point into the table */
    double *values;                       /* [n] finite */
    bool *positive;                       /* [n] */
    int64_t without_label, without_score; /* slides that were left out */
};

/* *out is the caller's; free with scores_free. */
bool scores_read(const struct scores_request *request, struct scores *out, struct err *err);
void scores_free(struct scores *scores); /* also fine on a zeroed struct */

/* The same slides with the same labels, so that the scores can be compared pair by pair. */
bool scores_are_paired(const struct scores *a, const struct scores *b);
#endif
