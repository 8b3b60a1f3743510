/* page_sections.c: summary, cohort table and runs (page_sections.h). */
#include "report/page_sections.h"

#include <math.h>
#include <string.h>
#include "base/html.h"

/* The facts of the first heatmap, which apply to all unless others differ. */
static const struct heatmap_info *common_info(const struct page *page, bool *differ)
{
    const struct heatmap_info *first = NULL;
    *differ = false;
    for (size_t i = 0; i < page->results.n_slides; i++) {
        const struct heatmap_info *info = &page->views[i].info;
        if (!info->options)
            continue;
        if (!first)
            first = info;
        else if (strcmp(first->options, info->options) != 0 ||
                 strcmp(first->model_hash, info->model_hash) != 0)
            *differ = true;
    }
    return first;
}

static double area_under(const struct result_curve *curve)
{
    double area = 0;
    for (int64_t i = 1; i < curve->n; i++)
        area += (curve->x[i] - curve->x[i - 1]) * (curve->y[i] + curve->y[i - 1]) / 2;
    return area;
}

const struct heatmap_info *page_classes(const struct page *page)
{
    const struct heatmap_info *first = NULL;
    for (size_t i = 0; i < page->results.n_slides; i++) {
        const struct heatmap_info *info = &page->views[i].info;
        if (!page->views[i].won || !isfinite(slide_view_class_mm2(&page->views[i], 0)))
            continue;
        if (!first)
            first = info;
        bool same = info->n_classes == first->n_classes && info->n_classes <= VIEW_CLASSES;
        for (int64_t c = 0; same && c < info->n_classes; c++)
            same = strcmp(info->class_names[c], first->class_names[c]) == 0;
        if (!same)
            return NULL;
    }
    return first;
}

int64_t page_class_of_curve(const struct page *page, const struct result_curve *curve)
{
    const struct heatmap_info *info = page_classes(page);
    for (int64_t c = 0; info && c < info->n_classes; c++)
        if (strcmp(info->class_names[c], curve->name) == 0)
            return c;
    return -1;
}

/* The areas under the ROC curves of the classes: their mean if each has one, NAN otherwise. */
static double macro_auc(const struct page *page)
{
    const struct heatmap_info *info = page_classes(page);
    double sum = 0;
    int64_t n = 0;
    for (size_t i = 0; info && i < page->results.n_curves; i++) {
        const struct result_curve *curve = &page->results.curves[i];
        if (curve->kind == CURVE_ROC && page_class_of_curve(page, curve) >= 0)
            sum += area_under(curve), n++;
    }
    return info && n == info->n_classes ? sum / (double)n : NAN;
}

static void put_card(FILE *out, const char *name, const char *text)
{
    html_put(out, "<div><dt>%s</dt><dd>%s</dd></div>", name, text);
}

static void put_links(FILE *out, const struct page *page)
{
    const struct results *results = &page->results;
    html_put(out, "<nav aria-label=\"Sections\"><ul>");
    if (results->n_slides > 0)
        html_put(out, "<li><a href=\"#cohort\">Cohort</a></li>");
    if (results->n_curves > 0 || results->n_confusions > 0)
        html_put(out, "<li><a href=\"#curves\">Performance</a></li>");
    if (results->n_slides > 0)
        html_put(out, "<li><a href=\"#slides\">Slides</a></li>");
    if (results->n_sweeps > 0)
        html_put(out, "<li><a href=\"#sweeps\">Sweeps</a></li>");
    if (results->n_trainings > 0)
        html_put(out, "<li><a href=\"#training\">Training</a></li>");
    if (results->n_runs > 0)
        html_put(out, "<li><a href=\"#runs\">How it was made</a></li>");
    html_put(out, "</ul></nav>\n");
}

/* Of slides: the first curve that is not of a class. */
static void put_auc(FILE *out, const struct page *page)
{
    char text[64];
    snprintf(text, sizeof text, "%.3f", macro_auc(page));
    if (isfinite(macro_auc(page)))
        put_card(out, "mean AUC of classes", text);
    for (size_t i = 0; i < page->results.n_curves; i++) {
        const struct result_curve *curve = &page->results.curves[i];
        if (curve->kind != CURVE_ROC || page_class_of_curve(page, curve) >= 0)
            continue;
        snprintf(text, sizeof text, "%.3f", area_under(curve));
        put_card(out, "slide AUC", text);
        return;
    }
}

