/* tiles.c: see tiles.h. */
#include "net/stream/tiles.h"
#include <stdlib.h>
#include <string.h>

static int64_t extent_of(const struct body *body, int map, int axis)
{
    return graph_shape(body->graph, body->maps[map])->dim[2 + axis];
}

/* --- spans --- */

/* The image has no strips: what a tile needs of it is read. */
static struct span image_span(const struct tiles *tiles, int axis, int64_t tile)
{
    const struct body *body = tiles->body;
    struct span span = { INT64_MAX, 0 };
    for (int e = 0; e < body->n_edges; e++) {
        const struct axis_need *need = stream_axis_need(&tiles->axes[axis], e, tile);
        if (body->edges[axis][e].from > 0)
            continue;
        span.begin = need->begin < span.begin ? need->begin : span.begin;
        span.end = need->end > span.end ? need->end : span.end;
    }
    return span;
}

struct span tiles_own(const struct tiles *tiles, int axis, int map, int64_t tile)
{
    const struct stream_axis *a = &tiles->axes[axis];
    if (map == 0)
        return image_span(tiles, axis, tile);
    return (struct span){ stream_axis_prefix(a, map, tile), stream_axis_prefix(a, map, tile + 1) };
}

struct span tiles_need(const struct tiles *tiles, int axis, int carry, int64_t tile)
{
    const struct axis_need *need =
        stream_axis_need(&tiles->axes[axis], tiles->carries[carry].edge, tile);
    return (struct span){ need->begin, need->end };
}

static struct span strip_of(const struct tiles *tiles, int axis, int edge, int64_t tile)
{
    const struct stream_axis *a = &tiles->axes[axis];
    const struct axis_edge *edges = tiles->body->edges[axis];
    int64_t prefix = stream_axis_prefix(a, edges[edge].from, tile);
    if (edges[edge].from == 0)
        return (struct span){ prefix, prefix };
    return (struct span){ stream_axis_strip(a, edges, edge, tile), prefix };
}

struct span tiles_strip(const struct tiles *tiles, int axis, int carry, int64_t tile)
{
    return strip_of(tiles, axis, tiles->carries[carry].edge, tile);
}

struct stream_region tiles_region(const struct tiles *tiles, int map, int64_t i, int64_t j)
{
    struct span rows = tiles_own(tiles, 0, map, i), columns = tiles_own(tiles, 1, map, j);
    return (struct stream_region){ rows.begin, columns.begin, rows.end - rows.begin,
                                   columns.end - columns.begin };
}

/* --- carries --- */

/* Whether an edge needs just what the tile computes, and leaves nothing for others. */
static bool is_plain(const struct tiles *tiles, int axis, int edge, int64_t tile)
{
    int map = tiles->body->edges[axis][edge].from;
    struct span own = tiles_own(tiles, axis, map, tile);
    const struct axis_need *need = stream_axis_need(&tiles->axes[axis], edge, tile);
    struct span next = strip_of(tiles, axis, edge, tile + 1);
    bool gives = axis == 0 && tile == 0 && own.begin > 0 && map > 0; /* to the band before */
    return need->begin == own.begin && need->end == own.end && next.begin == next.end && !gives;
}

static bool is_always_plain(const struct tiles *tiles, int edge)
{
    for (int a = 0; a < 2; a++)
        for (int64_t i = 0; i < tiles->axes[a].tiles; i++)
            if (!is_plain(tiles, a, edge, i))
                return false;
    return true;
}

static bool need_the_same(const struct tiles *tiles, int edge, int other)
{
    for (int a = 0; a < 2; a++)
        for (int64_t i = 0; i < tiles->axes[a].tiles; i++) {
            const struct axis_need *x = stream_axis_need(&tiles->axes[a], edge, i);
            const struct axis_need *y = stream_axis_need(&tiles->axes[a], other, i);
            if (x->begin != y->begin || x->end != y->end)
                return false;
        }
    return true;
}

static void find_carries(struct tiles *tiles)
{
    const struct body *body = tiles->body;
    for (int e = 0; e < body->n_edges; e++) {
        tiles->carry_of[e] = -1;
        if (is_always_plain(tiles, e))
            continue;
        int c = 0;
        while (c < tiles->n_carries && !(tiles->carries[c].map == body->edges[0][e].from &&
                                         need_the_same(tiles, tiles->carries[c].edge, e)))
            c++;
        if (c == tiles->n_carries)
            tiles->carries[tiles->n_carries++] = (struct carry){ body->edges[0][e].from, e };
        tiles->carry_of[e] = c;
    }
}

static bool make_axis(struct tiles *tiles, int axis, struct span band, int64_t tile_px,
                      struct err *err)
{
    const struct body *body = tiles->body;
    int64_t *extents = calloc((size_t)body->n_maps, sizeof *extents);
    if (!extents)
        return err_memory(err, "tiles");
    for (int m = 0; m < body->n_maps; m++)
        extents[m] = extent_of(body, m, axis);
    struct axis_spec spec = { .n_maps = body->n_maps,
                              .extents = extents,
                              .edges = body->edges[axis],
                              .n_edges = body->n_edges,
                              .tile = tile_px,
                              .begin = band.begin,
                              .end = band.end };
    bool ok = stream_axis_new(&spec, &tiles->axes[axis], err);
    free(extents);
    return ok;
}

