/* soft_pool.c: log-sum-exp and attention pooling. Threads divide channels or cells, never a sum. */
#include "net/kernels/soft_pool.h"
#include <math.h>
#include <stddef.h>

#define PIECE 1024 /* cells whose shares are on the stack */

/* What exponents are relative to. A tile may have nothing but -infinity, which adds 0. */
static double origin(double top)
{
    return top > -INFINITY ? top : 0;
}

void soft_sum_add(struct soft_sum *s, float r, const float *x, int64_t n)
{
    float most = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    double top = (double)r * (double)most, sum = 0;
    if (top > s->top) {
        s->sum *= exp(s->top - top);
        s->top = top;
    }
    double from = origin(s->top);
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)r * (double)x[i] - from);
    s->sum += sum;
}

void soft_sum_merge(struct soft_sum *s, struct soft_sum other)
{
    if (other.top > s->top) {
        struct soft_sum lower = *s;
        *s = other;
        other = lower;
    }
    s->sum += other.sum * exp(other.top - origin(s->top)); /* NaN stays, whatever its weight */
}

void soft_sum_shares(struct soft_sum s, float r, double factor, const float *x, int64_t n, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)(factor * (exp((double)r * (double)x[i] - s.top) / s.sum));
}

void lse_pool(const struct soft_pool *p, float r, const float *x, float *y)
{
#pragma omp parallel for num_threads(p->threads) schedule(static) if (p->threads > 1)
    for (int64_t i = 0; i < p->images * p->channels; i++) {
        struct soft_sum s = SOFT_SUM_NONE;
        soft_sum_add(&s, r, x + i * p->cells, p->cells);
        y[i] = (float)((s.top + log(s.sum / (double)p->cells)) / (double)r);
    }
}

void lse_pool_back(const struct soft_pool *p, float r, const float *x, const float *dy, float *dx)
{
#pragma omp parallel for num_threads(p->threads) schedule(static) if (p->threads > 1)
    for (int64_t i = 0; i < p->images * p->channels; i++) {
        struct soft_sum s = SOFT_SUM_NONE;
        soft_sum_add(&s, r, x + i * p->cells, p->cells);
        soft_sum_shares(s, r, (double)dy[i], x + i * p->cells, p->cells, dx + i * p->cells);
    }
}

static int64_t piece_end(int64_t begin, int64_t cells)
{
    return begin + PIECE < cells ? begin + PIECE : cells;
}

void attention_add(const struct soft_pool *p, struct soft_sum s, const float *x,
                   const float *scores, double *sums)
{
    for (int64_t begin = 0; begin < p->cells; begin += PIECE) {
        int64_t n = piece_end(begin, p->cells) - begin;
        double weight[PIECE];
        for (int64_t i = 0; i < n; i++)
            weight[i] = exp((double)scores[begin + i] - origin(s.top));
#pragma omp parallel for num_threads(p->threads) schedule(static) if (p->threads > 1)
        for (int64_t c = 0; c < p->channels; c++) {
            const float *from = x + c * p->cells + begin;
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += weight[i] * (double)from[i];
            sums[c] += sum;
        }
    }
}

/* The cells [begin, end). */
static void attention_back_piece(const struct soft_pool *p, struct soft_sum s, double level,
                                 const float *x, const float *scores, const float *dy, float *dx,
                                 float *dscores, int64_t begin, int64_t end)
{
    double along[PIECE] = { 0 };
    float weight[PIECE];
    soft_sum_shares(s, 1, 1, scores + begin, end - begin, weight);
    for (int64_t c = 0; c < p->channels; c++)
        for (int64_t i = begin; i < end; i++) {
            along[i - begin] += (double)dy[c] * (double)x[c * p->cells + i];
            if (dx)
                dx[c * p->cells + i] = dy[c] * weight[i - begin];
        }
    for (int64_t i = begin; dscores && i < end; i++)
        dscores[i] = (float)((double)weight[i - begin] * (along[i - begin] - level));
}

void attention_back(const struct soft_pool *p, struct soft_sum s, double level, const float *x,
                    const float *scores, const float *dy, float *dx, float *dscores)
{
#pragma omp parallel for num_threads(p->threads) schedule(static) if (p->threads > 1)
    for (int64_t begin = 0; begin < p->cells; begin += PIECE)
        attention_back_piece(p, s, level, x, scores, dy, dx, dscores, begin,
                             piece_end(begin, p->cells));
}

/* The sums of image i; returns that of its scores. */
static struct soft_sum attend(const struct soft_pool *p, const float *x, const float *scores,
                              double *sums)
{
    struct soft_sum s = SOFT_SUM_NONE;
    soft_sum_add(&s, 1, scores, p->cells);
    for (int64_t c = 0; c < p->channels; c++)
        sums[c] = 0;
    attention_add(p, s, x, scores, sums);
    return s;
}

void attention_pool(const struct soft_pool *p, const float *x, const float *scores, double *sums,
                    float *y)
{
    for (int64_t i = 0; i < p->images; i++) {
        struct soft_sum s = attend(p, x + i * p->channels * p->cells, scores + i * p->cells, sums);
        for (int64_t c = 0; c < p->channels; c++)
            y[i * p->channels + c] = (float)(sums[c] / s.sum);
    }
}

void attention_pool_back(const struct soft_pool *p, const float *x, const float *scores,
                         const float *dy, double *sums, float *dx, float *dscores)
{
    int64_t image = p->channels * p->cells;
    for (int64_t i = 0; i < p->images; i++) {
        const float *own = dy + i * p->channels;
        struct soft_sum s = attend(p, x + i * image, scores + i * p->cells, sums);
        double level = 0;
        for (int64_t c = 0; c < p->channels; c++)
            level += (double)own[c] * (sums[c] / s.sum);
        attention_back(p, s, level, x + i * image, scores + i * p->cells, own,
                       dx ? dx + i * image : NULL, dscores ? dscores + i * p->cells : NULL);
    }
}
