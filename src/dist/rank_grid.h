/* rank_grid.h: the ranks of a training as a grid, one axis for each way to divide the work:
 *
 *   data    copies of the network that learn from different patches; sum gradients once a step
 *   stage   parts of the network, one after another; send activations on and gradients back
 *   space   parts of one image along one side, exchanging their borders before every convolution
 *   bands   the same along the other side: with space, the image is cut into tiles
 *   heads   heads or channels of a layer; sum within every layer
 *
 * Ranks that are neighbours in their numbers are most often on one machine: mpirun fills a machine
 * before it goes on to the next. So the axis that talks most and waits longest for it varies
 * fastest: heads, then bands, space and stage; data, whose sums run during the backward pass,
 * varies slowest and goes across machines. */
#ifndef DIST_RANK_GRID_H
#define DIST_RANK_GRID_H
#include "dist/ranks.h"

enum rank_grid_axis { GRID_DATA, GRID_STAGE, GRID_SPACE, GRID_BANDS, GRID_HEADS, GRID_AXES };
extern const char *const rank_grid_names[GRID_AXES]; /* "data" .. "heads" */

/* at[a] < extent[a]; the product of the extents is the number of all ranks. group[a]: the ranks
 * that differ from this one in axis a alone, in the order of that axis: its rank is at[a], its size
 * extent[a]. */
struct rank_grid {
    int extent[GRID_AXES], at[GRID_AXES];
    struct ranks group[GRID_AXES];
};

/* The extents of a grid of `size` ranks; asked >= 1, or 0 for data: what the others leave. An error
 * names the numbers, as the config's section `parallel`. Not collective. */
bool rank_grid_extents(const int64_t asked[GRID_AXES], int size, int extent[GRID_AXES],
                       struct err *err);
/* Where a rank is in it. Not collective. */
void rank_grid_place(const int extent[GRID_AXES], int rank, int at[GRID_AXES]);

/* Collective: places all ranks and makes their groups, which costs a few small messages each. *out
 * is the caller's; free with rank_grid_free, before `ranks` ends. */
bool rank_grid_new(struct ranks *ranks, const int64_t asked[GRID_AXES], struct rank_grid *out,
                   struct err *err);
void rank_grid_free(struct rank_grid *grid); /* also fine on a zeroed struct */
#endif
