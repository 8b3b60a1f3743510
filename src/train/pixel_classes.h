/* pixel_classes.h: a label image -> the class of every pixel, for networks that segment. A pixel of
 * an object is boundary if a pixel that is not of this object (another one, or none) lies within
 * PIXEL_BOUNDARY_UM of it, from centre to centre, at least within one px; else it is inside. So an
 * object is its inside and its boundary, and objects that touch have their boundaries between them.
 * What lies beyond the image is not known and makes no boundary. Stateless, thread-safe. */
#ifndef TRAIN_PIXEL_CLASSES_H
#define TRAIN_PIXEL_CLASSES_H
#include "base/image.h"
#include "base/label_image.h"
#include "net/model/model_config.h"

#define PIXEL_BOUNDARY_UM 0.75

/* patch: the image that the labels are of; another size is an error. mpp: its um/px. out: an image
 * of three channels, of which each is the enum segment_class of the pixel; the caller's. */
bool pixel_classes(const struct label_image *labels, const struct image *patch, double mpp,
                   struct image *out, struct err *err);
#endif
