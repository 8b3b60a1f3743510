/* attribution.c: maps as numbers: room for them, another size, a scale from 0 (or -1) to 1. */
#include <math.h>
#include <stdlib.h>
#include "explain/explainer.h"

bool attribution_new(int64_t height, int64_t width, struct attribution *out, struct err *err)
{
    *out = (struct attribution){ height, width, NULL };
    out->values = calloc((size_t)height * (size_t)width, sizeof *out->values);
    return out->values || err_memory(err, "map");
}

void attribution_free(struct attribution *map)
{
    free(map->values);
    *map = (struct attribution){ 0 };
}

/* Where a pixel of the new extent lies between two of the old one. */
struct between {
    int64_t low, high;
    float share; /* of high */
};

static struct between between(int64_t i, int64_t from, int64_t to)
{
    double at = ((double)i + 0.5) * (double)from / (double)to - 0.5;
    at = at < 0 ? 0 : at;
    int64_t low = (int64_t)at;
    low = low < from - 1 ? low : from - 1;
    return (struct between){ low, low + (low < from - 1), (float)(at - (double)low) };
}

void attribution_resize(const struct attribution *map, int64_t height, int64_t width, float *out)
{
    for (int64_t y = 0; y < height; y++) {
        struct between row = between(y, map->height, height);
        const float *above = map->values + row.low * map->width;
        const float *below = map->values + row.high * map->width;
        for (int64_t x = 0; x < width; x++) {
            struct between column = between(x, map->width, width);
            float top = above[column.low] + column.share * (above[column.high] - above[column.low]);
            float low = below[column.low] + column.share * (below[column.high] - below[column.low]);
            out[y * width + x] = top + row.share * (low - top);
        }
    }
}

void attribution_normalize(float *values, int64_t n, bool positive)
{
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (positive && values[i] < 0)
            values[i] = 0;
        float size = positive ? values[i] : fabsf(values[i]);
        least = size < least ? size : least, most = size > most ? size : most;
    }
    float zero = positive ? least : 0, range = most - zero;
    bool constant = !(range > 0) || (!positive && n > 0 && !(most > 0));
    for (int64_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            values[i] = constant ? 0 : (values[i] - zero) / range;
}
