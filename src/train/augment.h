/* augment.h: an RGB patch -> the varied, cropped patch that the network learns from. All that is
 * drawn is keyed by (seed, epoch, sample): the same patch comes out wherever, in whichever batch
 * and on whichever thread it is made. Uses no state: all functions are thread-safe. */
#ifndef TRAIN_AUGMENT_H
#define TRAIN_AUGMENT_H
#include "base/image.h"
#include "tissue/stain.h"

/* Zero (or false) leaves a change out. The order in which they are applied is that of the fields.
 */
struct augment_options {
    enum stain_method stain; /* normalise every patch to the target; a patch with too little tissue
                              * to be fitted stays as it is */
    const struct stain_fit *stain_target; /* must outlive the use; NULL without a method */
    int64_t crop_px;                      /* side of what comes out, at a place drawn */
    bool flip;                            /* left-right and top-bottom, each with 1/2 */
    bool rotate;                          /* by 0, 90, 180 or 270 degrees */
    double hsv_noise;  /* one U(0, this) offset for each of H, S, V of the patch, clipped to
                        * 179/255/255 (OpenCV's units); paper 004: 20 */
    double hed_jitter; /* stain jitter: in the HED space (Ruifrok) of the patch every channel c
                        * becomes c * U(1 - s, 1 + s) + U(-s, s) */
    double brightness, contrast, saturation; /* factors U(1 - s, 1 + s), as torchvision's
                                              * ColorJitter on tensors, in this order; [0, 1] */
    double hue;                              /* U(-s, s) of the circle, as torchvision; [0, 0.5] */
    double blur;                             /* chance of a Gaussian blur */
    double blur_sigma;                       /* standard deviation U(0.1, this), px */
};

/* What to normalise to: the stains of the image `template`, or with "" the built-in ones. */
bool augment_stain_target(enum stain_method method, const char *template, struct stain_fit *out,
                          struct err *err);

/* The name of all random choices for one sample. `sample` is unique in the data set. */
struct augment_key {
    uint64_t seed, epoch, sample;
};

/* Changes the patch in place; afterwards it is crop_px wide and high, rows packed (the memory stays
 * as large as it was). A patch smaller than the crop is an error. RGB only. */
bool augment_train(const struct augment_options *options, struct augment_key key,
                   struct image *patch, struct err *err);

/* For validation, nothing random: stain normalisation and the crop in the middle. */
bool augment_plain(const struct augment_options *options, struct image *patch, struct err *err);

/* The ways to lay a square on itself: way & 4 transposes, then way & 1 mirrors left-right and
 * way & 2 top-bottom. */
#define AUGMENT_WAYS 8
/* from [maps, side, side] -> to, laid in one of them. */
void augment_lay(const float *from, int64_t maps, int64_t side_px, int way, float *to);
#endif
