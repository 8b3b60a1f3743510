/* quality.h: a slide and its tissue -> where the tissue cannot be judged: out of focus, folded,
 * under a pen mark or an air bubble. What the rules find and miss is in docs/tissue.md. */
#ifndef TISSUE_QUALITY_H
#define TISSUE_QUALITY_H
#include "base/ctx.h"
#include "tissue/tissue.h"

/* The values of a quality mask. Where kinds meet, the later one is shown. */
enum quality_kind {
    QUALITY_GOOD,
    QUALITY_BLUR,
    QUALITY_FOLD,
    QUALITY_PEN,
    QUALITY_BUBBLE,
    QUALITY_KINDS
};
extern const char *const quality_kind_names[]; /* NULL-terminated, in the order of the enum */

extern const char *const quality_share_names[]; /* of the shares: "blurred", "folded", ... */

/* Sets of kinds: bit 1 << kind. */
#define QUALITY_ALL (((1U << QUALITY_KINDS) - 1) & ~1U)

/* "all", or names separated by commas -> a set. `option` is named in the error. */
bool quality_parse(const char *list, const char *option, unsigned *kinds, struct err *err);
/* The names in the order of the enum, separated by commas. */
#define QUALITY_TEXT_ROOM 32
void quality_text(unsigned kinds, char out[QUALITY_TEXT_ROOM]);

/* Focus is measured at this um/px, on slides at most so much coarser. */
#define QUALITY_FOCUS_MPP 0.5
#define QUALITY_FOCUS_TOLERANCE 0.3

struct quality_map {
    struct image kinds; /* [height, width, 1], the size of the tissue mask: enum quality_kind */
    double share[QUALITY_KINDS]; /* of the tissue, marks that lie over it included */
};

/* Looks for these kinds. The tissue must have its overview. Blur and bubbles need all tissue read
 * at 0.5 um/px, by all threads. Time and memory: see docs/tissue.md.
 * The caller owns *out; free with quality_free. */
bool quality_find(struct slide *slide, const struct tissue_mask *tissue, unsigned kinds,
                  const struct ctx *ctx, struct quality_map *out, struct err *err);
/* Computes the shares again from kinds, which may have been read from a file. */
bool quality_measure(struct quality_map *quality, const struct tissue_mask *tissue,
                     struct err *err);
void quality_free(struct quality_map *quality); /* also safe on a zeroed struct */

/* Clears mask pixels whose centre is of one of these kinds, and measures the tissue again. The mask
 * may be of another size. */
void quality_omit(const struct quality_map *quality, unsigned kinds, int64_t width_l0,
                  int64_t height_l0, struct tissue_mask *mask);
/* Finds these kinds and removes them from the mask; nothing for an empty set. The mask needs no
 * overview. */
bool quality_omit_found(struct slide *slide, enum tissue_method method, unsigned kinds,
                        const struct ctx *ctx, struct tissue_mask *mask, struct err *err);

/* Outlines of the bad areas in level-0 pixels as GeoJSON for QuPath, with the classes Blur, Fold,
 * Pen and Bubble. */
bool quality_write_geojson(const struct quality_map *quality, const struct tissue_mask *tissue,
                           const char *path, struct err *err);
/* The overview with the bad areas tinted, for viewing; a small one is enlarged. */
bool quality_write_overlay(const struct quality_map *quality, const struct tissue_mask *tissue,
                           const char *path, struct err *err);
#endif
