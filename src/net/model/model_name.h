/* model_name.h: the name of a model where results are shown. */
#ifndef NET_MODEL_MODEL_NAME_H
#define NET_MODEL_MODEL_NAME_H
#include "net/model/model.h"

/* The name of the file, or of its folder if the file is called model.* (as written by train),
 * followed by the network if it is known: "run1 (resnet18)". For a zoo network, its name and that
 * of its weights. The caller's; NULL if no memory. */
char *model_full_name(const struct model_source *source, const struct model *model);
#endif
