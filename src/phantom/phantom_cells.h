/* phantom_cells.h: the cells of a rectangle, drawn as amounts of the two stains. */
#ifndef PHANTOM_PHANTOM_CELLS_H
#define PHANTOM_PHANTOM_CELLS_H
#include "phantom/phantom_field.h"
#include "phantom/phantom_noise.h"

/* A rectangle of the slide as amounts of stain. */
struct phantom_canvas {
    int64_t x, y; /* level-0 px of the first pixel */
    int width, height;
    float *hematoxylin, *eosin; /* [height, width] */
    float *nearest, *second;    /* [height, width]: px to the two nearest tumour cells */
    float *spare_hematoxylin, *spare_eosin; /* [height, width]: room for blurring */
};

/* Distances to the tumour cells, from which the background makes cell borders. Returns false and
 * fills nothing if no tumour is near. */
bool phantom_tumor_distances(const struct phantom_scene *scene,
                             const struct phantom_lattice *lattice, struct phantom_canvas *canvas);

/* Paints all nuclei over the background. */
void phantom_draw_nuclei(const struct phantom_scene *scene, const struct phantom_lattice *lattice,
                         const struct phantom_textures *textures, struct phantom_canvas *canvas);
#endif
