/* lime.h: the arithmetic of LIME (Ribeiro et al. 2016) as the package `lime` does it for images:
 * which superpixels are on, how much a sample counts, and the linear model of the scores. */
#ifndef EXPLAIN_LIME_H
#define EXPLAIN_LIME_H
#include "explain/explainer.h"

/* on [samples, segments], 1 or 0 with equal chance; row 0 is all ones. A row depends on (key, its
 * number) alone. */
void lime_draw(uint64_t key, int64_t samples, int64_t segments, uint8_t *on);

/* sqrt(exp(-d^2 / 0.25^2)), where d is the cosine distance of a row with n_on ones from that of all
 * ones: 1 - sqrt(n_on / segments). */
double lime_weight(int64_t n_on, int64_t segments);

/* Weighted ridge regression of y [samples] on the rows, penalty 1, intercept not penalised. coef
 * [segments]. */
bool lime_fit(const uint8_t *on, const double *y, int64_t samples, int64_t segments, double *coef,
              double *intercept, struct err *err);

/* Which pixels belong together, and which of these areas each sample leaves as they are. */
struct lime_samples {
    const int32_t *labels; /* [height, width] of the network's input: 0 to segments - 1, all used */
    int64_t segments;
    const uint8_t *on; /* [n, segments] */
    int64_t n;
};
/* All of LIME for one view but the choice of samples: areas that are off have their mean colour; y
 * is the score of the class. coef [segments]. */
bool lime_explain(const struct explain_settings *settings, struct probe *probe,
                  const struct explain_view *view, const struct lime_samples *samples,
                  const struct ctx *ctx, double *coef, double *intercept, struct err *err);
#endif
