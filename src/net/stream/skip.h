/* skip.h: which tiles are computed where only some cells of the outputs are wanted: those that
 * compute a wanted cell or any cell of any map that one depends on. Internal to net/stream. */
#ifndef NET_STREAM_SKIP_H
#define NET_STREAM_SKIP_H
#include "net/stream/tiles.h"

/* needed [tiles of axis 0][tiles of axis 1]. wish NULL: all of them. The outputs of the graph are
 * maps. */
bool skip_find(const struct tiles *tiles, const struct plan_wish *wish, bool *needed,
               struct err *err);
#endif
