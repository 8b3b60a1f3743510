/* direct_gradient_loops.h: the vector code, included once for each instruction set with the macros
 * of vectors.h. */
#define INLINE static inline __attribute__((always_inline)) TARGET
#define UNROLL _Pragma("GCC unroll 16")

/* u[LANES / 2 inputs][2 LANES outputs] += the sum over n pixels of v times z; `blocks` of the two
 * blocks of outputs exist. Meanwhile n registers are fetched from `next`. */
INLINE void VARIANT(correlate_half)(int blocks, int64_t n, const float *v, const float *z,
                                    ptrdiff_t z_step, float *u, const float *next)
{
    VEC sum[LANES / 2][2];
    UNROLL for (int r = 0; r < LANES / 2; r++) UNROLL for (int k = 0; k < blocks; k++) sum[r][k] =
        VEC_SET(0.0f);
    for (; n > 0; n--, v += LANES, z += LANES, next += LANES) {
        __builtin_prefetch(next, 0, 3);
        VEC z0 = VEC_LOAD(z), z1 = blocks > 1 ? VEC_LOAD(z + z_step) : z0;
        UNROLL for (int r = 0; r < LANES / 2; r++)
        {
            VEC x = VEC_SET(v[r]);
            sum[r][0] = VEC_FMA(x, z0, sum[r][0]);
            if (blocks > 1)
                sum[r][1] = VEC_FMA(x, z1, sum[r][1]);
        }
    }
    UNROLL for (int r = 0; r < LANES / 2; r++) UNROLL for (int k = 0; k < blocks; k++)
        VEC_STORE(u + (2 * r + k) * LANES, VEC_LOAD(u + (2 * r + k) * LANES) + sum[r][k]);
}

static TARGET void VARIANT(correlate)(bool one, int64_t n, const float *v, const float *z,
                                      ptrdiff_t z_step, float *u, const float *const next[2])
{
    for (int half = 0; half < 2; half++, v += LANES / 2, u += LANES * LANES)
        if (one)
            VARIANT(correlate_half)(1, n, v, z, z_step, u, next[half]);
        else
            VARIANT(correlate_half)(2, n, v, z, z_step, u, next[half]);
}
#undef INLINE
#undef UNROLL
