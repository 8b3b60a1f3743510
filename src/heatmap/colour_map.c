/* colour_map.c: see colour_map.h. The colours of viridis (matplotlib, CC0) at eighths, with
 * straight lines between them. */
#include "heatmap/colour_map.h"

#include <math.h>

void colour_map(double score, uint8_t out[3])
{
    static const uint8_t anchors[9][3] = {
        { 68, 1, 84 },    { 71, 44, 122 }, { 59, 81, 139 },  { 44, 113, 142 }, { 33, 144, 141 },
        { 39, 173, 129 }, { 92, 200, 99 }, { 170, 220, 50 }, { 253, 231, 37 },
    };
    double at = 8 * fmin(fmax(score, 0), 1);
    int i = at < 8 ? (int)at : 7;
    for (int c = 0; c < 3; c++)
        out[c] = (uint8_t)lround(anchors[i][c] + (at - i) * (anchors[i + 1][c] - anchors[i][c]));
}
