/* overlay_words.c: title, scale bar and legend of an overlay (overlay.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/divide.h"
#include "base/text.h"
#include "heatmap/overlay.h"
#include "plot/sketch.h"

#define MARGIN_PX OVERLAY_MARGIN_PX
#define LEGEND_PX 92
#define BAR_PX 256        /* length of the bar of colours */
#define TISSUE_GREY 190.0 /* of the tissue in the legend */
#define CLASS_ROW_PX 26   /* of the list of classes */
#define MOST_LISTED 24    /* classes */
#define MOST_LETTERS 32   /* of a name */
#define INK 0x202020
#define QUIET 0x606060

/* 1, 2 or 5 times a power of ten: the largest that is no longer than `most`. */
static double round_length(double most)
{
    double power = pow(10, floor(log10(most)));
    return most >= 5 * power ? 5 * power : most >= 2 * power ? 2 * power : power;
}

static uint32_t colour_code(const uint8_t rgb[3])
{
    return (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2];
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

/* The columns of the list of classes: as wide as the longest name, to the right of the scale bar.
 */
struct class_list {
    int64_t n, columns, rows;
    double left, column_px;
};

static struct class_list list_classes(const struct heatmap_info *info, double width)
{
    size_t longest = 4;
    for (int64_t c = 0; c < info->n_classes; c++) {
        size_t letters = strlen(info->class_names[c]);
        longest = letters > longest ? letters : longest;
    }
    longest = longest > MOST_LETTERS ? MOST_LETTERS : longest;
    struct class_list list = { .n = info->n_classes < MOST_LISTED ? info->n_classes : MOST_LISTED };
    list.column_px = 50 + (double)longest * 16 * SKETCH_LETTER;
    double room = 0.7 * width - MARGIN_PX;
    list.columns = (int64_t)(room / list.column_px);
    list.columns = list.columns < 1 ? 1 : list.columns > list.n ? list.n : list.columns;
    list.rows = ceil_div(list.n + (list.n < info->n_classes), list.columns);
    list.left = width - MARGIN_PX - (double)list.columns * list.column_px;
    return list;
}

static void draw_classes(struct sketch *sketch, const struct overlay *overlay, double y)
{
    const struct heatmap_info *info = overlay->info;
    struct class_list list = list_classes(info, sketch->width);
    for (int64_t i = 0; i < list.n; i++) {
        double x = list.left + (double)(i % list.columns) * list.column_px;
        double top = y + 26 + (double)(i / list.columns) * CLASS_ROW_PX;
        uint8_t rgb[3];
        overlay_mix_class(overlay->colours[i], 1, TISSUE_GREY, rgb);
        sketch_box(sketch, x, top, 26, 16, colour_code(overlay->colours[i]));
        sketch_box(sketch, x + 2, top + 2, 22, 12, colour_code(rgb));
        sketch_text(sketch, x + 34, top + 14, SKETCH_LEFT, 16, false, INK, info->class_names[i],
                    MOST_LETTERS);
    }
    if (list.n == info->n_classes)
        return;
    char more[40];
    snprintf(more, sizeof more, "and %lld more", (long long)(info->n_classes - list.n));
    sketch_text(sketch, list.left + (double)(list.n % list.columns) * list.column_px,
                y + 40 + (double)(list.n / list.columns) * CLASS_ROW_PX, SKETCH_LEFT, 16, false,
                QUIET, more, 0);
}

static void draw_legend(struct sketch *sketch, const struct overlay *overlay, double y)
{
    const double right = sketch->width - MARGIN_PX, x = right - BAR_PX - 16, left = x - 190;
    for (int i = 0; i < BAR_PX; i++) {
        uint8_t rgb[3];
        overlay_mix((i + 0.5) / BAR_PX, TISSUE_GREY, rgb);
        sketch_box(sketch, x + i, y + 26, 1, 18, colour_code(rgb));
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

int64_t overlay_legend_px(const struct overlay *overlay, int64_t width)
{
    if (!overlay->winners)
        return LEGEND_PX;
    int64_t rows = list_classes(overlay->info, (double)width).rows * CLASS_ROW_PX + 44;
    return rows > LEGEND_PX ? rows : LEGEND_PX;
}

bool overlay_draw_words(const struct overlay *overlay, struct image *onto, struct err *err)
{
    const struct heatmap_info *info = overlay->info;
    struct sketch sketch = sketch_new((double)onto->width, (double)onto->height);
    double room = sketch.width - 2 * MARGIN_PX;
    bool number = heatmap_is_number(info);
    const char *name = info->class_names[overlay->class_index];
    char *facts = text_format("%s%s%s%s; %s, stride %lld px; %s",
                              overlay->winners ? "class with the highest score"
                              : number         ? ""
                                               : "score of ",
                              overlay->winners ? "" : name, info->number.unit[0] ? ", " : "",
                              info->number.unit, info->mode, (long long)info->stride, info->models);
    if (!facts)
        return err_memory(err, "an overlay");
    sketch_text(&sketch, MARGIN_PX, 30, SKETCH_LEFT, 20, true, INK, info->slide,
                (int)(room / (20 * SKETCH_LETTER)));
    sketch_text(&sketch, MARGIN_PX, 53, SKETCH_LEFT, 15, false, QUIET, facts,
                (int)(room / (15 * SKETCH_LETTER)));
    double y = sketch.height - (double)overlay_legend_px(overlay, onto->width);
    draw_scale_bar(&sketch, overlay, y);
    if (overlay->winners)
        draw_classes(&sketch, overlay, y);
    else
        draw_legend(&sketch, overlay, y);
    bool ok = sketch_paint(&sketch, 1, onto, err);
    sketch_free(&sketch);
    free(facts);
    return ok;
}
