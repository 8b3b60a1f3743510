/* stain_apply.c: a source fit and a target fit -> a transform of pixels. Both families of methods
 * are three table look-ups that add up to a vector, a fixed function of each lane, and a store: one
 * pixel is one vector of four lanes (the last unused), so that a pixel's result depends on nothing
 * but the pixel. */
#include "stain/stain.h"

#include <math.h>
#include <stdlib.h>
#include "stain/colour.h"
#include "stain/stain_fit.h"

typedef float lanes __attribute__((vector_size(16)));
typedef int32_t words __attribute__((vector_size(16)));

#define GAMMA_STEPS 16383

struct stain_transform {
    lanes of_byte[3][256]; /* [channel][value]: added up over the channels */
    enum stain_method method;
    lanes f_columns[4];              /* Reinhard: f of XYZ -> f of XYZ; the last is added */
    lanes rgb_columns[3];            /* XYZ / white -> linear RGB */
    uint16_t gamma[GAMMA_STEPS + 1]; /* linear light -> sRGB byte, in parts of 256 */
};

static lanes all(float value)
{
    return (lanes){ value, value, value, value };
}

static lanes choose(words where, lanes yes, lanes no)
{
    return (lanes)((where & (words)yes) | (~where & (words)no));
}

static lanes between(lanes value, float low, float high)
{
    value = choose(value > all(low), value, all(low));
    return choose(value < all(high), value, all(high));
}

/* 2^y for -100 < y < 100, to a relative error of 2e-7. */
static lanes power_of_two(lanes y)
{
    const lanes round = all(12582912.0f); /* 1.5 * 2^23: adding it rounds to a whole number */
    lanes whole = (y + round) - round, f = y - whole;
    lanes p = all(1.3333558e-3f);
    p = p * f + all(9.6181291e-3f);
    p = p * f + all(5.5504109e-2f);
    p = p * f + all(2.4022651e-1f);
    p = p * f + all(6.9314718e-1f);
    p = p * f + all(1.0f);
    words exponent = __builtin_convertvector(whole, words) + 127;
    return p * (lanes)(exponent << 23);
}

static void store(lanes value, uint8_t *px)
{
    words whole = __builtin_convertvector(value + all(0.5f), words);
    px[0] = (uint8_t)whole[0], px[1] = (uint8_t)whole[1], px[2] = (uint8_t)whole[2];
}

/* The tables hold log2 of the new intensity. */
static void apply_density(const struct stain_transform *transform, uint8_t *rgb, int64_t n_px)
{
    const float log2_255 = 7.9943534f;
    for (uint8_t *px = rgb, *end = rgb + 3 * n_px; px < end; px += 3) {
        lanes y = transform->of_byte[0][px[0]] + transform->of_byte[1][px[1]] +
                  transform->of_byte[2][px[2]] + all(log2_255);
        store(power_of_two(between(y, -20.0f, log2_255)), px);
    }
}

/* Cube root of 0.008 < t < 2, to a relative error of 1e-6: a guess from the bits, two steps. */
static lanes cube_root(lanes t)
{
    lanes bits = __builtin_convertvector((words)t, lanes);
    lanes y = (lanes) __builtin_convertvector(bits * all(1.0f / 3) + all(709921077.0f), words);
    y = (y + y + t / (y * y)) * all(1.0f / 3);
    return (y + y + t / (y * y)) * all(1.0f / 3);
}

/* How far a pixel is moved: 1 for tissue, 0 for glass, with a smooth transition. f: of Y. */
static float share_moved(float f)
{
    const float least = (float)((STAIN_TISSUE_LIGHTNESS + 16) / 116);
    const float most = (float)((STAIN_GLASS_LIGHTNESS + 16) / 116);
    float x = (most - f) / (most - least);
    x = x > 1 ? 1 : x < 0 ? 0 : x;
    return x * x * (3 - 2 * x);
}

static void apply_lab(const struct stain_transform *transform, uint8_t *rgb, int64_t n_px)
{
    for (uint8_t *px = rgb, *end = rgb + 3 * n_px; px < end; px += 3) {
        lanes t = transform->of_byte[0][px[0]] + transform->of_byte[1][px[1]] +
                  transform->of_byte[2][px[2]];
        lanes root = cube_root(between(t, 0.008f, 2.0f));
        lanes f = choose(t > all(0.008856f), root, t * all(7.787f) + all(16.0f / 116));
        float share = share_moved(f[1]);
        if (share == 0)
            continue;
        f = transform->f_columns[0] * all(f[0]) + transform->f_columns[1] * all(f[1]) +
            transform->f_columns[2] * all(f[2]) + transform->f_columns[3];
        t = choose(f > all(0.2068966f), f * f * f, (f - all(16.0f / 116)) * all(1 / 7.787f));
        lanes light = transform->rgb_columns[0] * all(t[0]) +
                      transform->rgb_columns[1] * all(t[1]) + transform->rgb_columns[2] * all(t[2]);
        light = between(light, 0.0f, 1.0f) * all(GAMMA_STEPS) + all(0.5f);
        words step = __builtin_convertvector(light, words);
        for (int c = 0; c < 3; c++) {
            float moved = (float)transform->gamma[step[c]] * (1.0f / 256);
            px[c] = (uint8_t)(share * moved + (1 - share) * px[c] + 0.5f);
        }
    }
}

