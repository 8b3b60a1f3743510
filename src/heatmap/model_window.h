/* model_window.h: a model -> the windows that it scores, and the hash by which results know it. */
#ifndef HEATMAP_MODEL_WINDOW_H
#define HEATMAP_MODEL_WINDOW_H
#include "net/model/model.h"

struct model_window {
    int64_t window;       /* raster px that a score is made from */
    int64_t side;         /* the same after the sizings of the config; equal: none are needed */
    float normal[3][256]; /* RGB byte -> what the network sees */
};

/* Rejects a network whose windows would not be square. */
bool model_window_of(const struct model *model, struct model_window *out, struct err *err);

/* The network with its weights, what is done to a pixel before it, what its outputs are and what
 * the classes are called: continues a hash, or as 16 hex digits, the model_hash of heatmap.json. */
uint64_t model_window_hash(uint64_t hash, const struct model *model,
                           const struct model_window *window);
#define MODEL_HASH_TEXT 17
bool model_hash_text(const struct model *model, char out[MODEL_HASH_TEXT], struct err *err);
#endif
