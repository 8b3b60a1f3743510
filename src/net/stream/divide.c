/* divide.c: see divide.h. */
#include "net/stream/divide.h"
#include <math.h>
#include <stdlib.h>

#define MOST_UNITS 2048 /* that bands are made of: more is no better and takes long */

static int64_t height_of(const struct body *body)
{
    return graph_shape(body->graph, body->maps[0])->dim[2];
}

static int64_t step_of(const struct body *body)
{
    return stream_axis_step(body->edges[0], body->n_edges, body->n_maps);
}

/* --- what is high enough --- */

/* Whether rows [begin, end) can be a band. */
static bool fits(const struct body *body, int64_t begin, int64_t end, struct err *err)
{
    int64_t *extents = calloc((size_t)body->n_maps, sizeof *extents);
    struct stream_axis axis;
    if (!extents)
        return err_memory(err, "bands");
    for (int m = 0; m < body->n_maps; m++)
        extents[m] = graph_shape(body->graph, body->maps[m])->dim[2];
    struct axis_spec spec = { .n_maps = body->n_maps,
                              .extents = extents,
                              .edges = body->edges[0],
                              .n_edges = body->n_edges,
                              .tile = end - begin,
                              .begin = begin,
                              .end = end };
    bool ok = begin < end && stream_axis_new(&spec, &axis, err);
    if (ok)
        stream_axis_free(&axis);
    free(extents);
    return ok;
}

/* The least height of a band in the middle of an image; 0: there is none in this one. */
static int64_t least_height(const struct body *body, int64_t step)
{
    int64_t height = height_of(body), begin = (height / 2 + step - 1) / step * step;
    for (int64_t least = step; begin > 0 && begin + least <= height; least += step)
        if (fits(body, begin, begin + least, NULL))
            return least;
    return 0;
}

static bool all_fit(const struct body *body, const int64_t *rows, int bands)
{
    for (int b = 0; b < bands; b++)
        if (!fits(body, rows[b], rows[b + 1], NULL))
            return false;
    return true;
}

static void cut_evenly(const struct body *body, int bands, int64_t *rows)
{
    int64_t height = height_of(body), step = step_of(body);
    for (int b = 0; b < bands; b++)
        rows[b] = height * b / bands / step * step;
    rows[bands] = height;
}

/* Says how many bands would fit. */
static bool refuse(const struct body *body, int bands, struct err *err)
{
    int64_t *rows = calloc((size_t)bands + 1, sizeof *rows);
    int fit = bands - 1;
    if (!rows)
        return err_memory(err, "bands");
    for (bool found = false; fit > 1 && !found; fit -= !found) {
        cut_evenly(body, fit, rows);
        found = all_fit(body, rows, fit);
    }
    free(rows);
    return err_set(err, ERR_USAGE,
                   "%s: an image of %lld rows is too small for %d bands; use at most %d "
                   "(parallel.bands), or larger images",
                   body->graph->name, (long long)height_of(body), bands, fit);
}

bool bands_check(const struct body *body, const int64_t *rows, int bands, struct err *err)
{
    bool ok = rows[0] == 0 && rows[bands] == height_of(body);
    int64_t step = step_of(body);
    for (int b = 1; b < bands; b++)
        ok = ok && rows[b] > rows[b - 1] && rows[b] % step == 0;
    if (!ok || rows[bands] <= rows[bands - 1])
        return err_set(err, ERR_USAGE,
                       "%s: bands must begin at 0, end at %lld and have multiples of %lld rows",
                       body->graph->name, (long long)height_of(body), (long long)step);
    return all_fit(body, rows, bands) || refuse(body, bands, err);
}

bool bands_divide_evenly(const struct body *body, int bands, int64_t *rows, struct err *err)
{
    if (step_of(body) < 1)
        return err_memory(err, "bands");
    cut_evenly(body, bands, rows);
    return all_fit(body, rows, bands) || refuse(body, bands, err);
}

/* --- by work --- */

/* An image in units of rows; sums [n + 1]: work up to each. */
struct units {
    int64_t n, least; /* units of the lowest band */
    double *sums;
};

static bool add_up(const double *work, int64_t height, int64_t unit, struct units *out)
{
    out->n = (height + unit - 1) / unit;
    out->sums = calloc((size_t)out->n + 1, sizeof *out->sums);
    for (int64_t y = 0; out->sums && y < height; y++)
        out->sums[y / unit + 1] += work[y];
    for (int64_t u = 0; out->sums && u < out->n; u++)
        out->sums[u + 1] += out->sums[u];
    return out->sums != NULL;
}

/* best [bands + 1][n + 1]: the largest band of the best division of the first u units into b bands;
 * from: where its last one begins. */
static bool search(const struct units *units, int bands, int64_t *cuts)
{
    int64_t n = units->n, wide = n + 1;
    double *best = malloc((size_t)((bands + 1) * wide) * sizeof *best);
    int64_t *from = calloc((size_t)((bands + 1) * wide), sizeof *from);
    for (int64_t i = 0; best && i < (bands + 1) * wide; i++)
        best[i] = INFINITY;
    if (best)
        best[0] = 0;
    for (int b = 1; best && from && b <= bands; b++)
        for (int64_t u = b * units->least; u <= n; u++)
            for (int64_t v = u - units->least; v >= 0; v--) {
                double own = units->sums[u] - units->sums[v], rest = best[(b - 1) * wide + v];
                double largest = own > rest ? own : rest;
                if (largest < best[b * wide + u])
                    best[b * wide + u] = largest, from[b * wide + u] = v;
                if (own > best[b * wide + u])
                    break; /* it only grows */
            }
    bool ok = best && from && isfinite(best[bands * wide + n]);
    for (int b = bands; ok && b > 0; b--)
        cuts[b] = b == bands ? n : cuts[b], cuts[b - 1] = from[b * wide + cuts[b]];
    free(best), free(from);
    return ok;
}

static bool divide_by_work(const struct body *body, const double *work, int bands, int64_t *rows)
{
    int64_t height = height_of(body), step = step_of(body), least = least_height(body, step);
    int64_t unit = step * ((height / step + MOST_UNITS - 1) / MOST_UNITS);
    struct units units = { .least = unit > 0 ? (least + unit - 1) / unit : 0 };
    bool ok = least > 0 && add_up(work, height, unit, &units) && search(&units, bands, rows);
    for (int b = 0; ok && b <= bands; b++)
        rows[b] = rows[b] * unit < height ? rows[b] * unit : height;
    free(units.sums);
    return ok && all_fit(body, rows, bands);
}

bool bands_divide(const struct graph *graph, const struct plan_options *options, const double *work,
                  int bands, int64_t *rows, struct err *err)
{
    struct body body;
    double sum = 0;
    if (!body_new(graph, options, &body, err))
        return false;
    for (int64_t y = 0; work && y < height_of(&body); y++)
        sum += work[y];
    bool ok = (sum > 0 && divide_by_work(&body, work, bands, rows)) ||
              bands_divide_evenly(&body, bands, rows, err);
    body_free(&body);
    return ok;
}
