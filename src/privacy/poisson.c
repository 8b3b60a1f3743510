/* poisson.c: see poisson.h. */
#include "privacy/poisson.h"

#include <math.h>

#define BLOCKS 64
#define ROOM (BLOCKS * CIPHER_WORDS)

int64_t poisson_draw(const struct secret *secret, enum cipher_domain domain, uint64_t step,
                     double rate, int64_t n, int64_t *out)
{
    uint64_t words[ROOM], below = rate < 1 ? (uint64_t)ldexp(rate, 64) : UINT64_MAX;
    int64_t count = 0;
    for (int64_t first = 0; first < n; first += ROOM) {
        cipher_words(secret, domain, step, (uint32_t)(first / CIPHER_WORDS), BLOCKS, words);
        for (int64_t i = first; i < n && i < first + ROOM; i++) {
            if (words[i - first] >= below && rate < 1)
                continue;
            if (out)
                out[count] = i;
            count++;
        }
    }
    return count;
}
