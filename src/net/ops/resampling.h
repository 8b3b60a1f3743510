/* resampling.h: nodes whose output pixels are taken from places of the input: pad and upsample. */
#ifndef NET_OPS_RESAMPLING_H
#define NET_OPS_RESAMPLING_H
#include "net/kernels/resample.h"
#include "net/plan/step.h"

/* Fills the tables of both axes (near, far, weight have `out` entries) and the fill value. */
typedef void (*resampling_fill)(const struct node *node, struct resample *r);

bool resampling_forward(struct plan_node *pn, enum layout layout, resampling_fill fill,
                        struct err *err);
bool resampling_backward(struct plan_node *pn, resampling_fill fill, struct err *err);
#endif
