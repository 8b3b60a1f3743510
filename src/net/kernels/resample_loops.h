/* resample_loops.h: included once for each instruction set with EACH_TARGET and EACH_NAME(name). */

/* One output row from rows `upper` and `lower` of the input. */
static EACH_TARGET void EACH_NAME(mix_row)(const struct resample *r, const float *upper,
                                           const float *lower, float down, float *out)
{
    const struct resample_axis *h = &r->axis[1];
    int64_t inner = r->inner;
    for (int64_t i = 0; i < h->out; i++) {
        float right = h->weight[i];
        const float *ul = upper + h->near[i] * inner, *ur = upper + h->far[i] * inner;
        const float *ll = lower + h->near[i] * inner, *lr = lower + h->far[i] * inner;
        _Pragma("omp simd") for (int64_t k = 0; k < inner; k++)
        {
            float top = (1 - right) * ul[k] + right * ur[k];
            float bottom = (1 - right) * ll[k] + right * lr[k];
            out[i * inner + k] = (1 - down) * top + down * bottom;
        }
    }
}

static EACH_TARGET void EACH_NAME(mix_back_row)(const struct resample *r, const float *dy,
                                                float down, float *upper, float *lower)
{
    const struct resample_axis *h = &r->axis[1];
    int64_t inner = r->inner;
    for (int64_t i = 0; i < h->out; i++) {
        float right = h->weight[i];
        const float *from = dy + i * inner;
        float *targets[4] = { upper + h->near[i] * inner, upper + h->far[i] * inner,
                              lower + h->near[i] * inner, lower + h->far[i] * inner };
        float shares[4] = { (1 - down) * (1 - right), (1 - down) * right, down * (1 - right),
                            down * right };
        for (int t = 0; t < 4; t++) {
            float *to = targets[t], share = shares[t];
            _Pragma("omp simd") for (int64_t k = 0; k < inner; k++) to[k] += share * from[k];
        }
    }
}

static EACH_TARGET void EACH_NAME(take_row)(const struct resample *r, const float *row, float *out)
{
    const struct resample_axis *h = &r->axis[1];
    int64_t inner = r->inner;
    for (int64_t i = 0; i < h->out; i++) {
        if (!row || h->near[i] < 0) {
            for (int64_t k = 0; k < inner; k++)
                out[i * inner + k] = r->fill;
        } else {
            const float *from = row + h->near[i] * inner;
            _Pragma("omp simd") for (int64_t k = 0; k < inner; k++) out[i * inner + k] = from[k];
        }
    }
}

static EACH_TARGET void EACH_NAME(take_back_row)(const struct resample *r, const float *dy,
                                                 float *row)
{
    const struct resample_axis *h = &r->axis[1];
    int64_t inner = r->inner;
    for (int64_t i = 0; i < h->out; i++) {
        if (h->near[i] < 0)
            continue;
        float *to = row + h->near[i] * inner;
        _Pragma("omp simd") for (int64_t k = 0; k < inner; k++) to[k] += dy[i * inner + k];
    }
}

static const struct resample_rows EACH_NAME(rows) = { EACH_NAME(mix_row), EACH_NAME(mix_back_row),
                                                      EACH_NAME(take_row),
                                                      EACH_NAME(take_back_row) };
