/* model_prepare.h: a patch -> what a network sees, as its config.json says: changes of size, then
 * (v / 255 - mean) / std. Training, validation, mining, `model run` and heatmaps all come through
 * here, so that they agree. Uses no state: all functions are thread-safe. */
#ifndef NET_MODEL_PREPARE_H
#define NET_MODEL_PREPARE_H
#include "base/image.h"
#include "net/model_config.h"

/* The size that a patch of width x height has after the first n_steps steps. Fails where a crop is
 * larger than what it crops. */
bool model_steps_size(const struct model_config *config, int n_steps, int64_t width, int64_t height,
                      int64_t *out_width, int64_t *out_height, struct err *err);
/* The same after all steps. Where none sets a size, a patch must have patch_size_pixels, if the
 * config says so: at another size the network would be another one. */
bool model_input_size(const struct model_config *config, int64_t width, int64_t height,
                      int64_t *input_width, int64_t *input_height, struct err *err);

/* The first n_steps steps, in place; the image may get other memory. */
bool model_apply_steps(const struct model_config *config, int n_steps, struct image *image,
                       struct err *err);
/* RGB [h, w, 3] -> out [3, h, w], normalised. */
void model_normalize(const struct model_config *config, const struct image *image, float *out);
/* All of it: -> out [3, input_height, input_width]. */
bool model_prepare(const struct model_config *config, const struct image *image, float *out,
                   struct err *err);

/* Where a crop of `crop_px` out of `side_px` begins: half of the rest, halves to the even number,
 * as in torchvision. */
int64_t model_crop_start(int64_t side_px, int64_t crop_px);
/* The side of the square that is cropped out of a patch of patch_size_pixels, if the config does
 * nothing else to its size and the crop has the patch's centre; else 0. */
int64_t model_crop_only(const struct model_config *config, int64_t patch_px);

/* The ways to lay a square on itself: way & 4 transposes, then way & 1 mirrors left-right and
 * way & 2 top-bottom. */
#define MODEL_WAYS 8
/* from [maps, side, side] -> to, laid in one of them. */
void model_lay(const float *from, int64_t maps, int64_t side_px, int way, float *to);
#endif
