/* reduce_soft.c: log-sum-exp and attention over a whole map, region by region: sums of exponentials
 * are kept relative to the largest exponent so far, as in net/kernels/soft_pool.h. */
#include <math.h>
#include "net/kernels/soft_pool.h"
#include "net/stream/reduce_kinds.h"

static struct soft_pool tile_of(const struct reduction *r, const struct stream_region *region)
{
    return (struct soft_pool){ 1, r->channels, region->h * region->w, r->threads };
}

/* --- log-sum-exp: of every channel the largest exponent, then the sum --- */

static struct soft_sum lse_sum(const struct reduction *r, const double *state, int64_t c)
{
    return (struct soft_sum){ state[c], state[r->channels + c] };
}

static void lse_keep(struct reduction *r, int64_t c, struct soft_sum s)
{
    r->state[c] = s.top, r->state[r->channels + c] = s.sum;
}

static void lse_begin(struct reduction *r)
{
    for (int64_t c = 0; c < r->channels; c++)
        lse_keep(r, c, SOFT_SUM_NONE);
}

static void lse_add(struct reduction *r, const struct stream_region *region,
                    const float *const *inputs)
{
    int64_t cells = region->h * region->w;
#pragma omp parallel for num_threads(r->threads) schedule(static) if (r->threads > 1)
    for (int64_t c = 0; c < r->channels; c++) {
        struct soft_sum s = lse_sum(r, r->state, c);
        soft_sum_add(&s, r->r, inputs[0] + c * cells, cells);
        lse_keep(r, c, s);
    }
}

static void lse_merge(struct reduction *r, const double *other)
{
    for (int64_t c = 0; c < r->channels; c++) {
        struct soft_sum s = lse_sum(r, r->state, c);
        soft_sum_merge(&s, lse_sum(r, other, c));
        lse_keep(r, c, s);
    }
}

static void lse_finish(const struct reduction *r, float *out)
{
    for (int64_t c = 0; c < r->channels; c++) {
        struct soft_sum s = lse_sum(r, r->state, c);
        out[c] = (float)((s.top + log(s.sum / (double)(r->height * r->width))) / (double)r->r);
    }
}

static void lse_gradient(const struct reduction *r, const struct stream_region *region,
                         const float *const *inputs, float *const *gradients)
{
    int64_t cells = region->h * region->w;
#pragma omp parallel for num_threads(r->threads) schedule(static) if (r->threads > 1)
    for (int64_t c = 0; c < r->channels; c++)
        soft_sum_shares(lse_sum(r, r->state, c), r->r, (double)r->gradient[c],
                        inputs[0] + c * cells, cells, gradients[0] + c * cells);
}

/* --- attention: the sum of every channel, then the largest score and the sum of the weights --- */

static struct soft_sum attention_sum(const struct reduction *r, const double *state)
{
    return (struct soft_sum){ state[r->channels], state[r->channels + 1] };
}

static void attention_keep(struct reduction *r, struct soft_sum s)
{
    r->state[r->channels] = s.top, r->state[r->channels + 1] = s.sum;
}

/* The sums become relative to exp(top), which is not lower. */
static void raise_sums(struct reduction *r, double top)
{
    double from = r->state[r->channels];
    for (int64_t c = 0; top > from && c < r->channels; c++)
        r->state[c] *= exp(from - top);
}

static void attention_begin(struct reduction *r)
{
    for (int64_t c = 0; c < r->channels; c++)
        r->state[c] = 0;
    attention_keep(r, SOFT_SUM_NONE);
}

static void attention_add_tile(struct reduction *r, const struct stream_region *region,
                               const float *const *inputs)
{
    struct soft_pool tile = tile_of(r, region);
    struct soft_sum s = attention_sum(r, r->state);
    soft_sum_add(&s, 1, inputs[1], tile.cells);
    raise_sums(r, s.top);
    attention_keep(r, s);
    attention_add(&tile, s, inputs[0], inputs[1], r->state);
}

static void attention_merge(struct reduction *r, const double *other)
{
    struct soft_sum s = attention_sum(r, r->state), more = attention_sum(r, other);
    soft_sum_merge(&s, more);
    raise_sums(r, s.top);
    attention_keep(r, s);
    double factor = more.top > -INFINITY ? exp(more.top - s.top) : 0;
    for (int64_t c = 0; c < r->channels; c++)
        r->state[c] += other[c] * factor; /* NaN stays, whatever its weight */
}

static void attention_finish(const struct reduction *r, float *out)
{
    for (int64_t c = 0; c < r->channels; c++)
        out[c] = (float)(r->state[c] / attention_sum(r, r->state).sum);
}

static void attention_gradient(const struct reduction *r, const struct stream_region *region,
                               const float *const *inputs, float *const *gradients)
{
    struct soft_pool tile = tile_of(r, region);
    struct soft_sum s = attention_sum(r, r->state);
    double level = 0;
    for (int64_t c = 0; c < r->channels; c++)
        level += (double)r->gradient[c] * (r->state[c] / s.sum);
    attention_back(&tile, s, level, inputs[0], inputs[1], r->gradient, gradients[0], gradients[1]);
}

const struct reduction_kind reduction_lse = {
    .per_channel = 2,
    .begin = lse_begin,
    .add = lse_add,
    .merge = lse_merge,
    .finish = lse_finish,
    .gradient = lse_gradient,
};

const struct reduction_kind reduction_attention = {
    .per_channel = 1,
    .besides = 2,
    .begin = attention_begin,
    .add = attention_add_tile,
    .merge = attention_merge,
    .finish = attention_finish,
    .gradient = attention_gradient,
};
