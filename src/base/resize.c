/* resize.c: image_resize (image.h): two passes of the triangle filter. */
#include "base/image.h"

#include <math.h>
#include <stdlib.h>

/* The source cells that make up one target cell, and their weights. */
struct taps {
    int64_t first, n;
    float *shares; /* [n], sum 1 */
};

static bool taps_new(int64_t source_n, int64_t target_n, struct taps **out, struct err *err)
{
    double ratio = (double)source_n / (double)target_n;
    double support = ratio > 1 ? ratio : 1; /* half the width of the triangle */
    int64_t room = (int64_t)ceil(support) * 2 + 2;
    struct taps *taps = malloc((size_t)target_n * sizeof *taps);
    float *shares = taps ? malloc((size_t)(target_n * room) * sizeof *shares) : NULL;
    if (!shares) {
        free(taps);
        return err_memory(err, "resizing an image");
    }
    for (int64_t i = 0; i < target_n; i++) {
        double centre = ((double)i + 0.5) * ratio;
        int64_t first = (int64_t)fmax(0, floor(centre - support + 0.5));
        int64_t end = (int64_t)fmin((double)source_n, floor(centre + support + 0.5));
        double sum = 0;
        taps[i] = (struct taps){ first, end - first, shares + i * room };
        for (int64_t k = first; k < end; k++)
            sum += fmax(0, 1 - fabs(((double)k + 0.5 - centre) / support));
        for (int64_t k = first; k < end; k++)
            taps[i].shares[k - first] =
                (float)(fmax(0, 1 - fabs(((double)k + 0.5 - centre) / support)) / sum);
    }
    *out = taps;
    return true;
}

static void taps_free(struct taps *taps)
{
    if (taps)
        free(taps[0].shares);
    free(taps);
}

/* source px with `step` bytes from tap to tap */
static uint8_t weigh(const struct taps *taps, const uint8_t *px, int64_t step)
{
    float sum = 0.5f;
    for (int64_t k = 0; k < taps->n; k++)
        sum += taps->shares[k] * (float)px[k * step];
    return (uint8_t)sum;
}

static void resize_rows(const struct image *source, const struct taps *taps, struct image *out)
{
    for (int64_t y = 0; y < out->height; y++)
        for (int64_t x = 0; x < out->width; x++)
            for (int c = 0; c < out->channels; c++)
                image_at(out, x, y)[c] =
                    weigh(&taps[x], image_at(source, taps[x].first, y) + c, source->channels);
}

static void resize_columns(const struct image *source, const struct taps *taps, struct image *out)
{
    for (int64_t y = 0; y < out->height; y++)
        for (int64_t i = 0; i < out->width * out->channels; i++)
            image_at(out, 0, y)[i] = weigh(&taps[y], image_at(source, 0, taps[y].first) + i,
                                           source->width * source->channels);
}

bool image_resize(const struct image *source, int64_t width, int64_t height, struct image *out,
                  struct err *err)
{
    struct taps *columns = NULL, *rows = NULL;
    struct image wide = { 0 };
    *out = (struct image){ 0 };
    bool ok = image_new(&wide, width, source->height, source->channels, err) &&
              image_new(out, width, height, source->channels, err) &&
              taps_new(source->width, width, &columns, err) &&
              taps_new(source->height, height, &rows, err);
    if (ok) {
        resize_rows(source, columns, &wide);
        resize_columns(&wide, rows, out);
    } else {
        image_free(out);
    }
    taps_free(columns);
    taps_free(rows);
    image_free(&wide);
    return ok;
}
