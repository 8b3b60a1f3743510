/* truth_mask.h: an annotation or a mask image -> where tumour is, on a separate grid. */
#ifndef VERDICT_TRUTH_MASK_H
#define VERDICT_TRUTH_MASK_H
#include <stdbool.h>
#include <stdint.h>
#include "annotation/classes.h"
#include "base/image.h"

struct truth_mask {
    struct image mask;          /* 255 tumour, 0 not; of an annotation only its box */
    int64_t origin_x, origin_y; /* of the box on the slide, mask px */
};

/* A mask px is `downsample` level-0 px. slide (its name) and class_map (may be NULL) are for
 * annotations. An annotation
 * is rasterised at pixel centres over its box and `margin_px` around it; an annotation without
 * tumour gives an image of one pixel, 0. A PNG is used as it is; from a TIFF pyramid the level with
 * that downsample is read in bands. In a mask, 128 and above is tumour, or, if no pixel reaches
 * that, everything that is not 0. *out is the caller's; free with image_free(&out->mask). */
bool truth_mask_read(const char *path, const char *slide, const struct class_map *class_map,
                     double downsample, int64_t margin_px, struct truth_mask *out, struct err *err);
#endif
