/* colour.h: one pixel -> the values used by thresholds; colour space arithmetic. */
#ifndef STAIN_COLOUR_H
#define STAIN_COLOUR_H
#include <stdint.h>

/* Hue 0..179, saturation and value 0..255, bit-identical to OpenCV's COLOR_RGB2HSV. */
struct colour_hsv {
    uint8_t hue, saturation, value;
};
struct colour_hsv colour_hsv(const uint8_t rgb[3]);

/* Saturation in [0, 1], as skimage.color.rgb2hsv. */
double colour_saturation(const uint8_t rgb[3]);

uint8_t colour_grey(const uint8_t rgb[3]); /* ITU-R 601, as PIL's "L" */

/* The inverse of a matrix from one colour space to another. */
void colour_invert(const double m[3][3], double out[3][3]);
#endif
