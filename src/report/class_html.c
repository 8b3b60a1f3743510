/* class_html.c: see class_html.h. */
#include "report/class_html.h"

#include <math.h>
#include <stdlib.h>
#include "base/class_colour.h"
#include "base/html.h"

#define MOST_AREAS 24 /* classes listed with a slide; all are in areas.csv */

void class_html_swatch(FILE *page, const struct heatmap_info *info, int64_t class_index)
{
    uint8_t(*rgb)[3] = malloc((size_t)info->n_classes * sizeof *rgb);
    if (!rgb)
        return; /* a decoration: the name is beside it */
    class_colours(info->class_names, info->n_classes, rgb);
    const uint8_t *c = rgb[class_index];
    html_put(
        page,
        "<span class=\"swatch\" style=\"background:rgb(%d,%d,%d)\" aria-hidden=\"true\"></span>",
        c[0], c[1], c[2]);
    free(rgb);
}

void class_html_areas(FILE *page, const struct slide_view *view)
{
    const struct heatmap_info *info = &view->info;
    for (int64_t c = 0; view->won && c < info->n_classes && c < MOST_AREAS; c++) {
        double mm2 = slide_view_class_mm2(view, c);
        html_put(page, "<div><dt>");
        class_html_swatch(page, info, c);
        html_put(page, "<bdi>%s</bdi></dt><dd>", info->class_names[c]);
        if (isfinite(mm2))
            html_put(page, "%.3f mm\xC2\xB2, ", mm2);
        double share = info->scored > 0 ? (double)view->won[c] / (double)info->scored : 0;
        html_put(page, "%.1f %%</dd></div>", 100 * share);
    }
}

void class_html_choice(FILE *page, const struct slide_view *view, size_t number)
{
    if (!view->won)
        return;
    html_put(page,
             "<p class=\"choice\"><label>show <select data-pictures=\"slides/%zu/\">"
             "<option value=\"-classes\" selected>class with the highest score</option>",
             number);
    for (int i = 0; i < view->n_classes; i++)
        html_put(page, "<option value=\"%s\">score of %s</option>", view->classes[i].suffix,
                 view->info.class_names[view->classes[i].index]);
    html_put(page, "</select></label></p>\n");
}

void class_html_legend(FILE *page, const struct slide_view *view)
{
    const struct heatmap_info *info = &view->info;
    if (!view->won)
        return;
    html_put(page, "<div class=\"of-classes\"><ul class=\"legend\">");
    for (int64_t c = 0; c < info->n_classes && c < MOST_AREAS; c++) {
        html_put(page, "<li>");
        class_html_swatch(page, info, c);
        html_put(page, "<bdi>%s</bdi></li>", info->class_names[c]);
    }
    html_put(page, "</ul>class with the highest mean score under each pixel</div>");
}
