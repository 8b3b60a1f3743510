/* slic.h: superpixels: connected areas of similar colour and roughly the same size (SLIC, Achanta
 * et al. 2012). All depends on the pixels alone. Thread-safe. */
#ifndef EXPLAIN_SLIC_H
#define EXPLAIN_SLIC_H
#include "base/image.h"

struct slic_options {
    int64_t segments;   /* about how many; 1 or more */
    double compactness; /* what a step of the grid weighs in units of Lab: high is square */
    double smooth_px;   /* sigma of the Gaussian before; 0: none */
};
struct slic_options slic_defaults(void); /* 50, 20, 1 px */

/* labels [height, width] of an RGB image: 0 to *n - 1 in the order of their first pixels. Each is
 * connected by its sides and no smaller than half of the mean size that was asked for, so there are
 * often fewer than asked for. *n is at least 1; an image of fewer pixels than segments gets no more
 * than its pixels. For 224 x 224 px about 30 ms. */
bool slic(const struct image *image, const struct slic_options *options, int32_t *labels,
          int64_t *n, struct err *err);

/* Its two steps. Clusters: a label below *n need not be connected, nor be there at all. With
 * smooth_px 0 and an image that has values 0 and 255 the same labels as scikit-image's slic with
 * enforce_connectivity=False. */
bool slic_cluster(const struct image *image, const struct slic_options *options, int32_t *labels,
                  int64_t *n, struct err *err);
/* In place: connected areas of at least smallest_px, or one. */
bool slic_connect(int64_t width, int64_t height, int64_t smallest_px, int32_t *labels, int64_t *n,
                  struct err *err);
#endif
