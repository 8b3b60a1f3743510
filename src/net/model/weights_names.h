/* weights_names.h: what the names and shapes in a file of weights say of the network: names that
 * parameters of the zoo's networks have in other programs, settings that the name of the network
 * does not say, and parts that it does not have. */
#ifndef NET_MODEL_WEIGHTS_NAMES_H
#define NET_MODEL_WEIGHTS_NAMES_H
#include "net/model/safetensors.h"
#include "net/zoo/zoo.h"

/* Gives the tensors of a file the names, and shapes, that the network of the zoo has, where they
 * are known to differ: Swin as timm saved it before 2023 (CTransPath), VGG as timm saves it. Files
 * with the zoo's own names are left as they are. */
bool weights_rename(struct safetensors *file, const char *network, struct err *err);

/* Of a vit_*, which is published with one name and several settings: the side of a patch, the
 * number of blocks, LayerScale, SwiGLU and register tokens as the file has them. Other networks,
 * and files of other networks, leave *options as it is. */
void weights_settings(const struct safetensors *file, const char *network,
                      struct zoo_options *options);

/* Refuses a file that has tensors within parts of the network that the network does not know: what
 * they do would be left out. `head` is the name of the layer that classifies, which may be left
 * out; parts of their own (auxiliary heads for training) may be too, but not of a vit_*. */
bool weights_check_extra(const struct graph *graph, const struct safetensors *file,
                         const char *head, struct err *err);
#endif
