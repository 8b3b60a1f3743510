/* picture_write.c: heatmaps as PNG with a palette, outlines and marks as SVG (picture.h). */
#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include "base/file.h"
#include "heatmap/colour_map.h"
#include "report/picture.h"
#include "tissue/outline.h"

#define LEAST_SHEER 30 /* of 255: how much a score of 0 shows when it lies over a slide */

struct png_failure {
    jmp_buf jump;
    char text[256];
};

static void on_error(png_structp png, png_const_charp text)
{
    struct png_failure *failure = png_get_error_ptr(png);
    snprintf(failure->text, sizeof failure->text, "%s", text);
    longjmp(failure->jump, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void set_palette(png_structp png, png_infop info, bool sheer)
{
    png_color colours[256] = { { 0 } };
    png_byte alpha[256] = { 0 };
    for (int i = 1; i < 256; i++) {
        uint8_t rgb[3];
        double score = (i - 1) / 254.0;
        colour_map(score, rgb);
        colours[i] = (png_color){ rgb[0], rgb[1], rgb[2] };
        alpha[i] = sheer ? (png_byte)lround(LEAST_SHEER + (255 - LEAST_SHEER) * score) : 255;
    }
    png_set_PLTE(png, info, colours, 256);
    png_set_tRNS(png, info, alpha, 256, NULL);
}

static bool write_open_heat(FILE *stream, const char *path, const struct image *heat, bool sheer,
                            struct err *err)
{
    struct png_failure failure = { .text = "" };
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return err_memory(err, path);
    }
    if (setjmp(failure.jump)) {
        png_destroy_write_struct(&png, &info);
        return err_set(err, ERR_IO, "%s: cannot write: %s", path, failure.text);
    }
    png_init_io(png, stream);
    png_set_IHDR(png, info, (png_uint_32)heat->width, (png_uint_32)heat->height, 8,
                 PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    set_palette(png, info, sheer);
    png_write_info(png, info);
    for (int64_t y = 0; y < heat->height; y++)
        png_write_row(png, image_at(heat, 0, y));
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return true;
}

bool picture_write_heat(const char *path, const struct image *heat, bool sheer, struct err *err)
{
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    if (!write_open_heat(out.stream, path, heat, sheer, err)) {
        file_out_discard(&out);
        return false;
    }
    return file_out_commit(&out, err);
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
