/* bands.c: see bands.h. */
#include "net/stream/bands.h"
#include "base/divide.h"
#include <stdlib.h>
#include <string.h>

/* --- who needs what --- */

/* The cells at the end of this band that its last tiles need of the band below. */
static struct band_edge edge_below(const struct tiles *tiles, int map)
{
    const struct stream_axis *axis = &tiles->axes[0];
    struct band_edge edge = { .first = stream_axis_prefix(axis, map, axis->tiles) };
    for (int e = 0; e < axis->n_edges; e++)
        if (tiles->body->edges[0][e].from == map)
            edge.rows =
                larger_of(edge.rows, stream_axis_need(axis, e, axis->tiles - 1)->end - edge.first);
    return edge;
}

/* The same as the band above finds it. */
static struct band_edge edge_up(const struct tiles *tiles, int map)
{
    const struct stream_axis *axis = &tiles->axes[0];
    const struct body *body = tiles->body;
    int64_t extent = graph_shape(body->graph, body->maps[map])->dim[2];
    struct band_edge edge = { .first = stream_axis_prefix(axis, map, 0) };
    for (int e = 0; e < axis->n_edges; e++) {
        const struct axis_edge *reader = &body->edges[0][e];
        if (reader->from != map)
            continue;
        int64_t end = stream_axis_end(&reader->rule, stream_axis_prefix(axis, reader->to, 0) - 1);
        edge.rows = larger_of(edge.rows, (end < extent ? end : extent) - edge.first);
    }
    return edge;
}

static void find_edges(const struct tiles *tiles, const struct tape *tape, struct bands *bands)
{
    const struct body *body = tiles->body;
    bool first = bands->peers->rank == 0, last = bands->peers->rank == bands->peers->size - 1;
    for (int m = 1; m < bands->n_maps; m++) { /* the image is read */
        struct band_map *map = &bands->maps[m];
        const struct shape *shape = graph_shape(body->graph, body->maps[m]);
        int64_t extents[5];
        layout_extents(tape, shape, carry_layout(tape, shape), extents);
        map->outer = extents[0] * extents[1], map->width = extents[3], map->inner = extents[4];
        size_t row = (size_t)(map->outer * map->width * map->inner);
        if (!first)
            map->up = edge_up(tiles, m);
        if (!last)
            map->below = edge_below(tiles, m);
        map->up.at = bands->up_floats, map->below.at = bands->below_floats;
        bands->up_floats += (size_t)map->up.rows * row;
        bands->below_floats += (size_t)map->below.rows * row;
        map->tap = -1;
        for (int c = tiles->n_carries - 1; c >= 0; c--)
            if (tiles->carries[c].map == m)
                map->tap = c;
    }
}

/* What every band says of itself: neighbours must agree on what they exchange. */
struct band_claim {
    int64_t up_floats, below_floats;
    uint64_t layout; /* the same for processes that arrange channels in the same way */
    struct err problem;
};

/* The same for all bands. */
static bool judge(const struct band_claim *all, int size, struct err *err)
{
    for (int r = 0; r < size; r++)
        if (all[r].problem.kind != ERR_NONE)
            return err_set(err, all[r].problem.kind, "%s", all[r].problem.text);
    for (int r = 0; r < size; r++)
        if (all[r].layout != all[0].layout ||
            (r > 0 && all[r].up_floats != all[r - 1].below_floats))
            return err_set(err, ERR_USAGE,
                           "the processes that share an image do not divide it in the same way; "
                           "run all of them on the same kind of processor, with the same settings");
    return true;
}

bool bands_meet(const struct bands *bands, const struct plan_peers *peers, bool ok, struct err *err)
{
    struct band_claim own = { .up_floats = (int64_t)bands->up_floats,
                              .below_floats = (int64_t)bands->below_floats };
    if (!peers)
        return ok;
    struct band_claim *all = calloc((size_t)peers->size, sizeof *all);
    for (int m = 1; m < bands->n_maps; m++)
        own.layout = own.layout * 31 + (uint64_t)bands->maps[m].inner;
    if (!ok && err)
        own.problem = *err;
    if (!ok && own.problem.kind == ERR_NONE)
        own.problem.kind = ERR_IO;
    if (!all) /* the others fail with this one */
        return err_memory(err, "bands");
    ok = peers->gather(peers->arg, &own, sizeof own, all, err) && judge(all, peers->size, err);
    free(all);
    return ok;
}

bool bands_new(const struct tiles *tiles, const struct tape *tape, const struct plan_peers *peers,
               const struct plan_options *options, struct bands *out, struct err *err)
{
    *out = (struct bands){ .sent = -1, .received = -1 };
    if (!peers)
        return true;
    out->peers = peers, out->threads = options->threads;
    out->trains = options->mode != PLAN_INFER;
    out->rows = tiles->axes[0].tiles;
    out->n_maps = tiles->body->n_maps;
    out->maps = calloc((size_t)out->n_maps, sizeof *out->maps);
    if (!out->maps)
        return err_memory(err, "bands");
    find_edges(tiles, tape, out);
    return true;
}

