/* slic.c: an image -> superpixels. Centres start on a grid; each pixel goes to the nearest in
 * colour and place of those within two steps of the grid, centres move to the mean of their pixels,
 * ten times or until nothing changes, as scikit-image does it. */
#include "explain/slic.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "stain/stain_fit.h"
#include "prepare/augment_ops.h"

#define ITERATIONS 10
#define SMALLEST 0.5 /* of the mean size */

struct centre {
    double lab[3], x, y;
    int64_t n;
};

struct slic {
    int64_t width, height, step;
    double (*lab)[3]; /* [height, width], over the compactness */
    double *distance; /* [height, width], to the centre of the label */
    struct centre *centres;
    int64_t n_centres;
    int32_t *labels;
};

struct slic_options slic_defaults(void)
{
    return (struct slic_options){ .segments = 50, .compactness = 20, .smooth_px = 1 };
}

static double lab_curve(double t)
{
    return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116;
}

static void lab_of(const double linear[256], const uint8_t *rgb, double scale, double lab[3])
{
    double f[3];
    for (int row = 0; row < 3; row++) {
        const double *m = stain_xyz_of_rgb[row];
        double xyz = m[0] * linear[rgb[0]] + m[1] * linear[rgb[1]] + m[2] * linear[rgb[2]];
        f[row] = lab_curve(xyz / stain_white_xyz[row]);
    }
    lab[0] = scale * (116 * f[1] - 16);
    lab[1] = scale * 500 * (f[0] - f[1]);
    lab[2] = scale * 200 * (f[1] - f[2]);
}

static bool fill_lab(struct slic *s, const struct image *image, const struct slic_options *options,
                     struct err *err)
{
    struct image smooth = { 0 };
    double linear[256];
    if (!image_new(&smooth, image->width, image->height, 3, err))
        return false;
    memcpy(smooth.px, image->px, image_bytes(image));
    bool ok = options->smooth_px <= 0 || augment_blur(&smooth, options->smooth_px, err);
    if (ok) {
        stain_linear_table(linear);
        for (int64_t i = 0; i < s->width * s->height; i++)
            lab_of(linear, smooth.px + 3 * i, 1 / options->compactness, s->lab[i]);
    }
    image_free(&smooth);
    return ok;
}

/* A line of `length` pixels with a step that need not be whole: its first centre, then whole steps.
 */
struct grid_line {
    int64_t start, step, n;
};

static struct grid_line grid_line(int64_t length, double step)
{
    struct grid_line line = { (int64_t)(step / 2), (int64_t)rint(step), 0 };
    line.step = line.step < 1 ? 1 : line.step;
    line.start = line.start < length ? line.start : length - 1;
    line.n = (length - line.start + line.step - 1) / line.step;
    return line;
}

/* Squares, except where one side is shorter than a square's. */
static void choose_grid(struct slic *s, int64_t segments, struct grid_line *rows,
                        struct grid_line *columns)
{
    double width = (double)s->width, height = (double)s->height, n = (double)segments;
    double step = sqrt(width * height / n), step_x = step, step_y = step;
    if (height < step)
        step_y = height, step_x = width / n;
    else if (width < step)
        step_x = width, step_y = height / n;
    *rows = grid_line(s->height, step_y);
    *columns = grid_line(s->width, step_x);
    s->step = rows->step > columns->step ? rows->step : columns->step;
}

/* All of the same colour, so that pixels first go to the nearest in place: a centre's first colour
 * is the mean of its square, not that of one pixel. */
static bool place_centres(struct slic *s, int64_t segments, struct err *err)
{
    struct grid_line rows, columns;
    choose_grid(s, segments, &rows, &columns);
    s->n_centres = rows.n * columns.n;
    s->centres = calloc((size_t)s->n_centres, sizeof *s->centres);
    if (!s->centres)
        return err_memory(err, "the centres of superpixels");
    for (int64_t i = 0; i < s->n_centres; i++) {
        int64_t y = rows.start + i / columns.n * rows.step;
        int64_t x = columns.start + i % columns.n * columns.step;
        s->centres[i] = (struct centre){ .x = (double)x, .y = (double)y };
    }
    return true;
}

static int64_t at_least(double value, int64_t low)
{
    return value < (double)low ? low : (int64_t)value;
}

static int64_t at_most(double value, int64_t high)
{
    return value > (double)high ? high : (int64_t)value;
}

