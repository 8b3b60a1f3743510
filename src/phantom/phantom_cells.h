/* phantom_cells.h: the cells of a rectangle: drawn as amounts of the two stains, or as a list. */
#ifndef PHANTOM_PHANTOM_CELLS_H
#define PHANTOM_PHANTOM_CELLS_H
#include "phantom/phantom_field.h"
#include "phantom/phantom_noise.h"

/* Level-0 px. */
struct phantom_rect {
    int64_t x, y;
    int width, height;
};

/* A rectangle of the slide as amounts of stain. */
struct phantom_canvas {
    struct phantom_rect rect;
    float *hematoxylin, *eosin; /* [height, width] */
    float *nearest, *second;    /* [height, width]: px to the two nearest tumour cells */
    float *spare_hematoxylin, *spare_eosin; /* [height, width]: room for blurring */
};

enum phantom_cell { CELL_LYMPHOCYTE, CELL_LARGE, CELL_SPINDLE, CELL_TUMOR, PHANTOM_CELLS };

struct phantom_nucleus {
    int32_t id; /* above 0; the same whatever rectangle it was found in */
    enum phantom_cell cell;
    float x, y, half_long, half_short, cosine, sine;
    float irregular;   /* how much noise bends the outline; 0: an ellipse */
    float hematoxylin; /* amount at the rim */
    float hollow;      /* how much paler the middle is, 0 to 1 */
    float clumping;    /* contrast of the chromatin */
    float eosin;
    int n_nucleoli;
    float nucleolus_x[3], nucleolus_y[3], nucleolus_radius;
    int32_t texture_x, texture_y;
};

/* Px from its centre beyond which no nucleus reaches. */
enum { PHANTOM_NUCLEUS_REACH_PX = 52 };

/* Distances to the tumour cells, from which the background makes cell borders. Returns false and
 * fills nothing if no tumour is near. */
bool phantom_tumor_distances(const struct phantom_scene *scene,
                             const struct phantom_lattice *lattice, struct phantom_canvas *canvas);

/* Paints all nuclei over the background. */
void phantom_draw_nuclei(const struct phantom_scene *scene, const struct phantom_lattice *lattice,
                         const struct phantom_textures *textures, struct phantom_canvas *canvas);

/* Lists the nuclei of a rectangle and LATTICE_MARGIN - LATTICE_STEP px around it, in the order in
 * which they are painted over each other. The lattice is that of the rectangle. */
typedef void (*phantom_take_nucleus)(void *arg, const struct phantom_nucleus *nucleus);
void phantom_each_nucleus(const struct phantom_scene *scene, const struct phantom_lattice *lattice,
                          const struct phantom_rect *rect, phantom_take_nucleus take, void *arg);

/* owners [rect.height, rect.width]: set to `owner` where at least half of the nucleus's stain is
 * laid down. Returns how many pixels that are. */
int64_t phantom_nucleus_claim(const struct phantom_nucleus *nucleus,
                              const struct phantom_textures *textures,
                              const struct phantom_rect *rect, int32_t owner, int32_t *owners);
#endif
