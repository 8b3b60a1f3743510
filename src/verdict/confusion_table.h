/* confusion_table.h: a table of scores or of predicted classes, with the true class of every row ->
 * a confusion matrix. */
#ifndef VERDICT_CONFUSION_TABLE_H
#define VERDICT_CONFUSION_TABLE_H
#include "verdict/confusion.h"

/* A row is called: the class in predicted_column; or, of three classes and more, the one with the
 * highest score of the columns prob_<class>, the first of equals; or the second of two classes if
 * its score is at least the threshold. */
struct confusion_table_request {
    const char *path; /* the CSV with the scores */
    const char *slide_column, *label_column;
    const char *truth_path;       /* a CSV with slides and labels; NULL: they are in `path` */
    bool allow_missing;           /* slides without a score or without a label are skipped */
    const char *predicted_column; /* NULL: `predicted`, if there is such a column and no score */
    const char *score_column;     /* NULL: prob_<class>, or else `score` */
    double threshold;             /* of a single score */
    const char *positive_word;    /* of a single score: labels are words, and this one is the second
                                   * class; NULL: labels are 0 and 1, normal and tumor */
    const struct class_list *classes; /* in this order; NULL: those of the columns prob_<class>, or
                                       * all that occur, numbers first */
};

struct confusion_table {
    struct confusion confusion;
    int64_t without_label, without_score; /* slides that were skipped */
};

/* *out is the caller's; free with confusion_free(&out->confusion). */
bool confusion_of_table(const struct confusion_table_request *request, struct confusion_table *out,
                        struct err *err);
#endif
