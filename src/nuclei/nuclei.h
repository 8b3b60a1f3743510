/* nuclei.h: an H&E image -> its nuclei: a label image, and for each nucleus its place, shape,
 * amount of haematoxylin and texture, in um. Stateless, thread-safe. */
#ifndef NUCLEI_NUCLEI_H
#define NUCLEI_NUCLEI_H
#include "base/image.h"

/* labels [height, width]: 0 outside, nuclei from 1 to n, in the order of their first pixel, row by
 * row. */
struct nuclei_labels {
    int32_t *labels;
    int64_t width, height;
    int32_t n;
};
void nuclei_labels_free(struct nuclei_labels *labels); /* also fine on a zeroed struct */

/* Clears nuclei of fewer than min_px or more than max_px pixels and numbers the others from 1, in
 * the order of their first pixel. The labels before are from 1 to labels->n, in any order. */
bool nuclei_labels_tidy(struct nuclei_labels *labels, int64_t min_px, int64_t max_px,
                        struct err *err);

/* All lengths in um, so that one setting fits every magnification. */
struct nuclei_settings {
    double smooth_um;       /* sigma of the Gaussian over haematoxylin */
    double window_um;       /* side of the window of the local threshold */
    double level;           /* of the threshold: 0 the local background, 1 the local nuclei */
    double min_contrast;    /* optical density that the threshold is above the background */
    double min_hematoxylin; /* optical density below which nothing is a nucleus */
    double open_um;         /* radius of the disc that removes what is thinner */
    double fill_um2;        /* holes smaller than this are filled */
    double marker_um;       /* sigma of the Gaussian over the distance to the edge */
    double tone_um;         /* and over the haematoxylin that it is weighed by */
    double split;           /* divided where the pass is below this share of the lower top */
    double min_distance_um; /* between the centres of two nuclei that touch */
    double min_area_um2, max_area_um2;
    /* Red over green, both in optical density, of a nucleus: stroma and red cells are below, ink is
     * above. */
    double min_red, max_red;
    /* Pale nuclei beside dark ones are looked for in what the first search leaves: this large and
     * this convex at least. An area above max_area_um2 omits the second search. */
    double pale_area_um2, pale_solidity;
};
struct nuclei_settings nuclei_defaults(void);

/* How much of the image around a tile its nuclei need to be those of the whole image, but for very
 * few: means of windows within windows reach farther (see "Tiles" in docs/nuclei.md). */
double nuclei_margin_um(const struct nuclei_settings *settings);

/* Nuclei can be told apart up to this um/px. */
#define NUCLEI_COARSEST_MPP 1.05

/* mpp: um/px of the image. An image without nuclei has n = 0, which is no error. A nucleus depends
 * on the pixels around it alone: see nuclei_margin_um. *out is the
 * caller's; free with nuclei_labels_free. Memory: about 40 bytes per pixel. */
bool nuclei_find(const struct image *rgb, double mpp, const struct nuclei_settings *settings,
                 struct nuclei_labels *out, struct err *err);

/* The features of a nucleus, in the order of nucleus_features. */
enum nucleus_feature {
    NUCLEUS_AREA,         /* um2 */
    NUCLEUS_PERIMETER,    /* um */
    NUCLEUS_ECCENTRICITY, /* 0: a circle */
    NUCLEUS_MAJOR_AXIS,   /* um */
    NUCLEUS_MINOR_AXIS,
    NUCLEUS_SOLIDITY,    /* area / area of the convex hull */
    NUCLEUS_HEMATOXYLIN, /* mean optical density of haematoxylin */
    NUCLEUS_ASM,         /* GLCM: angular second moment */
    NUCLEUS_CONTRAST,
    NUCLEUS_CORRELATION,
    NUCLEUS_FEATURES
};
struct nucleus_feature_name {
    const char *name;   /* "area", "major_axis", ..: as in nuclei.area.mean */
    const char *column; /* of the table, with its unit: "area_um2" */
    const char *title;  /* "nuclear area" */
};
extern const struct nucleus_feature_name nucleus_features[NUCLEUS_FEATURES];

struct nucleus {
    int32_t label;
    double x_px, y_px;                 /* centroid; the centre of the first pixel is 0, 0 */
    int64_t left, top, right, bottom;  /* px: [left, right) x [top, bottom) */
    bool touches_border;               /* of the image: cut off, maybe */
    double features[NUCLEUS_FEATURES]; /* NaN where not defined (texture of a single px) */
};

/* *out [labels->n], the caller's; NULL if there are none. The definitions are those of
 * scikit-image's regionprops and graycoprops; see docs/nuclei.md. Labels may be anybody's, from 1
 * to labels->n; one without pixels has area 0 and NaN for all else. */
bool nuclei_measure(const struct image *rgb, double mpp, const struct nuclei_labels *labels,
                    struct nucleus **out, struct err *err);
#endif
