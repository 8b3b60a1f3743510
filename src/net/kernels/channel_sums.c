/* channel_sums.c: see channel_sums.h. */
#include "net/kernels/channel_sums.h"

#define SIMD_BITS 128
#include "net/kernels/vectors.h"

#define MOST_VECTORS 4

void channel_sums_add(const struct channel_sums *s, int64_t block, const float *x, float *to)
{
    int64_t first = block * s->lanes, vectors = s->lanes / LANES, line = s->width * s->lanes;
    int64_t blocks = (s->channels + s->lanes - 1) / s->lanes;
    double sums[MOST_VECTORS * LANES] = { 0 };
    for (int64_t row = 0; row < s->images * s->height; row++) {
        int64_t image = row / s->height;
        const float *at = x + ((image * blocks + block) * s->height + row % s->height) * line;
        for (int64_t v = 0; v < vectors; v++) {
            VEC part = VEC_SET(0.0f);
            for (int64_t i = v * LANES; i < line; i += s->lanes)
                part += VEC_LOAD(at + i);
            for (int l = 0; l < LANES; l++)
                sums[v * LANES + l] += (double)part[l];
        }
    }
    for (int64_t l = 0; l < s->lanes && first + l < s->channels; l++)
        to[first + l] += (float)sums[l];
}
