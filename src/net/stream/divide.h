/* divide.h: where to cut an image into bands of rows, one for each of several processes (bands.h):
 * at multiples of the network's step, and so that every band is high enough for the network. */
#ifndef NET_STREAM_DIVIDE_H
#define NET_STREAM_DIVIDE_H
#include "net/plan/plan.h"
#include "net/stream/body.h"

/* The graph has the size of the image; options: of its plan. rows [bands + 1]: so that the largest
 * sum of work [height] over the rows of a band is as small as possible; work NULL: all rows alike.
 * An image that is too small is refused with the number of bands that fits. For
 * plan_stream.band_rows. */
bool bands_divide(const struct graph *graph, const struct plan_options *options, const double *work,
                  int bands, int64_t *rows, struct err *err);

/* The same for a network that is already divided for streaming, as equal as possible. */
bool bands_divide_evenly(const struct body *body, int bands, int64_t *rows, struct err *err);
/* Whether bands with these rows can be computed, each of them: then every process knows. */
bool bands_check(const struct body *body, const int64_t *rows, int bands, struct err *err);
#endif
