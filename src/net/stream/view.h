/* view.h: a rectangle of cells of a map somewhere in memory, and moving cells between two of them
 * where they overlap. A cell is `inner` floats in each of `outer` planes. Internal to net/stream.
 */
#ifndef NET_STREAM_VIEW_H
#define NET_STREAM_VIEW_H
#include <stdbool.h>
#include <stdint.h>

/* Rows [y, y + h), columns [x, x + w) of the map; nothing if h or w is not above 0. */
struct view {
    float *at; /* of cell (y, x) in the first plane */
    int64_t y, x, h, w;
    int64_t row, plane; /* floats from one row or plane to the next */
    int64_t outer, inner;
};

/* With all planes one after another, and all rows. */
struct view view_of(float *at, int64_t y, int64_t x, int64_t h, int64_t w, int64_t outer,
                    int64_t inner);
int64_t view_count(const struct view *view); /* floats */
/* to = from, or to += from, in the cells that both have. */
void view_copy(const struct view *to, const struct view *from, int threads);
void view_add(const struct view *to, const struct view *from, int threads);
void view_clear(const struct view *view, int threads);
bool view_is_zero(const struct view *view);
/* Only the columns [x, x + w) of a view that has them. */
struct view view_columns(const struct view *view, int64_t x, int64_t w);
#endif
