/* weights_names.h: names that parameters of the zoo's networks have in other programs. */
#ifndef NET_MODEL_WEIGHTS_NAMES_H
#define NET_MODEL_WEIGHTS_NAMES_H
#include "net/model/safetensors.h"

/* Gives the tensors of a file the names, and shapes, that the network of the zoo has, where they
 * are known to differ: Swin as timm saved it before 2023 (CTransPath), VGG as timm saves it. Files
 * with the zoo's own names are left as they are. */
bool weights_rename(struct safetensors *file, const char *network, struct err *err);
#endif
