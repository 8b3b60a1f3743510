/* gantt.c: see gantt.h. */
#include "plot/gantt.h"

#include <math.h>
#include <stdio.h>
#include "plot/frame.h"

#define LEFT 76.0
#define RIGHT 26.0
#define HEAD 64.0
#define WIDE 900.0
#define BOTTOM 52.0
#define IDLE 0xe9e9e9
#define EDGE 0x222222
#define SWATCH 16.0

static double row_height(const struct gantt *gantt)
{
    return gantt->n_rows <= 8 ? 34 : gantt->n_rows <= 24 ? 22 : 13;
}

/* Light enough that dark numbers can be read on each, and apart for any kind of colour vision. */
static uint32_t colour_of(int kind)
{
    static const uint32_t colours[] = {
        0x56b4e9, 0xb8dff5, 0xe69f00, 0xf6d488, 0xcc79a7, 0x009e73
    };
    return colours[kind % (int)(sizeof colours / sizeof *colours)];
}

static void draw_bar(const struct frame *frame, const struct gantt *gantt,
                     const struct gantt_bar *bar)
{
    double row = row_height(gantt), top = frame->top + row * bar->row;
    double left = frame_place(frame, bar->begin, 0).x, right = frame_place(frame, bar->end, 0).x;
    double upper = 0.1 * row, high = 0.66 * row, gap = right - left > 4 ? 0.6 : 0;
    if (bar->below)
        upper = 0.8 * row, high = 0.16 * row;
    sketch_box(frame->sketch, left, top + upper, fmax(right - left - gap, 0.4), high,
               colour_of(bar->kind));
    if (bar->marked)
        sketch_box(frame->sketch, left, top + upper, fmax(right - left - gap, 0.4),
                   fmax(2, 0.07 * row), EDGE);
    char text[16];
    double size = fmin(FRAME_TEXT, 0.5 * row);
    snprintf(text, sizeof text, "%d", bar->number);
    if (bar->number >= 0 && !bar->below && sketch_text_width(text, size) + 3 < right - left)
        sketch_text(frame->sketch, (left + right) / 2, top + upper + high / 2 + 0.4 * size,
                    SKETCH_MIDDLE, size, false, EDGE, text, 0);
}

static void draw_rows(const struct frame *frame, const struct gantt *gantt)
{
    double row = row_height(gantt);
    int every = row < FRAME_TEXT + 2 ? 4 : 1;
    for (int r = 0; r < gantt->n_rows; r++) {
        double top = frame->top + row * r;
        sketch_box(frame->sketch, frame->left, top + 0.1 * row, frame->width, 0.66 * row, IDLE);
        if (r % every == 0)
            sketch_text(frame->sketch, frame->left - 8, top + 0.43 * row + 0.36 * FRAME_TEXT,
                        SKETCH_RIGHT, FRAME_TEXT, false, FRAME_INK, gantt->rows[r], 10);
    }
}

static bool occurs(const struct gantt *gantt, int kind)
{
    for (int i = 0; i < gantt->n_bars; i++)
        if (gantt->bars[i].kind == kind)
            return true;
    return false;
}

/* Colours and names of what occurs, side by side. */
static void draw_legend(const struct frame *frame, const struct gantt *gantt)
{
    double x = frame->left, y = frame->top + frame->height + BOTTOM;
    for (int k = 0; k <= gantt->n_kinds + 1; k++) {
        const char *name = k < gantt->n_kinds    ? gantt->kinds[k]
                           : k == gantt->n_kinds ? gantt->idle
                                                 : gantt->marked;
        if (!name || (k < gantt->n_kinds && !occurs(gantt, k)))
            continue;
        double wide = SWATCH + 6 + sketch_text_width(name, FRAME_TEXT) + 18;
        if (x + wide > frame->left + frame->width + RIGHT)
            x = frame->left, y += FRAME_LEGEND_ROW;
        sketch_box(frame->sketch, x, y, SWATCH, 12, k < gantt->n_kinds ? colour_of(k) : IDLE);
        if (k > gantt->n_kinds)
            sketch_box(frame->sketch, x, y, SWATCH, 2.5, EDGE);
        sketch_text(frame->sketch, x + SWATCH + 6, y + 10.5, SKETCH_LEFT, FRAME_TEXT, false,
                    FRAME_INK, name, 0);
        x += wide;
    }
}

bool gantt_write(const char *svg_path, const char *png_path, const struct gantt *gantt,
                 struct err *err)
{
    double height = row_height(gantt) * gantt->n_rows;
    struct sketch sketch =
        sketch_new(LEFT + WIDE + RIGHT, HEAD + height + BOTTOM + 2 * FRAME_LEGEND_ROW + 8);
    struct frame frame = { .sketch = &sketch,
                           .left = LEFT,
                           .top = HEAD,
                           .width = WIDE,
                           .height = height,
                           .x = axis_new(0, gantt->end, false, false, 10),
                           .y = { .low = 0, .high = 1 } };
    sketch_text(&sketch, LEFT, 25, SKETCH_LEFT, 16, true, FRAME_INK, gantt->title, 90);
    if (gantt->subtitle)
        sketch_text(&sketch, LEFT, 47, SKETCH_LEFT, FRAME_TEXT, false, FRAME_INK, gantt->subtitle,
                    125);
    frame_axes(&frame, gantt->x_label);
    draw_rows(&frame, gantt);
    for (int i = 0; i < gantt->n_bars; i++)
        draw_bar(&frame, gantt, &gantt->bars[i]);
    draw_legend(&frame, gantt);
    bool ok = (!svg_path || sketch_write_svg(&sketch, svg_path, err)) &&
              (!png_path || sketch_write_png(&sketch, png_path, err));
    sketch_free(&sketch);
    return ok;
}
