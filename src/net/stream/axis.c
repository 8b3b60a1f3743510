/* axis.c: see axis.h. */
#include "net/stream/axis.h"
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"

static int64_t ceiling(int64_t a, int64_t b)
{
    return -floor_div(-a, b);
}

/* --- one rule; its results may lie outside of the map --- */

/* How many cells follow from the first `in`. */
static int64_t rule_prefix(const struct axis_rule *r, int64_t in)
{
    if (r->up && r->blend)
        return ceiling((2 * in - 1) * r->up - 1, 2);
    if (r->up)
        return in * r->up;
    return floor_div(in + r->pad - r->reach, r->stride) + 1;
}

/* The first cell that needs none before `in`. */
static int64_t rule_suffix(const struct axis_rule *r, int64_t in)
{
    if (r->up && r->blend)
        return ceiling((2 * in + 1) * r->up - 1, 2);
    if (r->up)
        return in * r->up;
    return ceiling(in + r->pad, r->stride);
}

int64_t stream_axis_begin(const struct axis_rule *r, int64_t out)
{
    if (r->up && r->blend)
        return floor_div(2 * out + 1 - r->up, 2 * r->up);
    if (r->up)
        return out / r->up;
    return out * r->stride - r->pad;
}

int64_t stream_axis_end(const struct axis_rule *r, int64_t out)
{
    if (r->up)
        return stream_axis_begin(r, out) + 1 + r->blend;
    return out * r->stride - r->pad + r->reach;
}

/* --- the step of tiles --- */

static int64_t divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* Pixels for one cell of a map: above / below. */
struct ratio {
    int64_t above, below;
};

int64_t stream_axis_step(const struct axis_edge *edges, int n_edges, int n_maps)
{
    struct ratio *strides = calloc((size_t)n_maps, sizeof *strides);
    int64_t step = 1;
    if (!strides)
        return 0;
    strides[0] = (struct ratio){ 1, 1 };
    for (int e = 0; e < n_edges; e++) {
        const struct axis_rule *rule = &edges[e].rule;
        struct ratio s = strides[edges[e].from];
        if (rule->up)
            s.below *= rule->up;
        else
            s.above *= rule->stride;
        int64_t common = divisor(s.above, s.below);
        s = (struct ratio){ s.above / common, s.below / common };
        strides[edges[e].to] = s;
        step = step / divisor(step, s.above) * s.above;
    }
    free(strides);
    return step;
}

/* --- prefixes --- */

/* What one process computes of every map, and how its tiles divide it. */
struct division {
    const struct axis_spec *spec;
    int64_t *first, *behind; /* [n_maps]: the cells of the band */
    int64_t *cuts;           /* [tiles + 1] */
    int64_t tiles;
    int64_t *row; /* [n_maps]: prefixes at one cut */
};

/* Where a band that begins at pixel `at` begins in every map: 0 at the border of the image. */
static void band_starts(const struct axis_spec *spec, int64_t at, int64_t *starts)
{
    memset(starts, 0, (size_t)spec->n_maps * sizeof *starts);
    if (at == 0)
        return;
    if (at >= spec->extents[0]) {
        memcpy(starts, spec->extents, (size_t)spec->n_maps * sizeof *starts);
        return;
    }
    starts[0] = at;
    for (int e = 0; e < spec->n_edges; e++) {
        int to = spec->edges[e].to;
        int64_t start = rule_suffix(&spec->edges[e].rule, starts[spec->edges[e].from]);
        starts[to] = larger_of(starts[to], smaller_of(larger_of(start, 0), spec->extents[to]));
    }
}

/* d->row: how far every map reaches when the image is there up to pixel `at`, within the band. */
static void reach_at(const struct division *d, int64_t at)
{
    const struct axis_spec *spec = d->spec;
    memcpy(d->row, d->behind, (size_t)spec->n_maps * sizeof *d->row);
    d->row[0] = smaller_of(at, d->behind[0]);
    if (at >= spec->end)
        return;
    for (int e = 0; e < spec->n_edges; e++) {
        int to = spec->edges[e].to;
        int64_t reach = rule_prefix(&spec->edges[e].rule, d->row[spec->edges[e].from]);
        d->row[to] = larger_of(d->first[to], smaller_of(d->row[to], reach));
    }
}

