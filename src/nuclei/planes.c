/* planes.c: see planes.h. */
#include "nuclei/planes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The index that i stands for when the line continues mirrored beyond its ends: d c b a|a b c d. */
static int64_t mirrored(int64_t i, int64_t n)
{
    while (i < 0 || i >= n)
        i = i < 0 ? -1 - i : 2 * n - 1 - i;
    return i;
}

/* weights [radius + 1]: of the middle, and of the pixels k away on either side. */
static void fill_weights(double sigma, int64_t radius, float *weights)
{
    double sum = 1;
    for (int64_t k = 1; k <= radius; k++)
        sum += 2 * exp(-0.5 * (double)(k * k) / (sigma * sigma));
    for (int64_t k = 0; k <= radius; k++)
        weights[k] = (float)(exp(-0.5 * (double)(k * k) / (sigma * sigma)) / sum);
}

static void scale(float *restrict to, const float *restrict from, float weight, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = weight * from[i];
}

static void add_both(float *restrict to, const float *restrict before, const float *restrict after,
                     float weight, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += weight * (before[i] + after[i]);
}

/* line [width + 2 radius]: room. */
static void smooth_row(const float *from, float *to, int64_t width, const float *weights,
                       int64_t radius, float *line)
{
    for (int64_t x = 0; x < radius; x++) {
        line[x] = from[mirrored(x - radius, width)];
        line[radius + width + x] = from[mirrored(width + x, width)];
    }
    memcpy(line + radius, from, (size_t)width * sizeof *line);
    scale(to, from, weights[0], width);
    for (int64_t k = 1; k <= radius; k++)
        add_both(to, line + radius - k, line + radius + k, weights[k], width);
}

bool planes_smooth(float *plane, float *room, int64_t width, int64_t height, double sigma_px,
                   struct err *err)
{
    int64_t radius = (int64_t)(4 * sigma_px + 0.5);
    if (radius < 1)
        return true;
    float *weights = malloc((size_t)(radius + 1) * sizeof *weights);
    float *line = malloc((size_t)(width + 2 * radius) * sizeof *line);
    bool ok = weights && line;
    if (!ok) {
        err_memory(err, "a smoothed image");
        goto done;
    }
    fill_weights(sigma_px, radius, weights);
    for (int64_t y = 0; y < height; y++)
        smooth_row(plane + y * width, room + y * width, width, weights, radius, line);
    for (int64_t y = 0; y < height; y++) {
        scale(plane + y * width, room + y * width, weights[0], width);
        for (int64_t k = 1; k <= radius; k++)
            add_both(plane + y * width, room + mirrored(y - k, height) * width,
                     room + mirrored(y + k, height) * width, weights[k], width);
    }
done:
    free(line);
    free(weights);
    return ok;
}

/* Values are counted in steps of 1 / STEPS, up to LARGEST. */
#define STEPS 4096.0F
#define LARGEST 15.0F

/* Of some pixels of tissue, those below the threshold [0] and above it [1]: how many, and their
 * sum. */
struct sums {
    int64_t n[2], value[2];
};

/* A plane on its way to a mask. */
struct division {
    const float *plane;
    const struct image *skip, *mask;
    const struct planes_threshold *threshold;
    struct sums *columns; /* [width]: of the rows in the window */
};

static void add_row(struct division *d, int64_t y, int64_t sign)
{
    int64_t width = d->skip->width;
    const float *plane = d->plane + y * width;
    const uint8_t *skip = image_at(d->skip, 0, y), *mask = image_at(d->mask, 0, y);
    for (int64_t x = 0; x < width; x++) {
        if (skip[x])
            continue;
        float held = plane[x] < LARGEST ? plane[x] : LARGEST;
        int above = mask[x] != 0;
        d->columns[x].n[above] += sign;
        d->columns[x].value[above] += sign * (int64_t)(held * STEPS + 0.5F);
    }
}

static void add_column(struct sums *window, const struct sums *column, int64_t sign)
{
    for (int k = 0; k < 2; k++) {
        window->n[k] += sign * column->n[k];
        window->value[k] += sign * column->value[k];
    }
}

/* Without pixels above, the mean. */
static double threshold_of(const struct sums *w, const struct planes_threshold *t)
{
    double below = w->n[0] ? (double)w->value[0] / (double)w->n[0] / (double)STEPS : 0;
    double above = w->n[1] ? (double)w->value[1] / (double)w->n[1] / (double)STEPS : below;
    double gap = t->share * (above - below);
    double level = below + (gap > t->contrast ? gap : t->contrast);
    return level > t->least ? level : t->least;
}

