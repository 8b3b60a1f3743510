/* noise.c: see noise.h. */
#include "privacy/noise.h"

#include <math.h>

#define BLOCKS 64 /* of the cipher, at a time */
#define ROOM (BLOCKS * CIPHER_WORDS)

/* Words -> as many normal values. */
static void box_muller(const uint64_t *words, double *out)
{
    for (int i = 0; i < ROOM; i += 2) {
        double u = (double)((words[i] >> 11) + 1) * 0x1p-53; /* (0, 1] */
        double v = (double)(words[i + 1] >> 11) * 0x1p-53;   /* [0, 1) */
        double radius = sqrt(-2 * log(u)), sine, cosine;
        sincos(2 * M_PI * v, &sine, &cosine);
        out[i] = radius * cosine;
        out[i + 1] = radius * sine;
    }
}

/* The values of a piece of ROOM. */
static void make_piece(const struct secret *secret, uint64_t step, int64_t piece, double *out)
{
    uint64_t words[ROOM];
    cipher_words(secret, CIPHER_NOISE, step, (uint32_t)(piece * BLOCKS), BLOCKS, words);
    box_muller(words, out);
}

void noise_normals(const struct secret *secret, uint64_t step, int64_t first, int64_t n,
                   double *out)
{
    double values[ROOM];
    for (int64_t i = first; i < first + n;) {
        make_piece(secret, step, i / ROOM, values);
        for (int64_t end = (i / ROOM + 1) * ROOM; i < end && i < first + n; i++)
            out[i - first] = values[i % ROOM];
    }
}

void noise_add(const struct secret *secret, uint64_t step, int64_t first, int64_t n, double scale,
               double factor, float *to)
{
    double values[ROOM];
    for (int64_t i = first; i < first + n;) {
        make_piece(secret, step, i / ROOM, values);
        for (int64_t end = (i / ROOM + 1) * ROOM; i < end && i < first + n; i++)
            to[i - first] = (float)(((double)to[i - first] + scale * values[i % ROOM]) * factor);
    }
}
