/* poisson.h: which units are in a step: each with the same probability, independently of all
 * others and of other steps, as the accountants assume. Shuffling is not that. Whether unit i is in
 * a step depends on the key, the step and i alone. */
#ifndef PRIVACY_POISSON_H
#define PRIVACY_POISSON_H
#include "privacy/cipher.h"

/* Units of [0, n) that are in the step, ascending, to out; NULL: they are only counted. Returns how
 * many. Looks at every unit. Thread-safe. */
int64_t poisson_draw(const struct secret *secret, enum cipher_domain domain, uint64_t step,
                     double rate, int64_t n, int64_t *out);
#endif
