/* curves.c: curves over epochs -> panels with axes, grid and legend, as SVG and PNG. */
#include "plot/curves.h"

#include <math.h>
#include <stdlib.h>
#include "plot/axis.h"
#include "plot/sketch.h"

#define COLUMNS 2
#define PANEL_WIDTH 470.0
#define PLOT_HEIGHT 240.0
#define LEFT 66.0 /* of the plot within the panel: the numbers of y */
#define RIGHT 18.0
#define BOTTOM 52.0 /* the numbers of x and what they are */
#define HEAD 30.0   /* the title of the panel */
#define LEGEND_ROW 19.0
#define TITLE_HEIGHT 34.0
#define TEXT_SIZE 12.0
#define SAMPLE 26.0 /* of a line in the legend */

#define INK 0x333333
#define FAINT_INK 0x666666
#define GRID 0xe4e4e4
#define FRAME 0x999999

/* Okabe and Ito's palette, told apart with any kind of colour vision. */
static const uint32_t palette[] = { 0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9 };
#define N_COLOURS ((int)(sizeof palette / sizeof *palette))

/* A place on the drawing for a panel, and its axes. */
struct plot {
    struct sketch *sketch;
    double left, top, width, height;
    struct axis x, y;
};

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

static struct sketch_point place(const struct plot *plot, double x, double y)
{
    return (struct sketch_point){ plot->left + plot->width * axis_place(&plot->x, x),
                                  plot->top + plot->height * (1 - axis_place(&plot->y, y)) };
}

static void draw_axes(const struct plot *plot, const char *x_label)
{
    const double right = plot->left + plot->width, bottom = plot->top + plot->height;
    char text[32];
    for (int i = 0; i < plot->y.n_ticks; i++) {
        double y = place(plot, plot->x.low, plot->y.ticks[i]).y;
        sketch_segment(plot->sketch, plot->left, y, right, y, GRID, 1, false);
        axis_label(&plot->y, plot->y.ticks[i], text);
        sketch_text(plot->sketch, plot->left - 8, y + 0.36 * TEXT_SIZE, SKETCH_RIGHT, TEXT_SIZE,
                    false, FAINT_INK, text, 0);
    }
    for (int i = 0; i < plot->x.n_ticks; i++) {
        double x = place(plot, plot->x.ticks[i], plot->y.low).x;
        sketch_segment(plot->sketch, x, plot->top, x, bottom, GRID, 1, false);
        axis_label(&plot->x, plot->x.ticks[i], text);
        sketch_text(plot->sketch, x, bottom + 18, SKETCH_MIDDLE, TEXT_SIZE, false, FAINT_INK, text,
                    0);
    }
    sketch_segment(plot->sketch, plot->left, plot->top, plot->left, bottom, FRAME, 1, false);
    sketch_segment(plot->sketch, plot->left, bottom, right, bottom, FRAME, 1, false);
    sketch_text(plot->sketch, plot->left + plot->width / 2, bottom + 37, SKETCH_MIDDLE, TEXT_SIZE,
                false, INK, x_label, 60);
}

/* points [n] is scratch. A value between two gaps is a dot. */
static void draw_curve(const struct plot *plot, const struct curve_panel *panel, int c,
                       const double *x, int64_t n, struct sketch_point *points)
{
    const struct curve *curve = &panel->curves[c];
    const uint32_t colour = palette[c % N_COLOURS];
    for (int64_t begin = 0, end; begin < n; begin = end + 1) {
        size_t count = 0;
        for (end = begin; end < n && isfinite(x[end]) && shown(panel, curve->y[end]); end++)
            points[count++] = place(plot, x[end], curve->y[end]);
        if (count > 0)
            sketch_line(plot->sketch, points, count, colour, count == 1 ? 6 : 2, curve->dashed);
    }
}

static double entry_width(const struct curve *curve)
{
    return SAMPLE + 8 + sketch_text_width(curve->name, TEXT_SIZE) + 16;
}

/* Lays the entries in rows; draws them if there is a sketch. Returns the number of rows. */
static int legend(struct sketch *sketch, const struct curve_panel *panel, double left, double top,
                  double width)
{
    double x = 0;
    int rows = 1;
    for (int c = 0; c < panel->n_curves; c++) {
        const struct curve *curve = &panel->curves[c];
        if (x > 0 && x + entry_width(curve) > width)
            x = 0, rows++;
        double y = top + LEGEND_ROW * (rows - 1);
        if (sketch) {
            sketch_segment(sketch, left + x + 2, y, left + x + SAMPLE, y, palette[c % N_COLOURS], 2,
                           curve->dashed);
            sketch_text(sketch, left + x + SAMPLE + 8, y + 0.36 * TEXT_SIZE, SKETCH_LEFT, TEXT_SIZE,
                        false, INK, curve->name, 40);
        }
        x += entry_width(curve);
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
    struct plot plot = { .sketch = &page->sketch,
                         .left = left + LEFT,
                         .top = top + HEAD + LEGEND_ROW * page->legend_rows,
                         .width = PANEL_WIDTH - LEFT - RIGHT,
                         .height = PLOT_HEIGHT,
                         .x = x_axis(page->x, page->n),
                         .y = axis_of(panel, page->n) };
    sketch_text(plot.sketch, plot.left, top + 18, SKETCH_LEFT, 14, true, INK, panel->title, 40);
    legend(plot.sketch, panel, plot.left, top + HEAD + 4, plot.width);
    draw_axes(&plot, page->x_label);
    if (isfinite(page->mark)) {
        double x = place(&plot, page->mark, plot.y.low).x;
        sketch_segment(plot.sketch, x, plot.top, x, plot.top + plot.height, FRAME, 1.5, true);
    }
    for (int c = 0; c < panel->n_curves; c++)
        draw_curve(&plot, panel, c, page->x, page->n, page->points);
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
    const double panel_height = HEAD + LEGEND_ROW * page.legend_rows + PLOT_HEIGHT + BOTTOM;
    const int rows = (n_panels + columns - 1) / columns;
    page.points = calloc((size_t)n + 1, sizeof *page.points);
    if (!page.points)
        return err_memory(err, "the curves");
    page.sketch = sketch_new(PANEL_WIDTH * columns, head + panel_height * rows);
    if (head > 0)
        sketch_text(&page.sketch, PANEL_WIDTH * columns / 2, 25, SKETCH_MIDDLE, 16, true, INK,
                    title, 45 * columns);
    for (int i = 0; i < n_panels; i++)
        draw_panel(&page, &panels[i], PANEL_WIDTH * (i % columns),
                   head + panel_height * (i / columns));
    bool ok = (!svg_path || sketch_write_svg(&page.sketch, svg_path, err)) &&
              (!png_path || sketch_write_png(&page.sketch, png_path, err));
    sketch_free(&page.sketch), free(page.points);
    return ok;
}
