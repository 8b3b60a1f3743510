/* curves.c: curves over epochs -> panels with axes, grid and legend, as SVG and PNG. */
#include "plot/curves.h"

#include <math.h>
#include <stdlib.h>
#include "plot/axis.h"
#include "plot/frame.h"

#define COLUMNS 2
#define PANEL_WIDTH 470.0
#define PLOT_HEIGHT 240.0
#define LEFT 66.0 /* of the plot within the panel: the labels of y */
#define RIGHT 18.0
#define BOTTOM 52.0 /* the labels of x and its name */
#define HEAD 30.0   /* the title of the panel */
#define TITLE_HEIGHT 34.0

static bool shown(const struct curve_panel *panel, double value)
{
    return isfinite(value) && (!panel->log || value > 0);
}

static struct axis axis_of(const struct curve_panel *panel, int64_t n)
{
    double low = INFINITY, high = -INFINITY;
    if (panel->low < panel->high && (!panel->log || panel->low > 0))
        return axis_new(panel->low, panel->high, panel->log, false, 6);
    for (int c = 0; c < panel->n_curves; c++)
        for (int64_t i = 0; i < n; i++)
            if (shown(panel, panel->curves[c].y[i])) {
                low = fmin(low, panel->curves[c].y[i]);
                high = fmax(high, panel->curves[c].y[i]);
            }
    return axis_around(low, high, panel->log, 6);
}

static struct axis x_axis(const double *x, int64_t n)
{
    double low = INFINITY, high = -INFINITY;
    bool whole = true;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            low = fmin(low, x[i]), high = fmax(high, x[i]);
            whole = whole && x[i] == floor(x[i]);
        }
    if (low > high)
        low = 0, high = 1;
    return axis_new(low, high, false, whole, 8);
}

/* points [n] is scratch. A value between two gaps is a dot. */
static void draw_curve(const struct frame *frame, const struct curve_panel *panel, int c,
                       const double *x, int64_t n, struct sketch_point *points)
{
    const struct curve *curve = &panel->curves[c];
    const uint32_t colour = frame_colour(c);
    for (int64_t begin = 0, end; begin < n; begin = end + 1) {
        size_t count = 0;
        for (end = begin; end < n && isfinite(x[end]) && shown(panel, curve->y[end]); end++)
            points[count++] = frame_place(frame, x[end], curve->y[end]);
        if (count > 0)
            sketch_line(frame->sketch, points, count, colour, count == 1 ? 6 : 2, curve->dashed);
    }
}

/* Arranges the entries in rows; draws them if there is a sketch. Returns the number of rows. */
static int legend(struct sketch *sketch, const struct curve_panel *panel, double left, double top,
                  double width)
{
    double x = 0;
    int rows = 1;
    for (int c = 0; c < panel->n_curves; c++) {
        const struct curve *curve = &panel->curves[c];
        double entry = frame_entry_width(curve->name);
        if (x > 0 && x + entry > width)
            x = 0, rows++;
        if (sketch)
            frame_entry(sketch, left + x, top + FRAME_LEGEND_ROW * (rows - 1), c, curve->name,
                        curve->dashed);
        x += entry;
    }
    return rows;
}

/* What all panels share. */
struct page {
    struct sketch sketch;
    const char *x_label;
    const double *x;
    int64_t n;
    double mark;
    int legend_rows;
    struct sketch_point *points; /* [n] */
};

static void draw_panel(struct page *page, const struct curve_panel *panel, double left, double top)
{
    struct frame frame = { .sketch = &page->sketch,
                           .left = left + LEFT,
                           .top = top + HEAD + FRAME_LEGEND_ROW * page->legend_rows,
                           .width = PANEL_WIDTH - LEFT - RIGHT,
                           .height = PLOT_HEIGHT,
                           .x = x_axis(page->x, page->n),
                           .y = axis_of(panel, page->n) };
    sketch_text(frame.sketch, frame.left, top + 18, SKETCH_LEFT, 14, true, FRAME_INK, panel->title,
                40);
    legend(frame.sketch, panel, frame.left, top + HEAD + 4, frame.width);
    frame_axes(&frame, page->x_label);
    if (isfinite(page->mark)) {
        double x = frame_place(&frame, page->mark, frame.y.low).x;
        sketch_segment(frame.sketch, x, frame.top, x, frame.top + frame.height, FRAME_LINE, 1.5,
                       true);
    }
    for (int c = 0; c < panel->n_curves; c++)
        draw_curve(&frame, panel, c, page->x, page->n, page->points);
}

bool curves_write(const char *svg_path, const char *png_path, const char *title,
                  const char *x_label, const double *x, int64_t n, const struct curve_panel *panels,
                  int n_panels, double mark, struct err *err)
{
    struct page page = { .x_label = x_label ? x_label : "", .x = x, .n = n, .mark = mark };
    const int columns = n_panels < COLUMNS ? n_panels : COLUMNS;
    if (n_panels < 1)
        return err_set(err, ERR_USAGE, "no curves to draw");
    for (int i = 0; i < n_panels; i++) {
        int rows = legend(NULL, &panels[i], 0, 0, PANEL_WIDTH - LEFT - RIGHT);
        page.legend_rows = rows > page.legend_rows ? rows : page.legend_rows;
    }
    const double head = title && *title ? TITLE_HEIGHT : 0;
    const double panel_height = HEAD + FRAME_LEGEND_ROW * page.legend_rows + PLOT_HEIGHT + BOTTOM;
    const int rows = (n_panels + columns - 1) / columns;
    page.points = calloc((size_t)n + 1, sizeof *page.points);
    if (!page.points)
        return err_memory(err, "the curves");
    page.sketch = sketch_new(PANEL_WIDTH * columns, head + panel_height * rows);
    if (head > 0)
        sketch_text(&page.sketch, PANEL_WIDTH * columns / 2, 25, SKETCH_MIDDLE, 16, true, FRAME_INK,
                    title, 45 * columns);
    for (int i = 0; i < n_panels; i++)
        draw_panel(&page, &panels[i], PANEL_WIDTH * (i % columns),
                   head + panel_height * (i / columns));
    bool ok = (!svg_path || sketch_write_svg(&page.sketch, svg_path, err)) &&
              (!png_path || sketch_write_png(&page.sketch, png_path, err));
    sketch_free(&page.sketch), free(page.points);
    return ok;
}
