/* features_texture.c: edges and their directions, and co-occurring grey levels
 * (features_parts.h). */
#include <math.h>
#include <stdlib.h>
#include "likeness/features_parts.h"
#include "nuclei/glcm.h"

#define N_LEVELS 16
#define LEVEL_PAIRS (N_LEVELS * N_LEVELS)

/* --- edges --- */

struct gradient_sums {
    double size, square;  /* of the gradient's length */
    double along, across; /* gx^2 - gy^2, 2 gx gy: the structure tensor */
    double axes;          /* length^2 cos(4 angle): +1 along x or y, -1 along diagonals */
    int64_t n;
};

static void add_gradient(struct gradient_sums *sums, double gx, double gy)
{
    double square = gx * gx + gy * gy, along = gx * gx - gy * gy, across = 2 * gx * gy;
    sums->size += sqrt(square);
    sums->square += square;
    sums->along += along;
    sums->across += across;
    if (square > 0)
        sums->axes += (along * along - across * across) / square;
    sums->n++;
}

double *features_of_gradient(const struct feature_planes *planes, double *out)
{
    struct gradient_sums sums = { 0 };
    int64_t width = planes->width;
    for (int64_t y = 1; y < planes->height - 1; y++)
        for (int64_t x = 1; x < width - 1; x++) {
            const double *at = &planes->grey[y * width + x];
            add_gradient(&sums, (at[1] - at[-1]) / 2, (at[width] - at[-width]) / 2);
        }
    double mean = sums.size / (double)sums.n;
    double variance = sums.square / (double)sums.n - mean * mean;
    bool edges = sums.square > 1e-9;
    *out++ = feature_log_power(mean * mean) / 2;
    *out++ = mean > FEATURE_FLAT ? sqrt(fmax(variance, 0)) / mean : 0;
    *out++ = edges ? hypot(sums.along, sums.across) / sums.square : 0;
    *out++ = edges ? sums.axes / sums.square : 0;
    return out;
}

/* --- grey levels --- */

/* Pairs that are `step` px apart, to the right and downwards together. */
static double *put_cooccurrence(const struct glcm_pixels *pixels, const uint8_t *levels, int step,
                                double *out)
{
    uint32_t counts[LEVEL_PAIRS], down[LEVEL_PAIRS];
    int64_t total = glcm_count(pixels, levels, N_LEVELS, step, 0, counts) +
                    glcm_count(pixels, levels, N_LEVELS, 0, step, down);
    for (int i = 0; i < LEVEL_PAIRS; i++)
        counts[i] += down[i];
    struct glcm_texture texture = glcm_texture(counts, N_LEVELS, total);
    *out++ = log10(texture.contrast + 1e-3);
    *out++ = texture.correlation;
    *out++ = log10(texture.second_moment);
    return out;
}

double *features_of_texture(const struct feature_planes *planes, double *out, struct err *err)
{
    int64_t n = planes->n;
    struct nuclei_labels one = { .labels = calloc((size_t)n, sizeof *one.labels),
                                 .width = planes->width,
                                 .height = planes->height,
                                 .n = 1 };
    int32_t *px = malloc((size_t)n * sizeof *px);
    uint8_t *levels = malloc((size_t)n);
    bool ok = (one.labels && px && levels) || err_memory(err, "the features of a patch");
    for (int64_t i = 0; ok && i < n; i++) {
        int level = (int)(planes->grey[i] * N_LEVELS);
        px[i] = (int32_t)i;
        levels[i] = (uint8_t)(level < N_LEVELS ? level : N_LEVELS - 1);
    }
    struct glcm_pixels pixels = { &one, px, n };
    if (ok) {
        out = put_cooccurrence(&pixels, levels, 1, out);
        out = put_cooccurrence(&pixels, levels, 4, out);
    }
    free(one.labels);
    free(px);
    free(levels);
    return ok ? out : NULL;
}
