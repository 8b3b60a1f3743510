/* lda.c: see lda.h. */
#include "tests/unit/support/lda.h"

#include <math.h>
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

/* a [d, d] x = b by elimination with pivots; x replaces b. */
static void solve(double *a, double *b, int d)
{
    for (int k = 0; k < d; k++) {
        int pivot = k;
        for (int i = k + 1; i < d; i++)
            pivot = fabs(a[i * d + k]) > fabs(a[pivot * d + k]) ? i : pivot;
        for (int j = 0; j < d; j++) {
            double held = a[k * d + j];
            a[k * d + j] = a[pivot * d + j], a[pivot * d + j] = held;
        }
        double held = b[k];
        b[k] = b[pivot], b[pivot] = held;
        for (int i = k + 1; i < d; i++) {
            double factor = a[i * d + k] / a[k * d + k];
            for (int j = k; j < d; j++)
                a[i * d + j] -= factor * a[k * d + j];
            b[i] -= factor * b[k];
        }
    }
    for (int k = d - 1; k >= 0; k--) {
        for (int j = k + 1; j < d; j++)
            b[k] -= a[k * d + j] * b[j];
        b[k] /= a[k * d + k];
    }
}

void lda_cross_validate(const double *features, const int *labels, const int *groups, size_t n,
                        int n_features, int n_folds, double *scores)
{
    int d = n_features;
    for (int fold = 0; fold < n_folds; fold++) {
        struct moments m;
        double w[LDA_FEATURES_MAX];
        fit(features, labels, groups, n, d, n_folds, fold, &m);
        for (int f = 0; f < d; f++)
            w[f] = m.mean[1][f] - m.mean[0][f];
        solve(m.scatter, w, d);
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
