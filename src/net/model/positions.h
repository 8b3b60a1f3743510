/* positions.h: the position embedding of a Vision Transformer for images of another size. */
#ifndef NET_MODEL_POSITIONS_H
#define NET_MODEL_POSITIONS_H
#include "net/graph/graph.h"
#include "net/model/safetensors.h"

/* [from x from, width] -> [height x width_out, width]: bicubic with antialiasing, as timm's
 * resample_abs_pos_embed, in double precision. */
bool positions_resample(const float *in, int64_t from, int64_t features, int64_t height,
                        int64_t width, float *out);

/* If "pos_embed" of the graph has another number of tokens than the file's, replaces the file's
 * tensor in memory by a resampled one. Tokens before those of patches (the class token) keep their
 * positions; the patches of the file are taken as a square. A graph without it is left alone. */
bool positions_fit(const struct graph *graph, struct safetensors *file, struct err *err);
#endif