/* Of the rows: a band has two rows of tiles or more, so that the bands above and below need not
 * wait for it. */
static int64_t tile_rows(const struct body *body, const struct tiles_spec *spec)
{
    int64_t rows = spec->rows.end - spec->rows.begin;
    int64_t step = stream_axis_step(body->edges[0], body->n_edges, body->n_maps);
    int64_t half = (rows + 1) / 2 + step - 1;
    return rows < extent_of(body, 0, 0) && half < spec->tile_px ? half : spec->tile_px;
}

bool tiles_new(const struct body *body, const struct tiles_spec *spec, struct tiles *out,
               struct err *err)
{
    size_t edges = (size_t)body->n_edges + 1;
    *out = (struct tiles){ .body = body,
                           .carries = calloc(edges, sizeof *out->carries),
                           .carry_of = calloc(edges, sizeof *out->carry_of) };
    bool ok = (out->carries && out->carry_of) || err_memory(err, "tiles");
    ok = ok && make_axis(out, 0, spec->rows, tile_rows(body, spec), err) &&
         make_axis(out, 1, (struct span){ 0, extent_of(body, 0, 1) }, spec->tile_px, err);
    if (ok)
        find_carries(out);
    else
        tiles_free(out);
    return ok;
}

void tiles_free(struct tiles *tiles)
{
    stream_axis_free(&tiles->axes[0]), stream_axis_free(&tiles->axes[1]);
    free(tiles->carries), free(tiles->carry_of);
    *tiles = (struct tiles){ 0 };
}

/* --- the graph of a tile --- */

struct tile_graph {
    const struct tiles *tiles;
    struct rewrite r;
    int64_t tile[2];   /* an example of its kind */
    value_id *carried; /* [n_carries] */
    int edge;          /* the next one, in the order of nodes */
};

/* What the reader at an edge gets. */
static value_id carried(struct tile_graph *g, int edge)
{
    const struct tiles *tiles = g->tiles;
    const struct body *body = tiles->body;
    value_id from = body->maps[body->edges[0][edge].from], x = g->r.map[from];
    int c = tiles->carry_of[edge];
    if (c < 0 || x == NO_VALUE ||
        (is_plain(tiles, 0, edge, g->tile[0]) && is_plain(tiles, 1, edge, g->tile[1])))
        return x;
    if (g->carried[c] != NO_VALUE)
        return g->carried[c];
    struct carry_attr attr = { .index = c };
    for (int a = 0; a < 2; a++) {
        struct span need = tiles_need(tiles, a, c, g->tile[a]);
        attr.extent[a] = need.end - need.begin;
    }
    char *name = rewrite_new_name(&g->r, body->graph->values[from].name, ".carry");
    if (name)
        g->carried[c] = graph_node(g->r.to, OP_CARRY, name, &x, 1, &(union attr){ .carry = attr });
    free(name);
    return g->carried[c];
}

/* Zeros around a tile: at the borders of the image only. */
static void set_pads(const struct tile_graph *g, int edge, int64_t pad[SIDES])
{
    for (int a = 0; a < 2; a++) {
        const struct axis_need *need = stream_axis_need(&g->tiles->axes[a], edge, g->tile[a]);
        pad[a] = need->front, pad[2 + a] = need->back;
    }
}

/* A window that hangs over the declared padding (ceil_mode) counts less of it. */
static void set_pool(const struct tile_graph *g, int edge, struct pool_attr *pool)
{
    int64_t declared[SIDES];
    memcpy(declared, pool->pad, sizeof declared);
    bool hangs = false;
    set_pads(g, edge, pool->pad);
    for (int a = 0; a < 2; a++)
        if (pool->pad[2 + a] > declared[2 + a])
            hangs = true, pool->pad[2 + a] = declared[2 + a];
    pool->ceil_mode = hangs;
}

/* x upsampled, without what belongs to other tiles. */
static value_id upsampled(struct tile_graph *g, const struct node *node, int edge, value_id x)
{
    struct upsample_attr up = node->attr.upsample;
    struct pad_attr crop = { .mode = PAD_ZERO };
    for (int a = 0; a < 2; a++) {
        const struct axis_edge *e = &g->tiles->body->edges[a][edge];
        const struct axis_need *need = stream_axis_need(&g->tiles->axes[a], edge, g->tile[a]);
        struct span own = tiles_own(g->tiles, a, e->to, g->tile[a]);
        up.scale[a] = (double)e->rule.up, up.size[a] = 0;
        crop.pad[a] = need->begin * e->rule.up - own.begin;
        crop.pad[2 + a] = own.end - need->end * e->rule.up;
    }
    if (!crop.pad[0] && !crop.pad[1] && !crop.pad[2] && !crop.pad[3])
        return graph_node(g->r.to, OP_UPSAMPLE, node->name, &x, 1, &(union attr){ .upsample = up });
    char *name = rewrite_new_name(&g->r, node->name, ".whole");
    value_id whole =
        name ? graph_node(g->r.to, OP_UPSAMPLE, name, &x, 1, &(union attr){ .upsample = up })
             : NO_VALUE;
    free(name);
    return graph_node(g->r.to, OP_PAD, node->name, &whole, 1, &(union attr){ .pad = crop });
}

