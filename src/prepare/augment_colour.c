/* augment_colour.c: HSV noise and stain jitter. */
#include <math.h>
#include "stain/colour.h"
#include "prepare/augment_ops.h"

static uint8_t to_byte(float value)
{
    return (uint8_t)(value + 0.5f);
}

static void rgb_of_hsv(struct colour_hsv hsv, uint8_t rgb[3])
{
    enum { FULL, LOW, FALLING, RISING };
    static const uint8_t order[6][3] = {
        { FULL, RISING, LOW },  { FALLING, FULL, LOW }, { LOW, FULL, RISING },
        { LOW, FALLING, FULL }, { RISING, LOW, FULL },  { FULL, LOW, FALLING },
    };
    const float value = hsv.value, coloured = value * (float)hsv.saturation * (1.0f / 255);
    const int sector = hsv.hue / 30;
    const float part = (float)(hsv.hue - 30 * sector) * (1.0f / 30);
    const uint8_t levels[4] = { hsv.value, to_byte(value - coloured),
                                to_byte(value - coloured * part),
                                to_byte(value - coloured * (1 - part)) };
    for (int c = 0; c < 3; c++)
        rgb[c] = levels[order[sector][c]];
}

void augment_hsv(struct image *patch, const double offset[3])
{
    static const double highest[3] = { 179, 255, 255 };
    uint8_t moved[3][256];
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++)
            moved[c][v] = (uint8_t)fmin(fmax(v + offset[c], 0), highest[c]);
    for (uint8_t *px = patch->px, *end = px + image_bytes(patch); px < end; px += 3) {
        struct colour_hsv hsv = colour_hsv(px);
        rgb_of_hsv(
            (struct colour_hsv){ moved[0][hsv.hue], moved[1][hsv.saturation], moved[2][hsv.value] },
            px);
    }
}

/* Optical densities of the light that is left: 255 exp(-i / DENSITY_SCALE), rounded. At this scale
 * two entries never lie more than half a grey level apart. */
#define DENSITY_SCALE 512
#define DENSITY_STEPS 4096

/* Rows: haematoxylin, eosin, DAB in optical density of R, G, B (Ruifrok and Johnston 2001). */
static const double hed[3][3] = { { .65, .70, .29 }, { .07, .99, .11 }, { .27, .57, .78 } };

/* Stains are density * inverse; back it is stains * hed: one affine map of densities. */
static void density_map(const double scale[3], const double shift[3], float matrix[3][3],
                        float added[3])
{
    double inverse[3][3];
    colour_invert(hed, inverse);
    for (int to = 0; to < 3; to++) {
        double constant = 0;
        for (int from = 0; from < 3; from++) {
            double sum = 0;
            for (int stain = 0; stain < 3; stain++)
                sum += inverse[from][stain] * scale[stain] * hed[stain][to];
            matrix[to][from] = (float)sum;
        }
        for (int stain = 0; stain < 3; stain++)
            constant += shift[stain] * hed[stain][to];
        added[to] = (float)(constant * DENSITY_SCALE + 0.5);
    }
}

void augment_hed(struct image *patch, const double scale[3], const double shift[3])
{
    float matrix[3][3], added[3], density[256];
    uint8_t light[DENSITY_STEPS];
    density_map(scale, shift, matrix, added);
    for (int v = 0; v < 256; v++) /* black has no density: what still rounds to 0 */
        density[v] = (float)(-log((v ? v : 0.25) / 255) * DENSITY_SCALE);
    for (int i = 0; i < DENSITY_STEPS; i++)
        light[i] = (uint8_t)(255 * exp(-(double)i / DENSITY_SCALE) + 0.5);
    for (uint8_t *px = patch->px, *end = px + image_bytes(patch); px < end; px += 3) {
        const float r = density[px[0]], g = density[px[1]], b = density[px[2]];
        for (int c = 0; c < 3; c++) {
            float at = added[c] + matrix[c][0] * r + matrix[c][1] * g + matrix[c][2] * b;
            at = at < 0 ? 0 : at;
            at = at > DENSITY_STEPS - 1 ? DENSITY_STEPS - 1 : at;
            px[c] = light[(int)at];
        }
    }
}
