/* pair_norm.c: see pair_norm.h. A map is transposed into panels [places of a register][channel], so
 * that the register kernel of direct_gradient_loops.h, which sums over rows, multiplies all pairs
 * of its places. */
#include "net/kernels/pair_norm.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "base/divide.h"

#define SIMD_BITS 128
#include "net/kernels/vectors.h"

#include "net/kernels/squares.h"
typedef vector128 four;
typedef vector128_at four_at;
#ifdef SIMD_X86
#include <immintrin.h>
#define SIMD_BITS 256
#include "net/kernels/vectors.h"

#include "net/kernels/direct_gradient_loops.h"
#define SIMD_BITS 512
#include "net/kernels/vectors.h"

#include "net/kernels/direct_gradient_loops.h"
#endif

/* Channels: products are summed in such pieces, which are then added up: a term is rounded at most
 * 47 times with 512 channels, not 512 times. */
#define PIECE 16

#define EACH_OF_FOUR _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)

typedef void (*correlate_fn)(bool one, int64_t n, const float *v, const float *z, ptrdiff_t z_step,
                             float *u, const float *const next[2]);

static int64_t lanes_of(const struct pair_norm *n)
{
    return n->level == SIMD_AVX512 ? 16 : 8;
}

/* A map in which pairs are looked for. */
struct map {
    int64_t lanes, area, blocks;
    int64_t places; /* the area, rounded up to two registers */
    int64_t channels;
    double tiny; /* see sum_tap */
};

static struct map map_of(const struct pair_norm *n, bool out)
{
    struct map m = { .lanes = lanes_of(n) };
    m.area = out ? n->out_height * n->out_width : n->height * n->width;
    m.blocks = ceil_div(out ? n->out_channels : n->in_channels, m.lanes);
    m.channels = m.blocks * m.lanes;
    m.tiny = (double)m.channels * 0x1p-99;
    m.places = ceil_div(m.area, 2 * m.lanes) * 2 * m.lanes;
    return m;
}

double pair_norm_cost(const struct pair_norm *n)
{
    double in = (double)(n->height * n->width), out = (double)(n->out_height * n->out_width);
    return in * in * (double)n->in_channels + out * out * (double)n->out_channels +
           out * out * (double)(n->kernel[0] * n->kernel[1]);
}

double pair_norm_gradient_cost(const struct pair_norm *n)
{
    return (double)(n->kernel[0] * n->kernel[1] * n->in_channels) *
           (double)(n->out_channels * n->out_height * n->out_width);
}

size_t pair_norm_scratch_floats(const struct pair_norm *n)
{
    struct map in = map_of(n, false), out = map_of(n, true);
    int64_t panels = in.blocks * in.places > out.blocks * out.places ? in.blocks * in.places
                                                                     : out.blocks * out.places;
    return (size_t)(panels * in.lanes + in.places * in.places + out.places * out.places +
                    2 * in.lanes * in.lanes);
}

/* [block][place][lanes] -> [place / lanes][channel][lanes]; places that were added are 0. */
static void pack(const struct map *m, const float *from, float *to)
{
    if (m->area < m->places)
        memset(to, 0, (size_t)(m->places * m->channels) * sizeof *to);
    for (int64_t c = 0; c < m->channels; c += 4) {
        const float *block = from + c / m->lanes * m->area * m->lanes + c % m->lanes;
        for (int64_t p = 0; p < m->area; p += 4) {
            float *panel = to + (p / m->lanes * m->channels + c) * m->lanes + p % m->lanes;
            const four_at none = { 0 };
            four row[4];
            EACH_OF_FOUR row[i] =
                p + i < m->area ? *(const four_at *)(block + (p + i) * m->lanes) : none;
            square_turn(row);
            EACH_OF_FOUR *(four_at *)(panel + i * m->lanes) = row[i];
        }
    }
}

/* to [places][places] = the products of all pairs of places. */
static void multiply(const struct map *m, correlate_fn correlate, const float *panels, float *tile,
                     float *to)
{
    int64_t lanes = m->lanes, step = m->channels * lanes;
    for (int64_t i = 0; i < m->places / lanes; i++)
        for (int64_t j = 0; j < m->places / lanes; j += 2) {
            const float *v = panels + i * step, *z = panels + j * step;
            memset(tile, 0, (size_t)(2 * lanes * lanes) * sizeof *tile);
            for (int64_t c = 0; c < m->channels; c += PIECE) {
                const float *from = v + c * lanes, *next[2] = { from, from };
                correlate(false, smaller_of(PIECE, m->channels - c), from, z + c * lanes, step,
                          tile, next);
            }
            for (int64_t r = 0; r < lanes; r++)
                memcpy(to + (i * lanes + r) * m->places + j * lanes, tile + r * 2 * lanes,
                       (size_t)(2 * lanes) * sizeof *to);
        }
}

