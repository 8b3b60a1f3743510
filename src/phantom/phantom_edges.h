/* phantom_edges.h: where the stain of a phantom ends: the edge of the tissue, clefts and hollows.
 */
#ifndef PHANTOM_PHANTOM_EDGES_H
#define PHANTOM_PHANTOM_EDGES_H
#include "phantom/phantom_field.h"
#include "phantom/phantom_noise.h"

/* keep [n]: how much of the stain remains, 0 to 1, along a row of n <= RECT_SIDE_MAX pixels. */
void phantom_edges_row(const struct phantom_lattice *lattice,
                       const struct phantom_textures *textures, int64_t x, int64_t y, int n,
                       float *keep);
#endif
