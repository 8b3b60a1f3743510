/* tissue.h: an overview -> a tissue mask. */
#ifndef TISSUE_TISSUE_H
#define TISSUE_TISSUE_H
#include "base/image.h"
#include "slide/slide.h"

/* um per level-0 pixel assumed for sizes if the slide does not give it; the caller should warn
 * (tissue_mask.mpp is 0). Areas are then not reported. */
#define TISSUE_ASSUMED_MPP 0.25

/* Maximum pixels of an overview, so that making a mask never needs more than about 150 MB. */
#define TISSUE_MAX_OVERVIEW_PX 16e6

/* TISSUE_NONE looks for nothing: all of the slide counts as tissue, whatever the other options. */
enum tissue_method { TISSUE_FDA, TISSUE_PROCESS, TISSUE_NCRF, TISSUE_NONE };
extern const char *const tissue_method_names[]; /* NULL-terminated, in the order of the enum */

struct tissue_options {
    enum tissue_method method;
    bool use_value;  /* fda: threshold V as well (three-channel mode, for training) */
    bool remove_pen; /* blue, green, red and black marker, and black areas */
    double close_um; /* radius of closing, then of opening, in um; none below a mask pixel */
    double open_um;
    double min_area_um2; /* smaller pieces of tissue are dropped */
    double min_hole_um2; /* smaller holes are filled */
    double downsample;   /* of the overview; 32. More if it would exceed TISSUE_MAX_OVERVIEW_PX */
};
struct tissue_options tissue_defaults(void);
/* All options as one line of text, stored in a mask's PNG. Owned by the caller; NULL if out of
 * memory. */
char *tissue_options_text(const struct tissue_options *options);

struct tissue_mask {
    struct image mask;               /* [height, width, 1]: 0 or 255 */
    struct image overview;           /* [height, width, 3]: what it was made from */
    double l0_per_px_x, l0_per_px_y; /* the real ratio of dimensions */
    double mpp;                      /* um per level-0 pixel; 0 if unknown */
    int64_t tissue_px;
    double fraction;                             /* of the slide's area */
    double area_mm2;                             /* 0 if um/px is unknown */
    int64_t box_x, box_y, box_width, box_height; /* bounding box in level-0 pixels */
};

/* Finds the tissue, from an overview: 60 ms for a slide of 32,768 px, at most a few seconds. A
 * slide without tissue gives an empty mask, not an error. ctx is for slide_overview, and may be
 * NULL. The caller owns *out; free with
 * tissue_mask_free. */
bool tissue_find(struct slide *slide, const struct tissue_options *options, const struct ctx *ctx,
                 struct tissue_mask *out, struct err *err);
/* The same from an overview in memory, of which it takes ownership even on failure. */
bool tissue_find_in(struct image *overview, int64_t width_l0, int64_t height_l0, double mpp,
                    const struct tissue_options *options, struct tissue_mask *out, struct err *err);
/* Reads an existing mask from its PNG and measures it again, without an overview. */
bool tissue_read(struct slide *slide, const char *path, struct tissue_mask *out, struct err *err);
/* Computes the measures from mask, ratios and mpp. */
void tissue_measure(struct tissue_mask *mask, int64_t width_l0, int64_t height_l0);
void tissue_mask_free(struct tissue_mask *mask);

/* Fraction of tissue pixels of the mask under a level-0 rectangle, by the actual ratio, with partly
 * covered mask pixels counted in proportion. The area outside the slide counts as background. */
struct tissue_sums; /* an integral image: one pass over the mask, then a query takes four reads */
bool tissue_sums_new(const struct tissue_mask *mask, struct tissue_sums **out, struct err *err);
void tissue_sums_free(struct tissue_sums *sums);
double tissue_fraction(const struct tissue_sums *sums, double x_l0, double y_l0, double width_l0,
                       double height_l0);

/* Outlines of the mask as closed polygons with holes in level-0 pixels, as GeoJSON for QuPath,
 * streamed to a file. Identifiers are derived from the file's name and the number of the piece. */
bool tissue_write_geojson(const struct tissue_mask *mask, const char *path, struct err *err);
/* The overview with the outline drawn on it, for viewing; a small one is enlarged. */
bool tissue_write_overlay(const struct tissue_mask *mask, const char *path, struct err *err);
/* Picture pixels per mask pixel of such an image. */
int64_t tissue_overlay_zoom(const struct tissue_mask *mask);
#endif
