/* scatter.c: see scatter.h. */
#include "plot/scatter.h"

#include <math.h>
#include "plot/frame.h"

#define LEFT 58.0
#define RIGHT 26.0
#define HEAD 62.0   /* the title and the name of y */
#define BOTTOM 52.0 /* the labels of x and its name */
#define SIDE 440.0
#define DOT 4.0
#define MOST_POINTS 5000 /* more are a blot, and a large file */

static void widen(float value, double *low, double *high)
{
    if (isfinite(value)) {
        *low = fmin(*low, (double)value);
        *high = fmax(*high, (double)value);
    }
}

bool scatter_write(const char *svg_path, const char *png_path, const char *title,
                   const char *x_label, const char *y_label, const float *x, const float *y,
                   int64_t n, struct err *err)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        widen(x[i], &low, &high);
        widen(y[i], &low, &high);
    }
    struct axis axis = axis_around(low, high, false, 6);
    struct sketch sketch = sketch_new(LEFT + SIDE + RIGHT, HEAD + SIDE + BOTTOM);
    struct frame frame = { .sketch = &sketch,
                           .left = LEFT,
                           .top = HEAD,
                           .width = SIDE,
                           .height = SIDE,
                           .x = axis,
                           .y = axis };
    sketch_text(&sketch, LEFT + SIDE / 2, 25, SKETCH_MIDDLE, 16, true, FRAME_INK, title, 50);
    sketch_text(&sketch, LEFT, HEAD - 12, SKETCH_LEFT, FRAME_TEXT, false, FRAME_INK, y_label, 60);
    frame_axes(&frame, x_label);
    sketch_segment(&sketch, LEFT, HEAD + SIDE, LEFT + SIDE, HEAD, FRAME_LINE, 1, true);
    int64_t drawn = n < MOST_POINTS ? n : MOST_POINTS;
    for (int64_t k = 0; k < drawn; k++) {
        int64_t i = k * n / drawn;
        struct sketch_point point = frame_place(&frame, (double)x[i], (double)y[i]);
        if (isfinite(x[i]) && isfinite(y[i]))
            sketch_line(&sketch, &point, 1, frame_colour(0), DOT, false);
    }
    bool ok = (!svg_path || sketch_write_svg(&sketch, svg_path, err)) &&
              (!png_path || sketch_write_png(&sketch, png_path, err));
    sketch_free(&sketch);
    return ok;
}
