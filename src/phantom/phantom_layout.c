/* phantom_layout.c: see phantom_layout.h. Cords are on a jittered grid along the section's
 * direction, one for each position, derived from it. Fractions are of the distance between
 * positions: cords shorter than that minus the jitter do not meet, however they are turned. */
#include "phantom/phantom_layout.h"

#include <math.h>
#include <stddef.h>
#include "base/rng.h"
#include "phantom/phantom_noise.h"

static const float tau = 6.2831853f;
static const float jitter = 0.05f, shortest = 0.28f, longest = 0.40f; /* half lengths */
static const float half_width = 0.054f, parallel_within = 0.10f;      /* radians */

const char *const phantom_layout_names[] = { "node", "cords", NULL };

void phantom_layout_apply(struct phantom_scene *scene, enum phantom_layout layout)
{
    if (layout == LAYOUT_NODE)
        return;
    float half = 0.5f * (float)scene->size_px;
    struct rng rng = rng_new(scene->seed, rng_hash("phantom layout"), (uint64_t)scene->index);
    bool upright = rng_below(&rng, 2);
    scene->layout = layout;
    scene->row_cosine = upright ? 0 : 1, scene->row_sine = upright ? 1 : 0;
    scene->n_lesions = 0;
    scene->n_islands = 1;
    scene->islands[0] = (struct phantom_island){ half, half, 1.2f * half, 1.2f * half, 1, 0 };
    scene->tissue_level = 0;
}

const char *phantom_layout_label(const struct phantom_scene *scene)
{
    if (scene->layout == LAYOUT_CORDS)
        return scene->tumor ? "parallel" : "crossed";
    return scene->tumor ? "tumor" : "normal";
}

/* From position (column, row); u and v: of a point, in distances between positions. */
static float cord_at(const struct phantom_scene *scene, int32_t column, int32_t row, float u,
                     float v)
{
    uint32_t key = scene->key ^ 0xC04Du;
    u -= (float)column + 0.5f + jitter * phantom_hash(key + 1, column, row);
    v -= (float)row + 0.5f + jitter * phantom_hash(key + 2, column, row);
    float length = 0.5f * (1 + phantom_hash(key + 3, column, row));
    float angle = parallel_within * phantom_hash(key + 4, column, row);
    if (!scene->tumor && phantom_hash(key + 5, column, row) > 0)
        angle += tau / 4;
    float along = u * cosf(angle) + v * sinf(angle), across = v * cosf(angle) - u * sinf(angle);
    float beyond = fmaxf(fabsf(along) - (shortest + length * (longest - shortest)), 0);
    return smoothstep(1.2f, 0.8f, sqrtf(across * across + beyond * beyond) / half_width);
}

float phantom_layout_cord(const struct phantom_scene *scene, float x, float y)
{
    float apart = fminf(PHANTOM_CORDS_APART_PX, 0.25f * (float)scene->size_px);
    float bend = 0.25f * half_width; /* cords are not drawn with a ruler */
    float u = (x * scene->row_cosine + y * scene->row_sine) / apart;
    float v = (y * scene->row_cosine - x * scene->row_sine) / apart;
    float wave_u = phantom_noise(scene->key ^ 0xC05Du, 7 * u, 7 * v);
    float wave_v = phantom_noise(scene->key ^ 0xC06Du, 7 * u, 7 * v);
    u += bend * wave_u, v += bend * wave_v;
    int32_t column = (int32_t)floorf(u), row = (int32_t)floorf(v);
    float cord = 0;
    for (int32_t j = row - 1; j <= row + 1; j++)
        for (int32_t i = column - 1; i <= column + 1; i++)
            cord = fmaxf(cord, cord_at(scene, i, j, u, v));
    return cord;
}
