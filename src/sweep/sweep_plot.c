/* sweep_plot.c: the validation measure by combination, as SVG and PNG (sweep.h): a line over the
 * values of one number, a table of tinted cells for two keys, else one dot for each combination,
 * the best first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"
#include "plot/frame.h"
#include "sweep/sweep.h"

#define HEAD 62.0
#define MARGIN 20.0
#define WIDE 560.0
#define HIGH 340.0
#define MOST_CELLS 24 /* rows or columns of a table */
#define MOST_DOTS 60
#define BEST_COLOUR 0xd55e00 /* safe for the colour-blind, beside blue */
#define NAME_LETTERS 60
#define LOG_FROM 8.0 /* ratio of values from which their axis is logarithmic */

struct plot {
    const struct sweep *sweep;
    struct sketch sketch;
    size_t best;
    double low, high; /* of the measure */
};

/* One of several combinations, in some order. */
struct place {
    double key, score;
    size_t i;
};

static int by_key(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static void put_title(struct plot *plot, double middle, const char *what)
{
    char title[160];
    snprintf(title, sizeof title, "validation %s%s", plot->sweep->measure, what);
    sketch_text(&plot->sketch, middle, 25, SKETCH_MIDDLE, 16, true, FRAME_INK, title, 70);
}

static void put_dot(struct plot *plot, double x, double y, bool best)
{
    sketch_line(&plot->sketch, &(struct sketch_point){ x, y }, 1,
                best ? BEST_COLOUR : frame_colour(0), best ? 10 : 7, false);
}

/* --- one number --- */

/* Ticks at the values themselves, if there is room. */
static struct axis value_axis(const struct place *places, size_t n)
{
    double low = places[0].key, high = places[n - 1].key;
    bool log = low > 0 && high / low >= LOG_FROM;
    struct axis axis = axis_around(low, high, log, 6);
    if (n > 8)
        return axis;
    axis.n_ticks = 0;
    axis.decimals = -1;
    for (size_t i = 0; i < n; i++)
        axis.ticks[axis.n_ticks++] = places[i].key;
    return axis;
}

static bool draw_line(struct plot *plot, struct place *places, size_t n, struct err *err)
{
    struct sketch_point *points = calloc(n + 1, sizeof *points);
    if (!points)
        return err_memory(err, "the plot");
    for (size_t k = 0; k < n; k++)
        places[k].key = plot->sweep->axes[0].numbers[places[k].i];
    qsort(places, n, sizeof *places, by_key);
    plot->sketch = sketch_new(80 + WIDE + 26, HEAD + HIGH + 52);
    struct frame frame = { .sketch = &plot->sketch,
                           .left = 80,
                           .top = HEAD,
                           .width = WIDE,
                           .height = HIGH,
                           .x = value_axis(places, n),
                           .y = axis_around(plot->low, plot->high, false, 6) };
    put_title(plot, 80 + WIDE / 2, "");
    frame_axes(&frame, plot->sweep->axes[0].name);
    for (size_t k = 0; k < n; k++)
        points[k] = frame_place(&frame, places[k].key, places[k].score);
    if (n > 1)
        sketch_line(&plot->sketch, points, n, frame_colour(0), 2, false);
    for (size_t k = 0; k < n; k++) {
        bool best = places[k].i == plot->best;
        put_dot(plot, points[k].x, points[k].y, best);
        if (best)
            sketch_text(&plot->sketch, points[k].x, points[k].y - 12, SKETCH_MIDDLE, FRAME_TEXT,
                        true, BEST_COLOUR, "best", 0);
    }
    free(points);
    return true;
}

/* --- two keys --- */

static double widest(const struct sweep_axis *axis)
{
    double width = sketch_text_width(axis->name, FRAME_TEXT);
    for (size_t i = 0; i < axis->n; i++)
        width = fmax(width, sketch_text_width(axis->values[i], FRAME_TEXT));
    return fmin(width, 24 * SKETCH_LETTER * FRAME_TEXT);
}

static void draw_cell(struct plot *plot, size_t i, double x, double y, double width, double height)
{
    double score = sweep_score(plot->sweep, i), range = plot->high - plot->low;
    double share = range > 0 ? (score - plot->low) / range : 1;
    const struct combination *one = &plot->sweep->items[i];
    char text[32];
    bool known = isfinite(score);
    share = known ? (plot->sweep->lowest ? 1 - share : share) : 0;
    share = range > 0 ? share : 0.5;
    if (i == plot->best)
        sketch_box(&plot->sketch, x - 3, y - 3, width + 4, height + 4, BEST_COLOUR);
    sketch_box(&plot->sketch, x, y, width - 2, height - 2,
               known ? sketch_tint(240, share) : 0xf4f4f4);
    snprintf(text, sizeof text, "%.4g", score);
    sketch_text(&plot->sketch, x + width / 2, y + height / 2 + 4, SKETCH_MIDDLE, FRAME_TEXT + 1,
                i == plot->best, known && share > 0.5 ? 0xffffff : FRAME_INK,
                known ? text : combination_state_names[one->state], 0);
}

static void draw_table(struct plot *plot)
{
    const struct sweep *sweep = plot->sweep;
    const struct sweep_axis *down = &sweep->axes[0], *across = &sweep->axes[1];
    double left = MARGIN + widest(down) + 14, width = fmax(84, widest(across) + 14), height = 44;
    double all = width * (double)across->n, top = HEAD + 34;
    double wide = fmax(left + all + MARGIN, 320);
    plot->sketch = sketch_new(wide, top + height * (double)down->n + MARGIN);
    put_title(plot, wide / 2, "");
    sketch_text(&plot->sketch, left + all / 2, HEAD - 2, SKETCH_MIDDLE, FRAME_TEXT, true, FRAME_INK,
                across->name, 0);
    sketch_text(&plot->sketch, left - 12, top - 12, SKETCH_RIGHT, FRAME_TEXT, true, FRAME_INK,
                down->name, 24);
    for (size_t c = 0; c < across->n; c++)
        sketch_text(&plot->sketch, left + width * ((double)c + 0.5), top - 12, SKETCH_MIDDLE,
                    FRAME_TEXT, false, FRAME_INK, across->values[c], 24);
    for (size_t r = 0; r < down->n; r++) {
        double y = top + height * (double)r;
        sketch_text(&plot->sketch, left - 12, y + height / 2 + 4, SKETCH_RIGHT, FRAME_TEXT, false,
                    FRAME_INK, down->values[r], 24);
        for (size_t c = 0; c < across->n; c++)
            if (r * across->n + c != plot->best)
                draw_cell(plot, r * across->n + c, left + width * (double)c, y, width, height);
    }
    if (plot->best < sweep->n) /* last: its border lies over its neighbours */
        draw_cell(plot, plot->best, left + width * (double)(plot->best % across->n),
                  top + height * (double)(plot->best / across->n), width, height);
}

/* --- anything else --- */

static void draw_dots(struct plot *plot, struct place *places, size_t n)
{
    char more[80] = "", number[32];
    double names = 0, row = 22;
    for (size_t k = 0; k < n; k++)
        places[k].key = plot->sweep->lowest ? places[k].score : -places[k].score;
    qsort(places, n, sizeof *places, by_key);
    size_t shown = n < MOST_DOTS ? n : MOST_DOTS;
    if (shown < n)
        snprintf(more, sizeof more, ": the best %zu of %zu", shown, n);
    for (size_t k = 0; k < shown; k++)
        names = fmax(names, sketch_text_width(plot->sweep->items[places[k].i].name, FRAME_TEXT));
    double left = MARGIN + fmin(names, NAME_LETTERS * SKETCH_LETTER * FRAME_TEXT) + 14;
    double right = 70, wide = left + 360 + right;
    struct axis axis = axis_around(plot->low, plot->high, false, 5);
    plot->sketch = sketch_new(wide, HEAD + row * (double)shown + MARGIN);
    put_title(plot, wide / 2, more);
    for (size_t k = 0; k < shown; k++) {
        double y = HEAD + row * ((double)k + 0.5);
        double x = left + 360 * axis_place(&axis, places[k].score);
        bool best = places[k].i == plot->best;
        sketch_text(&plot->sketch, left - 12, y + 4, SKETCH_RIGHT, FRAME_TEXT, best, FRAME_INK,
                    plot->sweep->items[places[k].i].name, NAME_LETTERS);
        sketch_segment(&plot->sketch, left, y, left + 360, y, 0xe4e4e4, 1, false);
        put_dot(plot, x, y, best);
        snprintf(number, sizeof number, "%.4g", places[k].score);
        sketch_text(&plot->sketch, left + 370, y + 4, SKETCH_LEFT, FRAME_TEXT, best, FRAME_INK,
                    number, 0);
    }
}

static bool draw(struct plot *plot, struct place *places, size_t n, struct err *err)
{
    const struct sweep *sweep = plot->sweep;
    if (sweep->n_axes == 1 && sweep->axes[0].numbers && sweep->n > 1)
        return draw_line(plot, places, n, err);
    if (sweep->n_axes == 2 && sweep->axes[0].n <= MOST_CELLS && sweep->axes[1].n <= MOST_CELLS)
        draw_table(plot);
    else
        draw_dots(plot, places, n);
    return true;
}

bool sweep_plot(const struct sweep *sweep, struct err *err)
{
    struct plot plot = { .sweep = sweep, .best = sweep_best(sweep) };
    struct place *places = calloc(sweep->n + 1, sizeof *places);
    char *svg = text_format("%s/sweep.svg", sweep->folder);
    char *png = text_format("%s/sweep.png", sweep->folder);
    size_t n = 0;
    bool ok = (places && svg && png) || err_memory(err, "the plot");
    for (size_t i = 0; ok && i < sweep->n; i++) {
        double score = sweep_score(sweep, i);
        if (!isfinite(score))
            continue;
        plot.low = n == 0 || score < plot.low ? score : plot.low;
        plot.high = n == 0 || score > plot.high ? score : plot.high;
        places[n++] = (struct place){ .score = score, .i = i };
    }
    if (ok && n == 0) { /* of an earlier sweep */
        file_remove_in(sweep->folder, "sweep.svg");
        file_remove_in(sweep->folder, "sweep.png");
    } else if (ok) {
        ok = draw(&plot, places, n, err) && sketch_write_svg(&plot.sketch, svg, err) &&
             sketch_write_png(&plot.sketch, png, err);
        sketch_free(&plot.sketch);
    }
    free(places);
    free(svg);
    free(png);
    return ok;
}
