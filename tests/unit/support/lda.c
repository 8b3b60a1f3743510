/* lda.c: see lda.h. */
#include "tests/unit/support/lda.h"

#include <lapacke.h>
#include <string.h>

struct moments {
    double mean[2][LDA_FEATURES_MAX];
    double scatter[LDA_FEATURES_MAX * LDA_FEATURES_MAX]; /* within classes */
};

static void fit(const double *x, const int *labels, const int *groups, size_t n, int d, int n_folds,
                int fold, struct moments *m)
{
    double count[2] = { 0 };
    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < n; i++)
        if (groups[i] % n_folds != fold) {
            count[labels[i]]++;
            for (int f = 0; f < d; f++)
                m->mean[labels[i]][f] += x[i * (size_t)d + (size_t)f];
        }
    for (int k = 0; k < 2; k++)
        for (int f = 0; f < d; f++)
            m->mean[k][f] /= count[k] > 0 ? count[k] : 1;
    for (size_t i = 0; i < n; i++)
        if (groups[i] % n_folds != fold)
            for (int f = 0; f < d; f++)
                for (int g = 0; g < d; g++)
                    m->scatter[f * d + g] +=
                        (x[i * (size_t)d + (size_t)f] - m->mean[labels[i]][f]) *
                        (x[i * (size_t)d + (size_t)g] - m->mean[labels[i]][g]);
}

void lda_cross_validate(const double *features, const int *labels, const int *groups, size_t n,
                        int n_features, int n_folds, double *scores)
{
    int d = n_features;
    for (int fold = 0; fold < n_folds; fold++) {
        struct moments m;
        lapack_int pivots[LDA_FEATURES_MAX];
        double w[LDA_FEATURES_MAX];
        fit(features, labels, groups, n, d, n_folds, fold, &m);
        for (int f = 0; f < d; f++)
            w[f] = m.mean[1][f] - m.mean[0][f];
        LAPACKE_dgesv(LAPACK_ROW_MAJOR, d, 1, m.scatter, d, pivots, w, 1);
        for (size_t i = 0; i < n; i++)
            if (groups[i] % n_folds == fold) {
                scores[i] = 0; /* from the middle between the classes, so that folds compare */
                for (int f = 0; f < d; f++)
                    scores[i] += w[f] * (features[i * (size_t)d + (size_t)f] -
                                         (m.mean[0][f] + m.mean[1][f]) / 2);
            }
    }
}

double roc_area(const double *scores, const int *labels, size_t n)
{
    double right = 0, pairs = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (labels[i] == 1 && labels[j] == 0) {
                pairs++;
                right += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
            }
    return pairs > 0 ? right / pairs : 0.5;
}
