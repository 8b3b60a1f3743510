/* evaluate_roc.h: what the parts of `microtome evaluate roc` share: its curves. */
#ifndef CLI_EVALUATE_ROC_H
#define CLI_EVALUATE_ROC_H
#include "cli/evaluate.h"
#include "verdict/judgement.h"

#define MOST_CURVES 64

struct roc_curve {
    char *name;
    const char *path;
    struct scores scores;
    struct judgement all;
    struct judged_groups groups; /* of --by */
};

struct roc_run {
    struct app *app;
    const struct evaluate_options *o;
    struct roc_curve curves[MOST_CURVES];
    int n;
};

/* A calibration curve was requested, and some scores are probabilities. */
bool evaluate_roc_calibrated(const struct roc_run *run);
/* Standard output: text, JSON or CSV. */
bool evaluate_roc_print(struct roc_run *run, struct err *err);
/* Pictures, and tables of points, of the ROC, precision-recall and calibration curves. */
bool evaluate_roc_draw(const struct roc_run *run, struct err *err);
#endif
