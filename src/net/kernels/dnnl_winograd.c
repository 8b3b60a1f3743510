/* dnnl_winograd.c: 3 x 3 weights into oneDNN's Winograd layouts. The library's own reorder does it
 * one float at a time, which takes a second for a ResNet; this one works on 16 output channels at
 * once. What the transform is, is asked of the library with a tiny reorder, so that the two cannot
 * disagree. */
#include "net/kernels/dnnl_winograd.h"
#include <stdlib.h>
#include <string.h>
#include "net/kernels/simd.h"

#define LANES 16
#define MAX_ALPHA 6

/* y = G w Gt for each pair of channels, [alpha, alpha] floats from [3, 3]. */
struct winograd {
    dnnl_wino_desc_t desc;
    float g[MAX_ALPHA][3];
    int threads;
};

#ifdef SIMD_X86
/* Where the 16 floats of tap (0, 0) for output block `ob` and input `i` lie; taps are *step apart.
 */
static int64_t place_of(const dnnl_wino_desc_t *d, int64_t ob, int64_t i, int64_t *step)
{
    int64_t inputs = d->ic, o2 = d->oc2_block, i2 = d->ic2_block;
    *step = inputs * d->oc;
    switch (d->wino_format) {
    case dnnl_wino_wei_aaOio:
        return (ob * inputs + i) * LANES;
    case dnnl_wino_wei_aaOBiOo:
        return ((ob / o2 * inputs + i) * o2 + ob % o2) * LANES;
    default: { /* OBaaIBOIio */
        int64_t ib = i / LANES, groups = inputs / LANES / i2;
        *step = groups * o2 * i2 * LANES * LANES;
        return ob / o2 * d->alpha * d->alpha * *step +
               (((ib / i2 * o2 + ob % o2) * i2 + ib % i2) * LANES + i % LANES) * LANES;
    }
    }
}

static SIMD_TARGET_AVX512 void transform(const struct winograd *w, const float *weight, int64_t row,
                                         float *to, int64_t step)
{
    int alpha = w->desc.alpha;
    float taps[9][LANES], half[MAX_ALPHA][3][LANES];
    for (int o = 0; o < LANES; o++)
        for (int k = 0; k < 9; k++)
            taps[k][o] = weight[o * row + k];
    for (int a = 0; a < alpha; a++)
        for (int j = 0; j < 3; j++) {
            _Pragma("omp simd") for (int o = 0; o < LANES; o++) half[a][j][o] =
                w->g[a][0] * taps[j][o] + w->g[a][1] * taps[3 + j][o] + w->g[a][2] * taps[6 + j][o];
        }
    for (int a = 0; a < alpha; a++)
        for (int b = 0; b < alpha; b++) {
            float *at = to + (a * alpha + b) * step;
            _Pragma("omp simd") for (int o = 0; o < LANES; o++) at[o] = w->g[b][0] * half[a][0][o] +
                                                                        w->g[b][1] * half[a][1][o] +
                                                                        w->g[b][2] * half[a][2][o];
        }
}

static bool run_winograd(const struct step *step)
{
    const struct winograd *w = step->state;
    const float *weight = step->at[0];
    float *to = step->at[1];
    int64_t inputs = w->desc.ic, blocks = w->desc.oc / LANES, row = inputs * 9;
#pragma omp parallel for num_threads(w->threads) schedule(static) if (w->threads > 1)
    for (int64_t ob = 0; ob < blocks; ob++)
        for (int64_t i = 0; i < inputs; i++) {
            int64_t tap_step, at = place_of(&w->desc, ob, i, &tap_step);
            transform(w, weight + ob * LANES * row + i * 9, row, to + at, tap_step);
        }
    return true;
}
#endif

/* Reorders nine kernels with a single 1 each (outputs 0 to 8 of a 16 x 16 layer) and reads G off:
 * tap (a, b) of kernel (i, j) is g[a][i] g[b][j], and g[alpha - 1] is (0, 0, 1). */
static bool ask_transform(struct plan *plan, struct winograd *w, struct err *err)
{
    dnnl_memory_desc_t plain = desc_plain(&SHAPE(LANES, LANES, 3, 3)), to = plain;
    dnnl_wino_desc_t *d = &to.format_desc.wino_desc;
    int alpha = w->desc.alpha;
    float *from_at = calloc(LANES * LANES * 9, sizeof(float));
    float *to_at = calloc((size_t)(LANES * LANES * alpha * alpha), sizeof(float));
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_memory_t from_memory = NULL, to_memory = NULL;
    dnnl_engine_t engine = dnnl_of(plan)->engine;
    to.format_kind = dnnl_format_kind_wino;
    *d = w->desc;
    d->ic = d->oc = LANES, d->ic2_block = d->oc2_block = 1;
    d->size = (size_t)(LANES * LANES * alpha * alpha) * sizeof(float);
    bool ok = from_at && to_at;
    if (!ok)
        err_memory(err, "winograd");
    for (int k = 0; ok && k < 9; k++)
        from_at[k * LANES * 9 + k] = 1;
    ok = ok &&
         dnnl_ok(dnnl_reorder_primitive_desc_create(&pd, &plain, engine, &to, engine, NULL),
                 "winograd", err) &&
         dnnl_ok(dnnl_primitive_create(&reorder, pd), "winograd", err) &&
         dnnl_ok(dnnl_memory_create(&from_memory, &plain, engine, from_at), "winograd", err) &&
         dnnl_ok(dnnl_memory_create(&to_memory, &to, engine, to_at), "winograd", err);
    if (ok) {
        dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from_memory }, { DNNL_ARG_TO, to_memory } };
        ok = dnnl_ok(dnnl_primitive_execute(reorder, dnnl_of(plan)->stream, 2, args), "winograd",
                     err);
        for (int a = 0; a < alpha; a++)
            for (int i = 0; i < 3; i++)
                w->g[a][i] = to_at[(a * alpha + alpha - 1) * LANES * LANES + i * 3 + 2];
    }
    dnnl_memory_destroy(from_memory), dnnl_memory_destroy(to_memory);
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(pd);
    free(from_at), free(to_at);
    return ok;
}

bool winograd_knows(const dnnl_memory_desc_t *to)
{
#ifdef SIMD_X86
    const dnnl_wino_desc_t *d = &to->format_desc.wino_desc;
    return to->format_kind == dnnl_format_kind_wino && d->wino_format != dnnl_wino_wei_aaOIoi &&
           d->r == 3 && d->alpha <= MAX_ALPHA && d->ic_block == LANES && d->oc_block == LANES &&
           d->ic % LANES == 0 && d->oc % LANES == 0;
#else
    (void)to;
    return false;
#endif
}

bool winograd_step(struct plan *plan, const dnnl_memory_desc_t *to, int from, int dst,
                   struct err *err)
{
#ifdef SIMD_X86
    struct winograd w = { .desc = to->format_desc.wino_desc, .threads = plan->options.threads };
    if (!ask_transform(plan, &w, err))
        return false;
    struct step_spec spec = { "weight winograd", run_winograd, &w, sizeof w, 0 };
    struct step *step = step_add(plan, &spec, err);
    return step && step_use(step, from, ACCESS_READ, err) && step_use(step, dst, ACCESS_WRITE, err);
#else
    (void)plan, (void)to, (void)from, (void)dst;
    return err_set(err, ERR_USAGE, "Winograd weights: not for this kind of processor");
#endif
}
