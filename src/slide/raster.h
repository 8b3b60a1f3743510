/* raster.h: a slide at one resolution, which is what every later stage samples: either a level as
 * it is, or the best level resampled to a target um/px (area-correct when shrinking). */
#ifndef SLIDE_RASTER_H
#define SLIDE_RASTER_H
#include "slide/slide.h"

struct raster_request {
    double mpp;           /* target um/px; 0: use level */
    double mpp_tolerance; /* by how much the slide may be coarser than mpp, as a share of it */
    int level;            /* used when mpp is 0 */
};

struct raster {
    struct slide *slide;   /* not owned */
    int level;             /* where the pixels come from */
    double ratio;          /* level pixels per raster pixel; 1: no resampling */
    double ratio_y;        /* the same downwards; differs from ratio only in overviews */
    double downsample;     /* level-0 pixels per raster pixel */
    double mpp;            /* um per raster pixel; 0 if unknown */
    int64_t width, height; /* raster pixels */
};

/* Chooses the level: the coarsest that is still at least as fine as asked for (1 % tolerance, in
 * which case it is taken as it is); the finest where all are coarser, which is an error beyond
 * mpp_tolerance. At most 64-fold shrinking and 8-fold enlarging. A slide without um/px and a
 * request with mpp is an error that names --slide-mpp. */
bool raster_open(struct slide *slide, const struct raster_request *request, struct raster *out,
                 struct err *err);

/* Raster pixels -> level-0 pixels, rounded to nearest: the one place where scaling happens. */
int64_t raster_to_l0(const struct raster *raster, int64_t px);
int64_t raster_from_l0(const struct raster *raster, int64_t px_l0);

/* One region, for single patches and tests; many regions are band.h's job and give the same
 * pixels. Outside of the slide is white. */
bool raster_read(const struct raster *raster, int64_t x, int64_t y, int64_t width, int64_t height,
                 struct image *out, struct err *err);
#endif
