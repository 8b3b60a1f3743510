/* coco_rle.h: a mask as COCO writes it, run lengths down the columns -> regions of a drawing. */
#ifndef ANNOTATION_COCO_RLE_H
#define ANNOTATION_COCO_RLE_H
#include <jansson.h>
#include "annotation/raster_shape.h"

/* rle: {"size": [height, width], "counts": [...] or "..."}: the numbers of pixels that are outside,
 * inside, outside, ... from the first column's top. shape says what the pixels mean. *any: is any
 * pixel inside? */
bool coco_rle_read(const json_t *rle, struct raster_shape *shape, bool *any, struct err *err);

/* Height and width; false if they are not two whole numbers that an image can have. */
bool coco_rle_size(const json_t *rle, int64_t *width, int64_t *height);
#endif
