/* power.h: how well an attack tells members of the training data from others: the area under its
 * ROC curve, and how many members it finds at few false alarms. */
#ifndef AUDIT_POWER_H
#define AUDIT_POWER_H
#include "audit/binomial.h"
#include "audit/one_run.h"
#include "base/ctx.h"
#include "base/err.h"
#include "verdict/roc.h"

#define POWER_CONFIDENCE 0.95
#define POWER_SURE 3.0 /* standard errors of an area above one half that are no accident */
#define POWER_POINTS 2 /* 1 % and 0.1 % false positives */

/* What is promised; epsilon is infinite if nothing is. */
struct promise {
    double epsilon, delta;
};

/* The highest true positive rate at a false positive rate that is at most the wanted one. */
struct power_point {
    double wanted;
    struct share fpr, tpr; /* exact 95 % intervals */
    double limit;          /* e^epsilon FPR + delta, at the upper end of FPR's interval */
    bool above;            /* the lower end of TPR is above that: the promise is broken */
};

struct power {
    struct roc roc; /* DeLong's interval of the area; points of the curve */
    struct power_point at[POWER_POINTS];
    struct one_run one_run;
    bool chance; /* neither the area nor a point is better than chance, for sure */
};

/* scores [n], higher: rather a member; finite. coins: members were drawn by fair coins, so that the
 * one-run bound holds; else its fields are 0. *out is the caller's; free with power_free. */
bool power_of(const double *scores, const bool *member, int64_t n, struct promise promise,
              bool coins, const struct ctx *ctx, struct power *out, struct err *err);
void power_free(struct power *power);
#endif
