/* colour.c: see colour.h. The constants are mean and principal axes of the pixels of 1,739
 * whole patches that were drawn from the IDC training set, at 32 px (tests/golden/colour.py). */
#include "diffusion/colour.h"

#include <string.h>

const char *const colour_names[] = { "rgb", "apart", "graded", 0 };

static const double mean[3] = { 0.6089, 0.2429, 0.4521 };
static const double deviation[3] = { 0.5558, 0.1408, 0.0402 };
/* What they become. */
static const double learnt_deviation[][3] = {
    [COLOUR_APART] = { 0.5, 0.5, 0.5 },
    [COLOUR_GRADED] = { 0.7, 0.35, 0.175 },
};
static const double axis[3][3] = { { 0.4342067, 0.7369233, 0.5180816 },
                                   { 0.8994289, -0.3227901, -0.2946765 },
                                   { 0.0499223, -0.5939281, 0.8029677 } };

void colour_to_learnt(enum colour colour, int64_t count, const float *rgb, float *out)
{
    if (colour == COLOUR_RGB) {
        memmove(out, rgb, (size_t)(3 * count) * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        double from[3];
        for (int c = 0; c < 3; c++)
            from[c] = (double)rgb[c * count + i] - mean[c];
        for (int k = 0; k < 3; k++)
            out[k * count + i] =
                (float)((axis[k][0] * from[0] + axis[k][1] * from[1] + axis[k][2] * from[2]) *
                        learnt_deviation[colour][k] / deviation[k]);
    }
}

void colour_to_rgb(enum colour colour, int64_t count, const float *learnt, float *out)
{
    if (colour == COLOUR_RGB) {
        memmove(out, learnt, (size_t)(3 * count) * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        double along[3];
        for (int k = 0; k < 3; k++)
            along[k] = (double)learnt[k * count + i] * deviation[k] / learnt_deviation[colour][k];
        for (int c = 0; c < 3; c++)
            out[c * count + i] = (float)(mean[c] + axis[0][c] * along[0] + axis[1][c] * along[1] +
                                         axis[2][c] * along[2]);
    }
}
