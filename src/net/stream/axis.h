/* axis.h: the arithmetic of streaming along one axis (rows or columns) of an image. The image is
 * cut into tiles; from it follows which cells of every map a tile computes, which cells it needs
 * for that, and so what it takes over from the tiles before it. Numbers only, no floats.
 *
 * Tile i computes the cells [prefix(i), prefix(i + 1)) of every map: those that can be computed
 * from the image up to its end and from no less. So every cell is computed once, by one tile. A
 * node that reads a map needs the cells [begin(i), end(i)) of it; those below prefix(i) are a strip
 * of cells that earlier tiles computed.
 *
 * A band is a part of the image between two cuts that one of several processes computes. It begins
 * with the first cell of every map that can be computed from the band's part of the image alone,
 * and ends where the next band begins. The last tile of a band thus needs cells at or behind its
 * end, which the next band computes in its first tile: [prefix(tiles), end(tiles - 1)). */
#ifndef NET_STREAM_AXIS_H
#define NET_STREAM_AXIS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* How the cells of a map follow from those of another one. */
struct axis_rule {
    int64_t reach;  /* cells from the first to the last of a window */
    int64_t stride; /* of windows */
    int64_t pad; /* cells in front of the map that the first window begins at; negative: behind */
    int64_t up;  /* not 0: each cell becomes so many instead (upsampling) */
    bool blend;  /* up: between two neighbours, linearly */
};

/* A node that makes map `to` reads map `from`, whose index is smaller. Sorted by `to`. */
struct axis_edge {
    int from, to;
    struct axis_rule rule;
};

struct axis_spec {
    int n_maps;
    const int64_t *extents; /* [n_maps]: of the whole maps; map 0 is the image */
    const struct axis_edge *edges;
    int n_edges;
    int64_t tile;       /* extent of a tile, pixels of the image; rounded down to `step` */
    int64_t begin, end; /* the band, pixels of the image; multiples of `step`, or the image's end */
};

/* What a tile needs along an edge; of windows that are smaller than their stride also the cells
 * between the last and the next, as far as they are there: kernels are faster for whole strides. */
struct axis_need {
    int64_t begin, end;  /* cells of the map that is read */
    int64_t front, back; /* cells of padding around them: at the borders of the image only */
};

struct stream_axis {
    int n_maps, n_edges;
    int64_t step;            /* tiles begin at multiples of this: all maps advance by whole cells */
    int64_t tile;            /* the extent of tiles in the middle */
    int64_t tiles;           /* >= 1 */
    int64_t *prefixes;       /* [n_maps][tiles + 1] */
    struct axis_need *needs; /* [n_edges][tiles] */
    int *kinds;        /* [tiles]: tiles of the same kind have the same shapes of all maps, the
                          same strips and the same padding */
    int64_t *examples; /* [n_kinds]: a tile of each */
    int n_kinds;
};

/* False if a band is too thin for the network, or if there is no memory. */
bool stream_axis_new(const struct axis_spec *spec, struct stream_axis *out, struct err *err);
void stream_axis_free(struct stream_axis *axis);
/* The least step of tiles: the product of strides. */
int64_t stream_axis_step(const struct axis_edge *edges, int n_edges, int n_maps);

/* The first cell that cell `out` needs, and the one behind the last; they may lie outside of the
 * map. */
int64_t stream_axis_begin(const struct axis_rule *rule, int64_t out);
int64_t stream_axis_end(const struct axis_rule *rule, int64_t out);

static inline int64_t stream_axis_prefix(const struct stream_axis *axis, int map, int64_t tile)
{
    return axis->prefixes[map * (axis->tiles + 1) + tile];
}

static inline const struct axis_need *stream_axis_need(const struct stream_axis *axis, int edge,
                                                       int64_t tile)
{
    return &axis->needs[edge * axis->tiles + tile];
}

/* Where the strip begins that a tile takes over along an edge; it ends at its prefix. tile may be
 * `tiles`: none. */
int64_t stream_axis_strip(const struct stream_axis *axis, const struct axis_edge *edges, int edge,
                          int64_t tile);
#endif