void stain_apply(const struct stain_transform *transform, uint8_t *rgb, int64_t n_px)
{
    if (transform->method == STAIN_REINHARD)
        apply_lab(transform, rgb, n_px);
    else if (transform->method != STAIN_NONE)
        apply_density(transform, rgb, n_px);
}

/* Density in, concentrations by least squares, scaled, density out: one 3 x 3 matrix, and so a sum
 * of one vector per channel. */
static bool prepare_density(struct stain_transform *transform, const struct stain_fit *source,
                            const struct stain_fit *target, struct err *err)
{
    double pseudo[2][3], scale[2], density[256];
    stain_density_table(density);
    for (int k = 0; k < 2; k++) {
        scale[k] = target->concentration_p99[k] / source->concentration_p99[k];
        if (!(scale[k] > 0) || !isfinite(scale[k]))
            return err_set(err, ERR_USAGE, "a stain fit without stain cannot be applied");
    }
    if (!stain_pseudo_inverse(source->matrix, pseudo))
        return err_set(err, ERR_USAGE, "a stain fit with two equal stains cannot be applied");
    for (int in = 0; in < 3; in++)
        for (int v = 0; v < 256; v++)
            for (int out = 0; out < 3; out++) {
                double weight = target->matrix[0][out] * scale[0] * pseudo[0][in] +
                                target->matrix[1][out] * scale[1] * pseudo[1][in];
                transform->of_byte[in][v][out] = (float)(-weight * density[v] * M_LOG2E);
            }
    return true;
}

/* Lab is linear in f, so matching means and deviations is a 3 x 4 matrix on f. Returns the new
 * value of one f. */
static void match_lab(const struct stain_fit *source, const struct stain_fit *target,
                      const double f[3], double out[3])
{
    double lab[3] = { 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2]) };
    for (int c = 0; c < 3; c++)
        lab[c] = (lab[c] - source->lab_mean[c]) * (target->lab_std[c] / source->lab_std[c]) +
                 target->lab_mean[c];
    out[1] = (lab[0] + 16) / 116;
    out[0] = out[1] + lab[1] / 500;
    out[2] = out[1] - lab[2] / 200;
}

static bool prepare_lab(struct stain_transform *transform, const struct stain_fit *source,
                        const struct stain_fit *target, struct err *err)
{
    double linear[256], inverse[3][3], origin[3], moved[3];
    for (int c = 0; c < 3; c++)
        if (!(source->lab_std[c] > 0) || !isfinite(target->lab_std[c]))
            return err_set(err, ERR_USAGE, "a stain fit of one colour cannot be applied");
    stain_linear_table(linear);
    colour_invert(stain_xyz_of_rgb, inverse);
    match_lab(source, target, (double[3]){ 0 }, origin);
    for (int in = 0; in < 3; in++) {
        double unit[3] = { in == 0, in == 1, in == 2 };
        match_lab(source, target, unit, moved);
        for (int out = 0; out < 3; out++) {
            transform->f_columns[in][out] = (float)(moved[out] - origin[out]);
            transform->f_columns[3][out] = (float)origin[out];
            transform->rgb_columns[in][out] = (float)(inverse[out][in] * stain_white_xyz[in]);
            for (int v = 0; v < 256; v++)
                transform->of_byte[in][v][out] =
                    (float)(stain_xyz_of_rgb[out][in] * linear[v] / stain_white_xyz[out]);
        }
    }
    for (int i = 0; i <= GAMMA_STEPS; i++) {
        double light = i / (double)GAMMA_STEPS;
        double s = light > 0.0031308 ? 1.055 * pow(light, 1 / 2.4) - 0.055 : 12.92 * light;
        transform->gamma[i] = (uint16_t)lrint(255 * 256 * s);
    }
    return true;
}

bool stain_transform_new(const struct stain_fit *source, const struct stain_fit *target,
                         struct stain_transform **out, struct err *err)
{
    *out = NULL;
    if (source->method != target->method)
        return err_set(err, ERR_USAGE, "a %s fit cannot be matched to a %s fit",
                       stain_method_names[source->method], stain_method_names[target->method]);
    struct stain_transform *transform =
        aligned_alloc(_Alignof(struct stain_transform), sizeof *transform);
    if (!transform)
        return err_memory(err, "a stain transform");
    *transform = (struct stain_transform){ .method = source->method };
    bool ok = true;
    if (source->method == STAIN_REINHARD)
        ok = prepare_lab(transform, source, target, err);
    else if (source->method != STAIN_NONE)
        ok = prepare_density(transform, source, target, err);
    if (ok)
        *out = transform;
    else
        free(transform);
    return ok;
}

void stain_transform_free(struct stain_transform *transform)
{
    free(transform);
}
