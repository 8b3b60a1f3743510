/* model_name.h: what a model is called where results are shown. */
#ifndef NET_MODEL_NAME_H
#define NET_MODEL_NAME_H
#include "net/model.h"

/* The name of the file, or of its folder where the file is called model.*, as train does, with the
 * network where it is known: "run1 (resnet18)". A network of the zoo has its name, with that of its
 * weights. The caller's; NULL without memory. */
char *model_full_name(const struct model_source *source, const struct model *model);
#endif
