/* augment_jitter.c: brightness, contrast, saturation and hue. */
#include <math.h>
#include "prepare/augment_ops.h"

static uint8_t cut(float value)
{
    value = value < 0 ? 0 : value;
    return (uint8_t)(value > 255 ? 255 : value);
}

static uint8_t grey_of(const uint8_t *px)
{
    return (uint8_t)(0.2989f * (float)px[0] + 0.587f * (float)px[1] + 0.114f * (float)px[2]);
}

/* Every byte becomes factor * byte + added. */
static void map_bytes(struct image *patch, float factor, float added)
{
    uint8_t map[256];
    for (int v = 0; v < 256; v++)
        map[v] = cut(factor * (float)v + added);
    for (uint8_t *px = patch->px, *end = px + image_bytes(patch); px < end; px++)
        *px = map[*px];
}

void augment_brightness(struct image *patch, double factor)
{
    map_bytes(patch, (float)factor, 0);
}

double augment_mean_grey(const struct image *patch)
{
    int64_t sum = 0, n = patch->width * patch->height;
    for (int64_t i = 0; i < n; i++)
        sum += grey_of(patch->px + 3 * i);
    return n ? (double)sum / (double)n : 0;
}

void augment_contrast_about(struct image *patch, double factor, double grey)
{
    map_bytes(patch, (float)factor, (float)((1 - factor) * grey));
}

void augment_contrast(struct image *patch, double factor)
{
    augment_contrast_about(patch, factor, augment_mean_grey(patch));
}

void augment_saturation(struct image *patch, double factor)
{
    const float own = (float)factor, other = (float)(1 - factor);
    for (uint8_t *px = patch->px, *end = px + image_bytes(patch); px < end; px += 3) {
        const float added = other * (float)grey_of(px);
        for (int c = 0; c < 3; c++)
            px[c] = cut(own * (float)px[c] + added);
    }
}

/* Where on the circle, in [0, 6): 0 red, 2 green, 4 blue. high > low are among the channels. */
static float sixths_of(const uint8_t *px, uint8_t high, uint8_t low)
{
    const float range = (float)(high - low);
    if (px[0] == high) {
        float at = (float)(px[1] - px[2]) / range;
        return at < 0 ? at + 6 : at;
    }
    if (px[1] == high)
        return (float)(px[2] - px[0]) / range + 2;
    return (float)(px[0] - px[1]) / range + 4;
}

void augment_hue(struct image *patch, double turn)
{
    /* A whole number v / 255 of the float image comes back as v; others are rounded up a little. */
    const float to_byte = 255.999f / 255;
    const float turn_sixths = (float)(turn < 0 ? 6 * turn + 6 : 6 * turn);
    for (uint8_t *px = patch->px, *end = px + image_bytes(patch); px < end; px += 3) {
        uint8_t high = px[0] > px[1] ? px[0] : px[1], low = px[0] < px[1] ? px[0] : px[1];
        high = high > px[2] ? high : px[2];
        low = low < px[2] ? low : px[2];
        if (high == low)
            continue;
        float at = sixths_of(px, high, low) + turn_sixths;
        at = at >= 6 ? at - 6 : at;
        for (int c = 0; c < 3; c++) { /* a channel is full within 1 of its place, nothing from 2 */
            float away = fabsf(at - 2 * (float)c);
            away = away > 3 ? 6 - away : away;
            float share = away < 1 ? 1 : away > 2 ? 0 : 2 - away;
            px[c] = cut(((float)low + (float)(high - low) * share) * to_byte);
        }
    }
}
