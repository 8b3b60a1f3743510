/* augment_ops.h: the changes that augment.c applies, with their parameters given. All work in place
 * on RGB pixels, rows packed. Thread-safe. */
#ifndef PREPARE_AUGMENT_OPS_H
#define PREPARE_AUGMENT_OPS_H
#include "base/image.h"

/* augment_place.c */
/* Keeps the square at (left, top), which must be within the patch. Memory is not reallocated. */
void augment_crop(struct image *patch, int64_t left, int64_t top, int64_t side_px);
void augment_flip(struct image *patch, bool left_right, bool top_bottom);
/* Counter-clockwise. A patch that is not square can only be turned by an even number of quarters.
 */
void augment_turn(struct image *patch, int quarters);

/* augment_colour.c */
/* Added to hue (0..179), saturation and value (0..255) as OpenCV scales them, and truncated to
 * whole numbers. Hue is clipped like the others, not wrapped round. */
void augment_hsv(struct image *patch, const double offset[3]);
/* Each of haematoxylin, eosin and DAB (Ruifrok's vectors, in optical density -ln(v / 255)) becomes
 * c * scale + shift. */
void augment_hed(struct image *patch, const double scale[3], const double shift[3]);

/* augment_jitter.c: as torchvision's functions of the same names on byte tensors, which truncate to
 * whole numbers. */
void augment_brightness(struct image *patch, double factor);
void augment_contrast(struct image *patch, double factor);
/* The same about another grey than the patch's mean. */
void augment_contrast_about(struct image *patch, double factor, double grey);
double augment_mean_grey(const struct image *patch);
void augment_saturation(struct image *patch, double factor);
void augment_hue(struct image *patch, double turn); /* of the circle, in [-0.5, 0.5] */

/* augment_blur.c */
/* Gaussian, truncated at 3 standard deviations (or where the mirrored patch ends). */
bool augment_blur(struct image *patch, double sigma_px, struct err *err);
/* Taps on each side of the centre. */
int64_t augment_blur_radius(double sigma_px, int64_t width, int64_t height);
#endif
