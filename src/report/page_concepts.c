/* page_concepts.c: what networks have learnt, and what matters to them: the results of `explain
 * concepts` as tables with their plots (page_sections.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/html.h"
#include "base/text.h"
#include "report/page_sections.h"

#define MOST_PLOT_BYTES ((size_t)4 << 20)

static const char *const plots[] = { "learnt", "matters" };
static const char *const captions[] = { "R² by layer: which concepts are learnt",
                                        "Br by layer: which concepts matter" };

/* --- pictures --- */

/* Name of a plot in the page's folder; the caller's. */
static char *plot_name(size_t number, int plot)
{
    return text_format("concepts/%zu_%s.svg", number + 1, plots[plot]);
}

/* A plot that is not there is omitted. */
static bool copy_plot(const struct page *page, size_t number, int plot, struct err *err)
{
    struct file_out file;
    char *bytes = NULL, *name = plot_name(number, plot);
    char *from = text_format("%s/%s.svg", page->results.concepts[number].folder, plots[plot]);
    size_t size = 0;
    bool ok = (from && name) || err_memory(err, "a plot");
    if (ok && file_exists(from))
        ok = file_read(from, MOST_PLOT_BYTES, &bytes, &size, err) &&
             file_out_open_in(&file, page->request->output, name, err) &&
             (fwrite(bytes, 1, size, file.stream), file_out_commit(&file, err));
    free(bytes);
    free(from);
    free(name);
    return ok;
}

bool page_copy_concepts(const struct page *page, struct err *err)
{
    char *folder = text_format("%s/concepts", page->request->output);
    bool ok = folder || err_memory(err, "plots");
    if (page->results.n_concepts > 0)
        ok = ok && file_make_folder(folder, err);
    for (size_t i = 0; ok && i < page->results.n_concepts; i++)
        ok = copy_plot(page, i, 0, err) && copy_plot(page, i, 1, err);
    free(folder);
    return ok;
}

/* --- tables --- */

static void put_number(FILE *out, double value)
{
    if (isnan(value))
        html_put(out, "<td class=\"n\"></td>");
    else
        html_put(out, "<td class=\"n\" data-value=\"%.9g\">%.3f</td>", value, value);
}

static void put_p(FILE *out, double p)
{
    char text[CONCEPT_P_TEXT];
    if (isnan(p))
        html_put(out, "<td class=\"n\"></td>");
    else
        html_put(out, "<td class=\"n\" data-value=\"%.9g\">%s</td>", p, concept_p_text(p, text));
}

static void put_row(FILE *out, const struct concept_result *row)
{
    html_put(out, "<tr><td><bdi>%s</bdi></td><td><bdi>%s</bdi></td>", row->layer, row->concept);
    put_number(out, row->quality);
    put_p(out, row->p_holm);
    put_number(out, row->tcav);
    put_number(out, row->br);
    put_p(out, row->p_s_holm);
    html_put(out, "<td>%s%s</td></tr>\n", row->verdict,
             row->answers ? " (yes or no: AUC instead of R²)" : "");
}

static void put_study(FILE *out, const struct page *page, size_t number)
{
    const struct concept_results *study = &page->results.concepts[number].results;
    html_put(out,
             "<h3><bdi>%s</bdi></h3>\n<p>Score of the class <bdi>%s</bdi>; %lld patches of %lld "
             "patients in %lld folds. R² is cross-validated over patients; p-values are against "
             "%lld permuted concepts, corrected for the number of tests.</p>\n",
             study->model, study->class_name, (long long)study->patches, (long long)study->patients,
             (long long)study->folds, (long long)study->permutations);
    for (int plot = 0; plot < 2; plot++) {
        char *name = plot_name(number, plot);
        char *path = name ? text_format("%s/%s", page->request->output, name) : NULL;
        if (path && file_exists(path))
            html_put(out,
                     "<figure><img src=\"%s\" alt=\"%s\"><figcaption>%s</figcaption></figure>\n",
                     name, captions[plot], captions[plot]);
        free(path);
        free(name);
    }
    html_put(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of "
                  "concepts\"><table class=\"sortable\"><thead><tr><th scope=\"col\">layer</th>"
                  "<th scope=\"col\">concept</th><th scope=\"col\">R²</th><th scope=\"col\">p of "
                  "R²</th><th scope=\"col\">TCAV</th><th scope=\"col\">Br</th><th scope=\"col\">p "
                  "of S</th><th scope=\"col\">verdict</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < study->n; i++)
        put_row(out, &study->rows[i]);
    html_put(out, "</tbody></table></div>\n");
}

void page_put_concepts(FILE *out, const struct page *page)
{
    if (page->results.n_concepts == 0)
        return;
    html_put(out, "<section id=\"concepts\"><h2>Concepts</h2>\n");
    for (size_t i = 0; i < page->results.n_concepts; i++)
        put_study(out, page, i);
    html_put(out, "</section>\n");
}
