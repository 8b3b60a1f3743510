/* page_confusion.c: confusion matrices (page_sections.h). */
#include <math.h>
#include <stdlib.h>
#include "base/html.h"
#include "report/page_sections.h"

#define MOST_CLASSES 30 /* of a table that is readable */

static void put_measure(FILE *out, const char *name, double value, bool last)
{
    if (isfinite(value))
        html_put(out, "%s %.3f%s", name, value, last ? "" : ", ");
}

/* The darker a cell, the larger its share of the row. */
static void put_row(FILE *out, const struct confusion *matrix,
                    const struct confusion_measures *measures, size_t row)
{
    size_t n = matrix->classes.n;
    html_put(out, "<tr><th scope=\"row\"><bdi>%s</bdi></th>", matrix->classes.names[row]);
    for (size_t c = 0; c < n; c++) {
        int64_t count = matrix->counts[row * n + c], all = measures->classes[row].truth;
        html_put(out, "<td class=\"share\" style=\"--v:%.3f\">%lld</td>",
                 all > 0 ? (double)count / (double)all : 0, (long long)count);
    }
    const struct confusion_class *class = &measures->classes[row];
    const double values[] = { class->recall, class->precision, class->f1 };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (isfinite(values[i]))
            html_put(out, "<td class=\"n\">%.3f</td>", values[i]);
        else
            html_put(out, "<td class=\"n\"></td>");
    html_put(out, "</tr>\n");
}

static void put_matrix(FILE *out, const struct result_confusion *confusion)
{
    const struct confusion *matrix = &confusion->matrix;
    size_t n = matrix->classes.n;
    struct confusion_measures measures;
    if (n > MOST_CLASSES || !confusion_measure(matrix, KAPPA_NONE, &measures, NULL))
        return;
    html_put(out,
             "<h3>Confusion matrix <bdi>%s</bdi></h3><div class=\"scroll\" tabindex=\"0\" "
             "role=\"region\" aria-label=\"Confusion matrix\"><table class=\"confusion\"><thead>"
             "<tr><td></td><th scope=\"colgroup\" colspan=\"%zu\">predicted</th><td "
             "colspan=\"3\"></td></tr><tr><th scope=\"col\">truth</th>",
             confusion->name, n);
    for (size_t c = 0; c < n; c++)
        html_put(out, "<th scope=\"col\" class=\"n\"><bdi>%s</bdi></th>", matrix->classes.names[c]);
    html_put(out, "<th scope=\"col\" class=\"n\">recall</th><th scope=\"col\" class=\"n\">precision"
                  "</th><th scope=\"col\" class=\"n\">F1</th></tr></thead><tbody>\n");
    for (size_t row = 0; row < n; row++)
        put_row(out, matrix, &measures, row);
    html_put(out, "</tbody></table></div>\n<p>%lld in all: ", (long long)measures.n);
    put_measure(out, "accuracy", measures.accuracy, false);
    put_measure(out, "balanced accuracy", measures.balanced_accuracy, false);
    put_measure(out, "kappa", measures.kappa, true);
    html_put(out, "</p>\n");
    free(measures.classes);
}

void page_put_confusions(FILE *out, const struct page *page)
{
    for (size_t i = 0; i < page->results.n_confusions; i++)
        put_matrix(out, &page->results.confusions[i]);
}
