/* phantom_noise.h: a key and a position -> smooth random values; and small repeating textures of
 * them for values needed at every pixel. Pure functions of their arguments. */
#ifndef PHANTOM_PHANTOM_NOISE_H
#define PHANTOM_PHANTOM_NOISE_H
#include <stdint.h>

/* An unrelated value for every pair of integers, between -1 and 1. */
float phantom_hash(uint32_t key, int32_t x, int32_t y);
/* Gradient noise with a lattice of one unit: about 0, mostly within 0.8. */
float phantom_noise(uint32_t key, float x, float y);
/* Sum of octaves, each half as large and twice as fine as the one before. */
float phantom_fractal(uint32_t key, float x, float y, int octaves);

enum { TEXTURE_SIDE = 256 };

/* Values of about unit variance around 0 that repeat every TEXTURE_SIDE. */
struct phantom_textures {
    float blobs[TEXTURE_SIDE * TEXTURE_SIDE];  /* features of about 16 px */
    float shapes[TEXTURE_SIDE * TEXTURE_SIDE]; /* about 24 px, smooth */
    float clumps[TEXTURE_SIDE * TEXTURE_SIDE]; /* about 4 px, with finer detail */
    float fibres[TEXTURE_SIDE * TEXTURE_SIDE]; /* long in x, thin in y */
    int8_t grain[TEXTURE_SIDE * TEXTURE_SIDE]; /* the camera's noise in grey values */
};

void phantom_textures_fill(struct phantom_textures *textures);

static inline float texture_at(const float *texture, int32_t x, int32_t y)
{
    return texture[(y & (TEXTURE_SIDE - 1)) * TEXTURE_SIDE + (x & (TEXTURE_SIDE - 1))];
}

/* 0 below low, 1 above high, smooth between. */
static inline float smoothstep(float low, float high, float x)
{
    float t = (x - low) / (high - low);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return t * t * (3 - 2 * t);
}
#endif