/* Whether the first tile could end at `at`: every map has a cell, and those that the band before
 * this one asks for are among them. */
static bool begins_well(const struct division *d, int64_t at)
{
    const struct axis_spec *spec = d->spec;
    reach_at(d, at);
    for (int m = 0; m < spec->n_maps; m++)
        if (d->row[m] <= d->first[m])
            return false;
    for (int e = 0; spec->begin > 0 && e < spec->n_edges; e++) {
        const struct axis_edge *edge = &spec->edges[e];
        int64_t end = stream_axis_end(&edge->rule, d->first[edge->to] - 1);
        if (edge->from > 0 && smaller_of(end, spec->extents[edge->from]) > d->row[edge->from])
            return false;
    }
    return true;
}

/* Whether a last tile from `at` on has a cell of every map, and sees a cell of every map. */
static bool ends_well(const struct division *d, int64_t at)
{
    const struct axis_spec *spec = d->spec;
    reach_at(d, at);
    for (int m = 0; m < spec->n_maps; m++)
        if (d->row[m] >= d->behind[m])
            return false;
    for (int e = 0; e < spec->n_edges; e++) {
        const struct axis_edge *edge = &spec->edges[e];
        if (stream_axis_begin(&edge->rule, d->row[edge->to]) >= spec->extents[edge->from])
            return false;
    }
    return true;
}

static bool cut(struct division *d, int64_t step, int64_t tile, struct err *err)
{
    const struct axis_spec *spec = d->spec;
    int64_t length = spec->end - spec->begin, at = spec->begin + tile;
    d->cuts = calloc((size_t)(length / tile + 3), sizeof *d->cuts);
    if (!d->cuts)
        return err_memory(err, "tiles");
    d->cuts[0] = spec->begin;
    while (at < spec->end && !begins_well(d, at))
        at += step;
    if (at >= spec->end && !begins_well(d, spec->end))
        return err_set(err, ERR_USAGE,
                       "%lld rows of the image are too few for this network; use fewer bands, or "
                       "a larger image",
                       (long long)length);
    for (; at < spec->end; at += tile)
        d->cuts[++d->tiles] = at;
    while (d->tiles > 0 && !ends_well(d, d->cuts[d->tiles]))
        d->tiles--;
    d->cuts[++d->tiles] = spec->end;
    return true;
}

/* --- needs and kinds --- */

static void find_needs(const struct axis_spec *spec, struct stream_axis *axis)
{
    for (int e = 0; e < spec->n_edges; e++) {
        const struct axis_edge *edge = &spec->edges[e];
        int64_t extent = spec->extents[edge->from];
        for (int64_t i = 0; i < axis->tiles; i++) {
            int64_t begin = stream_axis_begin(&edge->rule, stream_axis_prefix(axis, edge->to, i));
            int64_t end =
                stream_axis_end(&edge->rule, stream_axis_prefix(axis, edge->to, i + 1) - 1);
            struct axis_need *need = &axis->needs[e * axis->tiles + i];
            int64_t there = smaller_of(extent, stream_axis_prefix(axis, edge->from, i + 1));
            if (edge->rule.reach < edge->rule.stride && end < there)
                end = smaller_of(end + edge->rule.stride - edge->rule.reach, there);
            *need = (struct axis_need){ larger_of(begin, 0), smaller_of(end, extent),
                                        larger_of(-begin, 0), larger_of(end - extent, 0) };
        }
    }
}

int64_t stream_axis_strip(const struct stream_axis *axis, const struct axis_edge *edges, int edge,
                          int64_t tile)
{
    int64_t prefix = stream_axis_prefix(axis, edges[edge].from, tile);
    return tile == axis->tiles ? prefix
                               : smaller_of(stream_axis_need(axis, edge, tile)->begin, prefix);
}

