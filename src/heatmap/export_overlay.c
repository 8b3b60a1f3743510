/* export_overlay.c: a heatmap -> overlay.png, for viewing: the slide small and in grey, the scores
 * of one class over it in colour where there is tissue, outlines of the tissue and of the regions
 * that reach the threshold (not of a number, whose colours are of its range), a scale bar and a
 * legend. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "heatmap/colour_map.h"
#include "heatmap/export_common.h"
#include "plot/sketch.h"
#include "base/text.h"

#define LONGEST_SIDE_PX 1600
#define LEAST_WIDTH_PX 720
#define MARGIN_PX 20
#define TITLE_PX 64
#define LEGEND_PX 92
#define BAR_PX 256        /* length of the bar of colours */
#define TISSUE_GREY 190.0 /* of the tissue in the legend */
#define INK 0x202020
#define QUIET 0x606060

static const uint8_t tissue_line[3] = { 110, 110, 110 }, region_line[3] = { 0, 0, 0 };

struct overlay {
    const struct heatmap_info *info;
    int64_t class_index;
    double threshold;
    double low, high;   /* of the colours */
    struct image slide; /* the overview */
    float *scores;      /* [slide.height, slide.width]: NaN where there is no tissue */
};

/* The score under the middle of every pixel of the overview; where a pixel is larger than a cell,
 * the mean of a block of cells of about its size. */
static bool sample_scores(const struct export_request *request, struct overlay *overlay,
                          const struct ctx *ctx, struct err *err)
{
    const struct heatmap_info *info = overlay->info;
    int64_t width = overlay->slide.width, height = overlay->slide.height;
    double px_x = (double)info->width_l0 / (double)width;
    double px_y = (double)info->height_l0 / (double)height;
    double cell = info->downsample * (double)info->stride;
    int64_t side = px_x >= 2 * cell ? (int64_t)(px_x / cell) : 1;
    struct blocks blocks;
    if (!blocks_open(&blocks, request->heatmap, side, request->options->memory_bytes / 4, err))
        return false;
    float *row = malloc((size_t)(blocks.across * info->n_classes) * sizeof *row);
    overlay->scores = malloc((size_t)(width * height) * sizeof *overlay->scores);
    bool ok = (row && overlay->scores) || err_memory(err, "an overlay");
    int64_t held = -1;
    for (int64_t y = 0; ok && y < height; y++) {
        int64_t wanted = (int64_t)(((double)y + 0.5) * px_y / (cell * (double)side));
        wanted = wanted < blocks.down ? wanted : blocks.down - 1;
        if (wanted != held)
            ok = !ctx_stopped(ctx) ? blocks_read(&blocks, wanted, row, err) : err_stopped(err);
        held = wanted;
        for (int64_t x = 0; ok && x < width; x++) {
            int64_t column = (int64_t)(((double)x + 0.5) * px_x / (cell * (double)side));
            column = column < blocks.across ? column : blocks.across - 1;
            overlay->scores[y * width + x] = row[column * info->n_classes + overlay->class_index];
        }
    }
    free(row);
    blocks_close(&blocks);
    return ok;
}

