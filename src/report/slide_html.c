/* slide_html.c: the section of one slide (slide_view.h). */
#include <math.h>
#include "report/class_html.h"
#include "base/html.h"
#include "report/slide_view.h"

static void put_fact(FILE *page, const char *name, const char *format, double value)
{
    if (!isfinite(value))
        return;
    char text[48];
    snprintf(text, sizeof text, format, value);
    html_put(page, "<div><dt>%s</dt><dd>%s</dd></div>", name, text);
}

static void put_facts(FILE *page, const struct result_slide *slide, const struct slide_view *view)
{
    html_put(page, "<dl class=\"facts\">");
    put_fact(page, "slide score", "%.3f", slide->score);
    bool number = heatmap_is_number(&view->info);
    if (!view->won) {
        put_fact(page, number ? "highest patch value" : "highest patch score", "%.3f", view->max);
        put_fact(page, number ? "mean patch value" : "mean patch score", "%.3f", view->mean);
    }
    double area = isfinite(slide->tissue_mm2) ? slide->tissue_mm2 : view->tissue_mm2;
    put_fact(page, "tissue", "%.2f mm\xC2\xB2", area);
    class_html_areas(page, view);
    if (view->info.scored > 0)
        html_put(page, "<div><dt>scores</dt><dd>%lld, every %lld px</dd></div>",
                 (long long)view->info.scored, (long long)view->info.stride);
    if (isfinite(slide->seconds)) {
        html_put(page, "<div><dt>time</dt><dd>");
        html_duration(page, slide->seconds);
        html_put(page, "</dd></div>");
    }
    html_put(page, "</dl>\n");
}

/* A round length of about a fifth of the picture or less. */
static void put_scale(FILE *page, const struct slide_view *view)
{
    static const double lengths_um[] = { 50000, 20000, 10000, 5000, 2000, 1000, 500,
                                         200,   100,   50,    20,   10,   5 };
    double width_um = (double)view->info.width_l0 * view->info.mpp_l0;
    if (!(width_um > 0))
        return;
    for (size_t i = 0; i < sizeof lengths_um / sizeof *lengths_um; i++) {
        double length = lengths_um[i];
        if (length > 0.22 * width_um)
            continue;
        html_put(page, "<div class=\"scale\" style=\"width:%.3f%%\">%g %s</div>",
                 100 * length / width_um, length < 1000 ? length : length / 1000,
                 length < 1000 ? "\xC2\xB5m" : "mm");
        return;
    }
}

static void put_layer(FILE *page, size_t number, const char *kind, const char *file)
{
    html_put(page, "<img class=\"layer %s\" src=\"slides/%zu/%s\" alt=\"\" loading=\"lazy\">", kind,
             number, file);
}

static void put_switch(FILE *page, const char *kind, const char *key, const char *words)
{
    html_put(page,
             "<label><input type=\"checkbox\" checked data-layer=\"%s\"> <span class=\"key "
             "key-%s\" aria-hidden=\"true\"></span>%s</label>",
             kind, key, words);
}

static void put_over(FILE *page, const struct result_slide *slide, const struct slide_view *view,
                     size_t number)
{
    html_put(page, "<figure><div class=\"stage\" style=\"aspect-ratio:%lld/%lld\">",
             (long long)view->width, (long long)view->height);
    if (view->overview)
        html_put(page,
                 "<img src=\"slides/%zu/overview.jpg\" width=\"%lld\" height=\"%lld\" "
                 "loading=\"lazy\" alt=\"Overview of slide %s with the heatmap on top\">",
                 number, (long long)view->width, (long long)view->height, slide->name);
    put_layer(page, number, "heat", view->won ? "overlay-classes.png" : "overlay.png");
    put_layer(page, number, "tissue", "tissue.svg");
    if (view->truth)
        put_layer(page, number, "truth", "truth.svg");
    if (view->n_lesions > 0)
        put_layer(page, number, "lesions", "lesions.svg");
    put_scale(page, view);
    html_put(page,
             "</div><figcaption><div class=\"slider\"><label for=\"opacity-%zu\">heatmap</label>"
             "<input type=\"range\" id=\"opacity-%zu\" min=\"0\" max=\"100\" value=\"70\" "
             "data-opacity aria-label=\"Opacity of the heatmap, in per cent\"></div>"
             "<div class=\"switches\">",
             number, number);
    put_switch(page, "tissue", "tissue", "scored tissue");
    if (view->truth)
        put_switch(page, "truth", view->won ? "classes" : "truth", "annotation");
    if (view->n_lesions > 0)
        put_switch(page, "lesions", "lesions", "lesions");
    html_put(page, "</div></figcaption></figure>\n");
}

