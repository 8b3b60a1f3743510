/* page_figures.c: ROC, FROC and training curves (page_sections.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/class_colour.h"
#include "report/figure.h"
#include "base/html.h"
#include "report/page_sections.h"

/* How a kind of curve is drawn. */
static const struct {
    const char *title, *of_classes, *x_label, *y_label;
    bool diagonal;
    double x_high; /* 0: from the data */
} kinds[CURVE_KINDS] = {
    [CURVE_ROC] = { "ROC of slides", "ROC of each class against the others",
                    "1 \xE2\x88\x92 specificity", "sensitivity", true, 1 },
    [CURVE_FROC] = { "FROC of lesions", NULL, "false positives per slide", "sensitivity", false,
                     0 },
    [CURVE_PRECISION] = { "Precision and recall of slides", "Precision and recall of each class",
                          "recall", "precision", false, 1 },
    [CURVE_CALIBRATION] = { "Calibration", "Calibration of each class", "mean score of a bin",
                            "share of positives", true, 1 },
};

/* The curve of a class has its colour. */
static void put_colour(const struct page *page, const struct result_curve *curve, char *out,
                       size_t room)
{
    const struct heatmap_info *info = page_classes(page);
    uint8_t rgb[VIEW_CLASSES][3];
    class_colours(info->class_names, info->n_classes, rgb); /* page_classes: no more than these */
    const uint8_t *colour = rgb[page_class_of_curve(page, curve)];
    snprintf(out, room, "#%02x%02x%02x", colour[0], colour[1], colour[2]);
}

static void put_kind(FILE *out, const struct page *page, enum curve_kind kind)
{
    struct figure figure = { .title = kinds[kind].title,
                             .x_label = kinds[kind].x_label,
                             .y_label = kinds[kind].y_label,
                             .x_high = kinds[kind].x_high,
                             .y_high = 1,
                             .diagonal = kinds[kind].diagonal,
                             .mark = NAN };
    for (size_t i = 0; i < page->results.n_curves && figure.n_lines < FIGURE_LINES; i++) {
        const struct result_curve *curve = &page->results.curves[i];
        if (curve->kind != kind || curve->n == 0)
            continue;
        struct figure_line *line = &figure.lines[figure.n_lines++];
        *line = (struct figure_line){ curve->name, curve->x, curve->y, curve->n, "" };
        if (kinds[kind].of_classes && page_class_of_curve(page, curve) >= 0) {
            figure.title = kinds[kind].of_classes;
            put_colour(page, curve, line->colour, sizeof line->colour);
        }
    }
    if (figure.n_lines > 0)
        figure_write(out, &figure);
}

void page_put_curves(FILE *out, const struct page *page)
{
    if (page->results.n_curves == 0 && page->results.n_confusions == 0)
        return;
    html_put(out, "<section id=\"curves\"><h2>Performance</h2>\n<div class=\"plots\">");
    for (int kind = 0; kind < CURVE_KINDS; kind++)
        put_kind(out, page, (enum curve_kind)kind);
    html_put(out, "</div>\n");
    page_put_confusions(out, page);
    html_put(out, "</section>\n");
}

/* A column as numbers; the caller's. NULL if it is missing or entirely empty. */
static double *column_of(const struct csv *csv, const char *name)
{
    int column = csv_column(csv, name);
    double *values = column < 0 ? NULL : malloc(csv->n_rows * sizeof *values);
    bool any = false;
    for (size_t row = 0; values && row < csv->n_rows; row++) {
        const char *cell = csv_cell(csv, row, column);
        values[row] = cell[0] ? strtod(cell, NULL) : NAN;
        any = any || isfinite(values[row]);
    }
    if (values && !any) {
        free(values);
        return NULL;
    }
    return values;
}

/* One measure on training and validation data, over epochs. */
static void put_measure(FILE *out, const struct result_training *training, const char *title,
                        const char *val_column, const char *train_column, double high)
{
    const struct csv *csv = &training->metrics;
    double *epochs = column_of(csv, "epoch");
    double *val = column_of(csv, val_column), *train = column_of(csv, train_column);
    struct figure figure = { .title = title,
                             .x_label = "epoch",
                             .y_label = title,
                             .y_high = high,
                             .whole_x = true,
                             .mark = training->best_epoch > 0 ? (double)training->best_epoch : NAN,
                             .mark_name = "best" };
    int64_t n = (int64_t)csv->n_rows;
    if (epochs && val)
        figure.lines[figure.n_lines++] = (struct figure_line){ "validation", epochs, val, n, "" };
    if (epochs && train)
        figure.lines[figure.n_lines++] = (struct figure_line){ "training", epochs, train, n, "" };
    if (figure.n_lines > 0)
        figure_write(out, &figure);
    free(epochs), free(val), free(train);
}

/* Results of the final weights on patches that were not used in training; a test of one class has
 * no AUC. */
static void put_test(FILE *out, const struct result_training *training)
{
    if (training->test_patches <= 0)
        return;
    html_put(out, "<p>Test on %lld patches", (long long)training->test_patches);
    if (isfinite(training->test_accuracy))
        html_put(out, ": accuracy %.4f", training->test_accuracy);
    if (isfinite(training->test_auc))
        html_put(out, ", AUC %.4f", training->test_auc);
    if (isfinite(training->test_r2))
        html_put(out, ": R2 %.4f, MAE %.4g", training->test_r2, training->test_mae);
    html_put(out, "</p>\n");
}

void page_put_training(FILE *out, const struct page *page)
{
    const struct results *results = &page->results;
    if (results->n_trainings == 0)
        return;
    html_put(out, "<section id=\"training\"><h2>Training</h2>\n");
    for (size_t i = 0; i < results->n_trainings; i++) {
        const struct result_training *training = &results->trainings[i];
        const char *slash = strrchr(training->folder, '/');
        html_put(out, "<h3><bdi>%s</bdi> %s</h3>\n<div class=\"plots\">",
                 slash ? slash + 1 : training->folder, training->network);
        put_measure(out, training, "loss", "val_loss", "train_loss", 0);
        put_measure(out, training, "accuracy", "val_accuracy", "train_accuracy", 1);
        put_measure(out, training, "patch AUC", "val_auc", "train_auc", 0);
        put_measure(out, training, "R2", "val_r2", "train_r2", 1);
        put_measure(out, training, "MAE", "val_mae", "train_mae", 0);
        html_put(out, "</div>\n");
        put_test(out, training);
    }
    html_put(out, "</section>\n");
}
