/* skip.c: see skip.h. What a cell depends on never lies in a later tile, so the tiles that it needs
 * are those from the first one that computes something for it up to its own, along each axis. */
#include "net/stream/skip.h"

#include <stdlib.h>
#include <string.h>

struct search {
    const struct tiles *tiles;
    const struct plan_wish *wish;
    int64_t *lowest; /* [maps]: the first cell that is needed; INT64_MAX: none */
};

/* The tile that computes a cell of a map. */
static int64_t tile_of(const struct stream_axis *axis, int map, int64_t cell)
{
    int64_t tile = 0;
    while (tile < axis->tiles - 1 && stream_axis_prefix(axis, map, tile + 1) <= cell)
        tile++;
    return tile;
}

/* The first tile that computes something that a cell of a map depends on. */
static int64_t first_tile(const struct search *s, int axis, int map, int64_t cell)
{
    const struct body *body = s->tiles->body;
    const struct stream_axis *geometry = &s->tiles->axes[axis];
    int64_t first = geometry->tiles - 1;
    for (int m = 0; m < body->n_maps; m++)
        s->lowest[m] = INT64_MAX;
    s->lowest[map] = cell;
    for (int e = body->n_edges - 1; e >= 0; e--) {
        const struct axis_edge *edge = &body->edges[axis][e];
        if (s->lowest[edge->to] == INT64_MAX)
            continue;
        int64_t begin = stream_axis_begin(&edge->rule, s->lowest[edge->to]);
        begin = begin > 0 ? begin : 0;
        s->lowest[edge->from] = begin < s->lowest[edge->from] ? begin : s->lowest[edge->from];
    }
    for (int m = 1; m < body->n_maps;
         m++) { /* 0 is the image, of which a tile reads what it needs */
        int64_t tile = s->lowest[m] == INT64_MAX ? first : tile_of(geometry, m, s->lowest[m]);
        first = tile < first ? tile : first;
    }
    return first;
}

/* The first row (axis 0) or column of a region that has a wanted cell; there is one. */
static int64_t first_wanted(const struct search *s, int output, const struct stream_region *r,
                            int axis)
{
    int64_t n = axis ? r->w : r->h, k = 0;
    while (k < n - 1 && !(axis ? s->wish->any(s->wish->arg, output, r->y, r->x + k, r->h, 1)
                               : s->wish->any(s->wish->arg, output, r->y + k, r->x, 1, r->w)))
        k++;
    return (axis ? r->x : r->y) + k;
}

/* What tile (i, j) gives of an output, with all that it depends on. */
static void mark(const struct search *s, int output, int64_t i, int64_t j, bool *needed)
{
    const struct body *body = s->tiles->body;
    int map = body->map_of[body->graph->outputs[output].value];
    struct stream_region r = tiles_region(s->tiles, map, i, j);
    if (r.h <= 0 || r.w <= 0 || !s->wish->any(s->wish->arg, output, r.y, r.x, r.h, r.w))
        return;
    int64_t top = first_tile(s, 0, map, first_wanted(s, output, &r, 0));
    int64_t left = first_tile(s, 1, map, first_wanted(s, output, &r, 1));
    for (int64_t row = top; row <= i; row++)
        memset(needed + row * s->tiles->axes[1].tiles + left, true, (size_t)(j + 1 - left));
}

bool skip_find(const struct tiles *tiles, const struct plan_wish *wish, bool *needed,
               struct err *err)
{
    int64_t down = tiles->axes[0].tiles, across = tiles->axes[1].tiles;
    struct search s = { .tiles = tiles,
                        .wish = wish,
                        .lowest = calloc((size_t)tiles->body->n_maps, sizeof *s.lowest) };
    if (!s.lowest)
        return err_memory(err, "tiles");
    memset(needed, wish == NULL, (size_t)(down * across));
    for (int64_t n = 0; wish && n < down * across; n++)
        for (int o = 0; o < tiles->body->graph->n_outputs; o++)
            mark(&s, o, n / across, n % across, needed);
    free(s.lowest);
    return true;
}
