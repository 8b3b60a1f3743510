/* patch_nuclei.h: the nuclei of patches, summed up over a set of them. */
#ifndef LIKENESS_PATCH_NUCLEI_H
#define LIKENESS_PATCH_NUCLEI_H
#include "likeness/patch_set.h"

/* Of one patch, or of several: sums over nuclei that are not cut off. */
struct nuclei_sums {
    bool measured;
    int64_t all, whole;
    double area_mm2; /* of the patches */
    double sum[NUCLEUS_FEATURES], squares[NUCLEUS_FEATURES];
    int64_t n[NUCLEUS_FEATURES]; /* where the feature is defined */
};

/* Why nuclei of such patches cannot be measured; NULL: they can. */
const char *patch_nuclei_problem(int64_t width, int64_t height, double mpp);
/* Thread-safe. */
bool patch_nuclei_measure(const struct image *rgb, double mpp, struct nuclei_sums *out,
                          struct err *err);
/* sums [n], those that were measured, in their order. */
void patch_nuclei_summary(const struct nuclei_sums *sums, int64_t n, struct patch_nuclei *out);
#endif
