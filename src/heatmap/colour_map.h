/* colour_map.h: a score -> a colour, for viewing. From dark blue-violet over green to yellow
 * (viridis): lightness rises evenly with the score, so the order is seen with any colour vision and
 * in print without colour. */
#ifndef HEATMAP_COLOUR_MAP_H
#define HEATMAP_COLOUR_MAP_H
#include <stdint.h>

/* score in [0, 1]; values beyond are clamped. */
void colour_map(double score, uint8_t out[3]);
#endif
