/* reduce.c: poolings of whole maps, fed and asked region by region: what all kinds share, and the
 * mean and the maximum. Every channel is summed by one thread in the order of its cells. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "net/stream/reduce_kinds.h"

#define LANES 8

static double sum_row(const float *row, int64_t n)
{
    double lane[LANES] = { 0 }, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += (double)row[i + k];
    for (; i < n; i++)
        sum += (double)row[i];
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    return sum;
}

/* --- mean: the sum of every channel --- */

static void mean_begin(struct reduction *r)
{
    memset(r->state, 0, (size_t)r->n_state * sizeof *r->state);
}

static void mean_add(struct reduction *r, const struct stream_region *region,
                     const float *const *inputs)
{
    int64_t h = region->h, w = region->w;
#pragma omp parallel for num_threads(r->threads) schedule(static) if (r->threads > 1)
    for (int64_t c = 0; c < r->channels; c++)
        for (int64_t y = 0; y < h; y++)
            r->state[c] += sum_row(inputs[0] + (c * h + y) * w, w);
}

static void mean_merge(struct reduction *r, const double *other)
{
    for (int64_t c = 0; c < r->channels; c++)
        r->state[c] += other[c];
}

static void mean_finish(const struct reduction *r, float *out)
{
    for (int64_t c = 0; c < r->channels; c++)
        out[c] = (float)(r->state[c] / (double)(r->height * r->width));
}

static void mean_gradient(const struct reduction *r, const struct stream_region *region,
                          const float *const *inputs, float *const *gradients)
{
    (void)inputs;
    int64_t cells = region->h * region->w;
#pragma omp parallel for num_threads(r->threads) schedule(static) if (r->threads > 1)
    for (int64_t c = 0; c < r->channels; c++) {
        float each = (float)((double)r->gradient[c] / (double)(r->height * r->width));
        for (int64_t i = 0; i < cells; i++)
            gradients[0][c * cells + i] = each;
    }
}

/* --- maximum: of every channel the largest value, then its place in the order of rows; -1: no cell
 * was seen --- */

static void max_begin(struct reduction *r)
{
    for (int64_t c = 0; c < r->channels; c++)
        r->state[c] = -INFINITY, r->state[r->channels + c] = -1;
}

/* NaN is larger than everything, as in the op. */
static inline void max_offer(struct reduction *r, int64_t c, double value, double place)
{
    double best = r->state[c], at = r->state[r->channels + c];
    bool same = value == best || (isnan(value) && isnan(best));
    bool larger = value > best || (isnan(value) && !isnan(best));
    if (at < 0 || larger || (same && place < at))
        r->state[c] = value, r->state[r->channels + c] = place;
}

static void max_add(struct reduction *r, const struct stream_region *region,
                    const float *const *inputs)
{
    int64_t h = region->h, w = region->w;
#pragma omp parallel for num_threads(r->threads) schedule(static) if (r->threads > 1)
    for (int64_t c = 0; c < r->channels; c++)
        for (int64_t y = 0; y < h; y++) {
            const float *row = inputs[0] + (c * h + y) * w;
            double begin = (double)((region->y + y) * r->width + region->x);
            for (int64_t x = 0; x < w; x++)
                if (!((double)row[x] < r->state[c]))
                    max_offer(r, c, (double)row[x], begin + (double)x);
        }
}

static void max_merge(struct reduction *r, const double *other)
{
    for (int64_t c = 0; c < r->channels; c++)
        if (other[r->channels + c] >= 0)
            max_offer(r, c, other[c], other[r->channels + c]);
}

static void max_finish(const struct reduction *r, float *out)
{
    for (int64_t c = 0; c < r->channels; c++)
        out[c] = (float)r->state[c];
}

/* The index of the maximum of a channel in a region; -1: it is elsewhere. */
static int64_t max_index(const struct reduction *r, const struct stream_region *region, int64_t c)
{
    int64_t place = (int64_t)r->state[r->channels + c];
    int64_t y = place / r->width - region->y, x = place % r->width - region->x;
    if (place < 0 || y < 0 || y >= region->h || x < 0 || x >= region->w)
        return -1;
    return y * region->w + x;
}

static void max_gradient(const struct reduction *r, const struct stream_region *region,
                         const float *const *inputs, float *const *gradients)
{
    (void)inputs;
    int64_t cells = region->h * region->w;
    memset(gradients[0], 0, (size_t)(r->channels * cells) * sizeof(float));
    for (int64_t c = 0; c < r->channels; c++) {
        int64_t index = max_index(r, region, c);
        if (index >= 0)
            gradients[0][c * cells + index] = r->gradient[c];
    }
}

static bool max_is_still(const struct reduction *r, const struct stream_region *region)
{
    for (int64_t c = 0; c < r->channels; c++)
        if (r->gradient[c] != 0 && max_index(r, region, c) >= 0)
            return false;
    return true;
}

/* --- all kinds --- */