/* next [height, width, 1]: the pixels above the threshold of the classes of d->mask. */
static void divide_again(struct division *d, struct image *next)
{
    int64_t width = d->skip->width, height = d->skip->height, half = d->threshold->half_px;
    memset(d->columns, 0, (size_t)width * sizeof *d->columns);
    for (int64_t y = 0; y < half && y < height; y++)
        add_row(d, y, 1);
    for (int64_t y = 0; y < height; y++) {
        if (y + half < height)
            add_row(d, y + half, 1);
        if (y - half - 1 >= 0)
            add_row(d, y - half - 1, -1);
        struct sums window = { 0 };
        for (int64_t x = 0; x < half && x < width; x++)
            add_column(&window, &d->columns[x], 1);
        for (int64_t x = 0; x < width; x++) {
            if (x + half < width)
                add_column(&window, &d->columns[x + half], 1);
            if (x - half - 1 >= 0)
                add_column(&window, &d->columns[x - half - 1], -1);
            int64_t at = y * width + x;
            bool above = (double)d->plane[at] > threshold_of(&window, d->threshold);
            next->px[at] = above && !d->skip->px[at] ? 255 : 0;
        }
    }
}

bool planes_above_local(const float *plane, const struct image *skip,
                        const struct planes_threshold *threshold, struct image *mask,
                        struct err *err)
{
    struct image next = { 0 };
    struct division d = { plane, skip, mask, threshold, NULL };
    d.columns = malloc((size_t)skip->width * sizeof *d.columns);
    bool ok = d.columns || err_memory(err, "a local threshold");
    ok = ok && image_new(&next, skip->width, skip->height, 1, err);
    if (ok)
        memset(mask->px, 0, image_bytes(mask));
    for (int round = 0; ok && round <= threshold->rounds; round++) {
        divide_again(&d, &next);
        memcpy(mask->px, next.px, image_bytes(mask));
    }
    image_free(&next);
    free(d.columns);
    return ok;
}

/* away [height, width]: px to the nearest pixel of its column that is 0, at most cap. */
static void column_distances(const struct image *mask, int32_t cap, int32_t *away)
{
    int64_t width = mask->width, height = mask->height;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            int32_t above = y > 0 ? away[(y - 1) * width + x] + 1 : cap;
            away[y * width + x] = !mask->px[y * width + x] ? 0 : above < cap ? above : cap;
        }
    for (int64_t y = height - 2; y >= 0; y--)
        for (int64_t x = 0; x < width; x++) {
            int32_t below = away[(y + 1) * width + x] + 1;
            if (below < away[y * width + x])
                away[y * width + x] = below;
        }
}

/* The lower envelope of the parabolas (x - i)^2 + away[i]^2 (Felzenszwalb and Huttenlocher 2012).
 * place [width], from [width + 1]: room. */
static void row_distances(const int32_t *away, int64_t width, double cap, int64_t *place,
                          double *from, float *out)
{
    int64_t k = 0;
    place[0] = 0, from[0] = -INFINITY, from[1] = INFINITY;
    for (int64_t i = 1; i < width; i++) {
        double own = (double)away[i] * away[i] + (double)i * (double)i, meet;
        for (;;) {
            int64_t j = place[k];
            double other = (double)away[j] * away[j] + (double)j * (double)j;
            meet = (own - other) / (2.0 * (double)(i - j));
            if (meet > from[k])
                break;
            k--;
        }
        place[++k] = i, from[k] = meet, from[k + 1] = INFINITY;
    }
    k = 0;
    for (int64_t x = 0; x < width; x++) {
        while (from[k + 1] < (double)x)
            k++;
        int64_t gap = x - place[k];
        double distance = sqrt((double)(gap * gap) + (double)away[place[k]] * away[place[k]]);
        out[x] = (float)(distance < cap ? distance : cap);
    }
}

bool planes_distance(const struct image *mask, double cap_px, float *out, struct err *err)
{
    int64_t width = mask->width, height = mask->height;
    int32_t *away = malloc((size_t)(width * height) * sizeof *away);
    int64_t *place = malloc((size_t)width * sizeof *place);
    double *from = malloc((size_t)(width + 1) * sizeof *from);
    bool ok = away && place && from;
    if (ok) {
        column_distances(mask, (int32_t)ceil(cap_px), away);
        for (int64_t y = 0; y < height; y++)
            row_distances(away + y * width, width, cap_px, place, from, out + y * width);
    } else
        err_memory(err, "distances to the edge");
    free(from);
    free(place);
    free(away);
    return ok;
}
