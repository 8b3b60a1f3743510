/* blind.c: see blind.h. */
#include <math.h>
#include <stdlib.h>
#include "audit/blind.h"

#define MOST_FEATURES 64
#define ROUNDS 100
#define LONGEST_STEP 2.0 /* of Newton, in any weight: separable data would overshoot */
#define PARTS 4          /* of the coarse view, in each direction */

static double grey(const uint8_t *px, int channels)
{
    return channels == 1 ? px[0] : 0.299 * px[0] + 0.587 * px[1] + 0.114 * px[2];
}

/* Edges: mean differences of neighbours, across and down; out [2]. */
static void edges(const struct image *image, double *out)
{
    int64_t w = image->width, h = image->height;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            double here = grey(image_at(image, x, y), image->channels);
            if (x + 1 < w)
                out[0] += fabs(grey(image_at(image, x + 1, y), image->channels) - here);
            if (y + 1 < h)
                out[1] += fabs(grey(image_at(image, x, y + 1), image->channels) - here);
        }
    out[0] /= (double)(w * h);
    out[1] /= (double)(w * h);
}

void blind_features(const struct image *image, double out[BLIND_FEATURES])
{
    int64_t n = image->width * image->height;
    double parts[PARTS * PARTS] = { 0 }, counts[PARTS * PARTS] = { 0 };
    for (int i = 0; i < BLIND_FEATURES; i++)
        out[i] = 0;
    for (int64_t y = 0; y < image->height; y++)
        for (int64_t x = 0; x < image->width; x++) {
            const uint8_t *px = image_at(image, x, y);
            double light = grey(px, image->channels);
            int64_t part = y * PARTS / image->height * PARTS + x * PARTS / image->width;
            for (int c = 0; c < 3; c++) {
                double v = px[c % image->channels];
                out[c] += v / (double)n;
                out[3 + c] += v * v / (double)n;
            }
            out[6] += (light > 200) / (double)n;
            out[7] += (light < 80) / (double)n;
            out[8] += light * light * light / (1e4 * (double)n);
            out[9] += fabs(light - 128) / (double)n;
            parts[part] += light;
            counts[part]++;
        }
    for (int c = 0; c < 3; c++)
        out[3 + c] = sqrt(fmax(0, out[3 + c] - out[c] * out[c]));
    edges(image, out + 10);
    for (int i = 0; i < PARTS * PARTS; i++)
        out[12 + i] = counts[i] > 0 ? parts[i] / counts[i] : 0;
}

/* Solves a [n, n] x = b in place; a is symmetric and positive. */
static bool solve(double *a, double *b, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) {
            double sum = a[i * n + j];
            for (int k = 0; k < i; k++)
                sum -= a[i * n + k] * a[j * n + k];
            if (i == j && !(sum > 0))
                return false;
            a[j * n + i] = i == j ? sqrt(sum) : sum / a[i * n + i];
        }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            b[i] -= a[i * n + k] * b[k];
        b[i] /= a[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            b[i] -= a[k * n + i] * b[k];
        b[i] /= a[i * n + i];
    }
    return true;
}

static double predict(const double *row, const double *weights, int p)
{
    double sum = weights[p];
    for (int j = 0; j < p; j++)
        sum += row[j] * weights[j];
    return sum;
}

/* One step of Newton: gradient [p + 1] and curvature [p + 1, p + 1] of the loss with its ridge. */
static void slope(const double *features, int64_t n, int p, const bool *member, const bool *use,
                  const double *weights, double *gradient, double *curvature)
{
    int m = p + 1;
    for (int i = 0; i < m; i++) {
        gradient[i] = i < p ? weights[i] : 0;
        for (int j = 0; j < m; j++)
            curvature[i * m + j] = i == j ? (i < p ? 1 : 1e-9) : 0;
    }
    for (int64_t r = 0; r < n; r++) {
        if (use && !use[r])
            continue;
        const double *row = features + r * p;
        double chance = 1 / (1 + exp(-predict(row, weights, p))), weight = chance * (1 - chance);
        for (int i = 0; i < m; i++) {
            double x = i < p ? row[i] : 1;
            gradient[i] += (chance - member[r]) * x;
            for (int j = i; j < m; j++)
                curvature[i * m + j] += weight * x * (j < p ? row[j] : 1);
        }
    }
}

bool blind_fit(const double *features, int64_t n, int p, const bool *member, const bool *use,
               double *weights, struct err *err)
{
    double gradient[MOST_FEATURES + 1], curvature[(MOST_FEATURES + 1) * (MOST_FEATURES + 1)];
    for (int i = 0; i <= p; i++)
        weights[i] = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double largest = 0;
        slope(features, n, p, member, use, weights, gradient, curvature);
        if (!solve(curvature, gradient, p + 1))
            return err_set(err, ERR_FORMAT, "the blind baseline cannot be fitted");
        for (int i = 0; i <= p; i++)
            largest = fmax(largest, fabs(gradient[i]));
        for (int i = 0; i <= p; i++)
            weights[i] -= gradient[i] * fmin(1, LONGEST_STEP / largest);
        if (largest < 1e-10)
            break;
    }
    return true;
}

/* Columns of out [n, p] with mean 0 and variance 1. */
static void standardise(const double *features, int64_t n, int p, double *out)
{
    for (int j = 0; j < p; j++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n; i++)
            mean += features[i * p + j] / (double)n;
        for (int64_t i = 0; i < n; i++)
            square += pow(features[i * p + j] - mean, 2) / (double)n;
        for (int64_t i = 0; i < n; i++)
            out[i * p + j] = square > 0 ? (features[i * p + j] - mean) / sqrt(square) : 0;
    }
}

bool blind_scores(const double *features, int64_t n, int p, const bool *member, int folds,
                  double *scores, struct err *err)
{
    double weights[MOST_FEATURES + 1];
    double *x = malloc((size_t)n * (size_t)p * sizeof *x);
    int *fold = malloc((size_t)n * sizeof *fold);
    bool *use = calloc((size_t)n, sizeof *use);
    bool ok = (x && fold && use) || err_memory(err, "the blind baseline");
    if (ok)
        standardise(features, n, p, x);
    for (int64_t i = 0, counts[2] = { 0 }; ok && i < n; i++)
        fold[i] = (int)(counts[member[i]]++ % folds);
    for (int f = 0; ok && f < folds; f++) {
        for (int64_t i = 0; i < n; i++)
            use[i] = fold[i] != f;
        ok = blind_fit(x, n, p, member, use, weights, err);
        for (int64_t i = 0; ok && i < n; i++)
            if (fold[i] == f)
                scores[i] = predict(x + i * p, weights, p);
    }
    free(x);
    free(fold);
    free(use);
    return ok;
}
