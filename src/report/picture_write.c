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
    fprintf(out.stream, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", colour);
    for (int64_t r = 0; r < outline.n_rings; r++) {
        const struct outline_point *points = outline.points + outline.rings[r].first;
        for (int64_t i = 0; i < outline.rings[r].n; i++)
            fprintf(out.stream, "%c%d %d", i ? 'L' : 'M', points[i].x, points[i].y);
        fputs("Z\n", out.stream);
    }
    fputs("\"/>\n</svg>\n", out.stream);
    outline_free(&outline);
    return file_out_commit(&out, err);
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
