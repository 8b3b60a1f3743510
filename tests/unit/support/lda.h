/* lda.h: Fisher's linear discriminant, cross-validated over groups, and the area under the ROC
 * curve: enough to ask whether features separate two classes. */
#ifndef TESTS_LDA_H
#define TESTS_LDA_H
#include <stddef.h>

enum { LDA_FEATURES_MAX = 8 };

/* features [n, n_features]; labels 0 or 1; groups tell which samples are held out together, in
 * n_folds folds of group % n_folds. scores [n] are what the other folds' discriminant gives. */
void lda_cross_validate(const double *features, const int *labels, const int *groups, size_t n,
                        int n_features, int n_folds, double *scores);

/* The share of (1, 0) pairs in the right order; ties count half. */
double roc_area(const double *scores, const int *labels, size_t n);
#endif
