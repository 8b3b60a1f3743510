/* embedding.c: see embedding.h. */
#include "net/kernels/embedding.h"
#include <math.h>
#include <string.h>
#include "base/divide.h"

static int64_t row_of(const float *ids, int64_t i)
{
    return (int64_t)lrintf(ids[i]);
}

int64_t embedding_bad(const struct embedding *e, const float *ids)
{
    for (int64_t i = 0; i < e->count; i++)
        if (!(ids[i] >= -0.5f && ids[i] < (float)e->rows) || row_of(ids, i) >= e->rows)
            return i;
    return -1;
}

void embedding_run(const struct embedding *e, const float *ids, const float *table, float *y)
{
#pragma omp parallel for num_threads(e->threads) schedule(static) if (e->threads > 1)
    for (int64_t i = 0; i < e->count; i++)
        memcpy(y + i * e->width, table + row_of(ids, i) * e->width, (size_t)e->width * sizeof *y);
}

/* Every thread has some columns of all rows, which are added in the order of the ids. */
void embedding_back(const struct embedding *e, const float *ids, const float *dy, float *dtable)
{
    int64_t part = ceil_div(e->width, e->threads);
#pragma omp parallel for num_threads(e->threads) schedule(static) if (e->threads > 1)
    for (int64_t first = 0; first < e->width; first += part) {
        int64_t end = first + part < e->width ? first + part : e->width;
        for (int64_t i = 0; i < e->count; i++) {
            float *to = dtable + row_of(ids, i) * e->width;
            for (int64_t k = first; k < end; k++)
                to[k] += dy[i * e->width + k];
        }
    }
}

int64_t relative_bucket(const struct relative_bias *b, int64_t offset)
{
    int64_t half = b->buckets / 2, exact = half / 2, first = offset > 0 ? half : 0;
    int64_t distance = offset < 0 ? -offset : offset;
    if (distance < exact)
        return first + distance;
    /* in float32, as the networks that have such a table were trained */
    float ratio =
        logf((float)distance / (float)exact) / (float)log((double)b->distance / (double)exact);
    int64_t far = exact + (int64_t)(ratio * (float)(half - exact));
    return first + (far < half ? far : half - 1);
}

void relative_bias_run(const struct relative_bias *b, const float *table, float *y)
{
    int64_t t = b->tokens;
    for (int64_t offset = 1 - t; offset < t; offset++) {
        const float *row = table + relative_bucket(b, offset) * b->heads;
        int64_t first = offset < 0 ? -offset : 0, end = offset < 0 ? t : t - offset;
        for (int64_t h = 0; h < b->heads; h++)
            for (int64_t q = first; q < end; q++)
                y[(h * t + q) * t + q + offset] = row[h];
    }
}

void relative_bias_back(const struct relative_bias *b, const float *dy, float *dtable)
{
    int64_t t = b->tokens;
    for (int64_t offset = 1 - t; offset < t; offset++) {
        float *row = dtable + relative_bucket(b, offset) * b->heads;
        int64_t first = offset < 0 ? -offset : 0, end = offset < 0 ? t : t - offset;
        for (int64_t h = 0; h < b->heads; h++) {
            double sum = 0;
            for (int64_t q = first; q < end; q++)
                sum += (double)dy[(h * t + q) * t + q + offset];
            row[h] += (float)sum;
        }
    }
}
