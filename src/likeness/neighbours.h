/* neighbours.h: how real and synthetic features lie among each other: precision and recall
 * (Kynkaanniemi et al. 2019), density and coverage (Naeem et al. 2020). A row's ball reaches to its
 * k-th nearest neighbour in its own set. Deterministic. */
#ifndef LIKENESS_NEIGHBOURS_H
#define LIKENESS_NEIGHBOURS_H
#include "base/ctx.h"
#include "likeness/rows.h"

struct neighbour_scores {
    double precision; /* share of synthetic rows within any ball of a real one */
    double recall;    /* share of real rows within any ball of a synthetic one */
    double density;   /* real balls that a synthetic row is in, over k; about 1, no upper limit */
    double coverage;  /* share of real balls with a synthetic row in them */
};

/* More than k rows of each. Exact, O(n^2): 2 s for 5,000 rows of each with 57 columns. */
bool neighbours_score(const struct rows *real, const struct rows *synthetic, int64_t k,
                      const struct ctx *ctx, struct neighbour_scores *out, struct err *err);
#endif
