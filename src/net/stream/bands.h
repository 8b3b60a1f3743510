/* bands.h: an image over several processes, each with a band of its rows (axis.h). The last row of
 * tiles of a band needs cells that the band below computed in its first row; in the backward pass
 * the gradients of these cells go back. Both are sent as soon as they are complete and needed only
 * at the end of the other's pass, so that with two or more rows of tiles nobody waits. The cells of
 * all maps are one message. Internal to net/stream. */
#ifndef NET_STREAM_BANDS_H
#define NET_STREAM_BANDS_H
#include "net/plan/peers.h"
#include "net/plan/step.h"
#include "net/stream/tiles.h"
#include "net/stream/view.h"

/* What the band above needs of a map, and what this band needs of the band below. */
struct band_edge {
    int64_t first, rows; /* of the map */
    size_t at;           /* in the message, floats */
};

struct band_map {
    int64_t outer, inner, width;
    struct band_edge up, below;
    int tap; /* the carry in which the cells leave and their gradients arrive */
};

struct bands {
    const struct plan_peers *peers; /* NULL: alone, and nothing happens */
    int threads;
    bool trains;
    int64_t rows; /* of tiles */
    struct band_map *maps;
    int n_maps;
    size_t up_floats, below_floats;
    float *memory;
    float *up;              /* cells for the band above, later their gradients from there */
    float *below;           /* cells from the band below */
    float *gradient;        /* of those */
    int64_t sent, received; /* handles; -1: not in flight */
    bool back;              /* the pass */
};

/* tape: of a plan of any tile; for layouts. peers NULL: alone. */
bool bands_new(const struct tiles *tiles, const struct tape *tape, const struct plan_peers *peers,
               const struct plan_options *options, struct bands *out, struct err *err);
/* Until then it has no memory: to plan. */
bool bands_allocate(struct bands *bands, struct err *err);
void bands_free(struct bands *bands);
size_t bands_bytes(const struct bands *bands);
/* Collective, when a plan was made or failed to be (ok): true if that of every band was made and
 * they fit together; else all get the error of the first that failed. */
bool bands_meet(const struct bands *bands, const struct plan_peers *peers, bool ok,
                struct err *err);

/* A pass: _begin; _enter before every row of tiles and _leave behind it; _tile behind every tile;
 * _end. */
bool bands_begin(struct bands *bands, bool back, struct err *err);
bool bands_enter(struct bands *bands, int64_t row, struct err *err);
bool bands_leave(struct bands *bands, int64_t row, struct err *err);
bool bands_tile(struct bands *bands, struct err *err);
bool bands_end(struct bands *bands, struct err *err);

/* Forward, for every carry: a tile's own cells, of which the band above needs some (only in the
 * first pass); what a carry gives, of which the band below computed some. */
void bands_give(const struct bands *bands, int carry, int map, const struct view *own);
void bands_take(const struct bands *bands, int map, const struct view *need);
/* Backward: the gradients of what a carry gave; what the band above adds to a tile's own. */
void bands_give_back(const struct bands *bands, int map, const struct view *need);
void bands_take_back(const struct bands *bands, int carry, int map, const struct view *own);
/* Whether the band above adds nothing to these columns. */
bool bands_are_still(const struct bands *bands, int map, int64_t x, int64_t w);
#endif
