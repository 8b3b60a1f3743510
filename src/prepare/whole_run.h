/* whole_run.h: a network on one large image or slide as a whole, tile by tile, in bounded memory:
 * its outputs, or the map of one of its layers in a file. */
#ifndef PREPARE_WHOLE_RUN_H
#define PREPARE_WHOLE_RUN_H
#include "base/ctx.h"
#include "net/model/model.h"
#include "net/plan/plan.h"

struct whole_request {
    const struct model *model; /* of model_open_classifier if scores are wanted */
    const char *layer;         /* NULL: its scores */
    const char *npy;   /* where the layer's numbers go: float32 [height, width, channels] of a
                          map, [1, features] of others */
    int64_t memory_mb; /* that the process may take; 0: no limit */
    int64_t tile_px;   /* 0: chosen */
};

struct whole_result {
    int64_t height, width; /* of the image, px */
    struct shape shape;    /* of the layer at this size */
    struct plan_streamed streamed;
};

/* A model of whole slides reads a slide as in its training; for others every pixel of level 0 is
 * used as it is, normalised with their mean and std. scores [classes], unless there is a layer. */
bool whole_run(const struct whole_request *request, const char *path, const struct ctx *ctx,
               double *scores, struct whole_result *result, struct err *err);
#endif
