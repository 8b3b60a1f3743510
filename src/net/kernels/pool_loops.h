/* pool_loops.h: included once for each instruction set and block size with TARGET, VARIANT(name)
 * and INNER. Taps are visited in the order of rows and columns; the first largest one wins, and NaN
 * wins over all, as in PyTorch. */
static TARGET void VARIANT(max)(const struct pool_window *w, int64_t y, const float *x, float *out,
                                uint16_t *index)
{
    const struct pool_axis *h = &w->axis[0], *v = &w->axis[1];
    int64_t row = v->in * INNER;
    for (int64_t i = 0; i < v->out; i++) {
        float best[INNER];
        uint16_t which[INNER];
        const float *first = x + h->begin[y] * row + v->begin[i] * INNER;
        uint16_t tap_row = (uint16_t)(h->tap[y] * v->taps + v->tap[i]);
        for (int k = 0; k < INNER; k++)
            best[k] = first[k], which[k] = tap_row;
        for (int32_t r = 0; r < h->count[y]; r++) {
            const float *at = first + r * h->step * row;
            for (int32_t c = 0; c < v->count[i]; c++, at += v->step * INNER) {
                if (index) {
                    uint16_t tap = (uint16_t)(tap_row + r * v->taps + c);
                    for (int k = 0; k < INNER; k++) {
                        bool larger = at[k] > best[k] || at[k] != at[k];
                        best[k] = larger ? at[k] : best[k];
                        which[k] = larger ? tap : which[k];
                    }
                } else {
                    for (int k = 0; k < INNER; k++)
                        best[k] = at[k] > best[k] || at[k] != at[k] ? at[k] : best[k];
                }
            }
        }
        for (int k = 0; k < INNER; k++)
            out[i * INNER + k] = best[k];
        if (index)
            for (int k = 0; k < INNER; k++)
                index[i * INNER + k] = which[k];
    }
}

static TARGET void VARIANT(max_back)(const struct pool_window *w, int64_t y, const float *dy,
                                     const uint16_t *index, float *dx)
{
    const struct pool_axis *h = &w->axis[0], *v = &w->axis[1];
    int64_t row = v->in * INNER;
    for (int64_t i = 0; i < v->out; i++) {
        const float *from = dy + i * INNER;
        const uint16_t *which = index + i * INNER;
        for (int32_t r = 0; r < h->count[y]; r++) {
            float *to = dx + (h->begin[y] + r * h->step) * row + v->begin[i] * INNER;
            for (int32_t c = 0; c < v->count[i]; c++, to += v->step * INNER) {
                uint16_t tap = (uint16_t)((h->tap[y] + r) * v->taps + v->tap[i] + c);
                for (int k = 0; k < INNER; k++)
                    to[k] += which[k] == tap ? from[k] : 0;
            }
        }
    }
}

static TARGET void VARIANT(mean)(const struct pool_window *w, int64_t y, const float *x, float *out)
{
    const struct pool_axis *h = &w->axis[0], *v = &w->axis[1];
    int64_t row = v->in * INNER;
    for (int64_t i = 0; i < v->out; i++) {
        float sum[INNER] = { 0 };
        for (int32_t r = 0; r < h->count[y]; r++) {
            const float *at = x + (h->begin[y] + r * h->step) * row + v->begin[i] * INNER;
            for (int32_t c = 0; c < v->count[i]; c++, at += v->step * INNER)
                for (int k = 0; k < INNER; k++)
                    sum[k] += at[k];
        }
        float divisor = (float)h->divisor[y] * (float)v->divisor[i];
        for (int k = 0; k < INNER; k++)
            out[i * INNER + k] = sum[k] / divisor;
    }
}

static TARGET void VARIANT(mean_back)(const struct pool_window *w, int64_t y, const float *dy,
                                      float *dx)
{
    const struct pool_axis *h = &w->axis[0], *v = &w->axis[1];
    int64_t row = v->in * INNER;
    for (int64_t i = 0; i < v->out; i++) {
        float share[INNER], divisor = (float)h->divisor[y] * (float)v->divisor[i];
        for (int k = 0; k < INNER; k++)
            share[k] = dy[i * INNER + k] / divisor;
        for (int32_t r = 0; r < h->count[y]; r++) {
            float *to = dx + (h->begin[y] + r * h->step) * row + v->begin[i] * INNER;
            for (int32_t c = 0; c < v->count[i]; c++, to += v->step * INNER)
                for (int k = 0; k < INNER; k++)
                    to[k] += share[k];
        }
    }
}

static const struct pool_rows VARIANT(rows) = { VARIANT(max), VARIANT(max_back), VARIANT(mean),
                                                VARIANT(mean_back) };
#undef TARGET
#undef VARIANT
#undef INNER
