/* nearest.h: do samples of a generator copy its training data? Of every sample the distance to the
 * nearest training image over that to the nearest image that was kept out: about 1 if it learnt
 * what tissue looks like, far below if it remembers. */
#ifndef AUDIT_NEAREST_H
#define AUDIT_NEAREST_H
#include <stdint.h>
#include "audit/binomial.h"
#include "base/ctx.h"
#include "base/err.h"
#include "base/image.h"

#define NEAREST_PX 32
#define NEAREST_SIZE (3 * NEAREST_PX * NEAREST_PX)
#define NEAREST_COPY 0.5 /* a ratio below is a copy */

/* An image -> what is compared: the means of NEAREST_PX x NEAREST_PX parts, [NEAREST_SIZE], 0..1;
 * a smaller image is enlarged. */
bool nearest_view(const struct image *image, float *out, struct err *err);

struct nearest {
    int64_t samples;
    double median;        /* of the ratios */
    struct share nearer;  /* samples nearer to training than to what was kept out; about half */
    struct share copies;  /* samples whose ratio is below NEAREST_COPY */
    int64_t planted;      /* duplicates of training images, slightly noisy: the control */
    struct share noticed; /* of them, that are called copies */
    bool works;           /* the control was noticed */
};

/* samples [n_samples, NEAREST_SIZE], trained and kept likewise; of the larger of the two as many
 * are taken as the smaller has, so that both have the same chance. ratios [n_samples] may be NULL.
 * seed: of the control. */
bool nearest_audit(const float *samples, int64_t n_samples, const float *trained, int64_t n_trained,
                   const float *kept, int64_t n_kept, uint64_t seed, const struct ctx *ctx,
                   double *ratios, struct nearest *out, struct err *err);
#endif
