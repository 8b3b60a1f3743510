/* rng.h: counter-based random numbers (Philox4x32-10, Salmon et al. 2011).
 * A stream is named by (seed, stream, index), e.g. (run seed, hash of the slide, patch number):
 * its values depend on the name alone, never on threads, tasks or order. */
#ifndef BASE_RNG_H
#define BASE_RNG_H
#include <stdint.h>

struct rng {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t block[4];
    int used; /* words of the block already used */
};

/* The bare bijection, for tests against published vectors. */
void rng_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

struct rng rng_new(uint64_t seed, uint64_t stream, uint64_t index);
uint32_t rng_u32(struct rng *rng);
uint64_t rng_u64(struct rng *rng);
void rng_skip(struct rng *rng, uint64_t n); /* as after n calls of rng_u32, in no time */
double rng_uniform(struct rng *rng);        /* [0, 1), 53 bits */
double rng_between(struct rng *rng, double low, double high);
double rng_normal(struct rng *rng);                  /* mean 0, variance 1 */
uint64_t rng_below(struct rng *rng, uint64_t bound); /* [0, bound), unbiased; bound > 0 */

/* FNV-1a: a stream name from a text such as a slide's name. */
uint64_t rng_hash(const char *text);
#endif