static const struct reduction_kind mean_kind = {
    .per_channel = 1,
    .begin = mean_begin,
    .add = mean_add,
    .merge = mean_merge,
    .finish = mean_finish,
    .gradient = mean_gradient,
};

static const struct reduction_kind max_kind = {
    .per_channel = 2,
    .begin = max_begin,
    .add = max_add,
    .merge = max_merge,
    .finish = max_finish,
    .gradient = max_gradient,
    .is_still = max_is_still,
};

/* NULL: not known here. */
static const struct reduction_kind *kind_of(const struct graph *graph, const struct node *node)
{
    if (!graph_pools_maps(graph, node) || graph_is_parameter(graph, node->inputs[0]))
        return NULL;
    switch ((int)node->op->kind) {
    case OP_GLOBAL_AVERAGE_POOL:
    case OP_ADAPTIVE_AVERAGE_POOL:
    case OP_REDUCE_MEAN:
        return &mean_kind;
    case OP_GLOBAL_MAX_POOL:
        return &max_kind;
    case OP_GLOBAL_LSE_POOL:
        return &reduction_lse;
    case OP_ATTENTION_POOL:
        return graph_is_parameter(graph, node->inputs[1]) ? NULL : &reduction_attention;
    default:
        return NULL;
    }
}

bool reduction_takes(const struct graph *graph, const struct node *node)
{
    return kind_of(graph, node) != NULL;
}

bool reduction_new(const struct graph *graph, const struct node *node, int threads,
                   struct reduction **out, struct err *err)
{
    const struct reduction_kind *kind = kind_of(graph, node);
    const struct shape *x = graph_shape(graph, node->inputs[0]);
    if (!kind)
        return err_set(err, ERR_FORMAT, "%s: %s is not a pooling of a whole map", node->name,
                       node->op->name);
    if (x->dim[0] != 1)
        return err_set(err, ERR_FORMAT,
                       "%s: a batch of %lld images; a map is pooled tile by tile "
                       "for one image at a time",
                       node->name, (long long)x->dim[0]);
    struct reduction *r = calloc(1, sizeof *r);
    if (!r)
        return err_memory(err, "pooling");
    *r = (struct reduction){ .kind = kind,
                             .threads = threads,
                             .channels = x->dim[1],
                             .height = x->dim[2],
                             .width = x->dim[3],
                             .r = kind == &reduction_lse ? node->attr.lse.r : 0 };
    r->n_state = kind->per_channel * r->channels + kind->besides;
    r->state = calloc((size_t)r->n_state, sizeof *r->state);
    r->out = calloc((size_t)r->channels, sizeof *r->out);
    r->gradient = calloc((size_t)r->channels, sizeof *r->gradient);
    if (!r->state || !r->out || !r->gradient) {
        reduction_free(r);
        return err_memory(err, "pooling");
    }
    kind->begin(r);
    *out = r;
    return true;
}

void reduction_free(struct reduction *r)
{
    if (!r)
        return;
    free(r->state);
    free(r->out);
    free(r->gradient);
    free(r);
}

void reduction_begin(struct reduction *r)
{
    r->kind->begin(r);
}

void reduction_add(struct reduction *r, const struct stream_region *region,
                   const float *const *inputs)
{
    if (region->h > 0 && region->w > 0)
        r->kind->add(r, region, inputs);
}

/* The states of all bands are merged in the order of the ranks: the same bits everywhere. */
static bool merge_bands(struct reduction *r, const struct plan_peers *bands, struct err *err)
{
    size_t bytes = (size_t)r->n_state * sizeof *r->state;
    double *all = malloc(bytes * (size_t)bands->size);
    if (!all)
        return err_memory(err, "pooling over bands");
    bool ok = bands->gather(bands->arg, r->state, bytes, all, err);
    if (ok) {
        r->kind->begin(r);
        for (int i = 0; i < bands->size; i++)
            r->kind->merge(r, all + i * r->n_state);
    }
    free(all);
    return ok;
}

bool reduction_finish(struct reduction *r, const struct plan_peers *bands, float *out,
                      struct err *err)
{
    if (bands && bands->size > 1 && !merge_bands(r, bands, err))
        return false;
    r->kind->finish(r, r->out);
    memcpy(out, r->out, (size_t)r->channels * sizeof *out);
    return true;
}

void reduction_set_gradient(struct reduction *r, const float *gradient)
{
    memcpy(r->gradient, gradient, (size_t)r->channels * sizeof *gradient);
}

void reduction_gradient(const struct reduction *r, const struct stream_region *region,
                        const float *const *inputs, float *const *gradients)
{
    r->kind->gradient(r, region, inputs, gradients);
}

bool reduction_is_still(const struct reduction *r, const struct stream_region *region)
{
    if (r->kind->is_still)
        return r->kind->is_still(r, region);
    for (int64_t c = 0; c < r->channels; c++)
        if (r->gradient[c] != 0)
            return false;
    return true;
}