/* Whether a pixel of the row y got another label. */
static bool assign_row(struct slic *s, int32_t label, int64_t y, int64_t x0, int64_t x1)
{
    const struct centre *c = s->centres + label;
    const double place = 1 / ((double)s->step * (double)s->step);
    const double dy = ((double)y - c->y) * ((double)y - c->y);
    bool changed = false;
    for (int64_t x = x0, i = y * s->width + x0; x < x1; x++, i++) {
        const double *lab = s->lab[i], dx = (double)x - c->x;
        double l = lab[0] - c->lab[0], a = lab[1] - c->lab[1], b = lab[2] - c->lab[2];
        double distance = (dy + dx * dx) * place + (l * l + a * a + b * b);
        if (distance < s->distance[i]) {
            s->distance[i] = distance;
            changed |= s->labels[i] != label;
            s->labels[i] = label;
        }
    }
    return changed;
}

static bool assign_pixels(struct slic *s)
{
    bool changed = false;
    const double reach = (double)(2 * s->step);
    for (int64_t i = 0; i < s->width * s->height; i++)
        s->distance[i] = DBL_MAX;
    for (int64_t k = 0; k < s->n_centres; k++) {
        const struct centre *c = s->centres + k;
        int64_t x0 = at_least(c->x - reach, 0), x1 = at_most(c->x + reach + 1, s->width);
        int64_t y0 = at_least(c->y - reach, 0), y1 = at_most(c->y + reach + 1, s->height);
        for (int64_t y = y0; y < y1; y++)
            changed |= assign_row(s, (int32_t)k, y, x0, x1);
    }
    return changed;
}

/* A centre that lost its pixels stays where it was. */
static void move_centres(struct slic *s, struct centre *sums)
{
    memset(sums, 0, (size_t)s->n_centres * sizeof *sums);
    for (int64_t y = 0, i = 0; y < s->height; y++)
        for (int64_t x = 0; x < s->width; x++, i++) {
            struct centre *sum = sums + s->labels[i];
            sum->n++;
            sum->x += (double)x, sum->y += (double)y;
            for (int k = 0; k < 3; k++)
                sum->lab[k] += s->lab[i][k];
        }
    for (int64_t k = 0; k < s->n_centres; k++) {
        double n = (double)sums[k].n;
        if (!sums[k].n)
            continue;
        s->centres[k] =
            (struct centre){ { sums[k].lab[0] / n, sums[k].lab[1] / n, sums[k].lab[2] / n },
                             sums[k].x / n,
                             sums[k].y / n,
                             0 };
    }
}

static bool cluster(struct slic *s, struct err *err)
{
    struct centre *sums = malloc((size_t)s->n_centres * sizeof *sums);
    if (!sums)
        return err_memory(err, "the centres of superpixels");
    memset(s->labels, 0, (size_t)(s->width * s->height) * sizeof *s->labels);
    for (int i = 0; i < ITERATIONS && assign_pixels(s); i++)
        move_centres(s, sums);
    free(sums);
    return true;
}

bool slic_cluster(const struct image *image, const struct slic_options *options, int32_t *labels,
                  int64_t *n, struct err *err)
{
    struct slic s = { .width = image->width, .height = image->height, .labels = labels };
    const int64_t n_px = image->width * image->height;
    if (options->segments < 1 || !(options->compactness > 0))
        return err_set(err, ERR_USAGE, "%lld superpixels of compactness %g: both must be above 0",
                       (long long)options->segments, options->compactness);
    s.lab = malloc((size_t)n_px * sizeof *s.lab);
    s.distance = malloc((size_t)n_px * sizeof *s.distance);
    bool ok = (s.lab && s.distance) || err_memory(err, "superpixels");
    ok = ok && fill_lab(&s, image, options, err) &&
         place_centres(&s, options->segments < n_px ? options->segments : n_px, err) &&
         cluster(&s, err);
    *n = s.n_centres;
    free(s.lab);
    free(s.distance);
    free(s.centres);
    return ok;
}

bool slic(const struct image *image, const struct slic_options *options, int32_t *labels,
          int64_t *n, struct err *err)
{
    if (!slic_cluster(image, options, labels, n, err))
        return false;
    double mean_px = (double)(image->width * image->height) / (double)*n;
    return slic_connect(image->width, image->height, (int64_t)(SMALLEST * mean_px), labels, n, err);
}
