/* colour.c: see colour.h. */
#include "stain/colour.h"

#include <math.h>

static uint8_t highest(const uint8_t rgb[3])
{
    uint8_t high = rgb[0] > rgb[1] ? rgb[0] : rgb[1];
    return high > rgb[2] ? high : rgb[2];
}

static uint8_t lowest(const uint8_t rgb[3])
{
    uint8_t low = rgb[0] < rgb[1] ? rgb[0] : rgb[1];
    return low < rgb[2] ? low : rgb[2];
}

struct colour_hsv colour_hsv(const uint8_t rgb[3])
{
    int high = highest(rgb), range = high - lowest(rgb);
    if (range == 0)
        return (struct colour_hsv){ .value = (uint8_t)high };
    int sixths; /* in units of range */
    if (rgb[0] == high)
        sixths = rgb[1] - rgb[2];
    else if (rgb[1] == high)
        sixths = rgb[2] - rgb[0] + 2 * range;
    else
        sixths = rgb[0] - rgb[1] + 4 * range;
    /* 12-bit fixed point, as there; the shift of a negative number rounds down. */
    int hue_scale = (int)lrint((180 << 12) / (6.0 * range));
    int saturation_scale = (int)lrint((255 << 12) / (double)high);
    int hue = (sixths * hue_scale + (1 << 11)) >> 12;
    return (struct colour_hsv){ .hue = (uint8_t)(hue < 0 ? hue + 180 : hue),
                                .saturation =
                                    (uint8_t)((range * saturation_scale + (1 << 11)) >> 12),
                                .value = (uint8_t)high };
}

double colour_saturation(const uint8_t rgb[3])
{
    uint8_t high = highest(rgb), low = lowest(rgb);
    return high == low ? 0 : (high / 255.0 - low / 255.0) / (high / 255.0);
}

uint8_t colour_grey(const uint8_t rgb[3])
{
    return (uint8_t)((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

void colour_invert(const double m[3][3], double out[3][3])
{
    double determinant = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            int a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
            out[i][j] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
        }
    for (int i = 0; i < 3; i++)
        determinant += m[0][i] * out[i][0];
    for (int i = 0; i < 9; i++)
        out[i / 3][i % 3] /= determinant;
}