void page_put_summary(FILE *out, const struct page *page)
{
    bool differ;
    char text[64];
    const struct heatmap_info *info = common_info(page, &differ);
    html_put(out, "<dl class=\"cards\">");
    snprintf(text, sizeof text, "%zu", page->results.n_slides);
    if (page->results.n_slides > 0)
        put_card(out, "slides", text);
    put_auc(out, page);
    if (info && !differ) {
        put_card(out, "model", info->models);
        put_card(out, "weights", info->model_hash);
        snprintf(text, sizeof text, "%lld px, %s", (long long)info->stride, info->mode);
        put_card(out, "stride", text);
        if (info->mpp > 0) {
            snprintf(text, sizeof text, "%.3g \xC2\xB5m/px", info->mpp);
            put_card(out, "resolution", text);
        }
    } else if (info) {
        put_card(out, "models", "differ between slides");
    }
    html_put(out, "</dl>\n");
    put_links(out, page);
}

static void put_number_cell(FILE *out, const char *format, double value, bool bar)
{
    if (!isfinite(value)) {
        html_put(out, "<td class=\"n\"></td>");
        return;
    }
    char text[48];
    snprintf(text, sizeof text, format, value);
    html_put(out, "<td class=\"n\" data-value=\"%.9g\">", value);
    if (bar)
        html_put(out, "<span class=\"bar\" style=\"--v:%.3f\">%s</span></td>",
                 value < 0   ? 0
                 : value > 1 ? 1
                             : value,
                 text);
    else
        html_put(out, "%s</td>", text);
}

/* Empty columns are omitted. */
struct columns {
    bool label, score, highest, tissue, lesions, seconds, note;
    const struct heatmap_info *classes; /* a column for the area of each; NULL: none */
    int64_t n_classes;
};

static double tissue_of(const struct result_slide *slide, const struct slide_view *view)
{
    return isfinite(slide->tissue_mm2) ? slide->tissue_mm2 : view->tissue_mm2;
}

static struct columns columns_of(const struct page *page)
{
    struct columns columns = { .classes = page_classes(page) };
    columns.n_classes = columns.classes ? columns.classes->n_classes : 0;
    for (size_t i = 0; i < page->results.n_slides; i++) {
        const struct result_slide *slide = &page->results.slides[i];
        const struct slide_view *view = &page->views[i];
        columns.label |= slide->label[0] != '\0';
        columns.score |= isfinite(slide->score);
        columns.highest |= isfinite(view->max) && !view->won;
        columns.tissue |= isfinite(tissue_of(slide, view));
        columns.lesions |= slide->lesions != NULL;
        columns.seconds |= isfinite(slide->seconds);
        columns.note |= view->problem[0] != '\0' || view->no_tissue;
    }
    return columns;
}

static void put_head(FILE *out, const struct columns *columns)
{
    html_put(out, "<thead><tr><th scope=\"col\">slide</th>");
    if (columns->label)
        html_put(out, "<th scope=\"col\">label</th>");
    if (columns->score)
        html_put(out, "<th scope=\"col\" class=\"n\">slide score</th>");
    if (columns->highest)
        html_put(out, "<th scope=\"col\" class=\"n\">highest patch score</th>");
    if (columns->tissue)
        html_put(out, "<th scope=\"col\" class=\"n\">tissue (mm\xC2\xB2)</th>");
    for (int64_t c = 0; c < columns->n_classes; c++)
        html_put(out, "<th scope=\"col\" class=\"n\">%s (mm\xC2\xB2)</th>",
                 columns->classes->class_names[c]);
    if (columns->lesions)
        html_put(out, "<th scope=\"col\" class=\"n\">lesions</th>");
    if (columns->seconds)
        html_put(out, "<th scope=\"col\" class=\"n\">time</th>");
    if (columns->note)
        html_put(out, "<th scope=\"col\">note</th>");
    html_put(out, "</tr></thead>");
}

static void put_row(FILE *out, const struct columns *columns, const struct result_slide *slide,
                    const struct slide_view *view, size_t number)
{
    html_put(out, "<tr><td class=\"name\"><a href=\"#slide-%zu\"><bdi>%s</bdi></a></td>", number,
             slide->name);
    if (columns->label)
        html_put(out, "<td><bdi>%s</bdi></td>", slide->label);
    if (columns->score)
        put_number_cell(out, "%.3f", slide->score, true);
    if (columns->highest)
        put_number_cell(out, "%.3f", view->won ? NAN : view->max, !heatmap_is_number(&view->info));
    if (columns->tissue)
        put_number_cell(out, "%.2f", tissue_of(slide, view), false);
    for (int64_t c = 0; c < columns->n_classes; c++)
        put_number_cell(out, "%.3f", slide_view_class_mm2(view, c), false);
    if (columns->lesions)
        put_number_cell(out, "%.0f", slide->lesions ? (double)view->all_lesions : NAN, false);
    if (columns->seconds) {
        html_put(out, "<td class=\"n\" data-value=\"%.3f\">", slide->seconds);
        html_duration(out, slide->seconds);
        html_put(out, "</td>");
    }
    if (columns->note)
        html_put(out, "<td>%s%s</td>", view->no_tissue ? "no tissue was found. " : "",
                 view->problem);
    html_put(out, "</tr>\n");
}

