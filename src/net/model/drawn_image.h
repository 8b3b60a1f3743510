/* drawn_image.h: an image of any size whose pixels are computed where they are read: noise of one
 * byte a pixel and channel, determined by the position alone. To time and test networks on images
 * that are never in memory. */
#ifndef NET_MODEL_DRAWN_IMAGE_H
#define NET_MODEL_DRAWN_IMAGE_H
#include "net/plan/plan.h"

struct drawn_image {
    uint32_t seed;
    int64_t channels;
};

/* Rows [y, y + h), columns [x, x + w) -> out [channels, h, w], from -1 to 1. Any thread; about 5 ns
 * a pixel of three channels. */
void drawn_image_read(const struct drawn_image *image, int64_t y, int64_t x, int64_t h, int64_t w,
                      float *out);
/* It as a source; the image must outlive it. */
struct plan_source drawn_image_source(const struct drawn_image *image);
#endif
