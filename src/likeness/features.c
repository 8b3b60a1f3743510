/* features.c: a patch as planes, and its features part by part (features.h). */
#include "likeness/features.h"

#include <math.h>
#include <stdlib.h>
#include "likeness/features_parts.h"
#include "nuclei/hematoxylin.h"
#include "stain/colour.h"
#include "stain/stain_fit.h"

#define N_PLANES 9

double feature_log_power(double power)
{
    return log10(power + 1e-8);
}

/* What turns a density (R, G, B) into amounts of haematoxylin, eosin and a rest that is at right
 * angles to both: amount[k] = sum_c density[c] unmix[c][k]. */
static void make_unmix(double unmix[3][3])
{
    double m[3][3];
    for (int k = 0; k < 2; k++) {
        const double *v = hematoxylin_stains[k];
        double length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        for (int c = 0; c < 3; c++)
            m[k][c] = v[c] / length;
    }
    double length = 0;
    for (int c = 0; c < 3; c++) {
        int a = (c + 1) % 3, b = (c + 2) % 3;
        m[2][c] = m[0][a] * m[1][b] - m[0][b] * m[1][a];
        length += m[2][c] * m[2][c];
    }
    for (int c = 0; c < 3; c++)
        m[2][c] /= sqrt(length);
    colour_invert(m, unmix);
}

static void fill_planes(const struct image *rgb, const struct feature_planes *planes)
{
    double unmix[3][3], density[256];
    make_unmix(unmix);
    stain_density_table(density);
    for (int64_t i = 0; i < planes->n; i++) {
        const uint8_t *px = rgb->px + 3 * i;
        for (int c = 0; c < 3; c++)
            planes->rgb[c][i] = px[c] / 255.0;
        for (int k = 0; k < 3; k++)
            planes->stains[k][i] = density[px[0]] * unmix[0][k] + density[px[1]] * unmix[1][k] +
                                   density[px[2]] * unmix[2][k];
        planes->grey[i] =
            0.299 * planes->rgb[0][i] + 0.587 * planes->rgb[1][i] + 0.114 * planes->rgb[2][i];
    }
}

/* Position i of n, mirrored at the borders, which are not repeated. */
static int64_t mirrored(int64_t i, int64_t n)
{
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
}

/* 1 4 6 4 1, in both directions. */
static void smooth(const struct feature_planes *planes, const double *from, double *to)
{
    static const double taps[5] = { 1 / 16.0, 4 / 16.0, 6 / 16.0, 4 / 16.0, 1 / 16.0 };
    int64_t width = planes->width, height = planes->height;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            double sum = 0;
            for (int k = 0; k < 5; k++)
                sum += taps[k] * from[y * width + mirrored(x + k - 2, width)];
            planes->room[y * width + x] = sum;
        }
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            double sum = 0;
            for (int k = 0; k < 5; k++)
                sum += taps[k] * planes->room[mirrored(y + k - 2, height) * width + x];
            to[y * width + x] = sum;
        }
}

bool features_measure(const struct image *rgb, double *out, struct err *err)
{
    if (rgb->width < LIKENESS_LEAST_PX || rgb->height < LIKENESS_LEAST_PX || rgb->channels != 3)
        return err_set(err, ERR_FORMAT,
                       "a patch of %lld x %lld px is too small: the features need "
                       "%d x %d",
                       (long long)rgb->width, (long long)rgb->height, LIKENESS_LEAST_PX,
                       LIKENESS_LEAST_PX);
    struct feature_planes planes = { rgb->width, rgb->height, rgb->width * rgb->height,
                                     .grey = NULL };
    double *memory = malloc((size_t)(N_PLANES * planes.n) * sizeof *memory), *next = memory;
    if (!memory)
        return err_memory(err, "the features of a patch");
    for (int c = 0; c < 3; c++, next += planes.n)
        planes.rgb[c] = next;
    for (int c = 0; c < 3; c++, next += planes.n)
        planes.stains[c] = next;
    planes.grey = next;
    planes.smooth = next + planes.n;
    planes.room = next + 2 * planes.n;
    fill_planes(rgb, &planes);
    smooth(&planes, planes.stains[0], planes.smooth);
    out = features_of_colour(&planes, out);
    out = features_of_gradient(&planes, out);
    out = features_of_texture(&planes, out, err);
    out = out ? features_of_power(&planes, out, err) : NULL;
    out = out ? features_of_dark(&planes, out, err) : NULL;
    free(memory);
    return out != NULL;
}

void features_standardise(double *values)
{
    for (int i = 0; i < LIKENESS_FEATURES; i++) {
        const struct feature_scale *scale = &likeness_features[i];
        double z = (values[i] - scale->mean) / scale->std;
        values[i] = fmin(fmax(z, -LIKENESS_MOST_SPREAD), LIKENESS_MOST_SPREAD);
    }
}
