/* network.h: a network of the zoo as the config asks for it, ready to be trained. */
#ifndef TRAIN_NETWORK_H
#define TRAIN_NETWORK_H
#include "base/console.h"
#include "net/graph/graph.h"
#include "train/config.h"

/* [batch, 3, input_px, input_px] -> [batch, outputs], padded as configured. `what`: "an image
 * classifier", for the message if it is not. *out is the caller's. */
bool network_build(const struct train_config *config, int64_t outputs, const char *what,
                   struct graph **out, struct err *err);
/* [batch, 3, input_px, input_px] -> [batch, outputs, input_px, input_px]: numbers for every pixel.
 */
bool network_build_pixels(const struct train_config *config, int64_t outputs, struct graph **out,
                          struct err *err);
/* [batch, channels, side, side], time and, if there are any, conditions -> the shape of the image.
 */
bool network_build_denoiser(const struct train_config *config, int64_t channels, int64_t side,
                            int64_t conditions, struct graph **out, struct err *err);
/* [batch, 3, side, side] -> the same, through a small map (net/zoo/autoencoder.c). */
bool network_build_autoencoder(const struct train_config *config, int64_t side, struct graph **out,
                               struct err *err);
/* Refuses networks in parts and whole slides, for objectives that cannot take them. */
bool network_is_undivided(const struct train_config *config, const char *objective,
                          struct err *err);
/* Where mean and deviation of pixels are the defaults, those that give -1 to 1. */
void network_usual_pixels(struct train_config *config);
/* Frames [batch, frames, bands] and mask -> [batch, outputs]. */
bool network_build_audio(const struct train_config *config, int64_t outputs, int64_t frames,
                         int64_t bands, struct graph **out, struct err *err);
/* Ids and mask [batch, data.max_tokens], ids below `vocabulary` -> [batch, outputs]. */
/* The same with `places` of each text, whose tokens it gives: objective mask. */
bool network_build_mask(const struct train_config *config, int64_t places, int64_t vocabulary,
                        struct graph **out, struct err *err);
bool network_build_text(const struct train_config *config, int64_t outputs, int64_t vocabulary,
                        struct graph **out, struct err *err);
/* Starting weights: random from the seed, or from network.weights. */
bool network_start(const struct train_config *config, struct graph *graph, struct console *console,
                   struct err *err);
#endif
