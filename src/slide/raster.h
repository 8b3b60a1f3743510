/* raster.h: a slide at one resolution, which every later stage samples: either a level as stored,
 * or the best level resampled to a target um/px (area-averaged when shrinking). */
#ifndef SLIDE_RASTER_H
#define SLIDE_RASTER_H
#include "slide/slide.h"

struct raster_request {
    double mpp;           /* target um/px; 0: use downsample or level */
    double mpp_tolerance; /* how much coarser the slide may be, as a fraction of mpp */
    double downsample;    /* level-0 pixels per raster pixel, exactly; 0: use level */
    int level;            /* used when both are 0 */
};

/* ratio, downsample and mpp describe the same scale: downsample = ratio x that of the level, mpp =
 * downsample x that of the slide. All coordinates behind it are pixels of the raster; those of
 * level 0 have `_l0` in their names. */
struct raster {
    struct slide *slide;   /* not owned */
    int level;             /* where the pixels come from */
    int reduce;            /* decoded at 1/2^reduce of it (source_reduced): only in overviews */
    double ratio;          /* level pixels, or reduced ones, per raster pixel; 1: no resampling */
    double ratio_y;        /* the same vertically; differs from ratio only in overviews */
    double downsample;     /* level-0 pixels per raster pixel */
    double mpp;            /* um per raster pixel; 0 if unknown */
    int64_t width, height; /* raster pixels */
};

#define RASTER_TOLERANCE 0.01 /* of mpp */
#define RASTER_MAX_ENLARGE 8

/* Chooses the level: the coarsest that is still at least as fine as requested (within 1 % of mpp it
 * is used without resampling); the finest if all are coarser, which is an error beyond
 * mpp_tolerance. Shrinks at most 64-fold and enlarges at most 8-fold. If mpp is requested of a
 * slide without um/px, the error names --slide-mpp. Reads nothing. */
bool raster_open(struct slide *slide, const struct raster_request *request, struct raster *out,
                 struct err *err);

/* Raster pixels -> level-0 pixels, rounded to nearest: the only place where coordinates are
 * scaled. */
int64_t raster_to_l0(const struct raster *raster, int64_t px);
int64_t raster_from_l0(const struct raster *raster, int64_t px_l0);

/* Reads one region, for single patches and tests; for many regions use band.h, which gives the same
 * pixels but decodes a tile once. Pixels outside the slide are white. */
bool raster_read(const struct raster *raster, int64_t x, int64_t y, int64_t width, int64_t height,
                 struct image *out, struct err *err);
#endif