static size_t aligned(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

size_t bands_bytes(const struct bands *bands)
{
    size_t floats =
        aligned(bands->up_floats) + (bands->trains ? 2 : 1) * aligned(bands->below_floats);
    return floats * sizeof(float);
}

bool bands_allocate(struct bands *bands, struct err *err)
{
    if (!bands->peers)
        return true;
    bands->memory = aligned_alloc(64, bands_bytes(bands) + 64);
    if (!bands->memory)
        return err_memory(err, "the borders of bands");
    memset(bands->memory, 0, bands_bytes(bands));
    bands->up = bands->memory;
    bands->below = bands->up + aligned(bands->up_floats);
    bands->gradient = bands->trains ? bands->below + aligned(bands->below_floats) : NULL;
    return true;
}

void bands_free(struct bands *bands)
{
    if (bands->peers && (bands->sent >= 0 || bands->received >= 0))
        bands->peers->abandon(bands->peers->arg);
    free(bands->maps), free(bands->memory);
    *bands = (struct bands){ .sent = -1, .received = -1 };
}

/* --- messages --- */

static bool finish(struct bands *bands, int64_t *handle, struct err *err)
{
    bool ok = *handle < 0 || bands->peers->finish(bands->peers->arg, *handle, err);
    *handle = ok ? -1 : *handle;
    return ok;
}

/* With the band above: its cells forward, their gradients backward. */
static bool has_up(const struct bands *bands)
{
    return bands->up_floats > 0;
}

static bool has_below(const struct bands *bands)
{
    return bands->below_floats > 0;
}

bool bands_begin(struct bands *bands, bool back, struct err *err)
{
    const struct plan_peers *peers = bands->peers;
    if (!peers)
        return true;
    bands->back = back;
    if (back && has_below(bands))
        memset(bands->gradient, 0, bands->below_floats * sizeof(float));
    if (back && has_up(bands))
        return peers->start_receive(peers->arg, peers->rank - 1, bands->up,
                                    bands->up_floats * sizeof(float), &bands->received, err);
    if (!back && has_below(bands))
        return peers->start_receive(peers->arg, peers->rank + 1, bands->below,
                                    bands->below_floats * sizeof(float), &bands->received, err);
    return true;
}

bool bands_enter(struct bands *bands, int64_t row, struct err *err)
{
    bool needed = row == (bands->back ? 0 : bands->rows - 1);
    return !bands->peers || !needed || finish(bands, &bands->received, err);
}

bool bands_leave(struct bands *bands, int64_t row, struct err *err)
{
    const struct plan_peers *peers = bands->peers;
    if (!peers)
        return true;
    if (!bands->back && row == 0 && has_up(bands))
        return peers->start_send(peers->arg, peers->rank - 1, bands->up,
                                 bands->up_floats * sizeof(float), &bands->sent, err);
    if (bands->back && row == bands->rows - 1 && has_below(bands))
        return peers->start_send(peers->arg, peers->rank + 1, bands->gradient,
                                 bands->below_floats * sizeof(float), &bands->sent, err);
    return true;
}

bool bands_tile(struct bands *bands, struct err *err)
{
    return !bands->peers || bands->peers->progress(bands->peers->arg, err);
}

bool bands_end(struct bands *bands, struct err *err)
{
    return !bands->peers || finish(bands, &bands->sent, err);
}

/* --- cells --- */

/* One map's part of a message; nothing if it has none. */
static struct view part(const struct band_map *map, const struct band_edge *edge, float *message)
{
    return view_of(message + edge->at, edge->first, 0, edge->rows, map->width, map->outer,
                   map->inner);
}

void bands_give(const struct bands *bands, int carry, int map, const struct view *own)
{
    if (!bands->peers || bands->maps[map].tap != carry)
        return;
    struct view up = part(&bands->maps[map], &bands->maps[map].up, bands->up);
    view_copy(&up, own, bands->threads);
}

void bands_take(const struct bands *bands, int map, const struct view *need)
{
    if (!bands->peers)
        return;
    struct view below = part(&bands->maps[map], &bands->maps[map].below, bands->below);
    view_copy(need, &below, bands->threads);
}

void bands_give_back(const struct bands *bands, int map, const struct view *need)
{
    if (!bands->peers)
        return;
    struct view gradient = part(&bands->maps[map], &bands->maps[map].below, bands->gradient);
    view_add(&gradient, need, bands->threads);
}

void bands_take_back(const struct bands *bands, int carry, int map, const struct view *own)
{
    if (!bands->peers || bands->maps[map].tap != carry)
        return;
    struct view up = part(&bands->maps[map], &bands->maps[map].up, bands->up);
    view_add(own, &up, bands->threads);
}

bool bands_are_still(const struct bands *bands, int map, int64_t x, int64_t w)
{
    if (!bands->peers)
        return true;
    struct view up = part(&bands->maps[map], &bands->maps[map].up, bands->up);
    up = view_columns(&up, x, w);
    return view_is_zero(&up);
}
