/* work.h: how much of an image a streamed network would compute, found without planning it: numbers
 * that depend on the network, the sizes and the wish alone. */
#ifndef NET_STREAM_WORK_H
#define NET_STREAM_WORK_H
#include "net/plan/plan.h"

struct stream_work {
    int64_t tiles, computed;
    double share; /* of the multiply-adds of all tiles that those of the computed ones are */
};

/* graph: at the size of the image, as for plan_new in PLAN_INFER; its outputs are maps. how: its
 * tile_px and wish count. Refuses what cannot be streamed. */
bool stream_work(const struct graph *graph, const struct plan_stream *how, struct stream_work *out,
                 struct err *err);
#endif
