/* strided.c: loops over tensors with strides. The innermost axis runs as a row; the outer ones are
 * counted up, split across threads. */
#include "net/kernels/strided.h"
#include <string.h>
#include "base/divide.h"

#define LANES 16

static bool joins(const struct strided *s, int i)
{
    int64_t n = s->extent[i + 1];
    return s->a[i] == s->a[i + 1] * n && s->b[i] == s->b[i + 1] * n &&
           s->out[i] == s->out[i + 1] * n;
}

static void remove_axis(struct strided *s, int i)
{
    for (int k = i; k + 1 < s->rank; k++) {
        s->extent[k] = s->extent[k + 1];
        s->a[k] = s->a[k + 1], s->b[k] = s->b[k + 1], s->out[k] = s->out[k + 1];
    }
    s->rank--;
}

void strided_simplify(struct strided *s)
{
    for (int i = s->rank - 1; i >= 0; i--)
        if (s->extent[i] == 1 && s->rank > 1)
            remove_axis(s, i);
    for (int i = s->rank - 2; i >= 0; i--)
        if (joins(s, i)) {
            s->extent[i + 1] *= s->extent[i];
            remove_axis(s, i);
        }
}

static int64_t outer_count(const struct strided *s)
{
    int64_t count = 1;
    for (int i = 0; i + 1 < s->rank; i++)
        count *= s->extent[i];
    return count;
}

/* Offsets of outer element i in the three tensors. */
static void locate(const struct strided *s, int64_t i, int64_t *a, int64_t *b, int64_t *out)
{
    *a = *b = *out = 0;
    for (int k = s->rank - 2; k >= 0; k--) {
        int64_t at = i % s->extent[k];
        i /= s->extent[k];
        *a += at * s->a[k], *b += at * s->b[k], *out += at * s->out[k];
    }
}

static float combine(enum elementwise kind, float a, float b)
{
    switch (kind) {
    case EW_ADD:
        return a + b;
    case EW_SUB:
        return a - b;
    case EW_MUL:
        return a * b;
    default:
        return a / b;
    }
}

static void row_strided(const struct strided *s, enum elementwise kind, const float *a,
                        const float *b, float *out)
{
    int last = s->rank - 1;
    for (int64_t i = 0; i < s->extent[last]; i++)
        out[i * s->out[last]] = combine(kind, a[i * s->a[last]], b[i * s->b[last]]);
}

void strided_binary(const struct strided *s, enum elementwise kind, const float *a, const float *b,
                    float *out)
{
    int last = s->rank - 1;
    elementwise_fn row = elementwise_get(kind, simd_best());
    bool dense = s->a[last] == 1 && s->b[last] == 1 && s->out[last] == 1;
    int64_t count = outer_count(s);
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->threads > 1)
    for (int64_t i = 0; i < count; i++) {
        int64_t oa, ob, oo;
        locate(s, i, &oa, &ob, &oo);
        if (dense)
            row(s->extent[last], a + oa, b + ob, out + oo, (struct elementwise_args){ 0, 0 });
        else
            row_strided(s, kind, a + oa, b + ob, out + oo);
    }
}

static void copy_row(const struct strided *s, const float *a, float *out, bool add)
{
    int last = s->rank - 1;
    int64_t n = s->extent[last], sa = s->a[last], so = s->out[last];
    if (!add && sa == 1 && so == 1)
        memcpy(out, a, (size_t)n * sizeof *out);
    else if (add)
        for (int64_t i = 0; i < n; i++)
            out[i * so] += a[i * sa];
    else
        for (int64_t i = 0; i < n; i++)
            out[i * so] = a[i * sa];
}

void strided_copy(const struct strided *s, const float *a, float *out, bool add)
{
    int64_t count = outer_count(s);
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->threads > 1)
    for (int64_t i = 0; i < count; i++) {
        int64_t oa, ob, oo;
        locate(s, i, &oa, &ob, &oo);
        copy_row(s, a + oa, out + oo, add);
    }
}

