/* features_power.c: the power spectrum of a patch in octaves, and how much of it is at the very
 * frequencies of upsampling by two and four (features_parts.h). Means over tiles of at most 64 px,
 * so that sizes compare and large patches are affordable. */
#include <math.h>
#include <stdlib.h>
#include "likeness/features_parts.h"

#define TILE_PX 64
#define TWO_PI 6.283185307179586
#define N_BANDS 5 /* corners beyond 1/2, then octaves from periods of 2 to 4 px to 16 to 32 px */

/* Of all tiles of a plane. */
struct spectrum {
    double bands[N_BANDS]; /* mean power */
    double two, four;      /* mean power at periods of exactly 2 and 4 px */
};

struct tiles {
    int64_t side;
    double window[TILE_PX];  /* Hann's, of one direction */
    double wave[2][TILE_PX]; /* cos and sin of 2 pi i / side */
    double scale, weight;    /* 1 / sum of the squares of the window, and 1 / its sum */
    double part[TILE_PX * TILE_PX];
    double rows[2][TILE_PX * TILE_PX]; /* real and imaginary part, [side, side / 2 + 1] */
};

static void tiles_begin(const struct feature_planes *planes, struct tiles *tiles)
{
    int64_t side = planes->width < planes->height ? planes->width : planes->height;
    tiles->side = side < TILE_PX ? side : TILE_PX;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < tiles->side; i++) {
        double turn = TWO_PI / (double)tiles->side, w = 0.5 - 0.5 * cos(turn * ((double)i + 0.5));
        tiles->window[i] = w;
        tiles->wave[0][i] = cos(turn * (double)i);
        tiles->wave[1][i] = sin(turn * (double)i);
        sum += w;
        squares += w * w;
    }
    tiles->weight = 1 / (sum * sum);
    tiles->scale = 1 / (squares * squares);
}

/* Copies a tile, its weighted mean subtracted, and windows it. */
static void cut_tile(const struct feature_planes *planes, const double *plane, int64_t left,
                     int64_t top, struct tiles *tiles)
{
    int64_t side = tiles->side;
    double mean = 0;
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++)
            mean += plane[(top + y) * planes->width + left + x] * tiles->window[y] *
                    tiles->window[x] * tiles->weight;
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++)
            tiles->part[y * side + x] = (plane[(top + y) * planes->width + left + x] - mean) *
                                        tiles->window[y] * tiles->window[x];
}

/* The Fourier transform of each row. */
static void transform_rows(struct tiles *tiles)
{
    int64_t side = tiles->side, half = side / 2 + 1;
    for (int64_t y = 0; y < side; y++)
        for (int64_t k = 0; k < half; k++) {
            double real = 0, imaginary = 0;
            for (int64_t x = 0, phase = 0; x < side; x++) {
                real += tiles->part[y * side + x] * tiles->wave[0][phase];
                imaginary -= tiles->part[y * side + x] * tiles->wave[1][phase];
                phase = phase + k < side ? phase + k : phase + k - side;
            }
            tiles->rows[0][y * half + k] = real;
            tiles->rows[1][y * half + k] = imaginary;
        }
}

/* Power at column k of the rows' transform and row frequency q. */
static double power_of(const struct tiles *tiles, int64_t k, int64_t q)
{
    int64_t side = tiles->side, half = side / 2 + 1;
    double real = 0, imaginary = 0;
    for (int64_t y = 0, phase = 0; y < side; y++) {
        double a = tiles->rows[0][y * half + k], b = tiles->rows[1][y * half + k];
        double c = tiles->wave[0][phase], s = tiles->wave[1][phase];
        real += a * c + b * s;
        imaginary += b * c - a * s;
        phase = phase + q < side ? phase + q : phase + q - side;
    }
    return (real * real + imaginary * imaginary) * tiles->scale;
}

/* The band of a frequency in cycles per px; -1: lower than all. */
static int band_of(double fx, double fy)
{
    double radius = sqrt(fx * fx + fy * fy) + 1e-12, low = 0.5;
    for (int band = 0; band < N_BANDS; band++, low /= 2)
        if (radius >= low)
            return band;
    return -1;
}

