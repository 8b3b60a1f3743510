/* frame.c: see frame.h. */
#include "plot/frame.h"

#define FAINT_INK 0x666666
#define GRID 0xe4e4e4
#define SAMPLE 26.0 /* length of a line in the legend */

/* Okabe and Ito's palette, distinguishable with any kind of colour vision. */
static const uint32_t palette[] = { 0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9 };
#define N_COLOURS ((int)(sizeof palette / sizeof *palette))

uint32_t frame_colour(int c)
{
    return palette[c % N_COLOURS];
}

struct sketch_point frame_place(const struct frame *frame, double x, double y)
{
    return (struct sketch_point){ frame->left + frame->width * axis_place(&frame->x, x),
                                  frame->top + frame->height * (1 - axis_place(&frame->y, y)) };
}

void frame_axes(const struct frame *frame, const char *x_label)
{
    const double right = frame->left + frame->width, bottom = frame->top + frame->height;
    char text[32];
    for (int i = 0; i < frame->y.n_ticks; i++) {
        double y = frame_place(frame, frame->x.low, frame->y.ticks[i]).y;
        sketch_segment(frame->sketch, frame->left, y, right, y, GRID, 1, false);
        axis_label(&frame->y, frame->y.ticks[i], text);
        sketch_text(frame->sketch, frame->left - 8, y + 0.36 * FRAME_TEXT, SKETCH_RIGHT, FRAME_TEXT,
                    false, FAINT_INK, text, 0);
    }
    for (int i = 0; i < frame->x.n_ticks; i++) {
        double x = frame_place(frame, frame->x.ticks[i], frame->y.low).x;
        sketch_segment(frame->sketch, x, frame->top, x, bottom, GRID, 1, false);
        axis_label(&frame->x, frame->x.ticks[i], text);
        sketch_text(frame->sketch, x, bottom + 18, SKETCH_MIDDLE, FRAME_TEXT, false, FAINT_INK,
                    text, 0);
    }
    sketch_segment(frame->sketch, frame->left, frame->top, frame->left, bottom, FRAME_LINE, 1,
                   false);
    sketch_segment(frame->sketch, frame->left, bottom, right, bottom, FRAME_LINE, 1, false);
    sketch_text(frame->sketch, frame->left + frame->width / 2, bottom + 37, SKETCH_MIDDLE,
                FRAME_TEXT, false, FRAME_INK, x_label, 60);
}

double frame_entry_width(const char *name)
{
    return SAMPLE + 8 + sketch_text_width(name, FRAME_TEXT) + 16;
}

void frame_entry(struct sketch *sketch, double x, double y, int c, const char *name, bool dashed)
{
    sketch_segment(sketch, x + 2, y, x + SAMPLE, y, frame_colour(c), 2, dashed);
    sketch_text(sketch, x + SAMPLE + 8, y + 0.36 * FRAME_TEXT, SKETCH_LEFT, FRAME_TEXT, false,
                FRAME_INK, name, 60);
}
