/* concept_score.h: a concept in a layer: whether it is learnt (R2 by cross-validation over
 * patients) and whether it matters (the sensitivity of the logit along its direction, TCAV, Br),
 * each against chance. docs/explain.md has the definitions. */
#ifndef EXPLAIN_CONCEPT_SCORE_H
#define EXPLAIN_CONCEPT_SCORE_H
#include <stdint.h>
#include "explain/concept_fit.h"

#define CONCEPT_MOST_FOLDS 20

/* What is known of all n patches. */
struct concept_sample {
    int64_t n;
    const double *values;   /* [n]; NaN: the patch has none */
    const int32_t *patient; /* [n] */
    const int *fold;        /* [n]: by patient, from concept_folds */
    int n_folds;
    bool answers; /* the values are 0 or 1: yes or no */
};

struct concept_score_options {
    struct concept_fit_options fit;
    int64_t permutations;
    uint64_t seed;
};

/* NaN where undefined. For answers `quality` is the area under the ROC curve instead of R2. */
struct concept_score {
    int64_t n;
    int32_t patients;
    int folds;
    double quality;                          /* mean over the folds that have one */
    double fold_quality[CONCEPT_MOST_FOLDS]; /* NaN: the concept does not vary in the fold */
    double accuracy;                         /* of answers, over all patches */
    double penalty;                          /* of the ridge / mean variance, median of the folds */
    double tcav;                             /* share of the patches with S > 0 */
    double mean_s, std_s;                    /* of S over the patches; the population's deviation */
    double br;         /* R2 mean_s / std_s; NaN for answers, and if S does not vary */
    double agreement;  /* mean cosine between the directions of two folds */
    double p_quality;  /* against permuted values */
    double p_permuted; /* of |mean_s|, against directions of permuted values */
    double p_random;   /* of |mean_s|, against random directions */
};

/* Why there may be no score. */
enum concept_state {
    CONCEPT_SCORED,
    CONCEPT_CONSTANT,     /* all values are the same */
    CONCEPT_FEW_PATIENTS, /* the patches with a value are of fewer patients than folds */
    CONCEPT_FEW_PATCHES,  /* fewer than CONCEPT_LEAST in a fold */
    CONCEPT_DEAD_LAYER,   /* the layer is the same for all patches */
};
#define CONCEPT_LEAST 3 /* patches with a value in each fold; twice as many outside of it */
enum concept_state concept_can_score(const struct concept_sample *sample);

/* The bases of all folds for the patches that have a value. Kept from concept to concept: made
 * again only if other patches have one. */
struct concept_bases {
    const struct concept_space *space;
    struct concept_basis folds[CONCEPT_MOST_FOLDS];
    int n_folds;
    int *fold; /* [n] that they were made for; NULL: none yet */
};
bool concept_bases_need(const struct concept_space *space, const struct concept_sample *sample,
                        const struct ctx *ctx, struct concept_bases *bases, struct err *err);
void concept_bases_free(struct concept_bases *bases); /* also fine on a zeroed struct */

/* sensitivities [n]: S = gradient . direction of the folds that the patch is not in; NaN: the patch
 * has no value. direction [p]: the mean of those of the folds, of length 1. *state: CONCEPT_SCORED,
 * or why out has nothing but n and patients (then direction and sensitivities are not written). */
bool concept_score(const struct concept_sample *sample, const struct concept_score_options *options,
                   const struct concept_space *space, struct concept_bases *bases,
                   const struct ctx *ctx, enum concept_state *state, struct concept_score *out,
                   double *sensitivities, double *direction, struct err *err);

/* Patients [n_patients] of counts[] patches -> fold of each, so that folds have about the same
 * number of patches. The order of equal counts follows from the names and the seed. */
bool concept_folds(const int64_t *counts, char *const *names, int32_t n_patients, int n_folds,
                   uint64_t seed, int *fold, struct err *err);

/* p [n] -> adjusted by Holm's method, in place; NaN: not tested, stays. False: out of memory. */
bool concept_holm(double *p, size_t n, struct err *err);
#endif
