/* specimen.h: where pixels come from: a slide at one resolution, or a patch store of a dense grid,
 * which is like a slide with holes. Private to this folder. */
#ifndef HEATMAP_SPECIMEN_H
#define HEATMAP_SPECIMEN_H
#include "base/ctx.h"
#include "base/image.h"
#include "slide/raster.h"
#include "slide/slide_list.h"
#include "stain/stain.h"
#include "tissue/tissue.h"

struct specimen_store;

struct specimen {
    struct slide *slide;  /* NULL: a store */
    struct raster raster; /* of a store without its slide: sizes and scales only */
    double mpp_l0;
    int64_t width_l0, height_l0;
    struct tissue_mask mask; /* of a slide, after specimen_find_tissue */
    struct tissue_sums *sums;
    double min_tissue;
    struct specimen_store *store;      /* NULL: a slide */
    struct stain_fit stored;           /* of a store: what its patches were normalised to */
    struct stain_transform *transform; /* NULL: stains are not changed */
};

/* Is this the name of a patch store? */
bool specimen_is_store(const char *path);

/* A slide at request, or a store as it is. *out is the caller's; close with specimen_close. */
bool specimen_open(const struct slide_entry *entry, const struct slide_access *access,
                   const struct raster_request *request, struct specimen *out, struct err *err);
void specimen_close(struct specimen *specimen); /* also fine on a zeroed struct */

/* Finds the tissue of a slide, or reads its mask from a PNG if mask is not NULL. Nothing to do
 * for a store. */
bool specimen_find_tissue(struct specimen *specimen, enum tissue_method method, const char *mask,
                          const struct ctx *ctx, struct err *err);
/* Removes these kinds of bad areas (tissue/quality.h) from a slide's tissue. */
bool specimen_omit(struct specimen *specimen, enum tissue_method method, unsigned kinds,
                   const struct ctx *ctx, struct err *err);
/* Frees what is known of the tissue; pixels can still be read. */
void specimen_drop_tissue(struct specimen *specimen);
/* Is there any? For a store: does it contain a patch? */
bool specimen_has_tissue(const struct specimen *specimen);

/* Should a window of `window` px with its centre in the middle of this square of raster px be
 * scored? For a slide, if the square has tissue; for a store, if the window is inside one patch. */
bool specimen_wants(const struct specimen *specimen, int64_t x, int64_t y, int64_t side,
                    int64_t window);

/* RGB of a rectangle; missing pixels are white. Stains are not changed. *out is the caller's.
 * Thread-safe. */
bool specimen_read(struct specimen *specimen, int64_t x, int64_t y, int64_t width, int64_t height,
                   struct image *out, struct err *err);
/* Normalises the stains, if requested. Thread-safe. */
void specimen_normalise(const struct specimen *specimen, struct image *image);
#endif
