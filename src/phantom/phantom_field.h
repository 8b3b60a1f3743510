/* phantom_field.h: a scene -> the kind of tissue at each position. Fields are evaluated on a
 * lattice that is fixed to the slide and interpolated, so any rectangle can be drawn on its own and
 * matches its neighbours. */
#ifndef PHANTOM_PHANTOM_FIELD_H
#define PHANTOM_PHANTOM_FIELD_H
#include "phantom/phantom_scene.h"

enum phantom_field {
    FIELD_TISSUE,  /* px inside the tissue */
    FIELD_TUMOR,   /* px inside a lesion */
    FIELD_FAT,     /* 0 to 1, as the next two */
    FIELD_STROMA,  /* collagen: capsule, trabeculae, septa between tumour nests */
    FIELD_PALE,    /* follicle centres and sinuses: fewer, larger cells */
    FIELD_TEAR,    /* near 0: a cleft in the tissue, */
    FIELD_TORN,    /* 0 to 1: where there are clefts */
    FIELD_LUMEN,   /* above 1: the hollow of a gland */
    FIELD_DEPTH,   /* of the stain, around 1 */
    FIELD_FIBRE_U, /* px along and across the fibres */
    FIELD_FIBRE_V,
    FIELD_BLUR, /* 0 sharp, 1 out of focus */
    N_FIELDS
};

enum {
    LATTICE_STEP = 16,
    LATTICE_MARGIN = 96, /* px around the rectangle that are searched for cells */
    RECT_SIDE_MAX = 288,
    LATTICE_NODES_MAX = (RECT_SIDE_MAX + 2 * LATTICE_MARGIN) / LATTICE_STEP + 2
};

struct phantom_lattice {
    int64_t x0, y0; /* level-0 px of the first node */
    int across, down;
    float nodes[N_FIELDS][LATTICE_NODES_MAX * LATTICE_NODES_MAX];
};

/* Returns false and evaluates nothing if the rectangle contains only glass. */
bool phantom_is_tissue(const struct phantom_scene *scene, int64_t x, int64_t y, int64_t width,
                       int64_t height);
/* The rectangle's sides are at most RECT_SIDE_MAX. */
void phantom_lattice_fill(const struct phantom_scene *scene, int64_t x, int64_t y, int64_t width,
                          int64_t height, struct phantom_lattice *out);

enum phantom_kind { KIND_NONE, KIND_TUMOR, KIND_LYMPHOID, KIND_STROMA, KIND_FAT };

/* What a pathologist would call the tissue at a position. KIND_NONE: glass, the ragged edge of the
 * tissue, and `border_px` around a lesion. */
enum phantom_kind phantom_kind_at(const struct phantom_scene *scene, float x, float y,
                                  float border_px);

/* One field at one position, and along a row of n pixels. */
float phantom_lattice_at(const struct phantom_lattice *lattice, enum phantom_field field, float x,
                         float y);
void phantom_lattice_row(const struct phantom_lattice *lattice, enum phantom_field field, int64_t x,
                         int64_t y, int n, float *out);
#endif
