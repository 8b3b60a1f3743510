/* sampling.h: random patches for training, a number of them for each class of a slide. Attempt k
 * for a class of a slide is keyed by (seed, slide, class, k), and attempts are used in the order of
 * k: the patches depend on nothing else. */
#ifndef PATCH_SAMPLING_H
#define PATCH_SAMPLING_H
#include "patch/label.h"
#include "patch/screen.h"

struct sampling {
    const char *slide; /* its name: part of the key */
    uint64_t seed;
    int64_t per_class;
    double min_tissue; /* of a patch of a class that nobody drew */
    bool all_tissue;   /* of every patch: where bad areas do not count as tissue */
    struct labeler labeler;
    struct screen screen;
};

/* False, with the reason and the remedy, if no number of attempts can find a place: the patch is
 * larger than the slide, or than its tissue can fill. */
bool sampling_fits(const struct sampling *sampling, const struct raster *raster,
                   const struct tissue_mask *mask, struct err *err);

/* Positions are drawn from the class's mask: that of its regions, and tissue for the class of what
 * nobody drew on; without labels by annotation there is one class, the tissue. The drawn point is
 * the patch's centre. Patches reach beyond the slide only where it is narrower than they are.
 * Gives fewer than requested, with a warning, if no more can be found. The list is sorted by
 * position. *out is the caller's. */
bool sampling_list(const struct sampling *sampling, const struct raster *raster,
                   const struct tissue_mask *mask, const struct tissue_sums *sums,
                   struct patch_list *out, const struct ctx *ctx, struct err *err);
#endif