static double dot(const float *a, const float *b, int64_t n)
{
    four sums = { 0 };
    float rest = 0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        sums += *(const four_at *)(a + i) * *(const four_at *)(b + i);
    for (; i < n; i++)
        rest += a[i] * b[i];
    return (double)((sums[0] + sums[1]) + (sums[2] + sums[3])) + (double)rest;
}

/* How often a term is rounded at most: in a product of two places, and in dot. */
static int64_t product_roundings(const struct map *m)
{
    return smaller_of(PIECE, m->channels) + ceil_div(m->channels, PIECE) - 1;
}

static int64_t dot_roundings(int64_t n)
{
    return n / 4 + 3;
}

/* What one tap adds: the place p of the outputs meets the place p + (down, right) of the inputs.
 *
 * Terms of both signs may cancel, and the norm must not be found too small, so as much is added as
 * rounding can have taken away. A sum whose terms are rounded k times is off by at most gamma(k) =
 * k u / (1 - k u) times their magnitudes, u = 2^-24, and factors of 1 + gamma(j) and 1 + gamma(k)
 * are within 1 + gamma(j + k). The magnitudes of a product of places a, b are at most |a| |b|
 * (Cauchy-Schwarz). So with all roundings together, and one for all sums in double, the tap is off
 * by at most gamma times the square of the sum of |dy_p| |x_p+tap|. These lengths are products
 * too, whose squares may be too small by a factor of 1 - gamma: gamma / (1 - gamma) = k u /
 * (1 - 2 k u). Underflow takes at most 2^-126 in each operation, which may be 2 channels for a
 * product: divided by u that is less than `tiny`, and in dot less than `lost`. */
static double sum_tap(const struct pair_norm *n, int64_t down, int64_t right, const float *xx,
                      const float *yy)
{
    const struct map in = map_of(n, false), out = map_of(n, true);
    int64_t top = larger_of(0, -down), bottom = smaller_of(n->out_height, n->height - down);
    int64_t left = larger_of(0, -right), wide = smaller_of(n->out_width, n->width - right) - left;
    int64_t shift = down * n->width + right;
    double sum = 0, most = 0;
    for (int64_t p_y = top; p_y < bottom; p_y++)
        for (int64_t p_x = left; p_x < left + wide; p_x++) {
            int64_t p = p_y * n->out_width + p_x, tap = p_y * n->width + p_x + shift;
            const float *y = yy + p * out.places, *x = xx + tap * in.places;
            most += sqrt(((double)y[p] + out.tiny) * ((double)x[tap] + in.tiny));
            for (int64_t q_y = top; q_y < bottom; q_y++)
                sum += dot(y + q_y * n->out_width + left, x + q_y * n->width + left + shift, wide);
        }
    int64_t roundings = product_roundings(&in) + product_roundings(&out) + dot_roundings(wide) + 1;
    double k_u = (double)roundings * 0x1p-24;
    double lost = (double)(out.places * out.places) * 0x1p-124;
    return sum + k_u / (1 - 2 * k_u) * most * most + lost;
}

/* 0, or NaN if any of the products of a place with itself is not finite. */
static double doubt(const struct map *m, const float *products)
{
    double sum = 0;
    for (int64_t p = 0; p < m->area; p++)
        sum += 0.0 * (double)products[p * m->places + p];
    return sum;
}

double pair_norm_run(const struct pair_norm *n, const float *x, const float *dy, float *scratch)
{
    struct map in = map_of(n, false), out = map_of(n, true);
    correlate_fn correlate = SIMD_PICK(n->level, correlate, NULL);
    float *xx = scratch, *yy = xx + in.places * in.places, *tile = yy + out.places * out.places;
    float *panels = tile + 2 * in.lanes * in.lanes;
    pack(&in, x, panels);
    multiply(&in, correlate, panels, tile, xx);
    pack(&out, dy, panels);
    multiply(&out, correlate, panels, tile, yy);
    double sum = doubt(&in, xx) + doubt(&out, yy); /* also of places that no tap joins */
    for (int64_t k = 0; k < n->kernel[0] * n->kernel[1]; k++)
        sum += sum_tap(n, k / n->kernel[1] * n->dilation[0] - n->pad[0],
                       k % n->kernel[1] * n->dilation[1] - n->pad[1], xx, yy);
    return isfinite(sum) ? fmax(sum, 0) : (double)NAN;
}
