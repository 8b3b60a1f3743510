/* tiles.h: the body of a network cut into tiles: the geometry of both axes, the places where a tile
 * takes over cells of its neighbours (carries), and the graph of every kind of tile. Internal to
 * net/stream. */
#ifndef NET_STREAM_TILES_H
#define NET_STREAM_TILES_H
#include "net/stream/body.h"
#include "net/stream/reduce.h"

/* Cells [begin, end) along an axis. */
struct span {
    int64_t begin, end;
};

/* A map with what its readers need of other tiles; readers with the same needs share it. */
struct carry {
    int map;
    int edge; /* one of the readers */
};

struct tiles {
    const struct body *body;
    struct stream_axis axes[2];
    struct carry *carries;
    int n_carries;
    int *carry_of; /* [edges of the body]: -1: it never takes over anything */
};

struct tiles_spec {
    int64_t tile_px;
    struct span rows; /* of the image: the band of this process */
};

bool tiles_new(const struct body *body, const struct tiles_spec *spec, struct tiles *out,
               struct err *err);
void tiles_free(struct tiles *tiles);

/* Along an axis (0: rows, 1: columns). The cells of a map that a tile computes; of the image: that
 * it reads. */
struct span tiles_own(const struct tiles *tiles, int axis, int map, int64_t tile);
/* What a carry gives to its readers. */
struct span tiles_need(const struct tiles *tiles, int axis, int carry, int64_t tile);
/* The part of that which earlier tiles computed, with what passes through to later ones. tile ==
 * tiles: nothing. */
struct span tiles_strip(const struct tiles *tiles, int axis, int carry, int64_t tile);
/* The cells of a map that tile (i, j) computes. */
struct stream_region tiles_region(const struct tiles *tiles, int map, int64_t i, int64_t j);

/* The graph of tiles of a kind: kinds of both axes. Its input is the part of the image, its outputs
 * are the ends of the body. Parameters as those of body_rewrite. */
bool tiles_graph(const struct tiles *tiles, int row_kind, int column_kind, struct graph **out,
                 struct err *err);
#endif
