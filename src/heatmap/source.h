/* source.h: where pixels come from: a slide at one resolution, or a patch store of a dense grid,
 * which is like a slide with holes. Private to this folder. */
#ifndef HEATMAP_SOURCE_H
#define HEATMAP_SOURCE_H
#include "base/image.h"
#include "slide/raster.h"
#include "slide/slide_list.h"
#include "stain/stain.h"
#include "tissue/tissue.h"

struct source_store;

struct source {
    struct slide *slide;  /* NULL: a store */
    struct raster raster; /* of a store without its slide: sizes and scales only */
    double mpp_l0;
    int64_t width_l0, height_l0;
    struct tissue_mask mask; /* of a slide, after source_find_tissue */
    struct tissue_sums *sums;
    double min_tissue;
    struct source_store *store;        /* NULL: a slide */
    struct stain_fit stored;           /* of a store: what its patches were normalised to */
    struct stain_transform *transform; /* NULL: stains are not changed */
};

/* Is this the name of a patch store? */
bool source_is_store(const char *path);

/* A slide at request, or a store as it is. option_mpp > 0 overrides a slide's um/px. *out is the
 * caller's; close with source_close. */
bool source_open(const struct slide_entry *entry, double option_mpp,
                 const struct raster_request *request, struct source *out, struct err *err);
void source_close(struct source *source); /* also fine on a zeroed struct */

/* Finds the tissue of a slide, or reads its mask from a PNG if mask is not NULL. Nothing to do
 * for a store. */
bool source_find_tissue(struct source *source, enum tissue_method method, const char *mask,
                        struct err *err);
/* Is there any? For a store: does it contain a patch? */
bool source_has_tissue(const struct source *source);

/* Should a window of `window` px with its centre in the middle of this square of raster px be
 * scored? For a slide, if the square has tissue; for a store, if the window is inside one patch. */
bool source_wants(const struct source *source, int64_t x, int64_t y, int64_t side, int64_t window);

/* RGB of a rectangle; missing pixels are white. Stains are not changed. *out is the caller's.
 * Thread-safe. */
bool source_read(struct source *source, int64_t x, int64_t y, int64_t width, int64_t height,
                 struct image *out, struct err *err);
/* Normalises the stains, if requested. Thread-safe. */
void source_normalise(const struct source *source, struct image *image);
#endif