/* The axes of s that are summed, or those that are not. */
static struct strided part_of(const struct strided *s, bool summed)
{
    struct strided part = { .threads = s->threads };
    for (int i = 0; i < s->rank; i++) {
        bool is_summed = s->out[i] == 0 && s->extent[i] > 1;
        if (is_summed != summed)
            continue;
        part.extent[part.rank] = s->extent[i];
        part.a[part.rank] = s->a[i];
        part.out[part.rank++] = s->out[i];
    }
    if (part.rank == 0)
        part.extent[part.rank++] = 1;
    return part;
}

/* Sums over the axes of `over` for `width` neighbours along the last kept axis. */
static void sum_lanes(const struct strided *over, const float *a, int64_t step, int64_t width,
                      double *sums)
{
    int last = over->rank - 1;
    int64_t count = outer_count(over), n = over->extent[last];
    memset(sums, 0, LANES * sizeof *sums);
    for (int64_t i = 0; i < count; i++) {
        int64_t oa, ob, oo;
        locate(over, i, &oa, &ob, &oo);
        for (int64_t j = 0; j < n; j++) {
            const float *at = a + oa + j * over->a[last];
            for (int64_t k = 0; k < width; k++)
                sums[k] += (double)at[k * step];
        }
    }
}

void strided_sum(const struct strided *s, const float *a, float factor, float *out)
{
    struct strided kept = part_of(s, false), over = part_of(s, true);
    int last = kept.rank - 1;
    int64_t step = kept.a[last], out_step = kept.out[last];
    int64_t pieces = ceil_div(kept.extent[last], LANES), rows = outer_count(&kept);
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->threads > 1)
    for (int64_t p = 0; p < rows * pieces; p++) {
        int64_t oa, ob, oo, begin = p % pieces * LANES;
        int64_t width = kept.extent[last] - begin < LANES ? kept.extent[last] - begin : LANES;
        double sums[LANES];
        locate(&kept, p / pieces, &oa, &ob, &oo);
        sum_lanes(&over, a + oa + begin * step, step, width, sums);
        for (int64_t k = 0; k < width; k++)
            out[oo + (begin + k) * out_step] = (float)(sums[k] * (double)factor);
    }
}

/* Offset of element i of all axes in a. */
static int64_t offset_of(const struct strided *s, int64_t i)
{
    int64_t a = 0;
    for (int k = s->rank - 1; k >= 0; k--) {
        a += i % s->extent[k] * s->a[k];
        i /= s->extent[k];
    }
    return a;
}

static int64_t out_offset_of(const struct strided *s, int64_t i)
{
    int64_t out = 0;
    for (int k = s->rank - 1; k >= 0; k--) {
        out += i % s->extent[k] * s->out[k];
        i /= s->extent[k];
    }
    return out;
}

void strided_max(const struct strided *s, const float *a, float *out)
{
    struct strided kept = part_of(s, false), over = part_of(s, true);
    int64_t rows = outer_count(&kept) * kept.extent[kept.rank - 1];
    int64_t n = outer_count(&over) * over.extent[over.rank - 1];
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        const float *from = a + offset_of(&kept, i);
        float most = from[0];
        for (int64_t j = 1; j < n; j++) {
            float next = from[offset_of(&over, j)];
            most = next > most || next != next ? next : most;
        }
        out[out_offset_of(&kept, i)] = most;
    }
}

void strided_max_back(const struct strided *s, const float *a, const float *max, const float *d,
                      float *da)
{
    struct strided kept = part_of(s, false), over = part_of(s, true);
    int64_t rows = outer_count(&kept) * kept.extent[kept.rank - 1];
    int64_t n = outer_count(&over) * over.extent[over.rank - 1];
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->threads > 1)
    for (int64_t i = 0; i < rows; i++) {
        int64_t from = offset_of(&kept, i), to = out_offset_of(&kept, i), equal = 0;
        for (int64_t j = 0; j < n; j++)
            equal += a[from + offset_of(&over, j)] == max[to];
        for (int64_t j = 0; j < n; j++) {
            int64_t at = from + offset_of(&over, j);
            da[at] = a[at] == max[to] ? d[to] / (float)equal : 0;
        }
    }
}