static void add_bands(struct tiles *tiles, double sums[N_BANDS], double counts[N_BANDS])
{
    int64_t side = tiles->side;
    transform_rows(tiles);
    for (int64_t k = 0; k <= side / 2; k++)
        for (int64_t q = 0; q < side; q++) {
            double fy = (double)(q < side - q ? q : side - q) / (double)side;
            int band = band_of((double)k / (double)side, fy);
            double times = k == 0 || 2 * k == side ? 1 : 2; /* and its mirror image */
            if (band < 0)
                continue;
            sums[band] += times * power_of(tiles, k, q);
            counts[band] += times;
        }
}

/* Power at qx / 4 and qy / 4 cycles per px. */
static double power_at(const struct tiles *tiles, int64_t qx, int64_t qy)
{
    static const int cosine[4] = { 1, 0, -1, 0 }, sine[4] = { 0, 1, 0, -1 };
    double real = 0, imaginary = 0;
    for (int64_t y = 0; y < tiles->side; y++)
        for (int64_t x = 0; x < tiles->side; x++) {
            double value = tiles->part[y * tiles->side + x];
            real += value * cosine[(qx * x + qy * y) % 4];
            imaginary += value * sine[(qx * x + qy * y) % 4];
        }
    return (real * real + imaginary * imaginary) * tiles->scale;
}

static void add_grids(const struct tiles *tiles, struct spectrum *out)
{
    out->two += (power_at(tiles, 2, 0) + power_at(tiles, 0, 2) + power_at(tiles, 2, 2)) / 3;
    out->four += (power_at(tiles, 1, 0) + power_at(tiles, 0, 1) + power_at(tiles, 1, 1) +
                  power_at(tiles, 1, 2) + power_at(tiles, 2, 1)) /
                 5;
}

/* Where tile i of n begins: they are spread evenly from border to border. */
static int64_t tile_start(int64_t i, int64_t n, int64_t side, int64_t tile)
{
    return n == 1 ? 0 : i * (side - tile) / (n - 1);
}

static struct spectrum spectrum_of(const struct feature_planes *planes, const double *plane,
                                   struct tiles *tiles)
{
    struct spectrum out = { 0 };
    double sums[N_BANDS] = { 0 }, counts[N_BANDS] = { 0 };
    int64_t side = tiles->side, across = (planes->width + side - 1) / side;
    int64_t down = (planes->height + side - 1) / side;
    for (int64_t i = 0; i < across * down; i++) {
        cut_tile(planes, plane, tile_start(i % across, across, planes->width, side),
                 tile_start(i / across, down, planes->height, side), tiles);
        add_bands(tiles, sums, counts);
        add_grids(tiles, &out);
    }
    for (int band = 0; band < N_BANDS; band++)
        out.bands[band] = sums[band] / counts[band];
    out.two /= (double)(across * down);
    out.four /= (double)(across * down);
    return out;
}

double *features_of_power(const struct feature_planes *planes, double *out, struct err *err)
{
    struct tiles *tiles = malloc(sizeof *tiles);
    if (!tiles) {
        err_memory(err, "the features of a patch");
        return NULL;
    }
    tiles_begin(planes, tiles);
    struct spectrum grey = spectrum_of(planes, planes->grey, tiles);
    for (int64_t i = 0; i < planes->n; i++)
        planes->room[i] = planes->rgb[0][i] - planes->rgb[2][i];
    struct spectrum chroma = spectrum_of(planes, planes->room, tiles);
    free(tiles);
    for (int band = 0; band < N_BANDS; band++)
        *out++ = feature_log_power(grey.bands[band]);
    *out++ = feature_log_power(chroma.bands[1]);
    *out++ = feature_log_power(chroma.bands[2]);
    *out++ = feature_log_power(grey.two) - feature_log_power(grey.bands[1]);
    *out++ = feature_log_power(grey.four) - feature_log_power((grey.bands[1] + grey.bands[2]) / 2);
    return out;
}
