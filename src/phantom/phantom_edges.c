/* phantom_edges.c: see phantom_edges.h. */
#include "phantom/phantom_edges.h"

#include <math.h>

void phantom_edges_row(const struct phantom_lattice *lattice,
                       const struct phantom_textures *textures, int64_t x, int64_t y, int n,
                       float *keep)
{
    float tear[RECT_SIDE_MAX], torn[RECT_SIDE_MAX], lumen[RECT_SIDE_MAX];
    phantom_lattice_row(lattice, FIELD_TISSUE, x, y, n, keep);
    phantom_lattice_row(lattice, FIELD_TEAR, x, y, n, tear);
    phantom_lattice_row(lattice, FIELD_TORN, x, y, n, torn);
    phantom_lattice_row(lattice, FIELD_LUMEN, x, y, n, lumen);
    for (int i = 0; i < n; i++) {
        float ragged = texture_at(textures->blobs, (int32_t)(x + i), (int32_t)y);
        float closed = smoothstep(0.012f, 0.035f, fabsf(tear[i]) + 0.005f * ragged);
        keep[i] = smoothstep(-3, 3, keep[i] + 4 * ragged);
        keep[i] *= 1 - torn[i] * (1 - closed);
        keep[i] *= smoothstep(1.06f, 0.98f, lumen[i] + 0.02f * ragged);
    }
}
