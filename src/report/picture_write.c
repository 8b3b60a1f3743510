/* picture_write.c: heatmaps as PNG with a palette, outlines and marks as SVG (picture.h). */
#include <math.h>
#include <stdio.h>
#include "base/file.h"
#include "heatmap/colour_map.h"
#include "report/picture.h"
#include "base/outline.h"

#define LEAST_SHEER 30 /* of 255: opacity of a score of 0 over a slide */

bool picture_write_heat(const char *path, const struct image *heat, bool sheer, struct err *err)
{
    struct image_colour colours[256] = { { 0 } };
    for (int i = 1; i < 256; i++) {
        uint8_t rgb[3];
        double score = (i - 1) / 254.0;
        colour_map(score, rgb);
        long alpha = sheer ? lround(LEAST_SHEER + (255 - LEAST_SHEER) * score) : 255;
        colours[i] = (struct image_colour){ rgb[0], rgb[1], rgb[2], (uint8_t)alpha };
    }
    return image_write_png_palette(path, heat, colours, err);
}

static void begin_svg(FILE *stream, int64_t width, int64_t height)
{
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %lld %lld\" width=\"%lld\" "
            "height=\"%lld\">\n",
            (long long)width, (long long)height, (long long)width, (long long)height);
}

static void put_path(FILE *stream, const struct outline *outline, const char *colour, int width)
{
    fprintf(stream, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%d\" d=\"", colour, width);
    for (int64_t r = 0; r < outline->n_rings; r++) {
        const struct outline_point *points = outline->points + outline->rings[r].first;
        for (int64_t i = 0; i < outline->rings[r].n; i++)
            fprintf(stream, "%c%d %d", i ? 'L' : 'M', points[i].x, points[i].y);
        fputs("Z\n", stream);
    }
    fputs("\"/>\n", stream);
}

bool picture_write_outline(const char *path, const struct image *mask, const char *colour,
                           struct err *err)
{
    struct outline outline = { 0 };
    struct file_out out;
    if (!outline_trace(mask, &outline, err))
        return false;
    if (!file_out_open(&out, path, err)) {
        outline_free(&outline);
        return false;
    }
    begin_svg(out.stream, mask->width, mask->height);
    put_path(out.stream, &outline, colour, 2);
    fputs("</svg>\n", out.stream);
    outline_free(&outline);
    return file_out_commit(&out, err);
}

/* The outline of the pixels of one value, edged with black to be seen over its own colour. */
static bool put_class(FILE *stream, const struct image *classes, int value, const uint8_t rgb[3],
                      struct err *err)
{
    struct image mask = { 0 };
    struct outline outline = { 0 };
    char colour[16];
    snprintf(colour, sizeof colour, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
    bool ok = image_new(&mask, classes->width, classes->height, 1, err);
    for (int64_t i = 0; ok && i < classes->width * classes->height; i++)
        mask.px[i] = classes->px[i] == value;
    ok = ok && outline_trace(&mask, &outline, err);
    if (ok && outline.n_rings > 0) {
        put_path(stream, &outline, "#000", 4);
        put_path(stream, &outline, colour, 2);
    }
    outline_free(&outline);
    image_free(&mask);
    return ok;
}

bool picture_write_class_outlines(const char *path, const struct image *classes,
                                  const uint8_t (*colours)[3], int n, struct err *err)
{
    struct file_out out;
    bool ok = true;
    if (!file_out_open(&out, path, err))
        return false;
    begin_svg(out.stream, classes->width, classes->height);
    for (int i = 0; ok && i < n; i++)
        ok = put_class(out.stream, classes, i, colours[i], err);
    fputs("</svg>\n", out.stream);
    if (ok)
        return file_out_commit(&out, err);
    file_out_discard(&out);
    return false;
}

bool picture_write_marks(const char *path, int64_t width, int64_t height,
                         const struct picture_mark *marks, size_t n, struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    double radius = (double)(width > height ? width : height) / 70;
    begin_svg(out.stream, width, height);
    fprintf(
        out.stream,
        "<g fill=\"none\" font-family=\"sans-serif\" font-weight=\"bold\" font-size=\"%.1f\">\n",
        1.6 * radius);
    for (size_t i = 0; i < n; i++)
        fprintf(out.stream,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" stroke=\"#fff\" stroke-width=\"4\"/>"
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" stroke=\"#d00060\" stroke-width=\"2\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" fill=\"#d00060\" stroke=\"#fff\" stroke-width=\"3\" "
                "paint-order=\"stroke\">%zu</text>\n",
                marks[i].x, marks[i].y, radius, marks[i].x, marks[i].y, radius,
                marks[i].x + 1.2 * radius, marks[i].y - 0.6 * radius, i + 1);
    fputs("</g>\n</svg>\n", out.stream);
    return file_out_commit(&out, err);
}
