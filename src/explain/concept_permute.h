/* concept_permute.h: concept values permuted among the patches of the same patient. What differs
 * between patients (staining, scanner) stays as it is, so it cannot make a concept significant.
 * Patients with a single patch are permuted among each other. */
#ifndef EXPLAIN_CONCEPT_PERMUTE_H
#define EXPLAIN_CONCEPT_PERMUTE_H
#include <stdint.h>
#include "base/err.h"

struct permuter {
    int64_t n;        /* patches with a value */
    int64_t *patches; /* [n], by block */
    int64_t *starts;  /* [n_blocks + 1] */
    int64_t n_blocks;
    int32_t patients; /* with a value */
};

/* values [n] (NaN: none), patient [n], numbers from 0. Free with permuter_free. */
bool permuter_new(const double *values, const int32_t *patient, int64_t n, struct permuter *out,
                  struct err *err);
void permuter_free(struct permuter *permuter);

/* Versions first, first + 1, .. of the values -> columns of out [n, CONCEPT_COLUMNS]; version 0 is
 * the values themselves, unpermuted. A version depends on the seed and its number alone. */
void permute_columns(const struct permuter *permuter, const double *values, int64_t first,
                     uint64_t seed, double *out);
#endif
