/* figure.c: see figure.h. */
#include "report/figure.h"

#include <math.h>
#include "plot/axis.h"
#include "base/html.h"

#define WIDTH 440.0
#define HEIGHT 320.0
#define LEFT 60.0
#define RIGHT 12.0
#define TOP 20.0
#define BOTTOM 50.0
#define TICKS 6
#define NEAR 0.4 /* SVG pixels; closer points are merged */

struct frame {
    struct axis x, y;
};

static double place_x(const struct frame *frame, double x)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * axis_place(&frame->x, x);
}

static double place_y(const struct frame *frame, double y)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * axis_place(&frame->y, y);
}

static void range_of(const struct figure *figure, bool of_x, double *low, double *high)
{
    *low = INFINITY, *high = -INFINITY;
    for (int i = 0; i < figure->n_lines; i++)
        for (int64_t k = 0; k < figure->lines[i].n; k++) {
            double value = of_x ? figure->lines[i].x[k] : figure->lines[i].y[k];
            if (isfinite(value)) {
                *low = fmin(*low, value);
                *high = fmax(*high, value);
            }
        }
}

static struct frame frame_of(const struct figure *figure)
{
    struct frame frame;
    double low = figure->x_low, high = figure->x_high;
    if (!(low < high))
        range_of(figure, true, &low, &high);
    frame.x = low < high ? axis_new(low, high, false, figure->whole_x, TICKS)
                         : axis_around(low, high, false, TICKS);
    low = figure->y_low, high = figure->y_high;
    if (low < high) {
        frame.y = axis_new(low, high, false, false, TICKS);
    } else {
        range_of(figure, false, &low, &high);
        frame.y = axis_around(low, high, false, TICKS);
    }
    return frame;
}

static void put_axes(FILE *page, const struct figure *figure, const struct frame *frame)
{
    char label[32];
    for (int i = 0; i < frame->x.n_ticks; i++) {
        double at = place_x(frame, frame->x.ticks[i]);
        axis_label(&frame->x, frame->x.ticks[i], label);
        html_put(page,
                 "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
                 "text-anchor=\"middle\">%s</text>",
                 at, TOP, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 19, label);
    }
    for (int i = 0; i < frame->y.n_ticks; i++) {
        double at = place_y(frame, frame->y.ticks[i]);
        axis_label(&frame->y, frame->y.ticks[i], label);
        html_put(page,
                 "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
                 "text-anchor=\"end\">%s</text>",
                 LEFT, at, WIDTH - RIGHT, LEFT - 6, at + 4, label);
    }
    html_put(page,
             "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>"
             "<text transform=\"translate(15 %.1f)rotate(-90)\" text-anchor=\"middle\">%s</text>",
             (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, figure->x_label, (TOP + HEIGHT - BOTTOM) / 2,
             figure->y_label);
}

/* Opens a path up to its points. */
static void put_path(FILE *page, const struct figure_line *line, int number)
{
    html_put(page, "<path class=\"line line%d\"", number);
    if (line->colour[0])
        html_put(page, " style=\"stroke:%s\"", line->colour);
    html_put(page, " d=\"");
}

static void put_line(FILE *page, const struct frame *frame, const struct figure_line *line,
                     int number)
{
    bool drawing = false;
    double last_x = 0, last_y = 0;
    put_path(page, line, number);
    for (int64_t k = 0; k < line->n; k++) {
        if (!isfinite(line->x[k]) || !isfinite(line->y[k])) {
            drawing = false;
            continue;
        }
        double x = place_x(frame, line->x[k]), y = place_y(frame, line->y[k]);
        bool last = k + 1 == line->n;
        if (drawing && !last && fabs(x - last_x) < NEAR && fabs(y - last_y) < NEAR)
            continue;
        html_put(page, "%s%.1f %.1f", drawing ? "L" : "M", x, y);
        if (!drawing)
            html_put(page, "h0"); /* a line of one point is a dot */
        drawing = true;
        last_x = x, last_y = y;
    }
    html_put(page, "\"/>");
}

static void put_legend(FILE *page, const struct figure *figure)
{
    html_put(page, "<ul class=\"legend\">");
    for (int i = 0; i < figure->n_lines; i++) {
        html_put(page,
                 "<li><svg viewBox=\"0 0 26 8\" width=\"26\" height=\"8\" aria-hidden=\"true\">");
        put_path(page, &figure->lines[i], i);
        html_put(page, "M0 4H26\"/></svg> <bdi>%s</bdi></li>", figure->lines[i].name);
    }
    html_put(page, "</ul>");
}

void figure_write(FILE *page, const struct figure *figure)
{
    struct frame frame = frame_of(figure);
    html_put(page,
             "<figure class=\"plot\"><figcaption>%s</figcaption>\n<svg viewBox=\"0 0 %.0f %.0f\" "
             "role=\"img\" aria-label=\"%s\">",
             figure->title, WIDTH, HEIGHT, figure->summary ? figure->summary : figure->title);
    put_axes(page, figure, &frame);
    if (figure->diagonal)
        html_put(page, "<path class=\"chance\" d=\"M%.1f %.1fL%.1f %.1f\"/>",
                 place_x(&frame, frame.x.low), place_y(&frame, frame.y.low),
                 place_x(&frame, frame.x.high), place_y(&frame, frame.y.high));
    if (isfinite(figure->mark)) {
        double at = place_x(&frame, figure->mark);
        html_put(page,
                 "<path class=\"mark\" d=\"M%.1f %.1fV%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
                 "text-anchor=\"%s\">%s</text>",
                 at, TOP, HEIGHT - BOTTOM, at + (at > WIDTH / 2 ? -4 : 4), TOP - 5,
                 at > WIDTH / 2 ? "end" : "start", figure->mark_name);
    }
    for (int i = 0; i < figure->n_lines; i++)
        put_line(page, &frame, &figure->lines[i], i);
    html_put(page, "</svg>\n");
    put_legend(page, figure);
    html_put(page, "</figure>\n");
}
