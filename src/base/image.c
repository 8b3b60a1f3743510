/* image.c: see image.h. PNG files are in png.c. */
#include "base/image.h"

#include <math.h>
#include <stdlib.h>

bool image_new(struct image *image, int64_t width, int64_t height, int channels, struct err *err)
{
    size_t bytes = 0;
    *image = (struct image){ .width = width, .height = height, .channels = channels };
    if (width < 1 || height < 1 || __builtin_mul_overflow((size_t)width, (size_t)height, &bytes) ||
        __builtin_mul_overflow(bytes, (size_t)channels, &bytes) || bytes > (size_t)INT64_MAX)
        return err_set(err, ERR_FORMAT, "an image of %lld x %lld px is empty or too large",
                       (long long)width, (long long)height);
    image->px = calloc(bytes, 1);
    return image->px ? true : err_memory(err, "an image");
}

void image_free(struct image *image)
{
    free(image->px);
    *image = (struct image){ 0 };
}

size_t image_bytes(const struct image *image)
{
    return (size_t)image->width * (size_t)image->height * (size_t)image->channels;
}

/* The source cells under target cell i of n, and the fractions of the first and the last. */
struct span {
    int64_t first, last;
    double first_share, last_share;
};

static struct span span_of(int64_t i, int64_t n, int64_t source_n)
{
    double ratio = (double)source_n / (double)n;
    double begin = (double)i * ratio, end = (double)(i + 1) * ratio;
    struct span span = { .first = (int64_t)begin, .last = (int64_t)ceil(end) - 1 };
    if (span.last >= source_n)
        span.last = source_n - 1;
    if (span.first > span.last)
        span.first = span.last;
    span.first_share = (double)(span.first + 1) - begin;
    span.last_share = end - (double)span.last;
    if (span.first == span.last)
        span.first_share = span.last_share = end - begin;
    return span;
}

static double share_at(const struct span *span, int64_t at)
{
    return at == span->first ? span->first_share : at == span->last ? span->last_share : 1;
}

static void shrink_pixel(const struct image *source, const struct span *rows,
                         const struct span *columns, uint8_t *out)
{
    double sum[4] = { 0 }, weight = 0;
    for (int64_t y = rows->first; y <= rows->last; y++) {
        const uint8_t *px = image_at(source, columns->first, y);
        double row_share = share_at(rows, y);
        for (int64_t x = columns->first; x <= columns->last; x++) {
            double share = row_share * share_at(columns, x);
            weight += share;
            for (int c = 0; c < source->channels; c++)
                sum[c] += share * *px++;
        }
    }
    for (int c = 0; c < source->channels; c++)
        out[c] = (uint8_t)(sum[c] / weight + 0.5);
}

bool image_shrink(const struct image *source, int64_t width, int64_t height, struct image *out,
                  struct err *err)
{
    if (!image_new(out, width, height, source->channels, err))
        return false;
    for (int64_t y = 0; y < height; y++) {
        struct span rows = span_of(y, height, source->height);
        for (int64_t x = 0; x < width; x++) {
            struct span columns = span_of(x, width, source->width);
            shrink_pixel(source, &rows, &columns, image_at(out, x, y));
        }
    }
    return true;
}