/* Whether two tiles have the same shapes, strips and paddings, now and for the next tile. */
static bool same_kind(const struct axis_spec *spec, const struct stream_axis *axis, int64_t a,
                      int64_t b)
{
    for (int m = 0; m < axis->n_maps; m++)
        if (stream_axis_prefix(axis, m, a + 1) - stream_axis_prefix(axis, m, a) !=
            stream_axis_prefix(axis, m, b + 1) - stream_axis_prefix(axis, m, b))
            return false;
    for (int e = 0; e < axis->n_edges; e++) {
        const struct axis_need *x = stream_axis_need(axis, e, a), *y = stream_axis_need(axis, e, b);
        int from = spec->edges[e].from;
        int64_t p = stream_axis_prefix(axis, from, a), q = stream_axis_prefix(axis, from, b);
        int64_t next_p = stream_axis_prefix(axis, from, a + 1),
                next_q = stream_axis_prefix(axis, from, b + 1);
        if (x->begin - p != y->begin - q || x->end - p != y->end - q || x->front != y->front ||
            x->back != y->back ||
            next_p - stream_axis_strip(axis, spec->edges, e, a + 1) !=
                next_q - stream_axis_strip(axis, spec->edges, e, b + 1))
            return false;
    }
    return true;
}

static void find_kinds(const struct axis_spec *spec, struct stream_axis *axis)
{
    for (int64_t i = 0; i < axis->tiles; i++) {
        int kind = 0;
        while (kind < axis->n_kinds && !same_kind(spec, axis, axis->examples[kind], i))
            kind++;
        if (kind == axis->n_kinds)
            axis->examples[axis->n_kinds++] = i;
        axis->kinds[i] = kind;
    }
}

static bool fill(struct division *d, struct stream_axis *out, struct err *err)
{
    const struct axis_spec *spec = d->spec;
    size_t tiles = (size_t)d->tiles, maps = (size_t)spec->n_maps, edges = (size_t)spec->n_edges;
    out->n_maps = spec->n_maps, out->n_edges = spec->n_edges;
    out->tiles = d->tiles;
    out->prefixes = calloc(maps * (tiles + 1), sizeof *out->prefixes);
    out->needs = calloc(edges * tiles + 1, sizeof *out->needs);
    out->kinds = calloc(tiles, sizeof *out->kinds);
    out->examples = calloc(tiles, sizeof *out->examples);
    if (!out->prefixes || !out->needs || !out->kinds || !out->examples)
        return err_memory(err, "tiles");
    for (int64_t i = 0; i <= d->tiles; i++) {
        reach_at(d, d->cuts[i]);
        for (int m = 0; m < spec->n_maps; m++)
            out->prefixes[m * (d->tiles + 1) + i] = i == 0 ? d->first[m] : d->row[m];
    }
    find_needs(spec, out);
    find_kinds(spec, out);
    return true;
}

bool stream_axis_new(const struct axis_spec *spec, struct stream_axis *out, struct err *err)
{
    size_t maps = (size_t)spec->n_maps;
    struct division d = { .spec = spec,
                          .first = calloc(maps, sizeof *d.first),
                          .behind = calloc(maps, sizeof *d.behind),
                          .row = calloc(maps, sizeof *d.row) };
    *out =
        (struct stream_axis){ .step = stream_axis_step(spec->edges, spec->n_edges, spec->n_maps) };
    bool ok = d.first && d.behind && d.row && out->step > 0;
    if (!ok)
        err_memory(err, "tiles");
    if (ok) {
        out->tile = larger_of(spec->tile / out->step, 1) * out->step;
        band_starts(spec, spec->begin, d.first);
        band_starts(spec, spec->end, d.behind);
        ok = cut(&d, out->step, out->tile, err) && fill(&d, out, err);
    }
    free(d.first), free(d.behind), free(d.row), free(d.cuts);
    if (!ok)
        stream_axis_free(out);
    return ok;
}

void stream_axis_free(struct stream_axis *axis)
{
    free(axis->prefixes), free(axis->needs), free(axis->kinds), free(axis->examples);
    *axis = (struct stream_axis){ 0 };
}
