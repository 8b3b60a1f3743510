/* page_sweep.c: the combinations of a sweep (page_sections.h). */
#include <stdlib.h>
#include <string.h>
#include "base/html.h"
#include "report/page_sections.h"

/* Numbers with four significant digits; other cells as they are. */
static void put_cell(FILE *out, const char *cell, bool best)
{
    char *end = NULL;
    double number = strtod(cell, &end);
    bool numeric = end != cell && !*end;
    if (numeric)
        html_put(out, "<td class=\"n\" data-value=\"%.9g\">", number);
    else
        html_put(out, "<td>");
    html_put(out, best ? "<strong>" : "");
    if (numeric)
        html_put(out, "%.4g", number);
    else
        html_put(out, "<bdi>%s</bdi>", cell);
    html_put(out, best ? "</strong></td>" : "</td>");
}

static void put_sweep(FILE *out, const struct result_sweep *sweep)
{
    const struct csv *csv = &sweep->table;
    const char *slash = strrchr(sweep->folder, '/');
    int best = csv_column(csv, "best");
    html_put(out,
             "<h3><bdi>%s</bdi></h3>\n<p>In bold: the best by validation.</p>\n<div "
             "class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of "
             "combinations\"><table class=\"sortable\"><thead><tr>",
             slash ? slash + 1 : sweep->folder);
    for (size_t c = 0; c < csv->n_columns; c++)
        if ((int)c != best)
            html_put(out, "<th scope=\"col\">%s</th>", csv->names[c]);
    html_put(out, "</tr></thead><tbody>\n");
    for (size_t row = 0; row < csv->n_rows; row++) {
        bool is_best = strcmp(csv_cell(csv, row, best), "1") == 0;
        html_put(out, "<tr>");
        for (size_t c = 0; c < csv->n_columns; c++)
            if ((int)c != best)
                put_cell(out, csv_cell(csv, row, (int)c), is_best);
        html_put(out, "</tr>\n");
    }
    html_put(out, "</tbody></table></div>\n");
}

void page_put_sweeps(FILE *out, const struct page *page)
{
    const struct results *results = &page->results;
    if (results->n_sweeps == 0)
        return;
    html_put(out, "<section id=\"sweeps\"><h2>Sweeps</h2>\n");
    for (size_t i = 0; i < results->n_sweeps; i++)
        put_sweep(out, &results->sweeps[i]);
    html_put(out, "</section>\n");
}
