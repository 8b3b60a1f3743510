/* watershed.h: a landscape over a mask -> its hills, divided along the valleys between them. */
#ifndef NUCLEI_WATERSHED_H
#define NUCLEI_WATERSHED_H
#include "nuclei/nuclei.h"

struct watershed_split {
    /* Two hills are one if the pass between them is higher than this share of the lower top, or if
     * their tops are nearer than this. */
    double pass;
    double distance_px;
};

/* land [height, width], not negative; mask [height, width, 1], not 0 where a hill may be. Hills are
 * connected by edges and corners. Every pixel of the mask gets a label. *out is the caller's; its
 * labels are in no particular order: see nuclei_labels_tidy. Memory: 20 bytes per pixel of the mask
 * and 4 per pixel. The time is that of a sort by buckets, proportional to the pixels. */
bool watershed_hills(const float *land, const struct image *mask,
                     const struct watershed_split *split, struct nuclei_labels *out,
                     struct err *err);
#endif
