/* work.c: see work.h. */
#include "net/stream/work.h"

#include <stdlib.h>
#include "net/stream/skip.h"

/* Multiply-adds for one cell of a map; what is no convolution counts one for every number. */
static double cell_work(const struct body *body, int map)
{
    const struct graph *graph = body->graph;
    value_id value = body->maps[map];
    double channels = (double)graph_shape(graph, value)->dim[1];
    const struct node *node = &graph->nodes[graph->values[value].node];
    if (node->op->kind != OP_CONV)
        return channels;
    const struct shape *weight = graph_shape(graph, node->inputs[1]);
    return channels * (double)(weight->dim[1] * weight->dim[2] * weight->dim[3]);
}

static double tile_work(const struct tiles *tiles, const double *cells, int64_t i, int64_t j)
{
    double sum = 0;
    for (int m = 1; m < tiles->body->n_maps; m++) {
        struct stream_region r = tiles_region(tiles, m, i, j);
        sum += cells[m] * (double)(r.h * r.w);
    }
    return sum;
}

static void add_up(const struct tiles *tiles, const double *cells, const bool *needed,
                   struct stream_work *out)
{
    int64_t across = tiles->axes[1].tiles;
    double all = 0, done = 0;
    *out = (struct stream_work){ .tiles = tiles->axes[0].tiles * across };
    for (int64_t n = 0; n < out->tiles; n++) {
        double work = tile_work(tiles, cells, n / across, n % across);
        all += work, done += needed[n] ? work : 0;
        out->computed += needed[n];
    }
    out->share = done / all;
}

bool stream_work(const struct graph *graph, const struct plan_stream *how, struct stream_work *out,
                 struct err *err)
{
    struct plan_options options = { .mode = PLAN_INFER, .threads = 1 };
    struct body body;
    struct tiles tiles;
    if (!body_new(graph, &options, &body, err))
        return false;
    struct tiles_spec spec = { .tile_px = how->tile_px,
                               .rows = { 0, graph_shape(graph, body.maps[0])->dim[2] } };
    bool ok = !body.tail || err_set(err, ERR_USAGE, "%s: pools its whole map", graph->name);
    ok = ok && tiles_new(&body, &spec, &tiles, err);
    if (ok) {
        size_t n = (size_t)(tiles.axes[0].tiles * tiles.axes[1].tiles);
        double *cells = calloc((size_t)body.n_maps, sizeof *cells);
        bool *needed = calloc(n, sizeof *needed);
        ok = (cells && needed) || err_memory(err, "tiles");
        for (int m = 1; ok && m < body.n_maps; m++)
            cells[m] = cell_work(&body, m);
        ok = ok && skip_find(&tiles, how->wish, needed, err);
        if (ok)
            add_up(&tiles, cells, needed, out);
        free(cells), free(needed);
        tiles_free(&tiles);
    }
    body_free(&body);
    return ok;
}
