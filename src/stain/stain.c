/* stain.c: pixels -> a fit. See stain.h; the vectors are found in stain_vectors.c, the fit is
 * applied in stain_apply.c. */
#include "stain/stain.h"

#include <math.h>
#include <stdlib.h>
#include "stain/stain_fit.h"

#define MIN_TISSUE_PX 256

const char *const stain_method_names[] = {
    [STAIN_NONE] = "none",
    [STAIN_REINHARD] = "reinhard",
    [STAIN_MACENKO] = "macenko",
    [STAIN_VAHADANE] = "vahadane",
    NULL,
};

const double stain_xyz_of_rgb[3][3] = {
    { 0.412453, 0.357580, 0.180423 },
    { 0.212671, 0.715160, 0.072169 },
    { 0.019334, 0.119193, 0.950227 },
};
const double stain_white_xyz[3] = { 0.95047, 1.0, 1.08883 };

void stain_density_table(double density[256])
{
    for (int v = 0; v < 256; v++)
        density[v] = -log((v > 1 ? v : 1) / 255.0);
    density[255] = 0; /* not minus zero */
}

void stain_linear_table(double linear[256])
{
    for (int v = 0; v < 256; v++) {
        double s = v / 255.0;
        linear[v] = s > 0.04045 ? pow((s + 0.055) / 1.055, 2.4) : s / 12.92;
    }
}

static void rgb_to_lab(const double linear[256], const uint8_t rgb[3], double lab[3])
{
    double f[3];
    for (int i = 0; i < 3; i++) {
        const double *row = stain_xyz_of_rgb[i];
        double t = (row[0] * linear[rgb[0]] + row[1] * linear[rgb[1]] + row[2] * linear[rgb[2]]) /
                   stain_white_xyz[i];
        f[i] = t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116;
    }
    lab[0] = 116 * f[1] - 16;
    lab[1] = 500 * (f[0] - f[1]);
    lab[2] = 200 * (f[1] - f[2]);
}

/* Luminance of the lightness below which a pixel is tissue. */
static double tissue_luminance(void)
{
    return pow((STAIN_TISSUE_LIGHTNESS + 16) / 116, 3);
}

static double luminance_of(const double linear[256], const uint8_t *px)
{
    return stain_xyz_of_rgb[1][0] * linear[px[0]] + stain_xyz_of_rgb[1][1] * linear[px[1]] +
           stain_xyz_of_rgb[1][2] * linear[px[2]];
}

static bool take_tissue(const uint8_t *rgb, int64_t n, struct stain_tissue *out, struct err *err)
{
    double density[256], linear[256];
    stain_density_table(density);
    stain_linear_table(linear);
    double limit = tissue_luminance();
    *out = (struct stain_tissue){ .density =
                                      malloc((size_t)(n > 0 ? n : 1) * 3 * sizeof *out->density) };
    if (!out->density)
        return err_memory(err, "pixels to fit a stain to");
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *px = rgb + 3 * i;
        if (luminance_of(linear, px) >= limit)
            continue;
        double *to = out->density + 3 * out->n++;
        to[0] = density[px[0]], to[1] = density[px[1]], to[2] = density[px[2]];
    }
    if (out->n >= MIN_TISSUE_PX)
        return true;
    free(out->density);
    out->density = NULL;
    return err_set(err, ERR_MISSING,
                   "too little tissue to fit a stain: %lld of %lld pixels are darker than glass; "
                   "at least %d are needed",
                   (long long)out->n, (long long)n, MIN_TISSUE_PX);
}

/* Over tissue: glass would shift the means, and the amount of glass says nothing about a stain. */
static void fit_reinhard(const uint8_t *rgb, int64_t n, struct stain_fit *out)
{
    double linear[256], lab[3], square[3] = { 0 }, limit = tissue_luminance();
    int64_t taken = 0;
    stain_linear_table(linear);
    for (int64_t i = 0; i < n; i++) {
        if (luminance_of(linear, rgb + 3 * i) >= limit)
            continue;
        taken++;
        rgb_to_lab(linear, rgb + 3 * i, lab);
        for (int c = 0; c < 3; c++) { /* Welford's update */
            double gap = lab[c] - out->lab_mean[c];
            out->lab_mean[c] += gap / (double)taken;
            square[c] += gap * (lab[c] - out->lab_mean[c]);
        }
    }
    for (int c = 0; c < 3; c++)
        out->lab_std[c] = sqrt(square[c] / (double)taken);
}

/* Over all pixels given, as in the reference implementations. */
static bool fit_concentrations(const uint8_t *rgb, int64_t n, struct stain_fit *out,
                               struct err *err)
{
    double density[256], pseudo[2][3];
    stain_density_table(density);
    if (!stain_pseudo_inverse(out->matrix, pseudo))
        return err_set(
            err, ERR_MISSING,
            "the colour of the tissue does not vary: its two stains cannot be separated");
    double *values = malloc((size_t)n * sizeof *values);
    if (!values)
        return err_memory(err, "pixels to fit a stain to");
    for (int stain = 0; stain < 2; stain++) {
        const double *row = pseudo[stain];
        for (int64_t i = 0; i < n; i++) {
            const uint8_t *px = rgb + 3 * i;
            values[i] = row[0] * density[px[0]] + row[1] * density[px[1]] + row[2] * density[px[2]];
        }
        out->concentration_p99[stain] = stain_quantile(values, n, 0.99);
    }
    free(values);
    if (out->concentration_p99[0] > 0 && out->concentration_p99[1] > 0)
        return true;
    return err_set(err, ERR_MISSING, "only one stain was found in the tissue");
}

bool stain_fit(enum stain_method method, const uint8_t *rgb, int64_t n, struct stain_fit *out,
               struct err *err)
{
    *out = (struct stain_fit){ .method = method };
    if (method == STAIN_NONE)
        return true;
    struct stain_tissue tissue;
    if (!take_tissue(rgb, n, &tissue, err))
        return false;
    bool ok = true;
    if (method == STAIN_REINHARD)
        fit_reinhard(rgb, n, out);
    else if (method == STAIN_MACENKO)
        ok = stain_vectors_macenko(&tissue, out->matrix, err);
    else
        ok = stain_vectors_vahadane(&tissue, out->matrix, err);
    free(tissue.density);
    return ok && (method == STAIN_REINHARD || fit_concentrations(rgb, n, out, err));
}

/* Fitted by this code to the stain template of the CAMELYON16 study by the FDA (DIDSR/dldp, CC0),
 * 256 x 256 pixels; the unit test fits it again. */
static const struct stain_fit default_targets[] = {
    [STAIN_NONE] = { .method = STAIN_NONE },
    [STAIN_REINHARD] = { .method = STAIN_REINHARD,
                         .lab_mean = { 52.232712, 28.790454, -7.852739 },
                         .lab_std = { 14.628929, 3.691182, 4.764360 } },
    [STAIN_MACENKO] = { .method = STAIN_MACENKO,
                        .matrix = { { 0.487222, 0.736382, 0.469421 },
                                    { 0.245579, 0.689293, 0.681591 } },
                        .concentration_p99 = { 2.549368, 0.814349 } },
    [STAIN_VAHADANE] = { .method = STAIN_VAHADANE,
                         .matrix = { { 0.451263, 0.752644, 0.479467 },
                                     { 0.300130, 0.775204, 0.555860 } },
                         .concentration_p99 = { 2.884424, 1.262005 } },
};

struct stain_fit stain_default_target(enum stain_method method)
{
    return default_targets[method];
}
