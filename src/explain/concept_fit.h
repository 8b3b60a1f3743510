/* concept_fit.h: linear fits of concept values on the principal axes of a fold, for many versions
 * of the values at once (the concept itself and its permutations): columns of a matrix. */
#ifndef EXPLAIN_CONCEPT_FIT_H
#define EXPLAIN_CONCEPT_FIT_H
#include "explain/concept_basis.h"

#define CONCEPT_COLUMNS 32 /* fitted together */

struct concept_fit_options {
    bool pca;     /* least squares on the first axes instead of ridge on all */
    double ridge; /* penalty / mean of the variances; 0: chosen in the fold */
};

/* Scratch memory of a thread, for bases up to this size. */
struct concept_fit_work {
    double *values;                   /* [m, COLUMNS]: set by the caller */
    double *weights;                  /* [rank, COLUMNS]: the fits, along the axes */
    double *predicted;                /* [t, COLUMNS]: of the test patches */
    double *moved;                    /* [t, COLUMNS]: for the caller */
    double *axes, *momentum, *before; /* [rank, COLUMNS] */
    double *patches;                  /* [m, COLUMNS] */
    double penalty[CONCEPT_COLUMNS];  /* as chosen, / mean of the variances; 0 with pca */
    double intercept[CONCEPT_COLUMNS];
};
bool concept_fit_work_new(int64_t m, int64_t t, int64_t rank, struct concept_fit_work *out,
                          struct err *err);
void concept_fit_work_free(struct concept_fit_work *work);

/* Ridge, its penalty chosen by generalised cross-validation among CONCEPT_PENALTIES powers of
 * sqrt(10), from 1e-4 to 1e2 times the mean variance, unless given; or least squares on the first
 * axes that carry CONCEPT_PCA_SHARE of the variance. The intercept is not penalised. */
#define CONCEPT_PENALTIES 13
#define CONCEPT_PCA_SHARE 0.9
void concept_fit_numbers(const struct concept_basis *basis,
                         const struct concept_fit_options *options, struct concept_fit_work *work);

/* Logistic regression of values that are 0 or 1, with a quarter of the penalty that ridge would
 * use (the curvature of the logistic loss is a quarter at most). predicted: log odds. */
void concept_fit_answers(const struct concept_basis *basis,
                         const struct concept_fit_options *options, struct concept_fit_work *work);
#endif
