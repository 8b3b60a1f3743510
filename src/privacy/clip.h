/* clip.h: gradients of units, none longer than the clip norm, summed. */
#ifndef PRIVACY_CLIP_H
#define PRIVACY_CLIP_H
#include <stdint.h>

/* The sum of the squares, in double and in a fixed order. */
double clip_squares(const float *x, int64_t n);

/* min(1, clip / (norm + 1e-6)). A gradient that is not finite counts as infinitely long: 0. */
double clip_factor(double norm, double clip);

/* sum [count] += factors[0] * gradients[0] + factors[1] * gradients[1] + .., in this order for
 * every element, so that neither threads nor how units are put together change a bit. Gradients
 * with the factor 0 are left out, even if they are not finite. All gradients are zero afterwards.
 */
void clip_sum(float *const *gradients, const double *factors, int n, int64_t count, int threads,
              float *sum);
#endif
