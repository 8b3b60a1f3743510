/* phantom_scene.h: (seed, slide number) -> everything large on a phantom slide: the patient, the
 * stain, the position of the tissue, the metastases and their outlines, pen, dust and blur. A scene
 * does not depend on the number of slides in the cohort. */
#ifndef PHANTOM_PHANTOM_SCENE_H
#define PHANTOM_PHANTOM_SCENE_H
#include <stdbool.h>
#include <stdint.h>

#define PHANTOM_MPP 0.25

enum { CURVE_WAVES = 5, MAX_ISLANDS = 5, MAX_LESIONS = 8, MAX_PEN_POINTS = 384, MAX_BLURS = 3 };

/* A closed outline: an ellipse whose radius is 1 + sum of waves (2 to 6 a turn). Level-0 px. */
struct phantom_curve {
    float x, y, half_long, half_short;
    float cosine, sine; /* of the long axis */
    float amplitude[CURVE_WAVES], phase[CURVE_WAVES];
};

enum lesion_kind { LESION_MACRO, LESION_MICRO, LESION_ISOLATED };

struct phantom_lesion {
    enum lesion_kind kind;
    struct phantom_curve outline;
    bool has_hole; /* normal tissue within the outline, annotated as an exclusion */
    struct phantom_curve hole;
    float pallor;      /* 0: dark nuclei, 1: pale, vesicular ones */
    float cellularity; /* fraction of grid positions with a cell */
};

struct phantom_island {
    float x, y, half_long, half_short, cosine, sine;
};

struct phantom_stain {
    float hematoxylin[3], eosin[3]; /* optical density of one unit, R G B */
    float glass[3];                 /* grey values without tissue */
};

struct phantom_pen {
    int n_points; /* 0: no pen on this slide */
    float x[MAX_PEN_POINTS], y[MAX_PEN_POINTS], half_width;
    bool lifted[MAX_PEN_POINTS]; /* no stroke from this point to the next */
    float transmission[3];
};

struct phantom_blur {
    float x, y, radius;
};

enum phantom_layout { LAYOUT_NODE, LAYOUT_CORDS }; /* phantom_layout.h */

struct phantom_scene {
    int64_t index, size_px;
    uint64_t seed;
    char name[32], patient[16];
    int node, center;
    bool tumor, test;
    uint32_t key; /* of the noise fields */
    struct phantom_stain stain;
    float fibre_cosine, fibre_sine;
    int n_islands, n_lesions, n_blurs;
    struct phantom_island islands[MAX_ISLANDS];
    float tissue_level; /* threshold of the tissue field that gives the desired area */
    struct phantom_lesion lesions[MAX_LESIONS];
    struct phantom_pen pen;
    struct phantom_blur blurs[MAX_BLURS];
    enum phantom_layout layout;
    float row_cosine, row_sine; /* LAYOUT_CORDS: along the rows */
};

enum { PHANTOM_CENTERS = 5 }; /* laboratories, each with its stain and scanner */

/* centers: bit c is set if patients come from centre c, in turn; 0: from all. It affects the centre
 * and its stain, and nothing else on the slide. */
void phantom_scene_make(uint64_t seed, int64_t index, int64_t size_px, unsigned centers,
                        struct phantom_scene *out);

/* How far inside the outline a point is, in px, approximately; negative outside. */
float phantom_curve_depth(const struct phantom_curve *curve, float x, float y);
/* The point of the outline at an angle relative to the curve's axes. */
void phantom_curve_point(const struct phantom_curve *curve, double angle, double *x, double *y);
/* How far inside the tissue a point is, in px, approximately, before lesions push the edge
 * outwards. */
float phantom_scene_tissue(const struct phantom_scene *scene, float x, float y);
#endif
