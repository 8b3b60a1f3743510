/* colour.h: the colours in which a generator learns patches.
 *
 * Tissue has few colours: of the three directions in RGB, stained patches vary 14 times as much in
 * one as in another (0.56, 0.14 and 0.04 where pixels are between -1 and 1). Noise of variance 1 in
 * RGB drowns the last two, and what a network does wrong there shows as grains of colours that no
 * stain has. COLOUR_APART learns the three principal directions instead, each with a deviation of
 * 0.5. But structure is mostly in the first of them, so that two thirds of the loss are then about
 * colours: COLOUR_GRADED gives them deviations of 0.7, 0.35 and 0.175. The mean, directions and
 * deviations are constants, made once from public patches (IDC, see colour.c), so that they say
 * nothing of the patches that are learnt from. */
#ifndef DIFFUSION_COLOUR_H
#define DIFFUSION_COLOUR_H
#include <stdint.h>

enum colour { COLOUR_RGB, COLOUR_APART, COLOUR_GRADED };
extern const char *const colour_names[]; /* NULL-terminated, in the order of the enum */

/* Planes of RGB between -1 and 1 [3, count] -> what is learnt [3, count]; `out` may be `rgb`. */
void colour_to_learnt(enum colour colour, int64_t count, const float *rgb, float *out);
/* The way back. */
void colour_to_rgb(enum colour colour, int64_t count, const float *learnt, float *out);
#endif
