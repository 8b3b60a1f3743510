/* concept_plot.c: two charts by layer: which concept is learnt where (R2, or AUC for yes and no),
 * and which matters (Br), as bars for every concept (concept_study.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "explain/concept_study.h"
#include "plot/axis.h"
#include "plot/frame.h"
#include "plot/sketch.h"

#define BAR_PX 9.0     /* a bar of a layer */
#define GAP_PX 8.0     /* between concepts */
#define NAMES_PX 190.0 /* left of the bars */
#define CHART_PX 420.0 /* the bars' range */
#define TOP_PX 34.0    /* title */
#define BELOW_PX 46.0  /* axis and its name */
#define WHITE 0xffffff
#define FAINT 0xbbbbbb

struct bars {
    const struct concept_study *study;
    bool effect; /* Br instead of R2 */
    struct axis axis;
    double height;
};

/* NaN: no bar. */
static double value_of(const struct bars *bars, const struct concept_row *row)
{
    if (!bars->effect)
        return row->verdict >= VERDICT_NOT_LEARNT ? row->score.quality : NAN;
    return row->direction ? row->score.br : NAN;
}

/* A value is drawn in full colour if it is significant. */
static bool significant(const struct bars *bars, const struct concept_row *row)
{
    return bars->effect ? row->verdict >= VERDICT_RAISES : row->verdict >= VERDICT_NO_EFFECT;
}

static void find_axis(struct bars *bars)
{
    const struct concept_study *study = bars->study;
    double low = bars->effect ? -0.1 : 0, high = bars->effect ? 0.1 : 1;
    for (int i = 0; i < study->n_layers * study->list.n; i++) {
        double value = value_of(bars, &study->rows[i]);
        if (!isfinite(value))
            continue;
        low = fmin(low, bars->effect ? value : fmax(value, -0.5));
        high = fmax(high, value);
    }
    bars->axis = bars->effect ? axis_around(low, high, false, 8)
                              : axis_new(low < 0 ? -0.5 : 0, high, false, false, 8);
}

static double x_of(const struct bars *bars, double value)
{
    return NAMES_PX + CHART_PX * axis_place(&bars->axis, value);
}

static void draw_axis(const struct bars *bars, struct sketch *sketch, double bottom)
{
    char text[32];
    for (int i = 0; i < bars->axis.n_ticks; i++) {
        double x = x_of(bars, bars->axis.ticks[i]);
        sketch_segment(sketch, x, TOP_PX, x, bottom, 0xdddddd, 1, false);
        axis_label(&bars->axis, bars->axis.ticks[i], text);
        sketch_text(sketch, x, bottom + 15, SKETCH_MIDDLE, FRAME_TEXT, false, FRAME_INK, text, 0);
    }
    sketch_segment(sketch, x_of(bars, 0), TOP_PX, x_of(bars, 0), bottom, FRAME_INK, 1, false);
    sketch_text(sketch, NAMES_PX + CHART_PX / 2, bottom + 34, SKETCH_MIDDLE, FRAME_TEXT, false,
                FRAME_INK,
                bars->effect ? "Br (bidirectional relevance): above 0 raises the score"
                             : "R2 by cross-validation over patients (yes or no: AUC)",
                0);
}

static void draw_row(const struct bars *bars, struct sketch *sketch, const struct concept_row *row,
                     double y)
{
    double value = value_of(bars, row), zero = x_of(bars, 0);
    if (!isfinite(value)) {
        sketch_text(sketch, zero + 3, y + BAR_PX - 2, SKETCH_LEFT, BAR_PX - 1, false, FAINT,
                    row->verdict < VERDICT_NOT_LEARNT ? "not tested"
                    : row->direction                  ? "undefined"
                                                      : "not learnt",
                    0);
        return;
    }
    double x = x_of(bars, value), left = x < zero ? x : zero;
    double width = fmax(fabs(x - zero), 1.5);
    sketch_box(sketch, left, y, width, BAR_PX - 1, frame_colour(row->layer));
    if (!significant(bars, row))
        sketch_box(sketch, left + 1, y + 1, fmax(width - 2, 0), BAR_PX - 3, WHITE);
}

static bool draw(struct bars *bars, const char *name, struct err *err)
{
    const struct concept_study *study = bars->study;
    double group = study->n_layers * BAR_PX + GAP_PX;
    double bottom = TOP_PX + study->list.n * group;
    double legend = bottom + BELOW_PX;
    struct sketch sketch =
        sketch_new(NAMES_PX + CHART_PX + 30, legend + study->n_layers * FRAME_LEGEND_ROW + 26);
    find_axis(bars);
    sketch_box(&sketch, 0, 0, sketch.width, sketch.height, WHITE);
    sketch_text(&sketch, 10, 21, SKETCH_LEFT, 15, true, FRAME_INK,
                bars->effect ? "Which concepts matter" : "Which concepts are learnt", 0);
    draw_axis(bars, &sketch, bottom);
    for (int c = 0; c < study->list.n; c++) {
        double y = TOP_PX + c * group + GAP_PX / 2;
        sketch_text(&sketch, NAMES_PX - 8, y + (study->n_layers * BAR_PX + FRAME_TEXT) / 2 - 2,
                    SKETCH_RIGHT, FRAME_TEXT, false, FRAME_INK, study->list.items[c].name, 25);
        for (int i = 0; i < study->n_layers; i++)
            draw_row(bars, &sketch, &study->rows[i * study->list.n + c], y + i * BAR_PX);
    }
    for (int i = 0; i < study->n_layers; i++)
        frame_entry(&sketch, NAMES_PX, legend + (i + 0.5) * FRAME_LEGEND_ROW, i,
                    study->layers[i].name, false);
    sketch_text(&sketch, NAMES_PX, legend + study->n_layers * FRAME_LEGEND_ROW + 14, SKETCH_LEFT,
                FRAME_TEXT, false, FRAME_INK, "hollow: not significant", 0);
    char *svg = text_format("%s/%s.svg", study->request->folder, name);
    char *png = text_format("%s/%s.png", study->request->folder, name);
    bool ok = svg && png
                  ? sketch_write_svg(&sketch, svg, err) && sketch_write_png(&sketch, png, err)
                  : err_memory(err, "a plot");
    free(svg);
    free(png);
    sketch_free(&sketch);
    return ok;
}

bool concept_plot(const struct concept_study *study, struct err *err)
{
    struct bars learnt = { .study = study }, matters = { .study = study, .effect = true };
    return draw(&learnt, "learnt", err) && draw(&matters, "matters", err);
}
