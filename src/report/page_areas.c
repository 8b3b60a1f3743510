/* page_areas.c: the areas of classes as a table (page_sections.h): slide,class,area_mm2,share. */
#include <math.h>
#include "base/csv.h"
#include "base/file.h"
#include "report/page_sections.h"

#define NAME "areas.csv"

static void write_slide(FILE *stream, const struct result_slide *slide,
                        const struct slide_view *view)
{
    const struct heatmap_info *info = &view->info;
    for (int64_t c = 0; c < info->n_classes; c++) {
        double mm2 = slide_view_class_mm2(view, c);
        csv_write_cell(stream, slide->name);
        fputc(',', stream);
        csv_write_cell(stream, info->class_names[c]);
        if (isfinite(mm2))
            fprintf(stream, ",%.6g", mm2);
        else
            fputc(',', stream);
        fprintf(stream, ",%.6g\n",
                info->scored > 0 ? (double)view->won[c] / (double)info->scored : 0);
    }
}

bool page_write_areas(const struct page *page, struct err *err)
{
    bool any = false;
    for (size_t i = 0; i < page->results.n_slides; i++)
        any |= page->views[i].won != NULL;
    if (!any) {
        file_remove_in(page->request->output, NAME);
        return true;
    }
    struct file_out out;
    if (!file_out_open_in(&out, page->request->output, NAME, err))
        return false;
    fputs("slide,class,area_mm2,share\n", out.stream);
    for (size_t i = 0; i < page->results.n_slides; i++)
        if (page->views[i].won)
            write_slide(out.stream, &page->results.slides[i], &page->views[i]);
    return file_out_commit(&out, err);
}
