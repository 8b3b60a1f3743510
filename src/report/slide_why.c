/* slide_why.c: the maps of a slide's windows on the page (slide_view.h). */
#include <stdlib.h>
#include "base/html.h"
#include "base/text.h"
#include "report/slide_view.h"

#define JPEG_QUALITY 88

bool slide_why_make(const struct result_slide *slide, const char *folder, struct slide_view *view,
                    struct err *err)
{
    struct err why = { 0 };
    for (size_t i = 0; i < slide->n_whys && i < VIEW_WHYS; i++) {
        for (size_t k = 0; k < slide->whys[i].n; k++) {
            struct image image = { 0 };
            if (!image_read_png(slide->whys[i].pictures[k], 3, &image, &why)) {
                snprintf(view->problem, sizeof view->problem, "%s", why.text);
                return true;
            }
            char *path = text_format("%s/why%zu-%zu.jpg", folder, i + 1, k + 1);
            bool ok = path ? image_write_jpeg(path, &image, JPEG_QUALITY, err)
                           : err_memory(err, "a picture");
            image_free(&image);
            free(path);
            if (!ok)
                return false;
        }
        view->n_whys++;
    }
    return true;
}

void slide_why_write(FILE *page, const struct result_slide *slide, const struct slide_view *view,
                     size_t number)
{
    if (view->n_whys == 0)
        return;
    html_put(page,
             "<details open><summary>Why <bdi>%s</bdi>: windows beside their maps</summary>"
             "<ul class=\"whys\">",
             slide->why_class);
    for (size_t i = 0; i < view->n_whys; i++) {
        const struct result_why *why = &slide->whys[i];
        for (size_t k = 0; k < why->n; k++)
            html_put(page,
                     "<li><figure><img src=\"slides/%zu/why%zu-%zu.jpg\" loading=\"lazy\" "
                     "alt=\"Window with score %.3f beside a map of it\"><figcaption><b>%.3f</b> at "
                     "%lld, %lld<br>%s</figcaption></figure></li>",
                     number, i + 1, k + 1, why->score, why->score, (long long)why->x_l0,
                     (long long)why->y_l0, why->titles[k]);
    }
    html_put(page, "</ul></details>\n");
}
