/* phantom_nuclei.h: a scene -> the truth of its nuclei: which pixel belongs to which. A pixel
 * belongs to the last painted nucleus of which it has at least half of the stain, unless the edge
 * of the tissue, a cleft or a hollow takes more than half of it. A nucleus is the largest piece (by
 * edges of pixels) of its pixels; it is left out if others or an edge hide more than three quarters
 * of it. What lies over the tissue (pen, dust, blur, artefacts) changes nothing: the truth is what
 * was planted. */
#ifndef PHANTOM_PHANTOM_NUCLEI_H
#define PHANTOM_PHANTOM_NUCLEI_H
#include "base/ctx.h"
#include "base/err.h"
#include "phantom/phantom_cells.h"

/* "lymphocyte", "large" (cells of follicle centres and sinuses), "stroma", "tumor". */
extern const char *const phantom_cell_names[PHANTOM_CELLS];

/* labels [height, width]: 0 outside, or the id of a nucleus, which is the same in every rectangle;
 * the rectangle may be anywhere on the slide and of any size. Thread-safe. */
bool phantom_nuclei_labels(const struct phantom_scene *scene, int64_t x, int64_t y, int64_t width,
                           int64_t height, int32_t *labels, struct err *err);
/* What kind of cell an id is of. */
enum phantom_cell phantom_nucleus_cell(int32_t id);

/* All nuclei of the slide as detections for QuPath, classified by kind, the outlines along the
 * edges of their pixels. Written to a temporary file and renamed; the same bytes on any number of
 * threads. Memory: the outlines of one row of squares of PHANTOM_NUCLEI_TILE_PX. */
enum { PHANTOM_NUCLEI_TILE_PX = 176 };
bool phantom_nuclei_write(const char *path, const struct phantom_scene *scene,
                          const struct ctx *ctx, struct err *err);
#endif
