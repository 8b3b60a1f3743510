/* curves_chart.c: one plot of curves that each have their own x, as SVG and PNG. */
#include <math.h>
#include <stdlib.h>
#include "plot/curves.h"
#include "plot/frame.h"

#define LEFT 58.0
#define RIGHT 26.0
#define HEAD 62.0   /* the title and the name of y */
#define BOTTOM 52.0 /* the labels of x and its name */
#define SIDE 440.0
#define WIDE 560.0 /* width of a plot that is not square */
#define HIGH 340.0

/* Ticks at powers of two: 1/4, 1/2, 1, 2, ... */
static struct axis powers_of_two(double low, double high)
{
    struct axis axis = { .low = low, .high = high, .log = true, .decimals = -1 };
    for (double tick = exp2(ceil(log2(low) - 1e-9));
         tick <= high * (1 + 1e-9) && axis.n_ticks < AXIS_TICKS; tick *= 2)
        axis.ticks[axis.n_ticks++] = tick;
    return axis;
}

static struct axis axis_of(const struct chart *chart, bool is_x)
{
    double low = is_x ? chart->x_low : chart->y_low, high = is_x ? chart->x_high : chart->y_high;
    return is_x && chart->log_x ? powers_of_two(low, high)
                                : axis_new(low, high, chart->decades, false, 6);
}

static bool draw_curve(const struct frame *frame, const struct chart_curve *curve, int c,
                       struct err *err)
{
    struct sketch_point *points = calloc((size_t)curve->n + 1, sizeof *points);
    if (!points)
        return err_memory(err, "the curves");
    for (int64_t begin = 0, end; begin < curve->n; begin = end + 1) {
        size_t count = 0;
        for (end = begin; end < curve->n && isfinite(curve->x[end]) && isfinite(curve->y[end]);
             end++)
            points[count++] = frame_place(frame, curve->x[end], curve->y[end]);
        if (count > 0)
            sketch_line(frame->sketch, points, count, frame_colour(c), count == 1 ? 6 : 2,
                        curve->dashed);
    }
    free(points);
    return true;
}

bool curves_chart(const char *svg_path, const char *png_path, const struct chart *chart,
                  struct err *err)
{
    const double width = chart->square ? SIDE : WIDE, height = chart->square ? SIDE : HIGH;
    struct sketch sketch =
        sketch_new(LEFT + width + RIGHT,
                   HEAD + height + BOTTOM + 10 + FRAME_LEGEND_ROW * (double)chart->n_curves);
    struct frame frame = { .sketch = &sketch,
                           .left = LEFT,
                           .top = HEAD,
                           .width = width,
                           .height = height,
                           .x = axis_of(chart, true),
                           .y = axis_of(chart, false) };
    sketch_text(&sketch, LEFT + width / 2, 25, SKETCH_MIDDLE, 16, true, FRAME_INK, chart->title,
                50);
    sketch_text(&sketch, LEFT, HEAD - 12, SKETCH_LEFT, FRAME_TEXT, false, FRAME_INK, chart->y_label,
                60);
    frame_axes(&frame, chart->x_label);
    if (chart->diagonal)
        sketch_segment(&sketch, LEFT, HEAD + height, LEFT + width, HEAD, FRAME_LINE, 1, true);
    bool ok = true;
    for (int c = 0; ok && c < chart->n_curves; c++) {
        ok = draw_curve(&frame, &chart->curves[c], c, err);
        frame_entry(&sketch, LEFT, HEAD + height + BOTTOM + FRAME_LEGEND_ROW * (double)c, c,
                    chart->curves[c].name, chart->curves[c].dashed);
    }
    ok = ok && (!svg_path || sketch_write_svg(&sketch, svg_path, err)) &&
         (!png_path || sketch_write_png(&sketch, png_path, err));
    sketch_free(&sketch);
    return ok;
}
