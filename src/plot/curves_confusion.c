/* curves_confusion.c: a confusion matrix as a table of tinted cells, as SVG and PNG. */
#include <math.h>
#include <stdio.h>
#include "plot/curves.h"
#include "plot/sketch.h"

#define INK 0x333333
#define WORDS_MOST 32 /* classes; with more, the cells have no room for numbers */
#define TEXT_SIZE 12.0
#define NAME_LETTERS 20
#define HEAD 74.0
#define MARGIN 20.0

struct table {
    struct sketch sketch;
    double left, top, cell;
    const int64_t *counts;
    const char *const *names;
    int64_t classes;
};

static void draw_row(struct table *t, int64_t row)
{
    const double y = t->top + t->cell * (double)row;
    int64_t sum = 0;
    for (int64_t column = 0; column < t->classes; column++)
        sum += t->counts[row * t->classes + column];
    for (int64_t column = 0; column < t->classes; column++) {
        const double x = t->left + t->cell * (double)column, middle = x + t->cell / 2;
        const int64_t count = t->counts[row * t->classes + column];
        const double share = sum > 0 ? (double)count / (double)sum : 0;
        const double gap = t->classes <= WORDS_MOST ? 2 : 0;
        sketch_box(&t->sketch, x, y, t->cell - gap, t->cell - gap, sketch_tint(245, share));
        if (t->classes > WORDS_MOST)
            continue;
        const uint32_t ink = share > 0.5 ? 0xffffff : INK;
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)count);
        sketch_text(&t->sketch, middle, y + t->cell / 2 - 3, SKETCH_MIDDLE, TEXT_SIZE + 1, true,
                    ink, text, 0);
        snprintf(text, sizeof text, sum > 0 ? "%.1f %%" : "-", 100 * share);
        sketch_text(&t->sketch, middle, y + t->cell / 2 + 15, SKETCH_MIDDLE, TEXT_SIZE - 1, false,
                    ink, text, 0);
    }
    if (t->classes <= WORDS_MOST)
        sketch_text(&t->sketch, t->left - 10, y + t->cell / 2 + 0.36 * TEXT_SIZE, SKETCH_RIGHT,
                    TEXT_SIZE, false, INK, t->names[row], NAME_LETTERS);
}

static void draw_head(struct table *t)
{
    const double width = t->cell * (double)t->classes;
    sketch_text(&t->sketch, t->left - 10, t->top - 12, SKETCH_RIGHT, TEXT_SIZE, true, INK, "truth",
                0);
    sketch_text(&t->sketch, t->left + width / 2, t->top - 36, SKETCH_MIDDLE, TEXT_SIZE, true, INK,
                "predicted", 0);
    if (t->classes > WORDS_MOST)
        return;
    const int letters = (int)(t->cell / (SKETCH_LETTER * (TEXT_SIZE - 1)));
    for (int64_t column = 0; column < t->classes; column++)
        sketch_text(&t->sketch, t->left + t->cell * ((double)column + 0.5), t->top - 12,
                    SKETCH_MIDDLE, TEXT_SIZE - 1, false, INK, t->names[column], letters);
}

bool curves_confusion(const char *svg_path, const char *png_path, const int64_t *counts,
                      const char *const *class_names, int64_t classes, struct err *err)
{
    struct table t = { .top = HEAD, .counts = counts, .names = class_names, .classes = classes };
    double name_width = sketch_text_width("truth", TEXT_SIZE);
    for (int64_t i = 0; classes <= WORDS_MOST && i < classes; i++)
        name_width = fmax(name_width, sketch_text_width(class_names[i], TEXT_SIZE));
    name_width = fmin(name_width, NAME_LETTERS * SKETCH_LETTER * TEXT_SIZE);
    t.left = MARGIN + name_width + 10;
    t.cell = classes <= 8            ? 92
             : classes <= WORDS_MOST ? 64
                                     : fmax(2, floor(2000 / (double)classes));
    const double side = t.cell * (double)classes;
    t.sketch = sketch_new(t.left + fmax(side, 80) + MARGIN, t.top + side + MARGIN);
    draw_head(&t);
    for (int64_t row = 0; row < classes; row++)
        draw_row(&t, row);
    bool ok = (!svg_path || sketch_write_svg(&t.sketch, svg_path, err)) &&
              (!png_path || sketch_write_png(&t.sketch, png_path, err));
    sketch_free(&t.sketch);
    return ok;
}
