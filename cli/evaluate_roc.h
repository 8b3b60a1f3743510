/* evaluate_roc.h: what the parts of `microtome evaluate roc` share: its curves. */
#ifndef CLI_EVALUATE_ROC_H
#define CLI_EVALUATE_ROC_H
#include "cli/evaluate.h"
#include "verdict/judgement.h"
#include "verdict/roc_classes.h"

#define MOST_CURVES 64

struct roc_curve {
    char *name;
    const char *path;
    int table, class_index; /* a class of run->tables[table] against the others; -1: two classes */
    struct scores scores;
    struct judgement all;
    struct judged_groups groups; /* of --by */
};

/* A file with a score per class, for three classes and more. */
struct roc_table {
    char *name;
    int first, n; /* its curves */
    struct roc_classes means;
};

struct roc_run {
    struct app *app;
    const struct evaluate_options *o;
    struct roc_curve curves[MOST_CURVES];
    int n;
    struct roc_table tables[MOST_CURVES];
    int n_tables;
};

/* The curves of a file with the columns prob_<class> for these classes, at least two. Of two, only
 * the second has a curve. */
bool evaluate_roc_classes(struct roc_run *run, const char *path, bool many_files,
                          const struct class_list *classes, struct err *err);
/* Adds a curve and reads its scores. classes NULL: two classes, class_index 0. Takes over name. */
bool evaluate_roc_add(struct roc_run *run, const char *path, const char *column, char *name,
                      const struct class_list *classes, size_t class_index, struct err *err);
/* Computes the last curve. */
bool evaluate_roc_judge(struct roc_run *run, struct err *err);
/* Removes the last curve. */
void evaluate_roc_drop(struct roc_run *run);

/* A calibration curve was requested, and some scores are probabilities. */
bool evaluate_roc_calibrated(const struct roc_run *run);
/* Standard output: text, JSON or CSV. */
bool evaluate_roc_print(struct roc_run *run, struct err *err);
/* Pictures, and tables of points, of the ROC, precision-recall and calibration curves. */
bool evaluate_roc_draw(const struct roc_run *run, struct err *err);
#endif
