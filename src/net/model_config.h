/* model_config.h: what must be done to an image before a network sees it and what its outputs mean:
 * the config.json that lies beside the weights, with the keys of WSInfer's model zoo. Our own facts
 * stand under the key "microtome", which other readers pass over. */
#ifndef NET_MODEL_CONFIG_H
#define NET_MODEL_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "net/transform.h"

struct model_config {
    int64_t num_classes;       /* logits; one: sigmoid, more: softmax */
    int64_t patch_size_pixels; /* side of a patch as it is cut, at spacing_um_px */
    double spacing_um_px;
    char **class_names;     /* [num_classes] */
    int64_t resize[2];      /* height, width the patch is resized to; 0: as it is cut */
    bool resize_shorter;    /* resize[0] is for the shorter side (Resize with one number) */
    double mean[3], std[3]; /* of RGB / 255; without Normalize 0 and 1 */
    char *architecture;     /* timm's name, or NULL */
    /* "microtome": */
    char *network;        /* name in our zoo, or NULL */
    enum padding padding; /* of the whole network */
    int64_t stride_px;    /* of a dense heatmap; 0: not said */
};

/* RGB / 255, no resize, everything else unset. */
void model_config_init(struct model_config *config);
void model_config_free(struct model_config *config); /* also fine on a zeroed struct */

/* Errors name the file and the key. *out is the caller's; free with model_config_free. */
bool model_config_read(const char *path, struct model_config *out, struct err *err);
/* The same from memory; path only names it in messages. */
bool model_config_parse(const char *text, size_t size, const char *path, struct model_config *out,
                        struct err *err);
/* What config.json calls it: "zero", "reflect", .. */
const char *model_config_padding(enum padding padding);
/* Beside and renamed. All that WSInfer requires must be set. */
bool model_config_write(const char *path, const struct model_config *config, struct err *err);
#endif
