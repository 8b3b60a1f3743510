/* export_overlay.c: a heatmap -> overlay.png, for viewing: the slide small and in grey, over it in
 * colour the scores of one class where there is tissue or, of more than two classes, the class with
 * the highest score; outlines of the tissue and of the regions that reach the threshold (not of a
 * number, whose colours are of its range) or of the classes, a scale bar and a legend. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "heatmap/colour_map.h"
#include "heatmap/export_common.h"
#include "heatmap/overlay.h"
#include "heatmap/sample.h"

#define LONGEST_SIDE_PX 1600
#define LEAST_WIDTH_PX 720

static const uint8_t tissue_line[3] = { 110, 110, 110 }, region_line[3] = { 0, 0, 0 };

/* 0: no tissue, 1: tissue, 2: reaches the threshold; with winners, 1 + the class. */
static int kind_at(const struct overlay *overlay, int64_t x, int64_t y)
{
    if (x < 0 || y < 0 || x >= overlay->slide.width || y >= overlay->slide.height)
        return 0;
    int64_t at = y * overlay->slide.width + x;
    float score = overlay->scores[at];
    if (overlay->winners)
        return isnan(score) ? 0 : 1 + overlay->winners[at];
    bool over = (double)score >= overlay->threshold && !heatmap_is_number(overlay->info);
    return isnan(score) ? 0 : over ? 2 : 1;
}

/* The highest kind that begins or ends at this pixel, or 0: a line of two pixels, the pixels on
 * both sides of the border. */
static int border_at(const struct overlay *overlay, int64_t x, int64_t y)
{
    static const int64_t dx[4] = { -1, 1, 0, 0 }, dy[4] = { 0, 0, -1, 1 };
    int here = kind_at(overlay, x, y), border = 0;
    for (int i = 0; i < 4; i++) {
        int there = kind_at(overlay, x + dx[i], y + dy[i]);
        int higher = here > there ? here : there;
        border = there != here && higher > border ? higher : border;
    }
    return border;
}

/* The colour of a score over a pixel of this grey. The less the score, the more of the slide shows
 * through: most of a slide is normal, and should be seen as it is. */
void overlay_mix(double score, double grey, uint8_t out[3])
{
    double share = 0.35 + 0.35 * fmin(fmax(score, 0), 1);
    uint8_t colour[3];
    colour_map(score, colour);
    for (int c = 0; c < 3; c++)
        out[c] = (uint8_t)lround(share * colour[c] + (1 - share) * grey);
}

/* The colour of a class over a pixel of this grey: the surer, the fuller. */
void overlay_mix_class(const uint8_t colour[3], double score, double grey, uint8_t out[3])
{
    double share = 0.25 + 0.4 * fmin(fmax(score, 0), 1);
    for (int c = 0; c < 3; c++)
        out[c] = (uint8_t)lround(share * colour[c] + (1 - share) * grey);
}

/* A class is edged with its full colour, on its own side of the border. */
static void paint_winner(const struct overlay *overlay, int64_t x, int64_t y, double grey,
                         uint8_t *out)
{
    int64_t at = y * overlay->slide.width + x;
    if (isnan(overlay->scores[at])) {
        memset(out, (int)lround(grey), 3);
        return;
    }
    const uint8_t *colour = overlay->colours[overlay->winners[at]];
    if (border_at(overlay, x, y))
        memcpy(out, colour, 3);
    else
        overlay_mix_class(colour, (double)overlay->scores[at], grey, out);
}

static void paint_pixel(const struct overlay *overlay, int64_t x, int64_t y, uint8_t *out)
{
    const uint8_t *px = image_at(&overlay->slide, x, y);
    double grey = 0.299 * px[0] + 0.587 * px[1] + 0.114 * px[2];
    if (overlay->winners) {
        paint_winner(overlay, x, y, grey, out);
        return;
    }
    float score = overlay->scores[y * overlay->slide.width + x];
    int border = border_at(overlay, x, y);
    if (border)
        memcpy(out, border == 2 ? region_line : tissue_line, 3);
    else if (isnan(score))
        memset(out, (int)lround(grey), 3);
    else
        overlay_mix(((double)score - overlay->low) / (overlay->high - overlay->low), grey, out);
}

static bool paint(const struct overlay *overlay, const char *path, struct err *err)
{
    const struct image *slide = &overlay->slide;
    int64_t width = slide->width + 2 * OVERLAY_MARGIN_PX;
    width = width < LEAST_WIDTH_PX ? LEAST_WIDTH_PX : width;
    int64_t height = slide->height + OVERLAY_TITLE_PX + overlay_legend_px(overlay, width);
    struct image picture;
    if (!image_new(&picture, width, height, 3, err))
        return false;
    memset(picture.px, 255, image_bytes(&picture));
    int64_t left = (width - slide->width) / 2;
    for (int64_t y = 0; y < slide->height; y++)
        for (int64_t x = 0; x < slide->width; x++)
            paint_pixel(overlay, x, y, image_at(&picture, left + x, OVERLAY_TITLE_PX + y));
    bool ok = overlay_draw_words(overlay, &picture, err) && image_write_png(path, &picture, err);
    image_free(&picture);
    return ok;
}

static bool begin_winners(struct overlay *overlay, struct err *err)
{
    size_t n = (size_t)(overlay->slide.width * overlay->slide.height);
    overlay->winners = malloc(n * sizeof *overlay->winners);
    overlay->colours = export_colours(overlay->info);
    return (overlay->winners && overlay->colours) || err_memory(err, "an overlay");
}

static bool sample(const struct export_request *request, struct overlay *overlay,
                   const struct ctx *ctx, struct err *err)
{
    int64_t width = overlay->slide.width, height = overlay->slide.height;
    overlay->scores = malloc((size_t)(width * height) * sizeof *overlay->scores);
    struct heatmap_picture picture = { .width = width,
                                       .height = height,
                                       .class_index = overlay->class_index,
                                       .memory_bytes = request->options->memory_bytes / 4,
                                       .scores = overlay->scores,
                                       .winners = overlay->winners };
    return overlay->scores ? heatmap_sample(request->heatmap, &picture, ctx, err)
                           : err_memory(err, "an overlay");
}

static bool write_overlay(const struct export_request *request, const char *path,
                          const struct ctx *ctx, struct err *err)
{
    const struct heatmap_info *info = heatmap_info(request->heatmap);
    struct overlay overlay = { .info = info,
                               .threshold = request->options->threshold,
                               .low = heatmap_range(info).min,
                               .high = heatmap_range(info).max };
    int64_t longest = info->width_l0 > info->height_l0 ? info->width_l0 : info->height_l0;
    double downsample = fmax((double)longest / LONGEST_SIDE_PX, 1);
    bool ok = heatmap_find_class(info, request->options->class_name, &overlay.class_index, err) &&
              slide_overview(request->slide, downsample, ctx, &overlay.slide, err) &&
              (request->options->class_name || !heatmap_has_winners(info) ||
               begin_winners(&overlay, err)) &&
              sample(request, &overlay, ctx, err) && paint(&overlay, path, err);
    image_free(&overlay.slide);
    free(overlay.scores);
    free(overlay.winners);
    free(overlay.colours);
    return ok;
}

const struct exporter exporter_overlay = {
    .name = "overlay",
    .file = "overlay.png",
    .help = "the slide with the scores overlaid in colour, for viewing",
    .needs_slide = true,
    .write = write_overlay,
};
