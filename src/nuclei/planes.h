/* planes.h: what nuclei are found with: planes of numbers [height, width] -> smoothed planes,
 * a local threshold, distances. Of others only maps of explain are smoothed with it. */
#ifndef NUCLEI_PLANES_H
#define NUCLEI_PLANES_H
#include "base/image.h"

/* A Gaussian in place, cut off at 4 sigma and mirrored at the borders, as
 * scipy.ndimage.gaussian_filter does it. room [height, width] is overwritten. A sigma of 0 changes
 * nothing. */
bool planes_smooth(float *plane, float *room, int64_t width, int64_t height, double sigma_px,
                   struct err *err);

/* A threshold between two classes of pixels around each pixel: `share` of the way from the mean of
 * those below it to the mean of those above it, both in a window around the pixel. It begins with
 * the mean of the window and is improved `rounds` times (Ridler and Calvard 1978, in a window). */
struct planes_threshold {
    int64_t half_px; /* the window is 2 half_px + 1 wide, and ends at the image's border */
    double share;
    int rounds;
    double contrast; /* it is at least so much above the mean below it */
    double least;    /* and never lower than this */
};
/* mask [height, width, 1]: 255 where the plane is above the threshold, 0 elsewhere and where skip
 * [height, width, 1] is not 0: such pixels have no part in the means. Exact: sums are integers, so
 * a pixel's result depends on what is within (rounds + 1) half_px of it alone. */
bool planes_above_local(const float *plane, const struct image *skip,
                        const struct planes_threshold *threshold, struct image *mask,
                        struct err *err);

/* out [height, width]: from every pixel of the mask that is not 0, the exact distance in px to the
 * nearest that is (Euclid), at most cap_px; 0 on the others. Pixels beyond the border are ignored.
 */
bool planes_distance(const struct image *mask, double cap_px, float *out, struct err *err);
#endif
