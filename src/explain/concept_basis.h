/* concept_basis.h: the activations of a layer for all patches, and for each fold the principal axes
 * of its training patches. All fits of a fold (every concept, every permutation) are made in these
 * coordinates: the decomposition is computed once, a fit then costs two products. */
#ifndef EXPLAIN_CONCEPT_BASIS_H
#define EXPLAIN_CONCEPT_BASIS_H
#include <stdint.h>
#include "base/ctx.h"
#include "base/err.h"

/* activations [n, p]; gradients [n, p]: of the logit with respect to them. */
struct concept_space {
    int64_t n, p;
    float *activations, *gradients;
    double *gram;  /* [n, n]: activations times activations; NULL: p is small */
    double *cross; /* [n, n]: gradients times activations; likewise */
};

/* Takes both arrays over (malloc), centres the activations and, if p is large, multiplies them by
 * all threads of the pool: n n p * 3 floating-point operations. Free with concept_space_free, also
 * after a failure. */
bool concept_space_make(int64_t n, int64_t p, float *activations, float *gradients,
                        const struct ctx *ctx, struct concept_space *out, struct err *err);
void concept_space_free(struct concept_space *space); /* also fine on a zeroed struct */

/* The principal axes of m training patches, and t test patches in their coordinates. */
struct concept_basis {
    int64_t m, t, rank;
    int64_t *train, *test; /* [m], [t]: patches */
    double *variances; /* [rank], descending: sums of squares along the axes, over the patches */
    double *units;     /* [m, rank]: coordinates of the training patches / sqrt(variances) */
    double *units_by_axis;  /* [rank, m]: the same */
    double *test_scores;    /* [t, rank]: coordinates of the test patches */
    double *test_gradients; /* [t, rank]: derivatives along the axes */
};

/* fold [n]: the fold of each patch, -1: not used. Its axes come from the patches of all other
 * folds. *out is the caller's; free with concept_basis_free, also after a failure. Thread-safe. */
bool concept_basis_make(const struct concept_space *space, const int *fold, int which,
                        struct concept_basis *out, struct err *err);
void concept_basis_free(struct concept_basis *basis); /* also fine on a zeroed struct */

/* weights [rank] along the axes -> the direction [p] in the space of the activations, of length 1;
 * all 0 if the weights are. */
bool concept_basis_direction(const struct concept_space *space, const struct concept_basis *basis,
                             const double *weights, double *direction, struct err *err);
#endif
