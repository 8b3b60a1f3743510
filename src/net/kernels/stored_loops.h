/* stored_loops.h: included once for each instruction set with EACH_TARGET and EACH_NAME(name). One
 * number at a time, as bits: the compiler makes vectors of it. */
static EACH_TARGET void EACH_NAME(to_bfloat16)(int64_t count, const void *at, void *out,
                                               struct stored_scale scale)
{
    const float *from = at;
    uint16_t *to = out;
    (void)scale;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        uint32_t nan = bits >> 16 | 0x40;
        to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
    }
}

static EACH_TARGET void EACH_NAME(from_bfloat16)(int64_t count, const void *at, void *out,
                                                 struct stored_scale scale)
{
    const uint16_t *from = at;
    float *to = out;
    (void)scale;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
}

static EACH_TARGET void EACH_NAME(to_int8)(int64_t count, const void *at, void *out,
                                           struct stored_scale scale)
{
    const float *from = at, least = (float)(INT8_MIN - scale.zero_point);
    float greatest = (float)(INT8_MAX - scale.zero_point);
    int8_t *to = out;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float x = from[i] / scale.scale;
        x = x > least ? x : least; /* also NaN */
        x = x < greatest ? x : greatest;
        to[i] = (int8_t)((int32_t)ROUND(x) + scale.zero_point);
    }
}

static EACH_TARGET void EACH_NAME(from_int8)(int64_t count, const void *at, void *out,
                                             struct stored_scale scale)
{
    const int8_t *from = at;
    float *to = out;
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)(from[i] - scale.zero_point) * scale.scale;
}

/* From -infinity to what follows -0. */
static EACH_TARGET void EACH_NAME(relu_bfloat16)(int64_t count, const void *at, void *out,
                                                 struct stored_scale scale)
{
    const uint16_t *from = at;
    uint16_t *to = out;
    (void)scale;
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i] > 0x8000 && from[i] <= 0xff80 ? 0 : from[i];
}

static EACH_TARGET void EACH_NAME(relu_int8)(int64_t count, const void *at, void *out,
                                             struct stored_scale scale)
{
    const int8_t *from = at;
    int8_t *to = out, zero = (int8_t)scale.zero_point;
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i] < zero ? zero : from[i];
}

/* Limited to what ROUND can take, and what is outside still is. */
static EACH_TARGET void EACH_NAME(within_int8)(int64_t count, const void *at, void *out,
                                               struct stored_scale scale)
{
    const float *from = at, least = (float)(INT8_MIN - scale.zero_point);
    float greatest = (float)(INT8_MAX - scale.zero_point);
    uint8_t *to = out;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        float x = from[i] / scale.scale;
        x = x > -1024 ? x : -1024; /* also NaN */
        x = ROUND(x < 1024 ? x : 1024);
        to[i] = x >= least && x <= greatest;
    }
}

static EACH_TARGET void EACH_NAME(keep_within)(int64_t count, const float *a, const uint8_t *within,
                                               float *out)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        out[i] = within[i] ? a[i] : 0;
}

static const stored_fn EACH_NAME(rows)[STORED_KINDS] = {
    [STORED_TO_BFLOAT16] = EACH_NAME(to_bfloat16),
    [STORED_FROM_BFLOAT16] = EACH_NAME(from_bfloat16),
    [STORED_TO_INT8] = EACH_NAME(to_int8),
    [STORED_FROM_INT8] = EACH_NAME(from_int8),
    [STORED_RELU_BFLOAT16] = EACH_NAME(relu_bfloat16),
    [STORED_RELU_INT8] = EACH_NAME(relu_int8),
    [STORED_WITHIN_INT8] = EACH_NAME(within_int8),
};
