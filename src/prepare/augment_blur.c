/* augment_blur.c: a Gaussian blur, columns then rows; the patch is mirrored at its edges (the edge
 * itself is not repeated). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "prepare/augment_ops.h"

int64_t augment_blur_radius(double sigma_px, int64_t width, int64_t height)
{
    int64_t radius = (int64_t)ceil(3 * sigma_px), most = (width < height ? width : height) - 1;
    return radius < most ? radius : most;
}

/* taps [2 radius + 1], their sum is 1. */
static void fill_taps(float *taps, int64_t radius, double sigma_px)
{
    double sum = 0;
    for (int64_t i = -radius; i <= radius; i++)
        sum += exp(-0.5 * (double)(i * i) / (sigma_px * sigma_px));
    for (int64_t i = -radius; i <= radius; i++)
        taps[i + radius] = (float)(exp(-0.5 * (double)(i * i) / (sigma_px * sigma_px)) / sum);
}

static int64_t mirrored(int64_t i, int64_t n)
{
    i = i < 0 ? -i : i;
    return i >= n ? 2 * (n - 1) - i : i;
}

/* row [3 width]: the columns around y, weighted. */
static void blur_columns(const struct image *source, int64_t y, const float *taps, int64_t radius,
                         float *restrict row)
{
    const int64_t n = 3 * source->width;
    memset(row, 0, (size_t)n * sizeof *row);
    for (int64_t k = -radius; k <= radius; k++) {
        const uint8_t *restrict line = image_at(source, 0, mirrored(y + k, source->height));
        const float tap = taps[k + radius];
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            row[i] += tap * (float)line[i];
    }
}

/* padded [3 (width + 2 radius)] has the row in its middle; sum [3 width] is scratch. */
static void blur_row(float *restrict padded, int64_t width, const float *taps, int64_t radius,
                     float *restrict sum, uint8_t *restrict out)
{
    const int64_t n = 3 * width;
    for (int64_t k = 1; k <= radius; k++)
        for (int64_t c = 0; c < 3; c++) {
            padded[3 * (radius - k) + c] = padded[3 * (radius + mirrored(-k, width)) + c];
            padded[3 * (radius + width - 1 + k) + c] =
                padded[3 * (radius + mirrored(width - 1 + k, width)) + c];
        }
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t k = 0; k <= 2 * radius; k++) {
        const float *restrict from = padded + 3 * k;
        const float tap = taps[k];
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            sum[i] += tap * from[i];
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = (uint8_t)(int)fminf(sum[i] + 0.5f, 255);
}

bool augment_blur(struct image *patch, double sigma_px, struct err *err)
{
    const int64_t radius = augment_blur_radius(sigma_px, patch->width, patch->height);
    struct image source = *patch;
    size_t row_count = (size_t)(3 * (patch->width + 2 * radius));
    float *taps = malloc((size_t)(2 * radius + 1) * sizeof *taps);
    float *rows = malloc(2 * row_count * sizeof *rows);
    source.px = malloc(image_bytes(patch) + 1);
    bool ok = taps && rows && source.px;
    if (ok) {
        memcpy(source.px, patch->px, image_bytes(patch));
        fill_taps(taps, radius, sigma_px);
        for (int64_t y = 0; y < patch->height; y++) {
            blur_columns(&source, y, taps, radius, rows + 3 * radius);
            blur_row(rows, patch->width, taps, radius, rows + row_count, image_at(patch, 0, y));
        }
    } else {
        err_memory(err, "the blur of a patch");
    }
    free(taps), free(rows), free(source.px);
    return ok;
}
