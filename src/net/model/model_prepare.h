/* model_prepare.h: a patch -> the input of a network, as its config.json specifies: changes of
 * size, then (v / 255 - mean) / std. Training, validation, mining, `model run` and heatmaps all use
 * it, so that they agree. Stateless: all functions are thread-safe. */
#ifndef NET_MODEL_MODEL_PREPARE_H
#define NET_MODEL_MODEL_PREPARE_H
#include "base/image.h"
#include "net/model/model_config.h"

/* The size of a patch of width x height after the first n_sizings sizings. Fails if a crop is
 * larger than the image it crops. */
bool model_sized(const struct model_config *config, int n_sizings, int64_t width, int64_t height,
                 int64_t *out_width, int64_t *out_height, struct err *err);
/* The same after all sizings. If none sets a size, a patch must have patch_size_pixels if the
 * config gives it: at another size the network would be a different one. */
bool model_input_size(const struct model_config *config, int64_t width, int64_t height,
                      int64_t *input_width, int64_t *input_height, struct err *err);

/* The first n_sizings sizings, in place; the image's memory may be reallocated. */
bool model_resize(const struct model_config *config, int n_sizings, struct image *image,
                  struct err *err);
/* RGB [h, w, 3] -> out [3, h, w], normalised. */
void model_normalize(const struct model_config *config, const struct image *image, float *out);
/* All sizings and normalisation: -> out [3, input_height, input_width]. A pass over the pixels for
 * each sizing: 5 ms to shrink 1024 px to 224. */
bool model_prepare(const struct model_config *config, const struct image *image, float *out,
                   struct err *err);

/* Where a crop of `crop_px` from `side_px` starts: half of the rest, rounded half to even, as in
 * torchvision. */
int64_t model_crop_start(int64_t side_px, int64_t crop_px);
/* The side of the square cropped from a patch of patch_size_pixels, if the config does not change
 * its size otherwise and the crop has the patch's centre; else 0. */
int64_t model_crop_only(const struct model_config *config, int64_t patch_px);

/* The eight symmetries of a square: way & 4 transposes, then way & 1 mirrors left-right and way & 2
 * top-bottom. */
#define MODEL_WAYS 8
/* from [maps, side, side] -> to, with one of them applied. */
void model_lay(const float *from, int64_t maps, int64_t side_px, int way, float *to);
#endif
