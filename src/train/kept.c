/* kept.c: see kept.h. */
#include "train/kept.h"

#include <stdlib.h>
#include "base/array.h"

#define BLOCK_WORDS 8
#define BLOCK_PLACES (64 * BLOCK_WORDS)

bool kept_add(struct kept *kept, int64_t place, struct err *err)
{
    int64_t blocks = place / BLOCK_PLACES + 1;
    if (!array_grow(&kept->before, &kept->room_blocks, blocks, sizeof *kept->before,
                    "the table of samples", err) ||
        !array_grow(&kept->words, &kept->room_words, blocks * BLOCK_WORDS, sizeof *kept->words,
                    "the table of samples", err))
        return false;
    for (; kept->n_blocks < blocks; kept->n_blocks++) {
        kept->before[kept->n_blocks] = (uint32_t)kept->n;
        for (int64_t i = 0; i < BLOCK_WORDS; i++)
            kept->words[kept->n_blocks * BLOCK_WORDS + i] = 0;
    }
    kept->words[place / 64] |= UINT64_C(1) << (place % 64);
    kept->n++;
    return true;
}

int64_t kept_place(const struct kept *kept, int64_t k)
{
    int64_t low = 0, high = kept->n_blocks; /* before[low] <= k < before[high] */
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        *(kept->before[middle] <= k ? &low : &high) = middle;
    }
    int64_t rest = k - kept->before[low], word = low * BLOCK_WORDS;
    for (; rest >= __builtin_popcountll(kept->words[word]); word++)
        rest -= __builtin_popcountll(kept->words[word]);
    uint64_t bits = kept->words[word];
    for (; rest > 0; rest--)
        bits &= bits - 1;
    return word * 64 + __builtin_ctzll(bits);
}

int64_t kept_before(const struct kept *kept, int64_t place)
{
    if (place >= kept->n_blocks * BLOCK_PLACES)
        return kept->n;
    int64_t block = place / BLOCK_PLACES, n = kept->before[block];
    for (int64_t word = block * BLOCK_WORDS; word < place / 64; word++)
        n += __builtin_popcountll(kept->words[word]);
    uint64_t below = (UINT64_C(1) << (place % 64)) - 1;
    return n + __builtin_popcountll(kept->words[place / 64] & below);
}

void kept_trim(struct kept *kept)
{
    size_t n = (size_t)kept->n_blocks;
    uint64_t *words = realloc(kept->words, n * BLOCK_WORDS * sizeof *words);
    uint32_t *before = realloc(kept->before, n * sizeof *before);
    if (words)
        kept->words = words, kept->room_words = kept->n_blocks * BLOCK_WORDS;
    if (before)
        kept->before = before, kept->room_blocks = kept->n_blocks;
}

void kept_free(struct kept *kept)
{
    free(kept->words);
    free(kept->before);
    *kept = (struct kept){ 0 };
}
