/* panel.h: a map over its image, for viewing: the image as it is, and beside it with the map in
 * colour. The higher the value, the less shows through, so that tissue stays visible. Positive maps
 * are yellow where they are highest; signed ones are yellow for the class and blue against it. A
 * dark line is around the hottest areas that are at least 3 px wide. */
#ifndef EXPLAIN_PANEL_H
#define EXPLAIN_PANEL_H
#include "base/image.h"

#define PANEL_GAP_PX 8
#define PANEL_LEAST_PX 224 /* a smaller image is enlarged by a whole factor */

struct panel {
    const struct image *image;
    const float *map; /* [height, width] of the image; NaN: not seen by the network */
    bool positive;
    double hot; /* of the highest value */
};

/* A map that differs from pixel to pixel, as a person can read it: smoothed by a Gaussian of 1/64
 * of the shorter side, and scaled as it was. In place; NaN stays. */
bool panel_soften(float *map, int64_t width, int64_t height, bool positive, struct err *err);

/* 255 where the map is at least `hot` of its highest value, which is above 0. [height, width] */
bool panel_hottest(const float *map, int64_t width, int64_t height, double hot, struct image *out,
                   struct err *err);
bool panel_write(const char *path, const struct panel *panel, struct err *err);
#endif