static void put_beside(FILE *page, const struct result_slide *slide, const struct slide_view *view,
                       size_t number)
{
    const struct heatmap_info *info = &view->info;
    html_put(page,
             "<figure><div class=\"stage plain\" style=\"aspect-ratio:%lld/%lld\">"
             "<img class=\"beside\" src=\"slides/%zu/heat%s.png\" width=\"%lld\" height=\"%lld\" "
             "loading=\"lazy\" ",
             (long long)view->width, (long long)view->height, number, view->won ? "-classes" : "",
             (long long)view->width, (long long)view->height);
    if (view->won)
        html_put(page, "alt=\"Classes on slide %s\"></div><figcaption>", slide->name);
    else
        html_put(page, "alt=\"Heatmap of slide %s: highest score %.2f\"></div><figcaption>",
                 slide->name, isfinite(view->max) ? view->max : 0.0);
    class_html_legend(page, view);
    struct heatmap_number range = heatmap_range(info);
    html_put(page,
             "<div class=\"of-score\"><div class=\"ramp\"><span>%.3g</span><span "
             "class=\"colours\" aria-hidden=\"true\"></span><span>%.3g</span></div>%s"
             "<bdi class=\"which\">%s</bdi>%s%s; each pixel shows the highest %s under it</div>"
             "</figcaption></figure>\n",
             range.min, range.max, heatmap_is_number(info) ? "" : "score of ",
             info->class_names[heatmap_main_class(info)], range.unit[0] ? ", " : "", range.unit,
             heatmap_is_number(info) ? "value" : "score");
}

static void put_windows(FILE *page, const struct slide_view *view, const struct view_class *class,
                        size_t number)
{
    html_put(page, "<ul class=\"patches\">");
    for (int i = 0; i < class->n_peaks; i++) {
        const struct picture_peak *peak = &class->peaks[i];
        struct heatmap_cell cell = heatmap_cell(&view->info, peak->column, peak->row);
        long long x = cell.x_l0 + cell.width_l0 / 2, y = cell.y_l0 + cell.height_l0 / 2;
        html_put(page,
                 "<li><figure><img src=\"slides/%zu/peak%d%s.jpg\" loading=\"lazy\" width=\"224\" "
                 "height=\"224\" alt=\"Window with score %.3f around pixel %lld, %lld\">"
                 "<figcaption><b>%.3f</b> at %lld, %lld</figcaption></figure></li>",
                 number, i + 1, class->suffix, peak->score, x, y, peak->score, x, y);
    }
    html_put(page, "</ul>\n");
}

/* Of more than two classes, only the main one's windows are unfolded. */
static void put_peaks(FILE *page, const struct slide_view *view, size_t number)
{
    for (int i = view->n_classes - 1; i >= 0; i--) {
        const struct view_class *class = &view->classes[i];
        if (!class->patches)
            continue;
        if (!view->won) {
            html_put(page, "<h4>Highest-scoring windows</h4>");
            put_windows(page, view, class, number);
            continue;
        }
        html_put(page, "<details%s><summary>Highest-scoring windows: ",
                 i == view->n_classes - 1 ? " open" : "");
        class_html_swatch(page, &view->info, class->index);
        html_put(page, "<bdi>%s</bdi></summary>", view->info.class_names[class->index]);
        put_windows(page, view, class, number);
        html_put(page, "</details>\n");
    }
}

static void put_lesions(FILE *page, const struct slide_view *view)
{
    if (view->n_lesions == 0)
        return;
    html_put(page,
             "<details><summary>Lesions: %zu%s</summary><div class=\"scroll\"><table><thead>"
             "<tr><th scope=\"col\">#</th><th scope=\"col\">score</th><th scope=\"col\">x "
             "(px)</th><th scope=\"col\">y (px)</th></tr></thead><tbody>",
             view->all_lesions,
             view->all_lesions > VIEW_LESIONS ? " (showing the ten with the highest scores)" : "");
    for (size_t i = 0; i < view->n_lesions; i++)
        html_put(page, "<tr><td>%zu</td><td>%.3f</td><td>%.0f</td><td>%.0f</td></tr>", i + 1,
                 view->lesions[i].score, view->lesions[i].x_l0, view->lesions[i].y_l0);
    html_put(page, "</tbody></table></div></details>\n");
}

void slide_view_write(FILE *page, const struct result_slide *slide, const struct slide_view *view,
                      size_t number)
{
    html_put(page, "<article class=\"slide\" id=\"slide-%zu\"><h3><bdi>%s</bdi>", number,
             slide->name);
    if (slide->label[0])
        html_put(page, " <span class=\"tag\"><bdi>%s</bdi></span>", slide->label);
    html_put(page, "</h3>\n");
    put_facts(page, slide, view);
    if (view->no_tissue)
        html_put(page, "<p>No tissue was found on this slide.</p>\n");
    if (view->problem[0])
        html_put(page, "<p class=\"problem\">%s</p>\n", view->problem);
    if (view->heat) {
        class_html_choice(page, view, number);
        html_put(page, "<div class=\"panes\">");
        put_over(page, slide, view, number);
        put_beside(page, slide, view, number);
        html_put(page, "</div>\n");
        put_peaks(page, view, number);
    }
    slide_why_write(page, slide, view, number);
    put_lesions(page, view);
    html_put(page, "</article>\n");
}
