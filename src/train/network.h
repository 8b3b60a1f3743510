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
/* Starting weights: random from the seed, or from network.weights. */
bool network_start(const struct train_config *config, struct graph *graph, struct console *console,
                   struct err *err);
#endif
