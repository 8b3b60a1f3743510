/* image_rows.c: what the readers of plain images share (image_rows.h). */
#include "slide/image_rows.h"

#include <stdio.h>
#include <string.h>
#include "slide/tiff_file.h"

#define MOST_IMAGE_MPP 10.0 /* 2540 dpi; printers and screens have fewer */
#define LEAST_IMAGE_MPP 0.01

const struct image_format *image_format_of(const char *path)
{
    static const char png[4] = "\x89PNG", jpeg[3] = "\xff\xd8\xff";
    char head[4] = { 0 };
    FILE *stream = fopen(path, "rb");
    size_t n = stream ? fread(head, 1, sizeof head, stream) : 0;
    if (stream)
        fclose(stream);
    return n < sizeof head                        ? NULL
           : memcmp(head, png, sizeof png) == 0   ? &image_png
           : memcmp(head, jpeg, sizeof jpeg) == 0 ? &image_jpeg
           : tiff_file_begins(head, sizeof head)  ? &image_strips
                                                  : NULL;
}

/* A sample over white. */
static uint8_t over_white(int sample, int alpha, bool premultiplied)
{
    int px =
        premultiplied ? sample + 255 - alpha : (sample * alpha + 255 * (255 - alpha) + 127) / 255;
    return (uint8_t)(px < 255 ? px : 255);
}

void image_row_to_rgb(const uint8_t *from, int channels, bool premultiplied, int64_t n,
                      uint8_t *rgb)
{
    if (channels == 3) {
        memcpy(rgb, from, (size_t)(3 * n));
        return;
    }
    bool colour = channels >= 3, clear = channels % 2 == 0;
    for (int64_t i = 0; i < n; i++, from += channels, rgb += 3) {
        int alpha = clear ? from[channels - 1] : 255;
        for (int c = 0; c < 3; c++)
            rgb[c] = over_white(from[colour ? c : 0], alpha, premultiplied);
    }
}

bool image_row_failed(int64_t row, int64_t height, const char *why, struct err *err)
{
    return err_set(err, ERR_FORMAT, "row %lld of %lld: %s", (long long)row, (long long)height, why);
}

bool image_check_whole(const char *path, const char *kind, int64_t width, int64_t height,
                       struct err *err)
{
    if (width <= IMAGE_WHOLE_MAX_PX / height)
        return true;
    return err_set(err, ERR_FORMAT,
                   "%s: is %s, which can only be read as a whole, and has %.0f megapixels (at most "
                   "%.0f); convert it, for example: vips tiffsave %s slide.tif --tile --pyramid "
                   "--compression jpeg -Q 90",
                   path, kind, (double)width * (double)height / (1 << 20),
                   (double)IMAGE_WHOLE_MAX_PX / (1 << 20), path);
}

bool image_check_orientation(const char *path, int orientation, struct err *err)
{
    if (orientation < 2 || orientation > 8)
        return true;
    return err_set(err, ERR_FORMAT,
                   "%s: its pixels are stored %s (orientation %d), and programs disagree on the "
                   "coordinates of such an image; store it upright: vips autorot %s upright.png",
                   path, orientation < 5 ? "mirrored or upside down" : "turned by 90 degrees",
                   orientation, path);
}

/* A number of `bytes` bytes in EXIF's byte order. */
static size_t exif_number(const uint8_t *at, int bytes, bool little)
{
    size_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[little ? bytes - 1 - i : i];
    return value;
}

int image_exif_orientation(const uint8_t *exif, size_t n)
{
    if (n < 8)
        return 1;
    bool little = exif[0] == 'I';
    size_t at = exif_number(exif + 4, 4, little);
    if (at + 2 > n)
        return 1;
    size_t entries = exif_number(exif + at, 2, little);
    for (at += 2; entries > 0 && at + 12 <= n; at += 12, entries--)
        if (exif_number(exif + at, 2, little) == 0x0112)
            return (int)exif_number(exif + at + 8, 2, little);
    return 1;
}

double image_plausible_mpp(double mpp)
{
    return mpp >= LEAST_IMAGE_MPP && mpp <= MOST_IMAGE_MPP ? mpp : 0;
}
