/* phantom_noise.c: see phantom_noise.h. */
#include "phantom/phantom_noise.h"

#include <math.h>
#include "base/rng.h"

float phantom_hash(uint32_t key, int32_t x, int32_t y)
{
    uint32_t h = key ^ ((uint32_t)x * 0x9E3779B1u) ^ ((uint32_t)y * 0x85EBCA77u);
    h = (h ^ (h >> 16)) * 0x7FEB352Du;
    h = (h ^ (h >> 15)) * 0x846CA68Bu;
    h ^= h >> 16;
    return (float)(h >> 8) * 0x1p-23f - 1;
}

static float fade(float t)
{
    return t * t * t * (t * (t * 6 - 15) + 10);
}

/* The slope that a node of the lattice gives to the place (dx, dy) from it. */
static float slope(uint32_t key, int32_t x, int32_t y, float dx, float dy)
{
    return phantom_hash(key, x, y) * dx + phantom_hash(key ^ 0xA511E9B3u, x, y) * dy;
}

float phantom_noise(uint32_t key, float x, float y)
{
    float left = floorf(x), top = floorf(y);
    int32_t i = (int32_t)left, j = (int32_t)top;
    float dx = x - left, dy = y - top, u = fade(dx), v = fade(dy);
    float a = slope(key, i, j, dx, dy), b = slope(key, i + 1, j, dx - 1, dy);
    float c = slope(key, i, j + 1, dx, dy - 1), d = slope(key, i + 1, j + 1, dx - 1, dy - 1);
    float upper = a + u * (b - a), lower = c + u * (d - c);
    return 1.8f * (upper + v * (lower - upper));
}

float phantom_fractal(uint32_t key, float x, float y, int octaves)
{
    float sum = 0, weight = 1;
    for (int i = 0; i < octaves; i++) {
        sum += weight * phantom_noise(key + (uint32_t)i * 0x632BE59Bu, x, y);
        /* A turn between octaves hides the lattice. */
        float turned = 1.6f * x - 1.2f * y + 17.3f;
        y = 1.2f * x + 1.6f * y - 5.9f;
        x = turned;
        weight *= 0.5f;
    }
    return sum;
}

/* Value noise on a lattice that wraps: cells_x by cells_y over the texture. */
static float wrapped_noise(uint32_t key, int cells_x, int cells_y, int px, int py)
{
    float x = (float)px * (float)cells_x / TEXTURE_SIDE,
          y = (float)py * (float)cells_y / TEXTURE_SIDE;
    int i = (int)x, j = (int)y;
    float u = fade(x - (float)i), v = fade(y - (float)j);
    int next_i = (i + 1) % cells_x, next_j = (j + 1) % cells_y;
    float a = phantom_hash(key, i, j), b = phantom_hash(key, next_i, j);
    float c = phantom_hash(key, i, next_j), d = phantom_hash(key, next_i, next_j);
    float upper = a + u * (b - a), lower = c + u * (d - c);
    return upper + v * (lower - upper);
}

static void normalise(float *texture)
{
    double sum = 0, squares = 0;
    const int n = TEXTURE_SIDE * TEXTURE_SIDE;
    for (int i = 0; i < n; i++)
        sum += texture[i], squares += (double)texture[i] * texture[i];
    double mean = sum / n, deviation = sqrt(squares / n - mean * mean);
    for (int i = 0; i < n; i++)
        texture[i] = (float)((texture[i] - mean) / deviation);
}

void phantom_textures_fill(struct phantom_textures *t)
{
    struct rng rng = rng_new(0, rng_hash("phantom textures"), 0);
    uint32_t key = rng_u32(&rng);
    for (int y = 0; y < TEXTURE_SIDE; y++)
        for (int x = 0; x < TEXTURE_SIDE; x++) {
            int i = y * TEXTURE_SIDE + x;
            t->blobs[i] =
                wrapped_noise(key + 1, 16, 16, x, y) + 0.4f * wrapped_noise(key + 2, 32, 32, x, y);
            t->shapes[i] =
                wrapped_noise(key + 8, 11, 11, x, y) + 0.25f * wrapped_noise(key + 9, 24, 24, x, y);
            t->clumps[i] =
                wrapped_noise(key + 3, 51, 51, x, y) + 0.7f * wrapped_noise(key + 4, 96, 96, x, y);
            t->fibres[i] = wrapped_noise(key + 5, 8, 40, x, y) +
                           0.6f * wrapped_noise(key + 6, 16, 88, x, y) +
                           0.8f * wrapped_noise(key + 7, 5, 14, x, y);
            t->grain[i] = (int8_t)lrint(1.3 * rng_normal(&rng));
        }
    normalise(t->blobs);
    normalise(t->shapes);
    normalise(t->clumps);
    normalise(t->fibres);
}