/* 0: no tissue, 1: tissue, 2: reaches the threshold. */
static int kind_at(const struct overlay *overlay, int64_t x, int64_t y)
{
    if (x < 0 || y < 0 || x >= overlay->slide.width || y >= overlay->slide.height)
        return 0;
    float score = overlay->scores[y * overlay->slide.width + x];
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
static void mix(double score, double grey, uint8_t out[3])
{
    double share = 0.35 + 0.35 * fmin(fmax(score, 0), 1);
    uint8_t colour[3];
    colour_map(score, colour);
    for (int c = 0; c < 3; c++)
        out[c] = (uint8_t)lround(share * colour[c] + (1 - share) * grey);
}

static void paint_pixel(const struct overlay *overlay, int64_t x, int64_t y, uint8_t *out)
{
    const uint8_t *px = image_at(&overlay->slide, x, y);
    double grey = 0.299 * px[0] + 0.587 * px[1] + 0.114 * px[2];
    float score = overlay->scores[y * overlay->slide.width + x];
    int border = border_at(overlay, x, y);
    if (border)
        memcpy(out, border == 2 ? region_line : tissue_line, 3);
    else if (isnan(score))
        memset(out, (int)lround(grey), 3);
    else
        mix(((double)score - overlay->low) / (overlay->high - overlay->low), grey, out);
}

/* 1, 2 or 5 times a power of ten: the largest that is no longer than `most`. */
static double round_length(double most)
{
    double power = pow(10, floor(log10(most)));
    return most >= 5 * power ? 5 * power : most >= 2 * power ? 2 * power : power;
}

static void draw_scale_bar(struct sketch *sketch, const struct overlay *overlay, double y)
{
    const struct heatmap_info *info = overlay->info;
    double um_per_px = info->mpp_l0 * (double)info->width_l0 / (double)overlay->slide.width;
    if (!(um_per_px > 0))
        return;
    double length_um = round_length(um_per_px * (double)overlay->slide.width / 4);
    double x = MARGIN_PX, length = length_um / um_per_px;
    char text[40];
    if (length_um >= 1000)
        snprintf(text, sizeof text, "%g mm", length_um / 1000);
    else
        snprintf(text, sizeof text, "%g um", length_um);
    sketch_box(sketch, x, y + 30, length, 6, INK);
    sketch_text(sketch, x, y + 60, SKETCH_LEFT, 18, false, INK, text, 0);
}

static void draw_legend(struct sketch *sketch, const struct overlay *overlay, double y)
{
    const double right = sketch->width - MARGIN_PX, x = right - BAR_PX - 16, left = x - 190;
    for (int i = 0; i < BAR_PX; i++) {
        uint8_t rgb[3];
        mix((i + 0.5) / BAR_PX, TISSUE_GREY, rgb);
        sketch_box(sketch, x + i, y + 26, 1, 18,
                   (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2]);
    }
    for (int i = 0; i <= 4; i++) {
        char text[16];
        snprintf(text, sizeof text, "%.4g",
                 overlay->low + (overlay->high - overlay->low) * i / 4.0);
        double at = x + BAR_PX * i / 4.0;
        sketch_segment(sketch, at, y + 44, at, y + 50, INK, 1, false);
        sketch_text(sketch, at, y + 68, SKETCH_MIDDLE, 16, false, INK, text, 0);
    }
    char line[40];
    snprintf(line, sizeof line, "score >= %g", overlay->threshold);
    sketch_segment(sketch, left - 34, y + 30, left - 8, y + 30, 0x6e6e6e, 2, false);
    sketch_text(sketch, left, y + 36, SKETCH_LEFT, 16, false, INK, "tissue", 0);
    if (heatmap_is_number(overlay->info))
        return;
    sketch_segment(sketch, left - 34, y + 54, left - 8, y + 54, 0x000000, 2, false);
    sketch_text(sketch, left, y + 60, SKETCH_LEFT, 16, false, INK, line, 0);
}

static bool draw_words(const struct overlay *overlay, struct image *onto, struct err *err)
{
    const struct heatmap_info *info = overlay->info;
    struct sketch sketch = sketch_new((double)onto->width, (double)onto->height);
    double room = sketch.width - 2 * MARGIN_PX;
    bool number = heatmap_is_number(info);
    char *facts =
        text_format("%s%s%s%s; %s, stride %lld px; %s", number ? "" : "score of ",
                    info->class_names[overlay->class_index], info->number.unit[0] ? ", " : "",
                    info->number.unit, info->mode, (long long)info->stride, info->models);
    if (!facts)
        return err_memory(err, "an overlay");
    sketch_text(&sketch, MARGIN_PX, 30, SKETCH_LEFT, 20, true, INK, info->slide,
                (int)(room / (20 * SKETCH_LETTER)));
    sketch_text(&sketch, MARGIN_PX, 53, SKETCH_LEFT, 15, false, QUIET, facts,
                (int)(room / (15 * SKETCH_LETTER)));
    draw_scale_bar(&sketch, overlay, sketch.height - LEGEND_PX);
    draw_legend(&sketch, overlay, sketch.height - LEGEND_PX);
    bool ok = sketch_paint(&sketch, 1, onto, err);
    sketch_free(&sketch);
    free(facts);
    return ok;
}

static bool paint(const struct overlay *overlay, const char *path, struct err *err)
{
    const struct image *slide = &overlay->slide;
    int64_t width = slide->width + 2 * MARGIN_PX;
    width = width < LEAST_WIDTH_PX ? LEAST_WIDTH_PX : width;
    struct image picture;
    if (!image_new(&picture, width, slide->height + TITLE_PX + LEGEND_PX, 3, err))
        return false;
    memset(picture.px, 255, image_bytes(&picture));
    int64_t left = (width - slide->width) / 2;
    for (int64_t y = 0; y < slide->height; y++)
        for (int64_t x = 0; x < slide->width; x++)
            paint_pixel(overlay, x, y, image_at(&picture, left + x, TITLE_PX + y));
    bool ok = draw_words(overlay, &picture, err) && image_write_png(path, &picture, err);
    image_free(&picture);
    return ok;
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
              slide_overview(request->slide, downsample, &overlay.slide, err) &&
              sample_scores(request, &overlay, ctx, err) && paint(&overlay, path, err);
    image_free(&overlay.slide);
    free(overlay.scores);
    return ok;
}

const struct exporter exporter_overlay = {
    .name = "overlay",
    .file = "overlay.png",
    .help = "the slide with the scores overlaid in colour, for viewing",
    .needs_slide = true,
    .write = write_overlay,
};