void page_put_cohort(FILE *out, const struct page *page)
{
    const struct results *results = &page->results;
    if (results->n_slides == 0)
        return;
    struct columns columns = columns_of(page);
    html_put(out, "<section id=\"cohort\"><h2>Cohort</h2>\n<div class=\"scroll\" tabindex=\"0\" "
                  "role=\"region\" aria-label=\"Table of slides\"><table class=\"sortable\">");
    put_head(out, &columns);
    html_put(out, "<tbody>\n");
    for (size_t i = 0; i < results->n_slides; i++)
        put_row(out, &columns, &results->slides[i], &page->views[i], i + 1);
    html_put(out, "</tbody></table></div>\n");
    bool areas = false;
    for (size_t i = 0; i < results->n_slides; i++)
        areas |= page->views[i].won != NULL;
    if (areas)
        html_put(out, "<p>The area of a class is where it has the highest score; all areas are in "
                      "<a href=\"areas.csv\">areas.csv</a>.</p>\n");
    html_put(out, "</section>\n");
}

static void put_model(FILE *out, const struct page *page)
{
    bool differ;
    const struct heatmap_info *info = common_info(page, &differ);
    if (!info || differ)
        return;
    html_put(
        out,
        "<p>Heatmaps: <b>%s</b> (weights <code>%s</code>), mode %s, window %lld px, stride %lld "
        "px.</p>\n<p><code>%s</code></p>\n",
        info->models, info->model_hash, info->mode, (long long)info->window,
        (long long)info->stride, info->options);
    if (info->check.windows > 0)
        html_put(
            out,
            "<p>Dense prediction compared with the sliding window on %lld random windows: "
            "correlation %.4f, "
            "mean difference %.4f, 95 %% below %.4f, largest %.4f, %.2f %% of decisions at 0.5 "
            "differ.</p>\n",
            (long long)info->check.windows, info->check.r, info->check.mean, info->check.p95,
            info->check.max, 100 * info->check.flipped);
}

static void put_run(FILE *out, const struct result_run *run)
{
    html_put(out, "<tr><td>%s</td><td class=\"time\">%s</td><td class=\"n\">", run->command,
             run->began);
    if (run->slides > 0)
        html_put(out, "%zu", run->slides);
    if (run->failed > 0)
        html_put(out, " (%zu failed)", run->failed);
    html_put(out, "</td><td class=\"n\">");
    html_duration(out, run->seconds);
    html_put(out, "%s%s</td><td class=\"n\">", run->state[0] ? ", " : "", run->state);
    if (isfinite(run->core_seconds))
        html_put(out, "%.3g", run->core_seconds / 3600);
    html_put(out, "</td><td>%s</td><td><code>%s</code></td></tr>\n", run->version, run->arguments);
}

void page_put_runs(FILE *out, const struct page *page)
{
    const struct results *results = &page->results;
    if (results->n_runs == 0 && results->problems.n == 0)
        return;
    double total = 0;
    html_put(out, "<section id=\"runs\"><h2>How it was made</h2>\n");
    put_model(out, page);
    if (results->n_runs > 0) {
        html_put(out,
                 "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of "
                 "runs\"><table><thead><tr><th scope=\"col\">command</th><th scope=\"col\">started"
                 "</th><th scope=\"col\" class=\"n\">slides</th><th scope=\"col\" class=\"n\">time"
                 "</th><th scope=\"col\" class=\"n\">core-hours</th><th scope=\"col\">version</th>"
                 "<th scope=\"col\">command line</th></tr></thead><tbody>\n");
        for (size_t i = 0; i < results->n_runs; i++) {
            put_run(out, &results->runs[i]);
            total += isfinite(results->runs[i].core_seconds) ? results->runs[i].core_seconds : 0;
        }
        html_put(out, "</tbody></table></div>\n<p>Total: %.3g core-hours.</p>\n", total / 3600);
    }
    for (size_t i = 0; i < results->problems.n; i++)
        html_put(out, "<p class=\"problem\">%s</p>\n", results->problems.items[i]);
    html_put(out, "</section>\n");
}
