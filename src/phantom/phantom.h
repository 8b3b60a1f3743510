/* phantom.h: a seed -> a synthetic cohort: pyramidal slides with planted metastases, annotations
 * and a slide list. Same seed, same bytes, on any number of threads. */
#ifndef PHANTOM_PHANTOM_H
#define PHANTOM_PHANTOM_H
#include <stdint.h>
#include "base/ctx.h"
#include "base/err.h"

enum { PHANTOM_SIZE_MIN = 1024, PHANTOM_SIZE_MAX = 131072 };

struct phantom_options {
    const char *folder;
    int64_t n_slides;
    int64_t size_px; /* width and height of level 0 */
    uint64_t seed;
    const char *centers; /* the patients' centres: numbers separated by commas; NULL: all */
};

/* Writes folder/slides/<name>.tiff, folder/annotations/<name>.xml and folder/slides.csv. Complete
 * slides are kept; slides made with another seed, size or centres are an error. A slide's bytes do
 * not depend on the number of slides in the cohort. Progress is reported in level-0 tiles. */
bool phantom_cohort(const struct phantom_options *options, const struct ctx *ctx, struct err *err);
#endif
