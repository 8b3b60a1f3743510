/* augment.h: an RGB patch -> the augmented, cropped patch the network learns from. All random
 * choices are keyed by (seed, epoch, sample): the result is the same in any batch and on any
 * thread. No state: all functions are thread-safe. */
#ifndef PREPARE_AUGMENT_H
#define PREPARE_AUGMENT_H
#include "base/image.h"

/* Zero (or false) disables a change. Changes are applied in the order of the fields.
 */
struct augment_options {
    int64_t crop_px;   /* side of the crop, at a random place */
    bool flip;         /* left-right and top-bottom, each with probability 1/2 */
    bool rotate;       /* by 0, 90, 180 or 270 degrees */
    double hsv_noise;  /* one U(0, this) offset for each of H, S, V of the patch, clipped to
                        * 179/255/255 (OpenCV's units); paper 004: 20 */
    double hed_jitter; /* stain jitter (Tellez et al. 2018): in the HED space (Ruifrok's vectors,
                        * optical density -ln(v / 255)) of the patch every channel c becomes
                        * c * U(1 - s, 1 + s) + U(-s, s); the shift is in units of that density */
    double brightness, contrast, saturation; /* factors U(1 - s, 1 + s), as torchvision's
                                              * ColorJitter on tensors, in this order; [0, 1] */
    double hue;                              /* U(-s, s) of the circle, as torchvision; [0, 0.5] */
    double blur;                             /* probability of a Gaussian blur */
    double blur_sigma;                       /* standard deviation U(0.1, this), px */
};

/* Identifies all random choices for one sample. `sample` is unique in the data set. */
struct augment_key {
    uint64_t seed, epoch, sample;
};

/* Changes the patch in place; afterwards it is crop_px wide and high, rows packed (its memory is
 * not reallocated). A patch smaller than the crop is an error. RGB only. */
bool augment_train(const struct augment_options *options, struct augment_key key,
                   struct image *patch, struct err *err);
/* The same for a patch and what is known of its pixels, as an image of the same size and three
 * channels: its pixels change places with those of the patch, but never their values. */
bool augment_train_pair(const struct augment_options *options, struct augment_key key,
                        struct image *patch, struct image *known, struct err *err);

/* The same for an image that is augmented part by part: what is drawn is the same for all parts.
 * First mirrored, then turned counter-clockwise; also where the image is not square. */
struct augment_placing {
    bool left_right, top_bottom;
    int quarters;
};
struct augment_placing augment_placing(const struct augment_options *options,
                                       struct augment_key key);
/* How many pixels around a part its pixels depend on (blur). */
int64_t augment_reach_px(const struct augment_options *options, struct augment_key key);
/* Colours and blur of a part, mirrored at its edges as a patch is. grey: of augment_grey. */
bool augment_part(const struct augment_options *options, struct augment_key key, double grey,
                  struct image *part, struct err *err);
/* What contrast is about: the mean grey of `sample`, pixels of the image before augmentation, whose
 * colours are changed here. */
bool augment_grey(const struct augment_options *options, struct augment_key key,
                  struct image *sample, double *grey, struct err *err);
#endif