static value_id padded(struct tile_graph *g, const struct node *node, int edge, value_id x)
{
    union attr attr = node->attr;
    set_pads(g, edge, attr.pad.pad);
    const int64_t *pad = attr.pad.pad;
    if (!pad[0] && !pad[1] && !pad[2] && !pad[3])
        return x;
    return graph_node(g->r.to, OP_PAD, node->name, &x, 1, &attr);
}

static value_id map_node(struct tile_graph *g, const struct node *node, const value_id *inputs,
                         int edge)
{
    union attr attr = node->attr;
    switch ((int)node->op->kind) {
    case OP_UPSAMPLE:
        return upsampled(g, node, edge, inputs[0]);
    case OP_PAD:
        return padded(g, node, edge, inputs[0]);
    case OP_CONV:
        set_pads(g, edge, attr.conv.pad);
        break;
    case OP_MAX_POOL:
    case OP_AVERAGE_POOL:
        set_pool(g, edge, &attr.pool);
        break;
    default:
        break;
    }
    return graph_node(g->r.to, node->op->kind, node->name, inputs, node->n_inputs, &attr);
}

static bool add_map(struct tile_graph *g, const struct node *node, struct err *err)
{
    const struct body *body = g->tiles->body;
    value_id *inputs = calloc((size_t)node->n_inputs, sizeof *inputs);
    int first = g->edge;
    if (!inputs)
        return err_memory(err, node->name);
    for (int k = 0; k < node->n_inputs; k++) {
        value_id x = node->inputs[k];
        bool map = x != NO_VALUE && body->parts[x] == PART_MAP;
        inputs[k] = map ? carried(g, g->edge++) : rewrite_value(&g->r, x);
    }
    value_id made = g->r.to->err.kind == ERR_NONE ? map_node(g, node, inputs, first) : NO_VALUE;
    free(inputs);
    g->r.map[node->output] = made;
    return true;
}

/* The shapes that follow from the tile are those of its geometry. */
static bool check_shapes(const struct tile_graph *g, struct err *err)
{
    const struct body *body = g->tiles->body;
    for (int m = 0; m < body->n_maps; m++)
        for (int a = 0; a < 2; a++) {
            struct span own = tiles_own(g->tiles, a, m, g->tile[a]);
            const struct shape *shape = graph_shape(g->r.to, g->r.map[body->maps[m]]);
            if (shape->dim[2 + a] != own.end - own.begin)
                return err_set(err, ERR_USAGE,
                               "%s: a tile of it would have %lld cells instead of %lld; "
                               "use larger tiles (train.tile_px)",
                               body->graph->values[body->maps[m]].name,
                               (long long)shape->dim[2 + a], (long long)(own.end - own.begin));
        }
    return true;
}

static bool add_nodes(struct tile_graph *g, const bool *nodes, struct err *err)
{
    const struct body *body = g->tiles->body;
    const struct graph *graph = body->graph;
    struct shape image = *graph_shape(graph, body->maps[0]);
    for (int a = 0; a < 2; a++) {
        struct span own = tiles_own(g->tiles, a, 0, g->tile[a]);
        image.dim[2 + a] = own.end - own.begin;
    }
    g->r.map[body->maps[0]] = graph_input(g->r.to, graph->inputs[0].name, image);
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        if (nodes[i] && body->parts[node->output] != PART_MAP)
            rewrite_node(&g->r, node, NULL);
        else if (nodes[i] && !add_map(g, node, err))
            return false;
    }
    for (int i = 0; i < body->n_ends; i++) {
        value_id end = body->maps[body->ends[i]];
        graph_output(g->r.to, graph->values[end].name, g->r.map[end]);
    }
    return graph_ok(g->r.to, err) && check_shapes(g, err);
}

bool tiles_graph(const struct tiles *tiles, int row_kind, int column_kind, struct graph **out,
                 struct err *err)
{
    const struct body *body = tiles->body;
    struct tile_graph g = { .tiles = tiles,
                            .tile = { tiles->axes[0].examples[row_kind],
                                      tiles->axes[1].examples[column_kind] },
                            .carried = calloc((size_t)tiles->n_carries + 1, sizeof *g.carried) };
    bool *nodes = calloc((size_t)body->graph->n_nodes + 1, sizeof *nodes);
    bool ok = g.carried && nodes;
    if (!ok)
        err_memory(err, "tiles");
    ok = ok && body_rewrite(body, &g.r, err);
    if (ok) {
        for (int c = 0; c < tiles->n_carries; c++)
            g.carried[c] = NO_VALUE;
        body_mark(body, false, nodes);
        ok = add_nodes(&g, nodes, err);
        if (ok)
            ok = rewrite_hand_over(&g.r, out, err);
        else
            rewrite_discard(&g.r);
    }
    free(g.carried), free(nodes);
    return ok;
}
