/* panel.c: see panel.h. */
#include "explain/panel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "explain/explainer.h"
#include "nuclei/planes.h"

#define MOST_SHARE 0.8 /* of the colour, at the highest value */

static const uint8_t hot_line[3] = { 20, 20, 20 };

/* Values 0 to 1 -> green over yellow-green to yellow, far from the pinks and violets of H&E. */
static void warm_colour(double value, double out[3])
{
    static const double low[3] = { 0, 150, 110 }, high[3] = { 255, 235, 0 };
    for (int c = 0; c < 3; c++)
        out[c] = low[c] + value * (high[c] - low[c]);
}

static void cold_colour(double value, double out[3])
{
    static const double low[3] = { 80, 150, 230 }, high[3] = { 0, 40, 200 };
    for (int c = 0; c < 3; c++)
        out[c] = low[c] + value * (high[c] - low[c]);
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The value that has the strongest colour: 99 % of the pixels that are not 0 are lower. Few pixels
 * of maps of gradients are near the highest value; the others would not be seen. */
static bool strongest(const float *map, int64_t n, double *out, struct err *err)
{
    int64_t count = 0;
    float *sizes = malloc((size_t)(n + 1) * sizeof *sizes);
    if (!sizes)
        return err_memory(err, "a map");
    for (int64_t i = 0; i < n; i++)
        if (fabsf(map[i]) > 0)
            sizes[count++] = fabsf(map[i]);
    qsort(sizes, (size_t)count, sizeof *sizes, by_size);
    *out = count > 0 ? (double)sizes[count - 1 - count / 100] : 1;
    free(sizes);
    return true;
}

static void mix(const uint8_t *px, float value, bool positive, uint8_t *out)
{
    double colour[3], size = fmin(fabs((double)value), 1);
    double grey = 0.299 * px[0] + 0.587 * px[1] + 0.114 * px[2];
    if (isnan(value)) { /* paler */
        for (int c = 0; c < 3; c++)
            out[c] = (uint8_t)lround(0.5 * grey + 0.5 * 255);
        return;
    }
    if (positive || value >= 0)
        warm_colour(size, colour);
    else
        cold_colour(size, colour);
    double share = MOST_SHARE * size * sqrt(size); /* of low values the tissue is seen */
    for (int c = 0; c < 3; c++)
        out[c] = (uint8_t)lround(share * colour[c] + (1 - share) * px[c]);
}

bool panel_soften(float *map, int64_t width, int64_t height, bool positive, struct err *err)
{
    int64_t n = width * height, shorter = width < height ? width : height;
    float *room = malloc((size_t)n * sizeof *room);
    bool *seen = malloc((size_t)n * sizeof *seen);
    bool ok = (room && seen) || err_memory(err, "a map");
    for (int64_t i = 0; ok && i < n; i++) {
        seen[i] = !isnan(map[i]);
        map[i] = seen[i] ? map[i] : 0;
    }
    ok = ok && planes_smooth(map, room, width, height, (double)shorter / 64, err);
    for (int64_t i = 0; ok && i < n; i++)
        map[i] = seen[i] ? map[i] : NAN;
    if (ok)
        attribution_normalize(map, n, positive);
    free(room);
    free(seen);
    return ok;
}

bool panel_hottest(const float *map, int64_t width, int64_t height, double hot, struct image *out,
                   struct err *err)
{
    double most = 0;
    if (!image_new(out, width, height, 1, err))
        return false;
    for (int64_t i = 0; i < width * height; i++)
        most = fmax(most, isnan(map[i]) ? 0 : (double)map[i]);
    for (int64_t i = 0; i < width * height; i++)
        out->px[i] = most > 0 && (double)map[i] >= hot * most ? 255 : 0;
    return true;
}

static bool is_hot(const struct image *mask, int64_t x, int64_t y)
{
    return x >= 0 && y >= 0 && x < mask->width && y<mask->height && * image_at(mask, x, y)> 0;
}

/* Are all of the 3 x 3 px around it hot? */
static bool is_inner(const struct image *mask, int64_t x, int64_t y)
{
    bool all = true;
    for (int64_t i = 0; all && i < 9; i++)
        all = is_hot(mask, x + i % 3 - 1, y + i / 3 - 1);
    return all;
}

/* Is it hot, and not alone: in an area that is 3 px wide there? */
static bool is_wide(const struct image *mask, int64_t x, int64_t y)
{
    bool any = false;
    for (int64_t i = 0; !any && is_hot(mask, x, y) && i < 9; i++)
        any = is_inner(mask, x + i % 3 - 1, y + i / 3 - 1);
    return any;
}

/* The pixels just outside of the hottest areas. Single pixels, of which maps of gradients have
 * many, have no line: it would hide them. */
static bool is_line(const struct image *mask, int64_t x, int64_t y)
{
    return !is_hot(mask, x, y) && (is_wide(mask, x - 1, y) || is_wide(mask, x + 1, y) ||
                                   is_wide(mask, x, y - 1) || is_wide(mask, x, y + 1));
}

static void paint(const struct panel *panel, const struct image *mask, double most, int64_t factor,
                  struct image *out)
{
    const struct image *image = panel->image;
    int64_t right = image->width * factor + PANEL_GAP_PX;
    for (int64_t y = 0; y < out->height; y++)
        for (int64_t x = 0; x < image->width * factor; x++) {
            int64_t from_x = x / factor, from_y = y / factor;
            const uint8_t *px = image_at(image, from_x, from_y);
            uint8_t *over = image_at(out, right + x, y);
            memcpy(image_at(out, x, y), px, 3);
            if (is_line(mask, from_x, from_y))
                memcpy(over, hot_line, 3);
            else
                mix(px, (float)((double)panel->map[from_y * image->width + from_x] / most),
                    panel->positive, over);
        }
}

bool panel_write(const char *path, const struct panel *panel, struct err *err)
{
    const struct image *image = panel->image;
    int64_t shorter = image->width < image->height ? image->width : image->height;
    int64_t factor = shorter < PANEL_LEAST_PX ? (PANEL_LEAST_PX + shorter - 1) / shorter : 1;
    struct image mask = { 0 }, out = { 0 };
    double most = 1;
    bool ok =
        strongest(panel->map, image->width * image->height, &most, err) &&
        panel_hottest(panel->map, image->width, image->height, panel->hot, &mask, err) &&
        image_new(&out, 2 * image->width * factor + PANEL_GAP_PX, image->height * factor, 3, err);
    if (ok) {
        memset(out.px, 255, image_bytes(&out));
        paint(panel, &mask, most, factor, &out);
        ok = image_write_png(path, &out, err);
    }
    image_free(&mask);
    image_free(&out);
    return ok;
}
