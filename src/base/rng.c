/* rng.c: see rng.h. */
#include "base/rng.h"

#include <math.h>

static const uint32_t philox_multiplier[2] = { 0xD2511F53u, 0xCD9E8D57u };
static const uint32_t philox_weyl[2] = { 0x9E3779B9u, 0xBB67AE85u };

void rng_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)philox_multiplier[0] * c0;
        uint64_t p1 = (uint64_t)philox_multiplier[1] * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += philox_weyl[0];
        k1 += philox_weyl[1];
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* Spreads a 64-bit name over all bits (the finaliser of SplitMix64). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

struct rng rng_new(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint64_t key = mix(seed + 0x9E3779B97F4A7C15u) ^ stream;
    struct rng rng = { .used = 4 };
    rng.key[0] = (uint32_t)key;
    rng.key[1] = (uint32_t)(key >> 32);
    rng.counter[2] = (uint32_t)index;
    rng.counter[3] = (uint32_t)(index >> 32);
    return rng;
}

uint32_t rng_u32(struct rng *rng)
{
    if (rng->used == 4) {
        rng_philox(rng->key, rng->counter, rng->block);
        rng->used = 0;
        if (++rng->counter[0] == 0)
            rng->counter[1]++;
    }
    return rng->block[rng->used++];
}

void rng_skip(struct rng *rng, uint64_t n)
{
    uint64_t left = (uint64_t)(4 - rng->used), blocks = n >= left ? (n - left) / 4 : 0;
    uint64_t counter = (rng->counter[0] | (uint64_t)rng->counter[1] << 32) + blocks;
    if (n >= left) {
        n = (n - left) % 4;
        rng->used = 4;
        rng->counter[0] = (uint32_t)counter, rng->counter[1] = (uint32_t)(counter >> 32);
    }
    for (; n > 0; n--)
        rng_u32(rng);
}

uint64_t rng_u64(struct rng *rng)
{
    uint64_t low = rng_u32(rng);
    return low | (uint64_t)rng_u32(rng) << 32;
}

double rng_uniform(struct rng *rng)
{
    return (double)(rng_u64(rng) >> 11) * 0x1p-53;
}

double rng_between(struct rng *rng, double low, double high)
{
    return low + (high - low) * rng_uniform(rng);
}

double rng_normal(struct rng *rng)
{
    double radius = sqrt(-2 * log(1 - rng_uniform(rng))); /* 1 - u is never 0 */
    return radius * cos(6.283185307179586 * rng_uniform(rng));
}

uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    uint64_t unbiased = UINT64_MAX - UINT64_MAX % bound;
    uint64_t x;
    do
        x = rng_u64(rng);
    while (x >= unbiased);
    return x % bound;
}

uint64_t rng_hash(const char *text)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001B3u;
    return hash;
}
