/* pixel_classes.c: see pixel_classes.h. */
#include "train/pixel_classes.h"

#include <math.h>
#include <string.h>

#define MOST_RADIUS_PX 16.0

/* Is there a pixel of anything else within the radius? */
static bool near_another(const struct label_image *labels, int64_t x, int64_t y, double radius_px)
{
    const int64_t reach = (int64_t)radius_px;
    const int32_t own = labels->px[y * labels->width + x];
    for (int64_t dy = -reach; dy <= reach; dy++) {
        const int64_t row = y + dy, span = (int64_t)sqrt(radius_px * radius_px - (double)(dy * dy));
        if (row < 0 || row >= labels->height)
            continue;
        const int64_t left = x - span < 0 ? 0 : x - span;
        const int64_t right = x + span >= labels->width ? labels->width - 1 : x + span;
        for (int64_t at = left; at <= right; at++)
            if (labels->px[row * labels->width + at] != own)
                return true;
    }
    return false;
}

bool pixel_classes(const struct label_image *labels, const struct image *patch, double mpp,
                   struct image *out, struct err *err)
{
    if (labels->width != patch->width || labels->height != patch->height)
        return err_set(err, ERR_FORMAT,
                       "the image has %lld x %lld px, but its label image has %lld x %lld; both "
                       "must be of one size",
                       (long long)patch->width, (long long)patch->height, (long long)labels->width,
                       (long long)labels->height);
    if (!image_new(out, labels->width, labels->height, 3, err))
        return false;
    double radius_px = mpp > 0 ? PIXEL_BOUNDARY_UM / mpp : 1;
    radius_px = fmin(fmax(radius_px, 1), MOST_RADIUS_PX);
    for (int64_t i = 0; i < labels->width * labels->height; i++) {
        int class = SEGMENT_BACKGROUND;
        if (labels->px[i] != 0)
            class = near_another(labels, i % labels->width, i / labels->width, radius_px)
                        ? SEGMENT_BOUNDARY
                        : SEGMENT_INSIDE;
        memset(out->px + 3 * i, class, 3);
    }
    return true;
}
